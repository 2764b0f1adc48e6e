"""Replays binlog files on disk through the same pipeline as a server's stream (``rowtide replay``).

Events before the start offset only build structure; later events become records. Structures at the start are given
the form that a snapshot would have found there, because a stream that begins at an offset begins after a snapshot.
"""

import itertools
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from rowtide.connector.engine.decoding.forms import Form, RecordForm
from rowtide.connector.engine.decoding.parallel_pipeline import ParallelPipeline
from rowtide.connector.engine.decoding.processes import DecoderProcesses
from rowtide.connector.errors import ConnectorError, OffsetError, UnparsedDdl
from rowtide.connector.pipeline.captured_tables import CapturedTables
from rowtide.connector.pipeline.pipeline import Clock, Pipeline
from rowtide.connector.pipeline.xa_reader import xa_reader
from rowtide.connector.protocol.binlog_file import binlog_packets
from rowtide.connector.protocol.decoder import EventDecoder
from rowtide.connector.protocol.header import GTID_TYPES, HEADER
from rowtide.connector.records.batch import Output
from rowtide.connector.records.offset import PreparedXa, SourceOffset
from rowtide.connector.records.settings import PipelineSettings
from rowtide.connector.signals.actions import Signals
from rowtide.connector.signals.receiver import SignalReceiver
from rowtide.connector.signals.snapshots import NoSnapshots
from rowtide.connector.source.files.folder import BinlogFile, binlog_files
from rowtide.connector.source.files.gtid_filter import BETWEEN_TRANSACTIONS, GtidFilter
from rowtide.connector.source.files.statements import StatementReader
from rowtide.connector.source.temporary_file import temporary_file
from rowtide.schema_history.catalog.tables import Tables, as_described_by_snapshot
from rowtide.schema_history.errors import SchemaHistoryError
from rowtide.schema_history.server.query_event import Flavor, QueryEvent, Server

_FIRST_EVENT = 4
_READ_BYTES = 1 << 18
"""How much of a file is read at a time."""

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")


class ReplayPipeline(Protocol[T_co]):
    """Turns the events of binlog files into outputs."""

    def enter_file(self, name: str, decoder: EventDecoder | None = None) -> None:
        """Set the binlog file of the next event; the decoder has read its FORMAT_DESCRIPTION, if it is given."""

    def receive(self, packet: bytes) -> Iterable[T_co]:
        """Process one event and return its outputs."""
        ...

    def finish(self) -> Iterable[T_co]:
        """Return the remaining outputs after the last event."""
        ...


class FormPipeline(Generic[T]):
    """A pipeline whose outputs have a selectable form."""

    def __init__(self, pipeline: Pipeline, form: Form[T]) -> None:
        self._form = form
        self._pipeline = pipeline

    def enter_file(self, name: str, decoder: EventDecoder | None = None) -> None:
        """Do the same as :meth:`Pipeline.enter_file`; a transaction that the previous file does not end is skipped."""
        self._pipeline.groups.abandon("the events end there")
        self._pipeline.enter_file(name, decoder)

    def receive(self, packet: bytes) -> Iterable[T]:
        """Process one event and return its outputs."""
        return map(self._form.direct, filter(None, self._pipeline.receive(packet)))

    def finish(self) -> Iterable[T]:
        """Forget an incomplete transaction."""
        self._pipeline.groups.abandon("the events end there")
        return ()


ReadPrepared = Callable[[PreparedXa], Iterator[bytes]]
"""Reads the events of a file, starting at the beginning of an XA transaction."""

PipelineFactory = Callable[[Tables, SourceOffset, ReadPrepared], ReplayPipeline[T]]
"""Makes a pipeline from the structures and the offset at its start."""

RecordedTables = Callable[[str, SourceOffset], Tables]
"""Returns the structures at an offset from a schema history; the text is the version of the server."""


def replay(
    folder: Path, settings: PipelineSettings, start: SourceOffset | None, clock: Clock = time.time_ns
) -> Iterator[Output]:
    """Return the records of the binlog files in a folder.

    Args:
        folder: their folder; they are read in the order of their numbers.
        settings: the settings for records.
        start: the position from which records are returned; ``None`` for all. Without a file (``""``) the transactions
            that are not in its GTID set are wanted.
        clock: for the processing times.

    Raises:
        ConnectorError: an event cannot be handled.
        OffsetError: the start is not in the files, or files are missing.
    """
    return itertools.chain.from_iterable(replay_as(RecordForm(), folder, settings, start, clock))


