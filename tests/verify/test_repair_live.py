"""``rowtide verify --repair`` with real servers: lost, altered and extra records are mended while rows change."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.processes.worker_process import Worker, WorkerConfig
from tests.verify.damages import KEYED, MORE, ROWS, Damages, campaign, found, load, repaired, report, run
from tests.verify.test_verification_live import database

if TYPE_CHECKING:
    from rowtide_stack import Database, Kafka

    from tests.support.kafka.topic_tools import Topics

__all__ = ["database"]

pytestmark = pytest.mark.servers

SIGNALS = "CREATE TABLE signals (id VARCHAR(64) PRIMARY KEY, type VARCHAR(32), data VARCHAR(300))"


def channel(kind: str, one: Database, folder: Path, topics: Topics) -> dict[str, str]:
    """The properties of a channel of signals."""
    properties = {"signal.enabled.channels": kind, "signal.poll.interval.ms": "200"}
    match kind:
        case "source":
            one.execute(SIGNALS)
            return properties | {"signal.data.collection": f"{one.name}.signals"}
        case "kafka":
            return properties | {
                "signal.kafka.topic": topics.new(),
                "signal.kafka.bootstrap.servers": topics.client["bootstrap.servers"],
            }
        case "file":
            return properties | {"signal.file": str(folder / "signals")}
    return {}


@pytest.mark.parametrize("database", ["mysql", pytest.param("mariadb", marks=pytest.mark.nightly)], indirect=True)
@pytest.mark.parametrize(
    "kind", ["source", *(pytest.param(one, marks=pytest.mark.nightly) for one in ("kafka", "file", "http"))]
)
def test_every_damage_is_mended_under_load(
    kind: str, tmp_path: Path, database: Database, kafka: Kafka, topics: Topics
) -> None:
    config = WorkerConfig(tmp_path, database.server, kafka.bootstrap, MORE | {"database.include.list": database.name})
    config.properties |= channel(kind, database, tmp_path, topics)
    damages = Damages(database, topics, config, random.Random(kind))
    with Worker(config) as worker:
        worker.streaming()
        repair = "--repair", "--web", f"http://127.0.0.1:{worker.port}"
        with load(database):
            expected = {damages.kinds[name]() for name in KEYED}
            status, document = report(config, "--repair", "--dry-run")
            assert (status, found(document)) == (1, expected), document
            signals = [one for table in document["tables"] for one in table["signals"]]
            assert {one["type"] for one in signals} == {"rowtide-reread-rows"}
            assert sum(len(one["data"]["keys"]) for one in signals) == len(expected)
            status, document = report(config, *repair)
            assert (status, repaired(document)) == (0, expected), document
            assert report(config)[0] == 0
            # Rows in an old form are sent in their new one; no record replaces another in a table without a key.
            database.execute("ALTER TABLE parts DROP n, ADD n INT DEFAULT 9 AFTER made")
            missing = damages.missing()
            status, document = report(config, *repair)
            assert (status, found(document)) == (1, {missing}), document
            tables = {table["table"].partition(".")[2]: table for table in document["tables"]}
            assert tables["parts"]["sent_again"] >= ROWS - 1
            assert "a table without a key cannot be repaired" in tables["visits"]["not_repaired"]
            damages.mend()
            assert report(config)[0] == 0
        worker.stop()


DOUBLES = 0.1, -1e-300, 5e-324, 1.7976931348623157e308, 123456789012345680.0, -0.0, 2.5, 1 / 3


@pytest.mark.parametrize("server", [pytest.param("mysql", marks=pytest.mark.nightly), "mariadb"])
@pytest.mark.parametrize("values", ["exact", pytest.param("debezium", marks=pytest.mark.nightly)])
def test_rows_with_keys_of_doubles_and_addresses_are_mended(
    server: str, values: str, tmp_path: Path, request: pytest.FixtureRequest, kafka: Kafka
) -> None:
    database: Database = request.getfixturevalue(f"{server}_db")
    config = WorkerConfig(tmp_path, database.server, kafka.bootstrap, MORE | {"database.include.list": database.name})
    config.properties |= {"rowtide.values": values, "value.converter.schemas.enable": "true"}
    addresses = "u UUID, a INET4, b INET6, " if server == "mariadb" else ""
    names = "d, u, a, b" if addresses else "d"
    database.execute(f"CREATE TABLE t (d DOUBLE, {addresses}n INT, PRIMARY KEY ({names}))")

    def insert(number: int, double: float) -> str:
        ip6 = f"::ffff:10.0.0.{number}" if number % 2 else f"2001:db8::{number}"
        more = f", '0e984725-c51c-4bf4-9960-00000000000{number}', '10.0.0.{number}', '{ip6}'" if addresses else ""
        return f"INSERT INTO t VALUES ('{double!r}'{more}, 1)"

    rows = [insert(number, double) for number, double in enumerate(DOUBLES)]
    database.execute(*rows[:4])
    with Worker(config).streaming() as worker:
        database.execute(
            *rows[4:], "SET SESSION sql_log_bin = 0", "DELETE FROM t WHERE d < 1", "UPDATE t SET n = 2 WHERE d > 2"
        )
        status, document = report(config, "--repair", "--channel", "http", "--web", f"http://127.0.0.1:{worker.port}")
        assert (status, sorted(kind for _, kind, _, _ in repaired(document))) == (
            0, ["extra"] * sum(one < 1 for one in DOUBLES) + ["stale"] * sum(one > 2 for one in DOUBLES),
        ), document  # fmt: skip
        assert report(config)[0] == 0
        worker.stop()


@pytest.mark.nightly
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("server", ["mysql", "mariadb"])
def test_campaign(
    server: str, tmp_path: Path, request: pytest.FixtureRequest, topics: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Random damages of all kinds, again and again; ``python -m tests.verify damages`` makes more."""
    rounds = int(os.environ.get("ROWTIDE_CAMPAIGN", "30"))
    monkeypatch.delenv("ROWTIDE_CAMPAIGN", raising=False)  # the command would take it as a property
    database: Database = request.getfixturevalue(f"{server}_db")
    _, problems = campaign(database, topics, tmp_path, rounds, random.Random(server), print)
    assert problems == []


