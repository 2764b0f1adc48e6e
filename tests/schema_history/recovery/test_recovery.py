"""Recovery up to any position results in the tables at that position."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rowtide.schema_history.catalog.changes import StatementResult
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.errors import DamagedHistory, SchemaHistoryError
from rowtide.schema_history.model import Table
from rowtide.schema_history.position.binlog_position import BinlogPosition
from rowtide.schema_history.queries.apply import event_of, tables_of_header
from rowtide.schema_history.recovery.recover import recover
from rowtide.schema_history.recovery.session_settings import required_sessions
from rowtide.schema_history.server.query_event import Flavor, QueryEvent, Server
from rowtide.schema_history.store.history_record import history_record, parse_record
from tests.support.ddl.corpus import lines, recordings

MYSQL = Server(Flavor.MYSQL, "8.4.3", collation="utf8mb4_0900_ai_ci")


def place(number: int) -> dict[str, Any]:
    return {"ts_sec": 1, "file": "binlog.000001", "pos": number * 100, "server_id": 1}


def position(number: int) -> BinlogPosition:
    return BinlogPosition.from_map(place(number))


class History:
    """Statements at every hundredth byte, their records, and the tables after each."""

    def __init__(self, server: Server = MYSQL) -> None:
        self.server = server
        self.tables = Tables(server)
        self.texts: list[str] = []
        self.starts: list[int] = [0]
        self.states: list[dict[str, Table]] = [{}]

    def run(self, statement: str, database: str = "ra") -> None:
        """Run a statement in a session of default settings."""
        self.take(QueryEvent(statement, database, sql_mode=0))

    def take(self, event: QueryEvent) -> None:
        """Apply a statement, unless it does not fit, as the server would have rejected it then."""
        number = len(self.states)
        try:
            applied = self.tables.apply(event)
        except SchemaHistoryError:
            return
        for change, session in zip(applied.changes, required_sessions(self.tables, event, applied), strict=True):
            self.texts.append(history_record(change, "p", place(number), number, session=session))
        self.starts.append(len(self.texts))
        self.states.append(changed(self.states[-1], applied))

    def recovered(self, number: int | None, **options: bool) -> dict[str, Table]:
        """The recovered tables at a statement."""
        at = None if number is None else position(number)
        return state(recover(map(parse_record, self.texts), self.server, at, **options))


def state(tables: Tables) -> dict[str, Table]:
    return {str(table.id): without_comments(table) for table in tables}


def without_comments(table: Table) -> Table:
    """The table without comments, which a history has only with ``include.schema.comments``."""
    columns = tuple(
        replace(c, debezium=replace(c.debezium, comment=None) if c.debezium else None) for c in table.columns
    )
    return replace(table, columns=columns, debezium=replace(table.debezium, comment=None))


def changed(before: dict[str, Table], applied: StatementResult) -> dict[str, Table]:
    """The tables after a statement."""
    after = dict(before)
    for table_id, table in applied.altered:
        if table is None:
            after.pop(str(table_id), None)
        else:
            after[str(table_id)] = without_comments(table)
    return after


RECORDED = [path for path in recordings() if not re.match("canal|dolphin|flowable", path.name)]  # they take long


@cache
def recorded(path: Path) -> History:
    """A recording's statements as a history, each with its session."""
    header, *records = lines(path)
    server = tables_of_header(header, Flavor(header["server"])).server
    history = History(server)
    for database, options in header["databases"].items():
        history.run(f"CREATE DATABASE {database} COLLATE {options['collation']}")
    for record in records:
        for entry in record["binlog"]:
            if "real_one" not in entry.get("sql", ""):  # made LIKE a temporary table: its engine is lost
                history.take(event_of(entry))
    return history


@given(st.data(), st.sampled_from(RECORDED), st.booleans())
@settings(max_examples=20, deadline=None)
def test_recovery_up_to_any_position(data: st.DataObject, path: Path, prefer_ddl: bool) -> None:
    history = recorded(path)
    number = data.draw(st.integers(0, len(history.states) - 1))
    recovered = history.recovered(number, prefer_ddl=prefer_ddl)
    assert recovered == history.states[number]
    cut = map(parse_record, history.texts[: history.starts[number]])
    assert recovered == state(recover(cut, history.server, None, prefer_ddl=prefer_ddl))


