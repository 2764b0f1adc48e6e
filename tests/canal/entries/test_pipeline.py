"""Resume positions and errors of the pipeline of entries."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace

import pytest

from rowtide.canal.entries.entry import EntryStatement, EntryType, RowChange
from rowtide.canal.entries.pipeline import EntryBatch, EntryPipeline, Output
from rowtide.connector.config import from_properties
from rowtide.connector.engine.pipeline_settings import pipeline_settings
from rowtide.connector.engine.replay import ReadPrepared, replay_through
from rowtide.connector.errors import RemoteProtocolError, UnknownTable
from rowtide.connector.protocol.events.classes import Rows
from rowtide.connector.protocol.header import EventType
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.records.settings import PipelineSettings
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.server.query_event import Flavor, Server
from tests.support.recordings.golden import Case


def settings(case: Case) -> PipelineSettings:
    return pipeline_settings(from_properties(case.properties()), "run")


def batches(case: Case, start: SourceOffset | None = None, *, gtids: bool = False) -> list[EntryBatch]:
    found = settings(case)

    def make(tables: Tables, offset: SourceOffset, _packets: ReadPrepared) -> EntryPipeline:
        return EntryPipeline(found, tables, offset if start is None else start, lambda: 0, gtids=gtids)

    steps: Iterator[list[Output]] = replay_through(make, case.binlog, found, start)
    return [output for outputs in steps for output in outputs if isinstance(output, EntryBatch)]


@pytest.mark.parametrize("name", ["transactions", "transaction-compression", "mariadb-time-zone-and-transactions"])
def test_a_stream_cut_after_any_entry_continues_with_the_next_one(name: str) -> None:
    case = Case(name)
    whole = batches(case)
    for place in range(0, len(whole), 5):
        left = batches(case, whole[place].offset)
        assert [e.encoded() for b in left for e in b.entries] == [
            e.encoded() for b in whole[place + 1 :] for e in b.entries
        ], f"behind {whole[place].offset}"
    assert batches(case, whole[-1].offset) == []


@pytest.mark.parametrize("name", ["transactions", "mariadb-time-zone-and-transactions"])
def test_after_a_start_without_gtids_headers_have_no_part_of_the_executed_set(name: str) -> None:
    """Neither Canal nor rowtide may resume by a part of it: the server would send the other transactions again."""
    case = Case(name)
    whole = [batch for batch in batches(case, gtids=True) if batch.entries[-1].type is EntryType.TRANSACTIONEND]
    complete = {(e.header.file, e.header.offset): e.header.gtid for batch in whole for e in batch.entries}
    left = batches(case, replace(whole[len(whole) // 2].offset, gtids=None), gtids=True)
    found = [(e.header.gtid, complete[e.header.file, e.header.offset], batch.offset.gtids)
             for batch in left for e in batch.entries if e.type is EntryType.TRANSACTIONEND]  # fmt: skip
    assert found[0] == ("", found[0][1], None)
    assert found[0][1]
    assert all(shown in ("", executed) and (resumed or "") == shown for shown, executed, resumed in found)
    assert bool(found[-1][0]) is any(e.header.file != left[0].entries[0].header.file for b in left for e in b.entries)


@pytest.mark.parametrize("name", ["transactions", "mariadb-time-zone-and-transactions"])
def test_the_format_description_of_a_stream_within_a_file_moves_no_position(name: str) -> None:
    """The server sends it first, with the position 0; a connection that is lost then resumes at the start."""
    case = Case(name)
    start = SourceOffset("binlog.000001", 1367)
    content = gzip.decompress((case.binlog / "binlog.000001.gz").read_bytes())[4:]
    packet = content[: int.from_bytes(content[9:13], "little")]
    assert packet[4] == EventType.FORMAT_DESCRIPTION
    pipeline = EntryPipeline(settings(case), Tables(Server(Flavor.MYSQL)), start, lambda: 0)
    pipeline.decoder._verify = False
    list(pipeline.receive(packet[:13] + bytes(4) + packet[17:]))
    assert pipeline.offset().pos == 1367


def test_a_damaged_event_is_not_passed() -> None:
    start = SourceOffset("binlog.000001", 4)
    pipeline = EntryPipeline(settings(Case("keys")), Tables(Server(Flavor.MYSQL)), start, lambda: 0)
    with pytest.raises(RemoteProtocolError):
        list(pipeline.receive(bytes(19)))
    assert pipeline.offset() == start


def test_rows_of_an_unknown_table_name_the_position() -> None:
    case = Case("keys")
    found, whole = settings(case), batches(case)

    def without_tables(tables: Tables, offset: SourceOffset, _packets: ReadPrepared) -> EntryPipeline:
        return EntryPipeline(found, Tables(tables.server), offset, lambda: 0)

    place = next(place for place, batch in enumerate(whole) if isinstance(batch.entries[0].content, RowChange))
    with pytest.raises(UnknownTable, match=r"not in the schema history.*binlog\.000001:\d+"):
        list(replay_through(without_tables, case.binlog, found, whole[place - 1].offset))


def test_rows_with_another_number_of_columns_than_their_table_map_are_refused() -> None:
    rows = Rows(*[None] * len(Rows._fields))._replace(table_id=7, column_count=3)
    structure = SimpleNamespace(database="shop", table="t", columns=("id", "note"))
    pipeline = EntryPipeline(settings(Case("keys")), Tables(Server(Flavor.MYSQL)), SourceOffset("b.1", 4), lambda: 0)
    pipeline._table_ids[7] = structure  # type: ignore[assignment]
    with pytest.raises(RemoteProtocolError, match=r"rows of table shop\.t with 3 columns, but the TABLE_MAP .* has 2"):
        pipeline._row_event(rows)


@pytest.mark.parametrize(
    ("name", "written", "executable"),
    [
        ("transactions", " START TRANSACTION", ""),
        ("no-backslash-escapes", "\\", "\\\\"),
        ("fails-ansi-quotes", '"', "`"),
    ],
)
def test_statements_are_those_of_the_binlog_or_executable(name: str, written: str, executable: str) -> None:
    def statements(*, executable_ddl: bool) -> list[str]:
        case = Case(name)
        found = settings(case)

        def make(tables: Tables, offset: SourceOffset, _packets: ReadPrepared) -> EntryPipeline:
            return EntryPipeline(found, tables, offset, lambda: 0, executable_ddl=executable_ddl)

        made = (output for outputs in replay_through(make, case.binlog, found, None) for output in outputs)
        contents = (e.content for output in made if isinstance(output, EntryBatch) for e in output.entries)
        return [content.sql for content in contents if isinstance(content, EntryStatement) and content.ddl]

    before, after = statements(executable_ddl=False), statements(executable_ddl=True)
    changed = [pair for pair in zip(before, after, strict=True) if pair[0] != pair[1]]
    assert changed
    assert [one.replace(written, executable) for one, _ in changed] == [other for _, other in changed]