def test_nothing_is_sent_to_a_connector_that_cannot_carry_it_out(
    tmp_path: Path, mysql_db: Database, kafka: Kafka, topics: Topics
) -> None:
    config = WorkerConfig(tmp_path, mysql_db.server, kafka.bootstrap, MORE | {"database.include.list": mysql_db.name})
    config.properties |= channel("source", mysql_db, tmp_path, topics)
    mysql_db.execute("CREATE TABLE orders (id INT PRIMARY KEY)")
    result = run(config, "--repair", "--web", "http://127.0.0.1:9")
    assert (result.exit_code, "the web server of the worker cannot be reached" in result.output) == (2, True)
    with Worker(config).streaming() as worker:
        web = f"http://127.0.0.1:{worker.port}"
        config.properties["signal.data.collection"] = f"{mysql_db.name}.no_table"
        result = run(config, "--repair", "--web", web)
        assert (result.exit_code, "no_table (signal.data.collection) does not exist" in result.output) == (2, True)
        result = run(config, "--repair", "--channel", "kafka", "--web", web)
        assert (result.exit_code, "the channel kafka needs kafka in signal.enabled" in result.output) == (2, True)
        # A signal table that the running connector does not read.
        mysql_db.execute(SIGNALS.replace("signals", "others"))
        config.properties["signal.data.collection"] = f"{mysql_db.name}.others"
        result = run(config, "--repair", "--web", web)
        assert (result.exit_code, "others (signal.data.collection), as this" in result.output) == (2, True)
        assert mysql_db.query("SELECT count(*) FROM signals")[0][0] == 0
        worker.stop()