def replay_as(
    form: Form[T],
    folder: Path,
    settings: PipelineSettings,
    start: SourceOffset | None,
    clock: Clock = time.time_ns,
    processes: DecoderProcesses | None = None,
) -> Iterator[T]:
    """Return the records of the binlog files in a folder in a given form; raises as :func:`replay`.

    Args:
        form: their form.
        folder: as for :func:`replay`.
        settings: as for :func:`replay`.
        start: as for :func:`replay`.
        clock: as for :func:`replay`.
        processes: the processes that decode rows, with the same form, settings and clock; ``None`` for none.
    """
    return replay_through(replay_pipeline(form, settings, clock, processes), folder, settings, start)


def replay_pipeline(
    form: Form[T],
    settings: PipelineSettings,
    clock: Clock,
    processes: DecoderProcesses | None,
    find_xa: Callable[[str], PreparedXa] | None = None,
) -> PipelineFactory[T]:
    """Return a factory of pipelines that make records in a given form.

    The other arguments are those of :func:`replay_as`.

    Args:
        form: their form.
        settings: the settings for records.
        clock: for the processing times.
        processes: the processes that decode rows, if there are any.
        find_xa: see :class:`~rowtide.connector.pipeline.xa_transactions.XaTransactions`.
    """

    def make(tables: Tables, offset: SourceOffset, packets: ReadPrepared) -> ReplayPipeline[T]:
        captured = CapturedTables(settings, tables, clock)
        signals = SignalReceiver(settings, Signals(settings, clock, NoSnapshots()), tables, captured)
        xa = xa_reader(settings, tables, clock, packets, temporary_file)
        pipeline = Pipeline(settings, tables, offset, clock, captured, xa, signals, temporary_file)
        pipeline.xa.find = find_xa
        if processes is None:
            return FormPipeline(pipeline, form)
        return ParallelPipeline(pipeline, captured, settings, processes, form)

    return make


def replay_through(
    make: PipelineFactory[T],
    folder: Path,
    settings: PipelineSettings,
    start: SourceOffset | None,
    end: tuple[str, int] | None = None,
    recorded: RecordedTables | None = None,
) -> Iterator[T]:
    """Return the outputs of another pipeline for the binlog files in a folder; raises as :func:`replay`.

    Args:
        make: creates the pipeline when the start is reached.
        folder: the folder of the files.
        settings: what to do with statements that cannot be parsed before the start.
        start: as for :func:`replay`.
        end: the file and position from which no further transaction is read; ``None`` for all.
        recorded: returns the structures at the start; ``None`` to take them from the statements before the start. Needs
            a start with a file, and the files before it are not read.
    """
    all_files = files = binlog_files(folder)
    start = start or SourceOffset(files[0].name, _FIRST_EVENT)
    if recorded is not None:
        names = [file.name for file in files]
        files = files[names.index(start.file) :] if start.file in names else files
    return (_ByPosition if start.file else _ByGtids)(files, all_files, settings, start, make, end, recorded).run()


