"""The reader over connections that break: every record comes once, and a stop stores the position that was reached."""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from rowtide.connector.config import Configuration, from_properties
from rowtide.connector.delivery.event_store import EventStore
from rowtide.connector.engine import reader, stream_attempts, stream_output
from rowtide.connector.engine.decoding import parallel_pipeline, processes
from rowtide.connector.engine.decoding.chunks import EventChunk
from rowtide.connector.engine.decoding.processes import DecoderProcesses, Task
from rowtide.connector.engine.pipeline_settings import pipeline_settings
from rowtide.connector.engine.reader import BinlogReader
from rowtide.connector.engine.stream_attempts import StreamAttempts
from rowtide.connector.engine.stream_output import StreamOutput
from rowtide.connector.engine.stream_pipelines import StreamPipelines, StreamRequests
from rowtide.connector.pipeline import xa_transactions
from rowtide.connector.pipeline.pipeline import Pipeline
from rowtide.connector.protocol.binlog_file import binlog_packets
from rowtide.connector.protocol.events.log_events import FormatDescription
from rowtide.connector.protocol.events.table_structure import TableStructure
from rowtide.connector.records.batch import Batch, Output
from rowtide.connector.records.codecs.builder import Codec, Codecs
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.source.binlog_stream import BinlogStream, StreamBroken
from rowtide.connector.source.event_stream import EventStream
from rowtide.connector.source.files.heads import read_head
from rowtide.connector.source.mirror.reader import MirrorStream
from rowtide.connector.source.search.places import FolderFiles
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.model import Table
from rowtide.schema_history.server.query_event import Flavor, Server
from rowtide.schema_history.store.history_store import InMemorySchemaHistory
from tests.support.configurations import PROPERTIES
from tests.support.mysql.dumped_files import golden_binlogs
from tests.support.mysql.recorded_server import RecordedServer, recorded_file, recorded_stream
from tests.support.processes.decoder_threads import DecoderThread
from tests.support.recordings.golden import Case


class Connections:
    """Connections to a recorded server that break after so many events each; the reader is stopped at the last one."""

    def __init__(
        self,
        server: RecordedServer,
        lengths: Sequence[int | None],
        decoders: int = 0,
        hidden: Collection[tuple[str, str]] = (),
        snapshots: object = None,
        retries: int = -1,
    ) -> None:
        self.server = server
        self._retries = retries
        self.heartbeats = 0
        self._snapshots = snapshots
        self._hidden = hidden
        self._decoders = decoders
        self.starts: list[SourceOffset] = []
        self.reader: BinlogReader | None = None
        self._lengths = list(lengths)

    def open(self, start: SourceOffset) -> BinlogStream:
        self.starts.append(start)
        return cast("BinlogStream", _Connection(self, start, self._lengths.pop(0), last=not self._lengths))

    def run(self, start: SourceOffset, tables: Tables, stop_after: int = 0) -> list[Batch]:
        """Read until the last connection has ended; returns what is in the store.

        Args:
            start: the start position.
            tables: the structures there.
            stop_after: stop the reader when it has written so many records.
        """

        def heartbeat(_offset: SourceOffset) -> None:
            self.heartbeats += 1
            if stop_after and store.use().events >= stop_after:
                assert self.reader is not None
                self.reader.stop()

        store = EventStore(max_events=1_000_000)
        config = configuration(self._decoders, retries=self._retries)
        settings = pipeline_settings(config, "run")
        history = InMemorySchemaHistory()
        snapshots = cast("Any", self._snapshots)
        requests = StreamRequests(snapshots=snapshots, hidden=set(self._hidden))
        pipelines = StreamPipelines(
            config, settings, tables, int, xa_packets=self.server.transaction, requests=requests
        )
        output = StreamOutput(store, history, start)
        attempts = StreamAttempts(config.failure, start)
        self.reader = BinlogReader(attempts, self.open, pipelines, output, heartbeat, requests=requests)
        self.reader.run()
        return list(store.get(1_000_000, 0).batches)


