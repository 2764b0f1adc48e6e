"""Which tables are new among the captured tables, and what becomes of their rows."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from rowtide.connector.check import CheckedTable, Severity
from rowtide.connector.config import Configuration, from_properties
from rowtide.connector.engine.start.new_tables import plan_new_tables, unread_tables
from rowtide.connector.engine.start.table_lookup import new_tables_at_start
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.records.read_tables import ReadTables
from rowtide.connector.snapshot.incremental.state import IncrementalTable, SnapshotState
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.model import TableId
from rowtide.schema_history.server.query_event import Flavor, QueryEvent, Server
from tests.support.configurations import PROPERTIES

A, B, C, SIG = (TableId("d", name) for name in ("a", "b", "c", "sig"))
AT = SourceOffset("b.000001", 4)


def config(include: str = r"d\.a", **more: str) -> Configuration:
    named = {name.replace("_", "."): value for name, value in more.items()}
    return from_properties({**PROPERTIES, "table.include.list": include, **named})


def read(include: str = r"d\.a", unread: Iterable[TableId] = (), **more: str) -> ReadTables:
    return ReadTables(config(include, **more).capture.tables, tuple(unread))


def unread(include: str, known: ReadTables, names: Iterable[TableId] = (A, B, C, SIG), **more: str) -> list[TableId]:
    names = set(names)
    exists = lambda database, table: TableId(database, table) in names  # noqa: E731
    return unread_tables(config(include, **more).capture.tables, known, names, exists)


def test_a_table_that_enters_the_list_is_new() -> None:
    assert unread("d.a", read("d.a")) == []
    assert unread("d.a,d.c,d.b", read("d.a")) == [C, B], "in the order of the list"
    assert unread("d.b", read("d.a")) == [B]


def test_a_table_that_was_created_after_the_position_is_not_new() -> None:
    assert unread("d.a,d.b", read("d.a"), names=[A]) == []


def test_a_table_that_leaves_and_comes_back_is_new_again() -> None:
    assert unread("d.a,d.b", read("d.a,d.b")) == []
    assert unread("d.a", read("d.a,d.b")) == []
    assert unread("d.a,d.b", read("d.a")) == [B]


def test_a_table_that_was_not_read_yet_stays_unread() -> None:
    assert unread("d.a,d.b", read("d.a,d.b", [B])) == [B]
    assert unread("d.a,d.b,d.c", read("d.a,d.b", [B])) == [B, C]
    assert unread("d.a", read("d.a,d.b", [B])) == []
    assert unread("d.a,d.b", read("d.a,d.b", [B]), names=[A]) == [], "it was dropped"


def test_a_signal_table_is_not_read() -> None:
    assert unread("d.a", read("d.a"), signal_data_collection="d.sig") == []


def test_a_helper_table_that_is_captured_now_is_new() -> None:
    helper = TableId("d", "_a_new")
    known, off = read("d.*"), {"rowtide_online_schema_change_tables": "none"}
    assert unread("d.*", known, [A, helper]) == []
    assert unread("d.*", known, [A, helper], **off) == [helper]


def tables(*statements: str) -> Tables:
    found = Tables(Server(Flavor.MYSQL))
    for statement in statements or ("CREATE TABLE a (id INT PRIMARY KEY)", "CREATE TABLE b (id INT PRIMARY KEY)"):
        found.apply(QueryEvent(statement.encode(), database="d"))
    return found


def planned(
    configuration: Configuration, *statements: str, reading: Iterable[TableId] = ()
) -> tuple[list[str], list[str], list[str]]:
    """The tables to read, those that stay unread, and the severities and messages of the findings."""
    known = tables(*statements)
    names = known.names()
    plan = plan_new_tables(configuration, names, lambda one: known.table(one.database, one.table), list(reading))
    findings = [f"{finding.severity.name} {finding.message}" for finding in plan.findings]
    return [one.table for one in plan.wanted], [one.table for one in plan.read.unread], findings


def test_new_tables_are_read() -> None:
    wanted, left, (finding,) = planned(config("d.*"))
    assert wanted == left == ["a", "b"], "they are unread until the snapshot has read them"
    assert finding.startswith("REMARK d.a, d.b: new among the captured tables. An incremental snapshot reads")
    assert planned(config("d.*"), reading=[A])[0] == ["b"]


def test_none_leaves_the_rows_and_says_so_at_each_start() -> None:
    wanted, left, (finding,) = planned(config("d.*", rowtide_snapshot_new_tables="none"))
    assert (wanted, left) == ([], ["a", "b"])
    assert finding.startswith("WARNING d.a, d.b: new among the captured tables, but only their changes are read")


def test_a_mode_that_reads_no_rows_reads_none_of_new_tables() -> None:
    wanted, left, (finding,) = planned(config("d.*", snapshot_mode="no_data"))
    assert (wanted, left) == ([], [])
    assert finding.startswith("REMARK ")
    assert "snapshot.mode=no_data reads no rows" in finding
    explicit = config("d.*", snapshot_mode="no_data", rowtide_snapshot_new_tables="incremental")
    assert planned(explicit)[0] == ["a", "b"]


def test_what_cannot_be_read_is_named_with_the_way_out() -> None:
    query = {"snapshot_select_statement_overrides": "d.c", "snapshot_select_statement_overrides_d_c": "SELECT 1"}
    made = ("CREATE TABLE a (id INT)", "CREATE TABLE b (j JSON PRIMARY KEY)", "CREATE TABLE c (id INT PRIMARY KEY)")
    wanted, left, findings = planned(config("d.*", **query), *made)
    assert (wanted, left) == ([], ["a", "b", "c"])
    assert [finding.partition(" ")[0] for finding in findings] == ["WARNING"] * 3
    assert "it has no primary key. Send an execute-snapshot signal with a 'surrogate-key'" in findings[0]
    assert "'surrogate-key'" in findings[1]
    assert "'additional-conditions'" in findings[2]


def test_rows_that_no_snapshot_reads_are_not_read() -> None:
    assert planned(config("d.*", snapshot_include_collection_list="d.b"))[:2] == (["b"], ["b"])
    assert planned(config("d.*"), "CREATE TABLE a (id INT PRIMARY KEY)")[0] == ["a"]


def start(known: ReadTables | None, *reading: TableId) -> SourceOffset:
    state = SnapshotState(tuple(IncrementalTable(str(one), one, "s") for one in reading))
    carried = state.carried({} if known is None else known.carried(None))
    return SourceOffset("b.000001", 4, carried=carried)


def test_the_start_stores_the_lists_and_the_unread_tables() -> None:
    found = new_tables_at_start(config("d.a,d.b"), start(read("d.a,d.b", [B])), tables(), None)
    assert found.wanted == [B]
    assert ReadTables.from_carried(found.start.carried) == read("d.a,d.b", [B])


def test_a_table_that_leaves_the_list_leaves_the_snapshot() -> None:
    found = new_tables_at_start(config("d.a"), start(read("d.a", [A]), A, B), tables(), None)
    assert found.wanted == [], "it is being read"
    assert [one.table for one in SnapshotState.from_carried(found.start.carried).tables] == [A]
    assert ReadTables.from_carried(found.start.carried) == read("d.a", [A])


def test_an_older_position_is_not_judged_without_the_topics() -> None:
    found = new_tables_at_start(config("d.a,d.b"), start(None), tables(), None)
    assert found.start.carried is None
    assert found.wanted == ()


@pytest.mark.parametrize("partitions", [1, None])
def test_tables_of_an_older_position_count_as_read_if_they_have_a_topic(partitions: int | None) -> None:
    captured = [CheckedTable("d", name, None, 0, f"shop.d.{name}", partitions) for name in ("a", "b")]
    found = new_tables_at_start(config("d.a,d.b"), start(None), tables(), captured)
    assert (found.wanted, found.findings) == ([], ())
    assert ReadTables.from_carried(found.start.carried) == read("d.a,d.b")


def test_severities_do_not_fail_a_check() -> None:
    plan = plan_new_tables(config("d.*"), [A], lambda _one: None)
    assert [finding.severity for finding in plan.findings] == [Severity.REMARK]
    assert plan.wanted == (A,)
