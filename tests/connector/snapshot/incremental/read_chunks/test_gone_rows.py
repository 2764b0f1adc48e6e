"""Records of deletion of requested rows: only for rows that do not exist where the stream is."""

from __future__ import annotations

from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.records.settings import PipelineSettings
from rowtide.connector.records.topic_conflicts import TopicOwners
from rowtide.connector.snapshot.incremental.keys.journal import Journal
from rowtide.connector.snapshot.incremental.read_chunks.attempts import Attempts
from rowtide.connector.snapshot.incremental.read_chunks.kept_rows import gone_rows
from rowtide.connector.snapshot.incremental.scan import Block, Chunk, ReadChunk, Scan
from rowtide.connector.snapshot.incremental.scan_start import new_scan
from rowtide.connector.snapshot.incremental.state import IncrementalTable
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.model import TableId
from rowtide.schema_history.server.query_event import Flavor, QueryEvent, Server
from rowtide.topics.naming import StandardNaming


def scan() -> Scan:
    """The scan of the rows 1, 2 and 3."""
    settings = PipelineSettings("mysql", "shop", StandardNaming("shop"))
    tables = Tables(Server(Flavor.MYSQL))
    tables.apply(QueryEvent("CREATE TABLE d.t (id INT PRIMARY KEY, n INT NOT NULL)", "d", position=""))
    table = tables.table("d", "t")
    assert table is not None
    wanted = IncrementalTable("d.t", TableId("d", "t"), "1", key_names=("id",), keys=(("1",), ("2",), ("3",)))
    return new_scan(wanted, table, settings, TopicOwners(settings, tables), Attempts(10))


def gone(journal: Journal, *payloads: bytes, since: int = 0) -> list[str] | None:
    """The keys that are deleted, if these rows were read."""
    one, names = scan(), ["id", "n"]
    blocks = [Block([one.table.reader(names).row(payload)], payload, single=True) for payload in payloads]
    read = ReadChunk(Chunk(0, None, None, final=True), since, blocks, names, SourceOffset("b.000001", 4), None)
    rows = gone_rows(one, read, journal, since)
    return None if rows is None else [row[0] for row in rows]


def test_rows_that_were_not_read_are_deleted() -> None:
    assert gone(Journal(), b"\x012\x018") == ['{"id":1}', '{"id":3}']
    assert gone(Journal(), b"\x011\x018", b"\x012\x018", b"\x013\x018") == []
    assert scan().condition == "(`id` = 1) OR (`id` = 2) OR (`id` = 3)"


def test_a_row_that_the_stream_has_emitted_since_the_read_is_not_deleted() -> None:
    journal = Journal()
    journal.record([(1,)], replaces=True)
    assert gone(journal) == ['{"id":2}', '{"id":3}']
    assert gone(journal, since=1) == ['{"id":1}', '{"id":2}', '{"id":3}'], "the read has seen the event"
    journal.record([(3,)], replaces=False)
    assert gone(journal) == ['{"id":2}']


def test_the_rows_are_read_again_after_an_event_whose_rows_are_not_known() -> None:
    journal = Journal()
    journal.record_unknown()
    assert gone(journal) is None
    assert gone(journal, since=1) is not None