class _Connection:
    def __init__(self, connections: Connections, start: SourceOffset, length: int | None, *, last: bool) -> None:
        self._connections = connections
        self._packets = list(connections.server.stream(start))[:length]
        self._last = last

    def events(self) -> Iterator[list[bytes]]:
        yield [self._connections.server.events[0][1]]  # the FORMAT_DESCRIPTION
        for packet in self._packets[:-1]:
            yield [packet]
        if self._last:
            assert self._connections.reader is not None
            self._connections.reader.stop()
        yield self._packets[-1:]
        raise StreamBroken("the connection broke")

    def taken_bytes(self) -> int:
        return 0


def configuration(decoders: int = 0, *, ignores_gtids: bool = False, retries: int = -1) -> Configuration:
    return from_properties(
        PROPERTIES
        | {
            "include.schema.changes": "false",
            "rowtide.decoder.processes": str(decoders),
            "gtid.ignore.on.recovery": str(ignores_gtids).lower(),
            "errors.max.retries": str(retries),
        }
    )


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_attempts, "_FIRST_WAIT_S", 0.0)


def tables(server: RecordedServer) -> Tables:
    decoder = server.decoder()
    assert decoder.format is not None
    return Tables(Server(Flavor.MYSQL, decoder.format.server_version))


def values(batches: Sequence[Batch]) -> list[bytes | None]:
    return [value for batch in batches for _, value, _ in batch.messages]


@pytest.mark.parametrize("lengths", [[12, 0, None], [12, 9, 0, 3, 5, None], [0, 0, 9, 1, 2, 30, 0, 4, None]])
def test_every_record_comes_once_however_connections_break(lengths: list[int | None]) -> None:
    server = recorded_stream("mysql")
    whole = Connections(server, [None]).run(server.start(), tables(server))
    connections = Connections(server, lengths)
    assert values(connections.run(server.start(), tables(server))) == values(whole)
    assert len(connections.starts) == len(lengths)
    assert any(start.event for start in connections.starts), "no connection broke inside a transaction"


def test_connections_that_break_at_the_same_event_exhaust_the_retries() -> None:
    """Each of them has events: those with which a server begins."""
    server = recorded_stream("mysql")
    connections = Connections(server, [12, 1, 30, 1, 1, None], retries=2)
    with pytest.raises(StreamBroken):
        connections.run(server.start(), tables(server))
    assert len({start.to_json() for start in connections.starts[:4]}) == 3
    assert connections.starts[4] == connections.starts[3]


@pytest.fixture
def submitted(monkeypatch: pytest.MonkeyPatch) -> list[EventChunk]:
    """The chunks that decoder processes got: of few events, and whether or not the reader has caught up."""
    monkeypatch.setattr(processes, "start_process", DecoderThread)
    monkeypatch.setattr(reader, "_BACKLOG_BYTES", 1)
    for limit in ("_FIRST_LIMIT", "_MIN_LIMIT", "_MAX_LIMIT"):
        monkeypatch.setattr(parallel_pipeline, limit, 400)
    chunks: list[EventChunk] = []
    submit, start = DecoderProcesses.submit, DecoderProcesses.start

    def counted(self: DecoderProcesses, chunk: EventChunk, form: FormatDescription) -> Task:
        chunks.append(chunk)
        return submit(self, chunk, form)

    def ready(self: DecoderProcesses) -> None:
        start(self)
        self.wait_until_ready()

    monkeypatch.setattr(DecoderProcesses, "submit", counted)
    monkeypatch.setattr(DecoderProcesses, "start", ready)
    return chunks


@pytest.mark.parametrize("lengths", [[None], [40, 0, 90, 7, None], [0, 60, 61, 30, None]])
def test_every_record_comes_once_with_decoder_processes(lengths: list[int | None], submitted: list[EventChunk]) -> None:
    server = recorded_file(Case("keys").binlog / "binlog.000001.gz", "mysql")
    whole = Connections(server, [None]).run(server.start(), tables(server))
    structures = tables(server)
    found = Connections(server, lengths, decoders=2).run(server.start(), structures)
    # A stop drops what is not decoded yet: the next start reads it again.
    rest = Connections(server, [None]).run(found[-1].offset, structures)
    assert values([*found, *rest]) == values(whole)
    assert len(found) > len(whole) // 2
    assert submitted


