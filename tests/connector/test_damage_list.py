"""What Debezium damages and rowtide has right, in snapshot and stream alike, and where each kind is tested.

=========================================  =============================================================================
damage                                     tests
=========================================  =============================================================================
PARTIAL_JSON updates                       recorded case ``json-partial-update``, ``test_partial_update``
MariaDB's compressed events                recorded case ``mariadb-compressed-binlog``
rolled-back XA rows                        recorded case ``xa-rolled-back``, ``test_xa_transactions``
koi8u, hp8, keybcs2, sjis                  here, ``test_charset_servers``
emoji in ENUM labels                       here, recorded case ``enum-set-json``
partial dates, YEAR 0                      here, recorded case ``temporal-types``
negative TIME in JSON                      here, recorded case ``enum-set-json``
negative TIME through a cursor             here: with ``snapshot.fetch.size``
shifted TIMESTAMPs                         here, recorded case ``temporal-microseconds-in-another-zone``
defaults cut from a hexadecimal text       recorded case ``defaults-in-schemas``, ``test_hexadecimal_defaults``
lone surrogates                            recorded case ``masking``, ``test_masking``
INCIDENT                                   here
DML logged as statements                   recorded case ``session-row-format-changes``
topics that clash                          recorded case ``topics-that-clash``, ``test_topic_guard``
zero dates, BIGINT UNSIGNED                ``test_zero_dates``, recorded case ``bigint-unsigned-precise``
=========================================  =============================================================================
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pytest

from rowtide.connector.config import from_properties
from rowtide.connector.engine.pipeline_settings import pipeline_settings
from rowtide.connector.errors import ProtocolError
from rowtide.connector.pipeline.pipeline import Pipeline
from rowtide.connector.protocol.header import EventType
from rowtide.connector.records.batch import Output
from rowtide.connector.records.offset import SourceOffset
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.server.query_event import Flavor, Server
from tests.support.mysql.live_database import configured, snapshot, streamed, user
from tests.support.mysql.packets import captured, event
from tests.support.received import received
from tests.support.recordings.golden import Case, written
from tests.support.recordings.live_snapshot import binlog_end

if TYPE_CHECKING:
    from rowtide_stack import Database

TEXTS = {"koi8u": "ґєїЖ", "hp8": "éÅß", "keybcs2": "ľščť", "sjis": "ｱ\\表~"}
COLUMNS = (
    "e ENUM('a', '😀b') DEFAULT '😀b', y YEAR, d DATE, dt DATETIME(3), ti TIME(6), ts TIMESTAMP(6) NULL, "
    "nn DATE NOT NULL"
)
VALUES = "'😀b', 0, '2024-00-10', '0000-10-10 01:02:03', '-10:11:12.123456', '2024-06-30 12:00:00.5', '2024-06-30'"
WANTED = {
    "e": "😀b", "y": 0, "d": None, "dt": None, "ti": -36_672_123_456, "ts": "2024-06-30T12:00:00.5Z", "nn": 19904,
}  # fmt: skip


def rows(outputs: Iterable[Output]) -> list[dict[str, Any]]:
    found = []
    for message in written(outputs):
        value = json.loads(message.value or "{}")
        if "op" in value:
            row = value["after"]
            row["ts"] = row["ts"].rstrip("0Z") + "Z"  # its digits are another in snapshot and stream
            if "j" in row:
                row["j"] = json.loads(row["j"])
                row["j"]["t"] = row["j"]["t"].rstrip("0")
            del row["id"]
            found.append(row)
    return found


@pytest.mark.servers
@pytest.mark.parametrize("flavor", ["mysql", "mariadb"])
def test_values_are_the_servers(flavor: str, request: pytest.FixtureRequest) -> None:
    database: Database = request.getfixturevalue(f"{flavor}_db")
    texts = ", ".join(f"c_{name} VARCHAR(9) CHARACTER SET {name}" for name in TEXTS)
    given = ", ".join("'{}'".format(text.replace("\\", "\\\\")) for text in TEXTS.values())
    columns, values, wanted = f"{texts}, {COLUMNS}", f"{given}, {VALUES}", dict(WANTED)
    if flavor == "mysql":
        columns, values = f"{columns}, j JSON", f"{values}, JSON_OBJECT('t', CAST('-12:34:56.5' AS TIME(1)))"
        wanted["j"] = {"t": "-12:34:56.5"}
    session = "SET SESSION sql_mode = '', time_zone = '+00:00'"
    database.execute(session, f"CREATE TABLE t (id INT PRIMARY KEY, {columns})", f"INSERT INTO t VALUES (1, {values})")
    zone = "database.timezone" if flavor == "mariadb" else "database.connectionTimeZone"
    config = configured(database, {"snapshot.fetch.size": "1", zone: "+09:00"})
    taken = snapshot(config)
    read = rows(taken.outputs())
    database.execute(session, f"INSERT INTO t VALUES (2, {values})")
    steps = streamed(config, taken.tables, taken.offset, binlog_end(database.server))
    wanted = {f"c_{name}": text for name, text in TEXTS.items()} | wanted
    assert read == [wanted]
    assert rows(output for step in steps for output in step.outputs) == [wanted]


@pytest.mark.servers
def test_labels_that_the_server_does_not_show_are_told(mysql_db: Database, caplog: pytest.LogCaptureFixture) -> None:
    mysql_db.execute(
        "CREATE TABLE t (id INT PRIMARY KEY, `s?` SET('x?', '😀y') NOT NULL DEFAULT '😀y', c INT COMMENT '?')"
    )
    table = f"{mysql_db.name}.t"
    taken = snapshot(configured(mysql_db))
    list(taken.outputs())
    found = taken.tables.table(mysql_db.name, "t")
    assert found is not None
    assert (found.columns[1].labels, found.columns[2].comment) == (("x?", "😀y"), "?")
    with user(mysql_db, "RELOAD") as limited, caplog.at_level(logging.WARNING):
        list(snapshot(configured(mysql_db, limited)).outputs())
    assert any(f"labels of column {table}.s? with ?" in line and "CREATE TEMPORARY" in line for line in caplog.messages)


def pipeline(**more: str) -> Pipeline:
    """A stream that has begun."""
    settings = pipeline_settings(from_properties(Case("keys").properties() | more), "run")
    begun = Pipeline(settings, Tables(Server(Flavor.MYSQL)), SourceOffset("binlog.000001", 4), lambda: 1)
    for packet in captured("mysql")[:2]:
        received(begun, packet)
    return begun


INCIDENT = event(EventType.INCIDENT, b"\1\0\4lost", log_pos=5000)


def test_what_the_server_lost_stops_the_stream() -> None:
    message = r"changes are missing from its binlog \(INCIDENT 1: lost\).*take a new snapshot"
    with pytest.raises(ProtocolError, match=message):
        received(pipeline(), INCIDENT)


def test_unless_it_is_to_go_on(caplog: pytest.LogCaptureFixture) -> None:
    begun = pipeline(**{"event.processing.failure.handling.mode": "warn"})
    with caplog.at_level(logging.WARNING):
        assert received(begun, INCIDENT) == []
    assert any("INCIDENT 1: lost" in line for line in caplog.messages)
    assert begun.offset().pos == 5000