def test_a_long_chain_of_tables_each_made_like_the_one_before() -> None:
    """A table for each day is often made from that of the day before."""
    history = History()
    history.run("CREATE DATABASE ra")
    history.run("CREATE TABLE day0 (id INT PRIMARY KEY)")
    for day in range(1, 1500):
        history.run(f"CREATE TABLE day{day} LIKE day{day - 1}")
    last = recover(map(parse_record, history.texts), MYSQL, None).table("ra", "day1499")
    assert last == history.states[-1]["ra.day1499"]


@pytest.mark.parametrize("prefer_ddl", [False, True])
def test_statements_that_concern_several_tables(*, prefer_ddl: bool) -> None:
    history = History(Server(Flavor.MARIADB, "11.4.5-MariaDB"))
    for statement in (
        "CREATE DATABASE ra CHARACTER SET latin1",
        "CREATE TABLE a (id INT PRIMARY KEY, t TEXT, UNIQUE u (t(10))) PARTITION BY HASH (id) PARTITIONS 2",
        "CREATE TABLE b LIKE a",
        "ALTER TABLE a ADD x INT UNSIGNED ZEROFILL",
        "RENAME TABLE a TO c, b TO a, c TO b",
        "ALTER TABLE b RENAME TO d, ADD y VARCHAR(10)",
        "CREATE TABLE IF NOT EXISTS d (other INT)",
        "CREATE UNIQUE INDEX i ON d (x)",
        "DROP INDEX u ON d",
        "ALTER TABLE d CONVERT PARTITION p0 TO TABLE e",
        "ALTER DATABASE ra CHARACTER SET ucs2",
        "CREATE TABLE f (t TEXT)",
        "DROP TABLE IF EXISTS a, nothing",
        "CREATE SEQUENCE s AS INT",
        "CREATE OR REPLACE TABLE f (z TEXT)",
        "TRUNCATE TABLE f",
        "CREATE DATABASE rb",
        "CREATE TABLE rb.g LIKE ra.d",
        "DROP DATABASE ra",
    ):
        history.run(statement)
    assert len(history.states) == 20
    for number, wanted in enumerate(history.states):
        assert history.recovered(number, prefer_ddl=prefer_ddl) == wanted, number


def test_the_recorded_description_wins_unless_ddl_is_preferred() -> None:
    history = History()
    history.run("CREATE TABLE t (a INT, b VARCHAR(10))")
    record = json.loads(history.texts[0])
    record["tableChanges"][0]["table"]["columns"][1]["name"] = "c"
    history.texts[0] = json.dumps(record)
    (table,) = recover(map(parse_record, history.texts), MYSQL, None)
    assert ([column.name for column in table.columns], table.complete) == (["a", "c"], False)
    (table,) = recover(map(parse_record, history.texts), MYSQL, None, prefer_ddl=True)
    assert ([column.name for column in table.columns], table.complete) == (["a", "b"], True)


def test_a_statement_that_cannot_be_parsed_is_replaced_by_the_description() -> None:
    history = History()
    history.run("CREATE TABLE t (a INT, b VARCHAR(10) UNIQUE)")
    history.run("ALTER TABLE t ADD c INT")
    record = json.loads(history.texts[1])
    record["ddl"] = "ALTER TABLE t FROM THE FUTURE"
    history.texts[1] = json.dumps(record)
    (table,) = recover(map(parse_record, history.texts), MYSQL, None)
    assert [column.name for column in table.columns] == ["a", "b", "c"]
    assert not table.complete


def test_a_record_may_describe_tables_without_a_statement() -> None:
    history = History()
    history.run("CREATE TABLE t (a INT)")
    record = json.loads(history.texts[0])
    record["ddl"] = None
    texts = [json.dumps(record)]
    history.texts = texts
    history.run("ALTER TABLE t ADD b INT UNSIGNED")
    (table,) = recover(map(parse_record, history.texts), MYSQL, None)
    assert [(c.name, c.unsigned) for c in table.columns] == [("a", False), ("b", True)]


def test_a_table_is_built_on_first_access() -> None:
    history = History()
    history.run("CREATE TABLE t (a INT)")
    history.run("CREATE TABLE u (a INT)")
    record = json.loads(history.texts[1])
    del record["tableChanges"][0]["table"]["columns"][0]["jdbcType"]
    tables = recover(map(parse_record, [history.texts[0], json.dumps(record)]), MYSQL, None)
    assert len(tables) == 2
    assert tables.table("ra", "t") is not None
    with pytest.raises(DamagedHistory, match=r"record of table ra\.u is damaged"):
        tables.table("ra", "u")
