"""Zero dates, and numbers beyond Java's long: the handling modes, and the warnings."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from rowtide.connector.config import from_properties
from rowtide.connector.engine.pipeline_settings import pipeline_settings
from rowtide.connector.engine.replay import replay
from rowtide.connector.records.lossy_conversions import (
    OVERFLOW,
    YEARS,
    ZERO_DATES,
    LossyConversionWarnings,
    lossy_columns,
)
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.model import Table
from rowtide.schema_history.server.query_event import Flavor, QueryEvent, Server
from tests.support.mysql.live_database import Rows, apply, configured, snapshot, streamed
from tests.support.recordings.golden import Case, Written, written
from tests.support.recordings.live_snapshot import binlog_end

if TYPE_CHECKING:
    from rowtide_stack import Database

NULL = {"zero.date.handling.mode": "null"}
MODES = ("adaptive_time_microseconds", "connect", "isostring", "microseconds", "nanoseconds")
ZEROS = {("tim.d", key): {"dn", "dtn"} for key in (103, 107, 300)} | {("tim.ts", 103): {"sn"}}
"""The fields of the case's NOT NULL columns with zero or partial dates, by table and key."""
OUT_OF_RANGE = {("tim.d", key): {"dtn"} for key in (101, 102)}
"""Those with a date outside the range of nanoseconds, which becomes null instead of a wrong date."""
DATES = ("d", "s", "e1")


def replayed(**more: str) -> Iterator[Written]:
    case = Case("temporal-types")
    settings = pipeline_settings(from_properties(case.properties() | more), "run")
    return written(replay(case.binlog, settings, case.start, lambda: 1))


def rows(messages: Iterable[Written]) -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Table, schemas of the fields and row, for each record."""
    found = []
    for message in messages:
        value = json.loads(message.value or "{}")
        if not value.get("payload", {}).get("after"):
            continue
        row = next(field for field in value["schema"]["fields"] if field["field"] == "after")
        schemas = {field["field"]: field for field in row["fields"]}
        found.append((message.topic.partition(".")[2], schemas, value["payload"]["after"]))
    return found


@pytest.mark.parametrize("mode", MODES)
def test_zero_dates_become_null_instead_of_1970(mode: str) -> None:
    by_default = rows(replayed(**{"time.precision.mode": mode}))
    right = rows(replayed(**{"time.precision.mode": mode}, **NULL))
    assert len(right) == len(by_default) > 0
    expected = ZEROS | (OUT_OF_RANGE if mode == "nanoseconds" else {})
    seen = set()
    for (table, schemas, row), (_, before, other) in zip(right, by_default, strict=True):
        zeros = expected.get((table, row["id"]), set())
        changed = {name for name in row if row[name] != other[name]}
        assert changed == zeros
        assert all(row[name] is None for name in zeros)
        seen |= {(table, row["id"])} if zeros else set()
        for name, schema in schemas.items():
            if name.startswith(DATES):
                assert (schema["optional"], "default" in schema) == (True, False)
            else:
                assert schema == before[name]
    assert seen == expected.keys()


@pytest.mark.servers
@pytest.mark.parametrize("flavor", ["mysql", "mariadb"])
def test_snapshot_and_stream_agree(flavor: str, request: pytest.FixtureRequest) -> None:
    database: Database = request.getfixturevalue(f"{flavor}_db")
    insert = "INSERT INTO t VALUES ({}, {}), ({}, '2024-01-02', '2024-01-02', '2024-01-02 03:04:05', NULL)"
    zeros = "'0000-00-00', '2024-00-00', '0000-00-00', '0000-00-00'"
    session = "SET SESSION sql_mode = '', time_zone = '+00:00'"
    database.execute(
        session,
        "CREATE TABLE t (id INT, d DATE NOT NULL, dt DATETIME(6) NOT NULL DEFAULT '2000-01-01', "
        "ts TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, n TIMESTAMP NULL, PRIMARY KEY (id, d))",
        insert.format(1, zeros, 2),
    )
    config = configured(database, NULL)
    taken = snapshot(config)
    first: Rows = {}
    apply(first, taken.outputs())
    database.execute(session, insert.format(3, zeros, 4))
    second: Rows = {}
    for step in streamed(config, taken.tables, taken.offset, binlog_end(database.server)):
        apply(second, step.outputs)
    expected = [
        [key, *values]
        for key, values in (
            (1, (None, None, None, None)),
            (2, (19724, 1704153600000000, "2024-01-02T03:04:05Z", None)),
        )
    ]
    assert [list(row.values()) for row in first.values()] == expected
    assert [list(row.values()) for row in second.values()] == [[row[0] + 2, *row[1:]] for row in expected]
    assert {json.loads(key)["d"] for _, key in first} == {None, 19724}


# --- warnings ---------------------------------------------------------------------------------------------------------


def made(statement: str) -> Table:
    tables = Tables(Server(Flavor.MYSQL))
    for text in ("create database k", statement):
        tables.apply(QueryEvent(text, database="k"))
    table = tables.table("k", "t")
    assert table is not None
    return table


TABLE = (
    "create table t (id bigint unsigned primary key, u bigint zerofill, i int unsigned, b bigint, d date not null, "
    "dt datetime(3) not null, ts timestamp(6) not null, n datetime, t time not null, y year not null)"
)
DEFAULTS = {"id", "u"}, {"d", "dt", "ts"}


@pytest.mark.parametrize(
    ("properties", "overflow", "zero"),
    [
        ({}, *DEFAULTS),
        (NULL, DEFAULTS[0], set()),
        ({"bigint.unsigned.handling.mode": "precise"}, set(), DEFAULTS[1]),
        ({"column.exclude.list": r"k\.t\.(id|u|dt)"}, {"id"}, {"d", "ts"}),  # the key is published all the same
    ],
)
def test_columns_with_lossy_conversions(properties: dict[str, str], overflow: set[str], zero: set[str]) -> None:
    config = from_properties(Case("keys").properties() | properties)
    found = dict(lossy_columns(made(TABLE), pipeline_settings(config, "run")))
    assert set(found.get(OVERFLOW, ())) == {f"k.t.{name}" for name in overflow}
    assert set(found.get(ZERO_DATES, ())) == {f"k.t.{name}" for name in zero}


def test_a_column_is_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    warnings = LossyConversionWarnings(pipeline_settings(from_properties(Case("keys").properties()), "run"))
    with caplog.at_level(logging.WARNING):
        for statement in (TABLE, TABLE, TABLE.replace("y year", "e date not null, y year")):
            warnings.table_changed(made(statement))
    reported = [message.split(". ")[0] for message in caplog.messages]
    assert reported == [
        "bigint.unsigned.handling.mode is long: values of 2^63 and above become negative in k.t.id, k.t.u",
        f"{ZERO_DATES.setting} {ZERO_DATES.problem} k.t.d, k.t.dt, k.t.ts",
        f"{YEARS.setting} {YEARS.problem} k.t.d, k.t.dt, k.t.n",
        f"{ZERO_DATES.setting} {ZERO_DATES.problem} k.t.e",
        f"{YEARS.setting} {YEARS.problem} k.t.e",
    ]


def test_a_table_created_in_the_stream_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    case = Case("ddl-stream")
    settings = pipeline_settings(from_properties(case.properties()), "run")
    with caplog.at_level(logging.WARNING):
        list(replay(case.binlog, settings, case.start, lambda: 1))
    assert any("become negative in" in message or "1970-01-01 in" in message for message in caplog.messages)