def test_nothing_is_decoded_ahead_while_something_happens_at_a_position_of_the_stream(
    submitted: list[EventChunk],
) -> None:
    server = recorded_file(Case("keys").binlog / "binlog.000001.gz", "mysql")
    whole = Connections(server, [None]).run(server.start(), tables(server))
    hidden = Connections(server, [None], decoders=2, hidden=[("other", "table")])
    assert values(hidden.run(server.start(), tables(server))) == values(whole)
    assert not submitted


@pytest.mark.parametrize("has_view", [False, True])
def test_no_heartbeat_waits_for_the_locks_of_a_blocking_snapshot(*, has_view: bool) -> None:
    """The query of the heartbeat would keep the stream from the position at which they are released."""
    snapshots = SimpleNamespace(active=False, due=False, has_view=has_view, attach=lambda *_: None)
    server = recorded_stream("mysql")
    connections = Connections(server, [None], snapshots=snapshots)
    assert values(connections.run(server.start(), tables(server)))
    assert (connections.heartbeats > 0) != has_view


def test_a_start_by_file_moves_on_through_files_without_transactions(tmp_path: Path) -> None:
    """With gtid.ignore.on.recovery, too; the same file of a mirror came again and again."""
    files = golden_binlogs("restart-between-stages")
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    one, two = files
    with (tmp_path / one).open("rb") as stream:
        rotate = list(binlog_packets(stream, one))[-1]
    head = read_head(two, FolderFiles(tmp_path).events(two))
    assert head is not None
    starts: list[SourceOffset] = []

    def opened(start: SourceOffset) -> MirrorStream:
        starts.append(start)
        if len(starts) == 2:
            reading.stop()
        return MirrorStream(tmp_path, replace(start, gtids=None), "mysql", follow=False)

    config = configuration(ignores_gtids=True)
    start = SourceOffset(one, len(files[one]) - len(rotate), str(head.gtids))
    structures, store = tables(recorded_stream("mysql")), EventStore()
    settings = pipeline_settings(config, "run")
    output = StreamOutput(store, InMemorySchemaHistory(), start)
    pipelines = StreamPipelines(config, settings, structures)
    reading = BinlogReader(StreamAttempts(config.failure, start), opened, pipelines, output)
    reading.run()
    assert [(begun.file, begun.pos) for begun in starts] == [(one, start.pos), (two, 4)]


class _FailOver(Connections):
    """Connections of which the third and later ones lead to another server. Notes the reader before each one."""

    def open(self, start: SourceOffset) -> BinlogStream:
        assert self.reader is not None
        self.noted.append((self.reader.place.servers, self.reader.place.take()))
        if len(self.noted) == 3:
            (pos, format_description), *rest = self.server.events
            other = format_description[:5] + b"\x63\0\0\0" + format_description[9:-4]
            checksum = zlib.crc32(other).to_bytes(4, "little")
            self.server = replace(self.server, events=[(pos, other + checksum), *rest])
        return super().open(start)

    noted: list[tuple[int, SourceOffset | None]]


@pytest.mark.parametrize("decoders", [0, 2])
def test_positions_are_those_of_the_open_stream_and_servers_are_counted(
    decoders: int, submitted: list[EventChunk]
) -> None:
    server = recorded_stream("mysql")
    connections = _FailOver(server, [12, 9, 3, None], decoders)
    connections.noted = []
    connections.run(server.start(), tables(server))
    assert connections.noted == [(0, None), (1, None), (1, None), (2, None)]
    reading = connections.reader
    assert reading is not None
    assert reading.place.servers == 2
    position = reading.place.take()
    assert position is not None
    assert (position.server, position.gtids) == ("99", connections.starts[-1].gtids)  # the first one of the stream


