"""The rules about channels of signals, and the checks of sinks and heartbeats."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from rowtide.connector.check import Finding, Severity, check_database
from rowtide.connector.check.facts import ColumnFact, TableFact
from rowtide.connector.check.signal_rules import signal_findings
from rowtide.connector.check.sink import sink_findings
from rowtide.connector.config import Configuration, from_properties
from tests.support.configurations import PROPERTIES
from tests.support.connector_properties import address
from tests.support.processes.worker_process import eventually

if TYPE_CHECKING:
    from rowtide_stack import Database

Configured = Callable[..., Configuration]
_COLUMNS = tuple(ColumnFact(name, "text", nullable=True) for name in ("id", "type", "data"))
TABLES = (TableFact("shop", "signals", _COLUMNS), TableFact("my.db", "signals", _COLUMNS), TableFact("shop", "two", ()))


@pytest.mark.parametrize(
    ("collection", "message"),
    [
        ("shop.signals", None),
        ("`my.db`.signals", None),
        ("my.db.signals", "table my.db.signals does not exist, so its signals are not read: write `my.db`.signals"),
        ("Shop.SIGNALS", "table Shop.SIGNALS does not exist, so its signals are not read: write shop.signals"),
        ("shop.two", "table shop.two has 0 columns: a signal needs the columns id, type and data"),
        ("shop.none", "table shop.none does not exist, so no signal can be inserted. Create it"),
    ],
)
def test_the_signal_table(configured: Configured, collection: str, message: str | None) -> None:
    found = list(signal_findings(configured({"signal.data.collection": collection}), TABLES, None))
    if message is None:
        assert found == []
        return
    (finding,) = found
    assert (finding.severity, finding.subject) == (Severity.WARNING, "signal.data.collection")
    assert message in finding.message


def test_a_signal_table_that_is_not_read(configured: Configured) -> None:
    off = {"signal.data.collection": "shop.none", "signal.enabled.channels": "file"}
    assert list(signal_findings(configured(off), TABLES, None)) == []


def test_channels(configured: Configured) -> None:
    config = configured({"signal.enabled.channels": "kafka, jmx", "signal.kafka.topic": "signals"})
    found = {finding.subject: finding.message for finding in signal_findings(config, TABLES, {"other": 1})}
    assert set(found) == {"signal.enabled.channels", "signal.kafka.topic"}
    assert f"POST /connectors/{config.name}/signals" in found["signal.enabled.channels"]
    assert "topic signals does not exist" in found["signal.kafka.topic"]
    assert list(signal_findings(configured({"signal.enabled.channels": "kafka"}), None, {"shop-signal": 1})) == []
    (finding,) = signal_findings(configured({"signal.enabled.channels": "kafka"}), None, {"shop-signal": 2})
    assert "has 2 partitions, and signals are read from partition 0 only" in finding.message
    other = {"signal.enabled.channels": "kafka", "signal.kafka.bootstrap.servers": "other:9092"}
    assert list(signal_findings(configured(other), None, {})) == [], "the topics are those of another cluster"


def test_a_sink_that_nobody_serves(configured: Configured) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}/records"
        assert list(sink_findings(configured({"rowtide.sink": url}))) == []
    (finding,) = sink_findings(configured({"rowtide.sink": url}))
    assert (finding.severity, finding.subject) == (Severity.WARNING, "rowtide.sink")
    assert "nothing answers at 127.0.0.1:" in finding.message
    assert list(sink_findings(configured())) == []


@pytest.mark.servers
@pytest.mark.parametrize("kind", ["mysql_db", "mariadb_db"])
def test_a_heartbeat_that_the_server_refuses(request: pytest.FixtureRequest, kind: str) -> None:
    database: Database = request.getfixturevalue(kind)
    database.execute("CREATE TABLE beats (id INT PRIMARY KEY, at DATETIME)")

    def checked(query: str, **properties: str) -> list[Finding]:
        more = {"heartbeat.action.query": query, "heartbeat.interval.ms": "1000", "database.query.timeout.ms": "5000"}
        config = from_properties({**PROPERTIES, **address(database.server), **more, **properties})
        return list(check_database(config)[0])

    def findings(query: str, **properties: str) -> list[Finding]:
        return [one for one in checked(query, **properties) if one.subject == "heartbeat.action.query"]

    query = f"INSERT INTO {database.name}.beats VALUES (1, NOW()) ON DUPLICATE KEY UPDATE at = NOW()"
    assert findings(query) == []
    others = checked(query)
    alter = threading.Thread(target=database.execute, args=["ALTER TABLE beats ADD more INT"])
    with database.server.connect(database.name) as connection, connection.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("SELECT * FROM beats")
        alter.start()
        waiting = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE STATE = 'Waiting for table metadata lock'"
        eventually(lambda: database.query(waiting) == [(1,)], "ALTER TABLE waits")
        assert checked(query) == others, "the check does not wait for locks"
    alter.join()
    assert database.query("SELECT COUNT(*) FROM beats") == [(0,)], "the check changes nothing"
    (finding,) = findings(f"INSERT INTO {database.name}.none VALUES (1)")
    assert finding.severity is Severity.WARNING
    assert "none' doesn't exist" in finding.message
    for wrong in ("INSRT x", f"DELETE FROM {database.name}.beats; SELECT 1"):
        (finding,) = findings(wrong)
        assert "error in your SQL syntax" in finding.message
    (finding,) = findings("SELECT 1", **{"heartbeat.interval.ms": "0"})
    assert "set heartbeat.interval.ms" in finding.message


@pytest.mark.servers
def test_a_query_of_the_snapshot_that_the_server_refuses(mariadb_db: Database) -> None:
    name = mariadb_db.name
    mariadb_db.execute("CREATE TABLE right_one (id INT)", "CREATE TABLE wrong_one (id INT)")
    overrides = "snapshot.select.statement.overrides"
    more = {
        overrides: f"{name}.right_one,{name}.wrong_one,{name}.none",
        f"{overrides}.{name}.right_one": f"SELECT * FROM {name}.right_one WHERE id % 2 = 0",
        f"{overrides}.{name}.wrong_one": f"SELECT * FRM {name}.wrong_one",
        f"{overrides}.{name}.none": "SELECT 1",
        "snapshot.include.collection.list": f"{name}.no_table",
    }
    config = from_properties({**PROPERTIES, **address(mariadb_db.server), **more})
    found = {one.subject: one.message for one in check_database(config)[0] if one.subject.startswith("snapshot.")}
    assert set(found) == {
        f"{overrides}.{name}.wrong_one",
        f"{overrides}.{name}.none",
        "snapshot.include.collection.list",
    }
    assert "error in your SQL syntax" in found[f"{overrides}.{name}.wrong_one"]
    assert "does not exist" in found[f"{overrides}.{name}.none"]