class _Replay(Generic[T]):
    """The common part of both kinds of starts."""

    def __init__(
        self,
        files: list[BinlogFile],
        all_files: list[BinlogFile],
        settings: PipelineSettings,
        start: SourceOffset,
        make: PipelineFactory[T],
        end: tuple[str, int] | None,
        recorded: RecordedTables | None,
    ) -> None:
        self._files = files
        self._all_files = all_files
        self._settings = settings
        self._start = start
        self._make = make
        self._end = end
        self._recorded = recorded
        self._decoder = EventDecoder()
        self._tables: Tables | None = None
        self._before = StatementReader(self._decoder)
        self._made: ReplayPipeline[T] | None = None
        self._begin()

    def _begin(self) -> None:
        """Find the start."""
        raise NotImplementedError

    def run(self) -> Iterator[T]:
        try:
            yield from self._outputs()
        except ConnectorError:
            if self._made is not None:
                yield from self._made.finish()
            raise
        if self._made is not None:
            yield from self._made.finish()

    def _outputs(self) -> Iterator[T]:
        pipeline, beyond = self._made, False
        for file in self._files:
            with file.path.open("rb", _READ_BYTES) as stream:
                self._decoder.file = file.name
                if pipeline is not None:
                    pipeline.enter_file(file.name)
                position = _FIRST_EVENT
                for packet in binlog_packets(stream, file.name, active=file is self._files[-1]):
                    beyond = beyond or (
                        self._end is not None and self._end[0] == file.name and position >= self._end[1]
                    )
                    if beyond and packet[4] in GTID_TYPES:
                        return
                    if not self._wanted(file, position, packet):
                        self._prepare(packet, f"{file.name}:{position}")
                    else:
                        if pipeline is None:
                            pipeline = self._made = self._pipeline(file.name, position)
                        yield from pipeline.receive(packet)
                    position += len(packet)
                beyond = beyond or (self._end is not None and self._end[0] == file.name)
                self._left(file, position)

    def _wanted(self, file: BinlogFile, position: int, packet: bytes) -> bool:
        """Return whether an event should become records."""
        raise NotImplementedError

    def _left(self, file: BinlogFile, position: int) -> None:
        """Note that a file was read up to a position."""

    def _offset(self, file: str, position: int) -> SourceOffset:
        """Return the offset at which the pipeline begins."""
        raise NotImplementedError

    def _pipeline(self, file: str, position: int) -> ReplayPipeline[T]:
        offset = self._offset(file, position)
        if self._recorded is None:
            tables = self._structures()
            self._describe(tables)
        else:
            tables = self._recorded(self._version(), offset)
        pipeline = self._make(tables, offset, self._packets)
        pipeline.enter_file(file, self._decoder)
        return pipeline

    def _describe(self, tables: Tables) -> None:
        """Convert structures built from statements to the form that a snapshot would have found."""
        for database in list(tables.databases()):
            tables.put_database(replace(database, debezium_charset=database.charset))
        for table in list(tables):
            tables.put(as_described_by_snapshot(table, tables.server))

    def _packets(self, xa: PreparedXa) -> Iterator[bytes]:
        """Yield the events of a file from the beginning of an XA transaction, after the file's own description."""
        for file in self._all_files:
            if file.name == xa.file:
                with file.path.open("rb", _READ_BYTES) as stream:
                    position = _FIRST_EVENT
                    for packet in binlog_packets(stream, file.name, active=True):
                        if position == _FIRST_EVENT or position >= xa.pos:
                            yield packet
                        position += len(packet)

    def _version(self) -> str:
        """Return the version of the server that wrote the file."""
        return self._decoder.format.server_version if self._decoder.format else ""

    def _structures(self) -> Tables:
        """Return the structures at the current event; once the pipeline has begun, they are also the pipeline's."""
        if self._tables is None:
            self._tables = Tables(Server(Flavor(self._settings.connector), self._version()))
        return self._tables

    def _prepare(self, packet: bytes, place: str) -> None:
        """Process an event that produces no records: only statements have an effect."""
        event = self._decoder.decode(packet)
        for statement in self._before.statements(event):  # which also collects the GTIDs
            if self._recorded is not None:
                continue
            self._apply(replace(statement.event, position=place))

    def _apply(self, statement: QueryEvent) -> None:
        try:
            self._structures().apply(statement)
        except SchemaHistoryError as error:
            if not self._settings.skip_unparseable_ddl:
                raise UnparsedDdl(error.message(literals=self._settings.show_values)) from error


class _ByPosition(_Replay[T]):
    """A start at a file and position."""

    def _begin(self) -> None:
        numbers = [file.number for file in self._files if file.name == self._start.file]
        if not numbers:
            names = f"{self._files[0].name} to {self._files[-1].name}"
            raise OffsetError(f"the start is in {self._start.file}, but the files are {names}")
        self._number = numbers[0]
        self._position = max(self._start.pos, _FIRST_EVENT)

    def _wanted(self, file: BinlogFile, position: int, packet: bytes) -> bool:
        if file.number != self._number:
            return file.number > self._number
        if position < self._position < position + len(packet):
            raise OffsetError(
                f"the start {self._start.file}:{self._position} is inside an event, which begins at {position}"
            )
        # The head of a transaction has its GTID and its time; an offset names the position after it.
        is_head = position + len(packet) == self._position and HEADER.unpack_from(packet)[1] in GTID_TYPES
        return position >= self._position or is_head

    def _left(self, file: BinlogFile, position: int) -> None:
        if file.number == self._number and position < self._position:
            raise OffsetError(f"the start {file.name}:{self._position} is after the end of the file, {position}")

    def _offset(self, file: str, position: int) -> SourceOffset:
        if self._start.gtids is None and self._before.gtids:
            return replace(self._start, gtids=str(self._before.gtids))
        return self._start


class _ByGtids(_Replay[T]):
    """A start with the transactions that are not in a GTID set, wherever they are."""

    def _begin(self) -> None:
        try:
            gtids = self._start.gtid_set(self._settings.connector)
        except ValueError as error:
            raise OffsetError(f"the start is {error}") from None
        self._filter = GtidFilter(gtids, self._decoder)

    def _wanted(self, file: BinlogFile, position: int, packet: bytes) -> bool:
        selected = self._filter.selects(packet)
        return selected or (self._filter.begun and packet[4] in BETWEEN_TRANSACTIONS)

    def _offset(self, file: str, position: int) -> SourceOffset:
        return replace(self._start, file=file, pos=position)