def test_the_next_position_is_noted_when_one_was_read(monkeypatch: pytest.MonkeyPatch) -> None:
    positions: list[SourceOffset | None] = []
    ticked = BinlogReader._tick

    def watched(reading: BinlogReader, pipeline: Pipeline, stream: EventStream) -> None:
        positions.append(reading.place.take())
        ticked(reading, pipeline, stream)

    monkeypatch.setattr(BinlogReader, "_tick", watched)
    server = recorded_stream("mysql")
    Connections(server, [None]).run(server.start(), tables(server))
    first, *later = positions
    assert first is None  # nothing of the stream was read yet
    places = [position.pos for position in later if position is not None]
    assert len(places) == len(later)
    assert places == sorted(places)
    assert len(set(places)) > 10


def test_codecs_outlive_a_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[TableStructure] = []
    build = Codecs.codec

    def counted(codecs: Codecs, structure: TableStructure, table: Table) -> Codec:
        built.append(structure)
        return build(codecs, structure, table)

    monkeypatch.setattr(Codecs, "codec", counted)
    server = recorded_stream("mysql")
    Connections(server, [None]).run(server.start(), tables(server))
    whole = len(built)
    Connections(server, [12, 9, 3, 5, 4, None]).run(server.start(), tables(server))
    assert len(built) == 2 * whole > 0


@pytest.mark.parametrize("held", [0, 1 << 20])
def test_a_stop_inside_an_event_stores_the_position_after_what_was_written(
    monkeypatch: pytest.MonkeyPatch, held: int
) -> None:
    """Inside a compressed transaction, and between the batches of an XA transaction."""
    monkeypatch.setattr(stream_output, "_PUT_BYTES", 1)
    monkeypatch.setattr(xa_transactions, "_MAX_HELD_BYTES", held)
    server = recorded_stream("mysql")
    whole = values(Connections(server, [None]).run(server.start(), tables(server)))
    for records in range(1, 6):
        structures, offset, found, runs = tables(server), server.start(), list[bytes | None](), 0
        while len(found) < len(whole):
            batches = Connections(server, [None]).run(offset, structures, stop_after=records)
            assert values(batches), offset
            found += values(batches)
            offset = batches[-1].offset
            runs += 1
        assert found == whole
        assert runs > len(whole) // (records + 5)


class _InOnePiece(Connections):
    """A connection whose events arrive together."""

    def open(self, start: SourceOffset) -> BinlogStream:
        events = ([self.server.events[0][1], *self.server.stream(start)] for _ in range(1))
        return cast("BinlogStream", SimpleNamespace(events=lambda: events, taken_bytes=lambda: 0))


def test_a_stop_takes_effect_after_the_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    """A signal that changes the captured tables stops the reader: the next run needs the transactions after it."""
    server = recorded_stream("mysql")
    whole = values(Connections(server, [None]).run(server.start(), tables(server)))
    connections, add = _InOnePiece(server, []), StreamOutput.add

    def stopping(output: StreamOutput, outputs: Iterable[Output]) -> bool:
        if any(isinstance(one, Batch) and one.messages for one in outputs):
            assert connections.reader is not None
            connections.reader.stop()
        return add(output, outputs)

    with monkeypatch.context() as patched:
        patched.setattr(StreamOutput, "add", stopping)
        structures = tables(server)
        found = connections.run(server.start(), structures)
    assert 0 < len(values(found)) < len(whole) / 2
    assert [*values(found), *values(Connections(server, [None]).run(found[-1].offset, structures))] == whole


@pytest.mark.parametrize("length", range(7))
def test_a_stop_while_skipping_stores_the_start_position(length: int) -> None:
    """The connector starts in the middle of a transaction, and is stopped before it has read that far again."""
    server = recorded_stream("mysql")
    structures = tables(server)
    batches = Connections(server, [14]).run(server.start(), structures)
    start = batches[-1].offset
    assert start.event > 5
    again = Connections(server, [length]).run(start, structures)
    assert values(again) == []
    assert {batch.offset.to_json() for batch in again} <= {start.to_json()}
