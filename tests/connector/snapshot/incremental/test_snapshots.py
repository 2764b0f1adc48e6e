"""What incremental snapshots read when the stream stands still, is paused or begins inside a transaction."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from rowtide.connector.errors import SnapshotError
from rowtide.connector.pipeline.pipeline import Pipeline
from rowtide.connector.records.batch import Batch, Output
from rowtide.connector.records.change import SourcePosition
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.records.read_tables import ReadTables
from rowtide.connector.records.settings import PipelineSettings
from rowtide.connector.signals.signal import Signal
from rowtide.connector.signals.snapshot_requests import rows_request, snapshot_request, stop_request
from rowtide.connector.snapshot.incremental.read_chunks.chunk_records import ClosedWindows
from rowtide.connector.snapshot.incremental.reading.chunk_reader import Found, ScanStep
from rowtide.connector.snapshot.incremental.scan import Block, Chunk, Failed, Mark, ReadChunk, Scan
from rowtide.connector.snapshot.incremental.snapshots import IncrementalSnapshots
from rowtide.connector.snapshot.incremental.state import IncrementalTable, SnapshotState
from rowtide.connector.snapshot.status import SnapshotStatus
from rowtide.envelope.table import RecordRules
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.model import TableId
from rowtide.schema_history.server.query_event import Flavor, QueryEvent, Server
from rowtide.topics.filters import ColumnFilter, MessageKeys, Patterns, Selection, TableFilter
from rowtide.topics.naming import StandardNaming
from rowtide.topics.online_schema_change import WELL_KNOWN_HELPERS

AT = SourceOffset("b.000001", 4, "70506b22-e621-11f1-b9cd-02fc00000001:1-10")


class FakeReader:
    """A chunk reader that reads nothing by itself."""

    holds = True

    def __init__(self) -> None:
        self.found: deque[Found] = deque()
        self.scan: Scan | None = None
        self.read_in_hold: list[Found] = []

    def read(self, scan: Scan | None, mark: Mark | None = None) -> None:
        self.scan = scan

    def mark(self, mark: Mark) -> None: ...

    def taken(self, scan: Scan, number: int) -> int:
        return 0

    def hold(self, scan: Scan, mark: Mark) -> None:
        self.found += self.read_in_hold

    def close(self) -> None: ...


class Run:
    """A connector with one table, and the incremental snapshots alongside its stream."""

    def __init__(
        self,
        start: SourceOffset = AT,
        rules: RecordRules | None = None,
        topic: str | None = None,
        lists: TableFilter | None = None,
    ) -> None:
        self.status = SnapshotStatus()
        self.notifications: list[Mapping[str, Any]] = []
        settings = PipelineSettings(
            "mysql",
            "shop",
            StandardNaming("shop"),
            rules=rules or RecordRules(),
            tables=lists or TableFilter(),
            notification_topic=topic,
            on_notification=self.notifications.append,
        )
        self.reader = FakeReader()
        self._tables = Tables(Server(Flavor.MYSQL))
        self.statement("CREATE TABLE d.t (id INT PRIMARY KEY, other INT NOT NULL)")
        self.snapshots = IncrementalSnapshots(settings, self._tables, self.reader, 10, lambda: 0, self.status)  # type: ignore[arg-type]
        self.pipeline = Pipeline(settings, self._tables, start, lambda: 0)
        self.snapshots.attach(self.pipeline)
        if start.carried is None:
            self.signal("execute-snapshot", **{"data-collections": ["d.t"]})

    def statement(self, text: str) -> None:
        for former, now in self._tables.apply(QueryEvent(text.encode(), database="d")).renamed():
            self.snapshots.renamed(former, now)

    def signal(self, kind: str, **data: object) -> None:
        signal = Signal("1", kind, data, "file")
        match kind:
            case "execute-snapshot":
                list(self.snapshots.execute(snapshot_request(signal), AT))
            case "rowtide-reread-rows":
                list(self.snapshots.reread(rows_request(signal), AT))
            case "stop-snapshot":
                list(self.snapshots.stop(stop_request(signal), AT))
            case "pause-snapshot":
                list(self.snapshots.pause(signal, AT))
            case _:
                list(self.snapshots.resume(signal, AT))

    def scan(self) -> Scan:
        """The scan that is being read, once what is due is done."""
        for _ in range(3):
            if self.snapshots.due:
                list(self.snapshots.run(self.pipeline))
        assert self.reader.scan is not None
        return self.reader.scan

    def read_chunk(self, upper: str, last: str, payloads: Sequence[bytes] = ()) -> list[Output]:
        """Read the first chunk, with these rows, each in a block of its own."""
        scan, names = self.scan(), ["id", "other"]
        scan.begun, scan.last, scan.lower, scan.number = True, (last,), (upper,), 1
        blocks = [Block([scan.table.reader(names).row(payload)], payload, single=True) for payload in payloads]
        read = ReadChunk(Chunk(0, None, (upper,)), 0, blocks, names, AT, None)
        self.reader.found += [(scan, ScanStep.BEGUN), (scan, read)]
        return list(self.snapshots.run(self.pipeline))


def test_a_paused_snapshot_continues_after_its_last_chunk() -> None:
    run = Run()
    run.read_chunk("500", "1000")
    run.signal("pause-snapshot")
    run.statement("ALTER TABLE d.t ADD COLUMN more INT")
    run.signal("resume-snapshot")
    assert (run.scan().lower, run.scan().last) == (("500",), ("1000",))


def test_a_key_that_changes_while_a_snapshot_is_paused_begins_the_table_again() -> None:
    run = Run()
    run.read_chunk("500", "1000")
    run.signal("pause-snapshot")
    run.statement("ALTER TABLE d.t DROP PRIMARY KEY, ADD PRIMARY KEY (other)")
    run.signal("resume-snapshot")
    scan = run.scan()
    assert [column.name for column in scan.key.columns] == ["other"]
    assert (scan.lower, scan.last) == (None, None), "bounds of the former key would leave out rows"


def test_the_rows_of_a_chunk_and_its_end_are_stored_together() -> None:
    run = Run()
    outputs = run.read_chunk("500", "1000", [b"\x017\x018", b"\x018\x018"])
    (rows,) = outputs
    assert isinstance(rows, Batch)
    assert len(rows.messages) == 2
    assert SnapshotState.from_carried(rows.offset.carried).tables[0].lower == ("500",)


def test_a_key_that_changes_while_a_table_is_read_begins_it_again() -> None:
    run = Run()
    run.read_chunk("500", "1000")
    run.statement("ALTER TABLE d.t MODIFY id BIGINT")
    run.reader.found.append((run.reader.scan, ScanStep.BEGUN))  # type: ignore[arg-type]
    assert run.scan().lower is None


def test_a_table_that_is_altered_all_the_time_is_reported_until_a_chunk_is_read() -> None:
    run = Run()
    for number in range(8):
        run.scan()
        assert run.status.by_name["d.t"].problem is None
        run.statement(f"ALTER TABLE d.t ADD COLUMN c{number} INT")
        run.reader.found.append((run.reader.scan, ScanStep.BEGUN))  # type: ignore[arg-type]
    run.scan()
    assert str(run.status.by_name["d.t"].problem).startswith("table d.t makes no progress: its last chunk was read 8 ")
    run.read_chunk("500", "1000")
    assert run.status.by_name["d.t"].problem is None


def test_a_chunk_whose_rows_have_changed_is_read_while_the_stream_waits() -> None:
    run = Run()
    payload = b"\x017\x018"
    run.scan()
    run.snapshots.emitted("shop.d.t")
    assert not run.read_chunk("500", "1000", [payload])
    scan = run.scan()
    assert (scan.held, scan.delays) == (True, 0)
    block = Block([scan.table.reader(["id", "other"]).row(payload)], payload, single=True)
    read = ReadChunk(Chunk(0, None, ("500",)), 0, [block], ["id", "other"], AT, None, AT)
    run.reader.read_in_hold = [(scan, read)]
    run.reader.found.append((scan, ScanStep.TO_READ))
    (rows,) = run.snapshots.run(run.pipeline)
    assert isinstance(rows, Batch)
    assert len(rows.messages) == 1


@pytest.mark.parametrize(
    ("omitted", "rows"), [(TableId("d", "t"), 0), (None, 0), (TableId("d", "u"), 1)], ids=["t", "unknown", "u"]
)
def test_a_chunk_from_before_a_skipped_event_is_read_again(omitted: TableId | None, rows: int) -> None:
    """Its rows may be older than those of the event, and would be newer than its dead letter in the topic."""
    run = Run()
    run.scan()
    run.snapshots.omitted(omitted)
    assert len(run.read_chunk("500", "1000", [b"\x017\x018"])) == rows


def test_nothing_is_read_before_it_is_known_to_which_server_the_position_belongs() -> None:
    run = Run(replace(AT, gtids=None))
    assert list(run.snapshots.run(run.pipeline)) == []
    assert run.reader.scan is None


def test_windows_of_others_are_not_kept_for_ever() -> None:
    windows = ClosedWindows()
    for number in range(10_000):
        windows.add(f"{number}-open", SourcePosition("b.000001", number, server_id=1))
    assert len(windows) == 100
    assert windows.take("9999") == SourcePosition("b.000001", 9999, server_id=1)
    assert windows.take("9999") is windows.take("1") is None


def test_nothing_is_read_before_a_transaction_that_was_emitted_in_part() -> None:
    """A server that is behind may not have its rows yet, so a chunk would have older ones."""
    within = Run(replace(AT, event=3, row=1))
    assert not within.snapshots.due
    within.pipeline.progress.began(None)
    within.pipeline.progress.committed(100)
    assert within.snapshots.due


def test_rows_cut_by_another_column_have_their_own_key() -> None:
    """Even if the primary key is neither in the records nor in their keys: rows are compared with row events by it."""
    hidden = RecordRules(
        columns=ColumnFilter(Selection(exclude=Patterns.parse(r"d\.t\.id"))),
        keys=MessageKeys.parse("d.t:other"),
    )
    run = Run(rules=hidden)
    run.signal("stop-snapshot")
    run.signal("execute-snapshot", **{"data-collections": ["d.t"], "surrogate-key": "other"})
    scan = run.scan()
    assert "SELECT `other`, `id` FROM" in scan.select(Chunk(0, None, ("5",)))


def interrupted(lower: str | None) -> SourceOffset:
    """The position of an initial snapshot that has read table ``d.t`` up to a key."""
    left = IncrementalTable.of_initial_snapshot(TableId("d", "t"), lower and (lower,), "id int None", 400)  # type: ignore[arg-type]
    return replace(AT, carried=SnapshotState((left,)).carried(None))


def test_an_interrupted_initial_snapshot_continues_after_its_last_part() -> None:
    run = Run(interrupted("400"))
    scan = run.scan()
    assert (scan.lower, scan.last, scan.begun) == (("400",), None, False)
    (rows,) = run.read_chunk("500", "500", [b"\x03450\x018"])
    assert isinstance(rows, Batch)
    scan.cut = True
    list(run.snapshots.run(run.pipeline))
    assert not run.snapshots.active
    assert run.pipeline.offset().carried is None
    kinds = ["IN_PROGRESS", "TABLE_SCAN_COMPLETED", "COMPLETED"]
    found = [(one["aggregate_type"], one["type"]) for one in run.notifications]
    assert found == [("Initial Snapshot", kind) for kind in kinds]


def test_an_initial_snapshot_whose_key_has_changed_reads_the_table_again() -> None:
    run = Run(interrupted("400"))
    run.statement("ALTER TABLE d.t MODIFY id BIGINT")
    assert run.scan().lower is None


def test_an_initial_snapshot_leaves_no_table_out() -> None:
    """It tries again for ever where an incremental snapshot gives the table up."""
    initial, incremental = Run(interrupted(None)), Run()
    for run in (initial, incremental):
        for _ in range(20):
            if run.snapshots.active:
                run.reader.found.append((run.scan(), Failed("no")))
                list(run.snapshots.run(run.pipeline))
    assert initial.snapshots.active
    assert not incremental.snapshots.active


def test_an_initial_snapshot_whose_table_has_lost_its_key_fails() -> None:
    run = Run(interrupted("400"))
    run.statement("ALTER TABLE d.t DROP PRIMARY KEY")
    with pytest.raises(SnapshotError, match=r"table d\.t was altered .*resumable=false for one start"):
        run.scan()


def test_a_table_that_was_dropped_is_omitted_from_an_initial_snapshot() -> None:
    run = Run(interrupted("400"))
    run.statement("DROP TABLE d.t")
    list(run.snapshots.run(run.pipeline))
    assert not run.snapshots.active


RENAMED = {
    "RENAME TABLE d.t TO d.new": ["d.new"],
    "ALTER TABLE d.t ADD COLUMN more INT, RENAME TO d.new": ["d.new"],
    "RENAME TABLE d.t TO d.other, d.other TO d.new": ["d.new"],
    "RENAME TABLE d.t TO d.new, d.o TO d.t": ["d.t", "d.new"],
    "RENAME TABLE d.t TO left.t": ["d.t"],
    "ALTER TABLE d.o RENAME TO d.new": ["d.t"],
}


@pytest.mark.parametrize("statement", RENAMED)
def test_the_rows_of_a_table_that_is_renamed_are_read_under_its_new_name(statement: str) -> None:
    start = interrupted("400")
    lists = TableFilter(databases=Selection(exclude=Patterns.parse("left")))
    read = ReadTables(lists, (TableId("d", "a"), TableId("d", "t")))
    run = Run(replace(start, carried=read.carried(start.carried)), lists=lists)
    run.statement("CREATE TABLE d.o (id INT PRIMARY KEY)")
    scan = run.scan()
    run.statement(statement)
    carried = run.pipeline.offset().carried
    state, unread = SnapshotState.from_carried(carried), ReadTables.from_carried(carried)
    assert [table.name for table in state.tables] == RENAMED[statement]
    assert state.unfinished
    if RENAMED[statement] == ["d.t"]:
        assert state.tables[0].lower == ("400",)
    else:
        assert {table.lower for table in state.tables} == {None}, "under the new name, no row has been read"
        assert run.scan() is not scan
    assert unread is not None
    assert list(map(str, unread.unread)) == ["d.a", *RENAMED[statement]]


@pytest.mark.parametrize(
    ("made", "statement", "lower"),
    [
        ("d.o", "RENAME TABLE d.t TO left.t, d.o TO d.t", None),
        ("left.o", "RENAME TABLE d.t TO left.t, left.o TO d.t", None),
        ("d._t_gho", "RENAME TABLE d.t TO d._t_del, d._t_gho TO d.t", ("400",)),
    ],
)
def test_a_table_whose_name_another_one_takes_is_read_from_its_beginning(
    made: str, statement: str, lower: tuple[str] | None
) -> None:
    """But not if an online schema change swaps them: these have the same rows."""
    lists = TableFilter(databases=Selection(exclude=Patterns.parse("left")), helpers=WELL_KNOWN_HELPERS)
    run = Run(interrupted("400"), lists=lists)
    run.statement(f"CREATE TABLE {made} (id INT PRIMARY KEY)")
    run.statement(statement)
    state = SnapshotState.from_carried(run.pipeline.offset().carried)
    assert {(table.name, table.lower) for table in state.tables} == {("d.t", lower)}


def test_a_name_that_matches_no_table_is_reported_with_the_nearest_one() -> None:
    run = Run(topic="notices")
    run.signal("stop-snapshot")
    run.statement("CREATE TABLE d.orders (id INT PRIMARY KEY)")
    run.statement("CREATE TABLE d.logged (line TEXT)")
    run.signal("execute-snapshot", **{"data-collections": [r"d\.oders", "d.logged"]})
    records = [batch for batch in run.snapshots.run(run.pipeline) if isinstance(batch, Batch)]
    data = [one for one in run.notifications if one["type"] == "TABLE_SCAN_COMPLETED"]
    assert [one["additional_data"]["status"] for one in data] == ["UNKNOWN_SCHEMA", "NO_PRIMARY_KEY"]
    assert data[0]["error"].endswith(
        r"d\.oders of the incremental snapshot is not captured, or does not exist. Did you mean d.orders?"
    )
    assert "table d.logged is skipped in the incremental snapshot: it has no primary key" in data[1]["error"]
    # Records have the fields of Debezium only.
    values = [str(message[1]) for batch in records for message in batch.messages]
    assert any("UNKNOWN_SCHEMA" in value for value in values)
    assert not any("Did you mean" in value for value in values)


def test_many_requested_rows_are_read_by_several_queries() -> None:
    """Servers compare each row of a table with all of 30,000 keys, which took minutes."""
    run = Run(topic="notices")
    run.signal("stop-snapshot")
    keys = [[str(number)] for number in range(4500)]
    run.signal("rowtide-reread-rows", **{"data-collection": "d.t", "key-columns": ["id"], "keys": keys})
    assert [len(table.keys) for table in run.snapshots.tables] == [2000, 2000, 500]
    assert [[*key] for table in run.snapshots.tables for key in table.keys] == keys
    assert run.notifications[-1]["additional_data"]["data_collections"] == "d.t"
    run.statement("ALTER TABLE d.t CHANGE id renamed INT")
    list(run.snapshots.run(run.pipeline))
    assert [one["type"] for one in run.notifications[-4:]] == [*["TABLE_SCAN_COMPLETED"] * 3, "COMPLETED"]
    assert run.notifications[-2]["additional_data"]["status"] == "NO_PRIMARY_KEY"
    assert run.notifications[-2]["error"].endswith("each key must have a value of renamed")
