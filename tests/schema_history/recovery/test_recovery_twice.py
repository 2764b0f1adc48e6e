"""Recovery of a history with repeated statements, as after a crash between record and offset."""

from typing import Any

import pytest

from rowtide.schema_history.catalog.changes import SchemaChange
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.position.binlog_position import BinlogPosition, PositionFilter
from rowtide.schema_history.recovery.recover import recover
from rowtide.schema_history.server.query_event import Flavor, QueryEvent, Server
from rowtide.schema_history.store.history_record import HistoryRecord, history_record, parse_record

SERVER = Server(Flavor.MYSQL, "8.4.0")
UUID = "1e0355b3-e5bc-11f1-acec-02fc00000001"
STATEMENTS = [
    "CREATE DATABASE d",
    "CREATE TABLE d.t (a INT PRIMARY KEY, b INT, c VARCHAR(10))",
    "CREATE TABLE d.v (k INT PRIMARY KEY)",
    "RENAME TABLE d.t TO d.w, d.v TO d.t, d.w TO d.v",  # done twice it would undo itself
    "ALTER TABLE d.t ADD COLUMN x INT FIRST",
]


def records(gtids: str | None = None) -> list[HistoryRecord]:
    """A history with a statement at every hundredth byte."""
    tables = Tables(SERVER)
    found = []
    for number, statement in enumerate(STATEMENTS, 1):
        position = {"file": "binlog.000001", "pos": number * 100, "server_id": 1, "ts_sec": 5}
        if gtids is not None:
            position["gtids"] = f"{UUID}:1-{number}"
        changes: tuple[SchemaChange, ...] = tables.apply(QueryEvent(statement, database="d")).changes
        found += [parse_record(history_record(change, "p", position, number)) for change in changes]
    return found


def columns(history: list[HistoryRecord], position: BinlogPosition | None = None, *, prefer_ddl: bool = False) -> str:
    return " ".join(
        sorted(
            f"{table.id.table}({','.join(column.name for column in table.columns)})"
            for table in recover(history, SERVER, position, prefer_ddl=prefer_ddl)
        )
    )


@pytest.mark.parametrize("prefer_ddl", [False, True])
@pytest.mark.parametrize("begin", range(5))
@pytest.mark.parametrize("end", range(1, 6))
def test_repeated_records_count_once(begin: int, end: int, *, prefer_ddl: bool) -> None:
    history = records()
    again = [*history[:end], *history[begin:]] if begin <= end else history
    assert columns(again, prefer_ddl=prefer_ddl) == "t(x,k) v(a,b,c)"


def place(pos: int, numbers: str = "1-3", file: str = "binlog.000002", **more: Any) -> BinlogPosition:
    return BinlogPosition(file, pos, f"{UUID}:{numbers}", **more)


def is_at_or_before(recorded: BinlogPosition, desired: BinlogPosition) -> bool:
    return PositionFilter(desired).includes(recorded)


def test_equal_gtids_of_one_server_are_ordered_by_position() -> None:
    # The offset after a transaction, and the record of the statement after it, have the same set of GTIDs.
    assert not is_at_or_before(place(200), place(100))
    assert is_at_or_before(place(100), place(100))
    assert is_at_or_before(place(50), place(100))
    assert not is_at_or_before(place(4, file="binlog.000003"), place(900))
    # Another server's files cannot be compared; then the record counts, as for Debezium.
    assert is_at_or_before(place(200, file="other.000001"), place(100))
    # The snapshot's own records count in any case: the offset may be that of a file's head, which the server sent.
    assert is_at_or_before(place(200, snapshot=True), place(4))
    # Inside of a transaction its events are counted.
    assert not is_at_or_before(place(100, event=3), place(100, event=2))
    assert is_at_or_before(place(100, event=2), place(100, event=3))


def test_a_statement_without_a_stored_offset_is_read_from_the_stream() -> None:
    history = records(gtids="")
    before = BinlogPosition("binlog.000001", 450, f"{UUID}:1-5")  # the fifth statement's record has this set
    assert columns(history, before) == "t(k) v(a,b,c)"
    behind = BinlogPosition("binlog.000001", 500, f"{UUID}:1-5")
    assert columns(history, behind) == "t(x,k) v(a,b,c)"
