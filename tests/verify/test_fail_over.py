"""Positions of two servers: compared by GTID sets, or refused."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from rowtide.connector.config import from_properties
from rowtide.connector.engine.pipeline_settings import pipeline_settings
from rowtide.connector.engine.replay import replay
from rowtide.connector.protocol import events
from rowtide.connector.protocol.events.query_status import QueryStatus
from rowtide.connector.records.batch import Batch
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.snapshot.incremental.reading.table_view import TableView
from rowtide.connector.source.search.places import FolderFiles
from rowtide.connector.source.search.positions import end_of
from rowtide.verify.comparison import possible_states
from rowtide.verify.errors import Undecided
from rowtide.verify.fold import FoldState
from rowtide.verify.positions import RecordPlace, ServerIdentity, ViewOrder, before
from rowtide.verify.progress import ConnectorProgress, _is_change, has_changes, has_other_changes
from tests.support.recordings.golden import Case

if TYPE_CHECKING:
    from rowtide.connector.delivery.offset_store import OffsetStore

FIRST, SECOND = "00000000-0000-0000-0000-00000000000a", "00000000-0000-0000-0000-00000000000b"
SERVER = ServerIdentity(SECOND, "2")
PROPERTIES = {
    "name": "shop",
    "topic.prefix": "shop",
    "database.hostname": "localhost",
    "database.user": "cdc",
    "database.password": "secret",
    "database.server.id": "7",
    "bootstrap.servers": "localhost:9092",
    "schema.history.internal.kafka.bootstrap.servers": "localhost:9092",
    "schema.history.internal.kafka.topic": "history",
}


class Stored:
    """Holds the position of a connector."""

    def __init__(self, offset: SourceOffset | None) -> None:
        self.offset = offset

    def load(self) -> SourceOffset | None:
        return self.offset


def progress(stored: SourceOffset | None) -> ConnectorProgress:
    offsets: Any = Stored(stored)
    kept: OffsetStore = offsets
    return ConnectorProgress(from_properties(PROPERTIES), kept, ())


def place(pos: int, gtid: str | None = None) -> RecordPlace:
    return RecordPlace(0, pos, "u", "binlog.000100", pos, gtid)


def test_a_record_of_another_server_is_not_ordered_by_its_file() -> None:
    """The connector reads the first server, whose 100th file has less than the third file of the second one.

    By the names of the files, the change would be after the view, which would be taken for equal with the state before.
    """
    view = TableView(SourceOffset("binlog.000003", 50), SourceOffset("binlog.000003", 60))
    states = [FoldState({"n": "i0"}, ()), FoldState({"n": "i1"}, (place(7),))]
    assert possible_states(states, ViewOrder(view, same_server=True)) == states[:1]
    assert possible_states(states, ViewOrder(view, same_server=False)) == states
    assert before(view.end, same_server=False)(place(7)) is None


def test_a_record_of_a_mariadb_server_is_ordered_by_its_gtid() -> None:
    view = TableView(SourceOffset("binlog.000003", 50, "0-1-8"), SourceOffset("binlog.000003", 60, "0-1-9"))
    order = ViewOrder(view, same_server=False)
    assert [order.order(place(7, f"0-1-{n}")).name for n in (8, 9, 10)] == ["BEFORE", "WITHIN", "AFTER"]


@pytest.mark.parametrize(
    ("stored", "accepted"),
    [
        (SourceOffset("binlog.000100", 4, server=FIRST), False),
        (SourceOffset("binlog.000003", 4, server=SECOND), True),
        (SourceOffset("binlog.000003", 4, server_id=2), True),  # Debezium's
        (SourceOffset("binlog.000100", 4, server_id=1), False),
        (SourceOffset("binlog.000100", 4, f"{FIRST}:1-9"), False),  # the second server has no GTIDs
    ],
)
def test_without_gtids_another_server_is_refused(stored: SourceOffset, accepted: bool) -> None:
    end = SourceOffset("binlog.000003", 60, server="2")
    if accepted:
        assert progress(stored).is_of(SERVER, end)
        return
    session: Any = None
    for check in (
        lambda: progress(stored).is_of(SERVER, end),
        lambda: progress(stored).has_delivered(end, session, SERVER),
    ):
        with pytest.raises(Undecided, match="cannot be compared") as refused:
            check()
        assert SECOND in str(refused.value)


def test_with_gtids_another_server_is_accepted_but_its_files_are_not_compared() -> None:
    stored = SourceOffset("binlog.000100", 4, f"{FIRST}:1-9")
    end = SourceOffset("binlog.000003", 60, f"{FIRST}:1-9", server="2")
    session: Any = None
    assert not progress(stored).is_of(SERVER, end)
    assert progress(stored).has_delivered(end, session, SERVER)
    assert not progress(None).is_of(SERVER, end)


def query(statement: str) -> events.Query:
    header: Any = None
    return events.Query(header, 1, 0, 0, "", statement.encode(), QueryStatus())


def tables_of(batch: Batch) -> set[tuple[str, str]]:
    """The tables whose rows the batch has."""
    values = [json.loads(value or b"{}") for _, value, _ in batch.messages]
    found = [value.get("payload", value) for value in values]
    return {(one["source"]["db"], one["source"]["table"]) for one in found if one.get("op") in ("c", "u", "d")}


@pytest.mark.parametrize(
    ("statement", "concerns"),
    [
        ("ALTER TABLE orders ADD n INT", True),
        ("truncate `Orders`", True),
        ("/* a */ DROP DATABASE shop", True),
        ("CREATE USER somebody", False),
        ("ALTER TABLE other.parts ADD n INT", False),
        ("INSERT INTO orders VALUES (1)", False),
    ],
)
def test_only_statements_that_may_concern_a_captured_table_are_changes(statement: str, concerns: bool) -> None:
    """The connector stores its position after others up to a minute later, and the command waited for that."""
    assert _is_change(query(statement), {("shop", "orders")}) is concerns


def test_a_name_that_a_statement_can_spell_in_several_ways_is_not_looked_for() -> None:
    assert _is_change(query("DROP TABLE `a``b`"), {("shop", "a`b")})


@pytest.mark.parametrize(
    ("name", "connector"), [("transactions", "mysql"), ("mariadb-transaction-boundaries", "mariadb")]
)
def test_changes_outside_of_a_gtid_set_are_found_on_any_server(name: str, connector: str) -> None:
    """The stored position is that of another server, whose files have other names."""
    case = Case(name)
    files, settings = FolderFiles(case.binlog), pipeline_settings(from_properties(case.properties()), "run")
    made = [one for one in replay(case.binlog, settings, case.start) if isinstance(one, Batch)]
    batches = [one for one in made if tables_of(one)]  # others have the end of a transaction
    captured = {table for one in batches for table in tables_of(one)}
    offsets = [replace(one.offset, file="other.000099", pos=4) for one in batches]
    found = end_of(files)
    end = SourceOffset(found.file, found.pos, found.gtids)
    assert all(one.gtids is not None for one in offsets)
    for offset in offsets[:-1]:
        assert has_other_changes(files, offset, end, captured, connector), offset
    for delivered in (offsets[-1], replace(end, file="other.000099")):
        assert not has_other_changes(files, delivered, end, captured, connector), delivered
    begun = replace(offsets[0], event=0, row=0)
    assert has_other_changes(files, begun, end, captured, connector)
    assert not has_other_changes(files, begun, begun, captured, connector), "what is not wanted does not count"


def test_the_files_of_another_server_are_refused() -> None:
    """A name leads to one server for queries, and to another one for the binlog."""
    files = FolderFiles(Case("gtid-off").binlog)
    start = SourceOffset(files.names[0], 4)
    with pytest.raises(Undecided, match="was written by the server with server_id"):
        has_changes(files, start, SourceOffset(files.names[0], 10_000, server="4711"), ())
