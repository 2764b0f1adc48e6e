"""Creates the pipeline of each connection of a stream; all of them share codecs and decoder processes."""

import time
from collections.abc import Callable, Iterable, MutableSet, Sequence
from dataclasses import dataclass
from typing import Protocol

from rowtide.connector.config import Configuration
from rowtide.connector.engine.decoding.forms import RecordForm
from rowtide.connector.engine.decoding.parallel_pipeline import ParallelPipeline
from rowtide.connector.engine.decoding.processes import decoder_processes
from rowtide.connector.pipeline.captured_tables import CapturedTables
from rowtide.connector.pipeline.pipeline import Pipeline
from rowtide.connector.pipeline.structures.lookup import CurrentStructures
from rowtide.connector.pipeline.xa_reader import XaPackets, xa_reader
from rowtide.connector.records.batch import Output
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.records.settings import PipelineSettings
from rowtide.connector.signals.actions import Signals
from rowtide.connector.signals.receiver import SignalReceiver
from rowtide.connector.snapshot.on_demand import RequestedSnapshots
from rowtide.connector.source.temporary_file import temporary_file
from rowtide.schema_history.catalog.tables import Tables


class BoundaryWork(Protocol):
    """Work that the reader's thread does between two transactions, such as signals of other channels."""

    @property
    def due(self) -> bool:
        """Whether there is something to do; read after each event, so it must be quick."""
        ...

    def run(self, pipeline: Pipeline) -> Iterable[Output]:
        """Do it, and return the outputs in order; after them, the position of the pipeline is stored."""
        ...


@dataclass(frozen=True, slots=True)
class StreamRequests:
    """The requests to a stream while it runs.

    Attributes:
        signals: the actions of signals.
        snapshots: those that signals start.
        hidden: tables that are not captured yet, as (database, table); the caller removes them, too.
        work: what to do between two transactions.
    """

    signals: Signals | None = None
    snapshots: RequestedSnapshots | None = None
    hidden: MutableSet[tuple[str, str]] | None = None
    work: Sequence[BoundaryWork] = ()


NO_REQUESTS = StreamRequests()


class StreamPipelines:
    """The pipelines of a connector's stream.

    Args:
        config: the configuration.
        settings: of the pipelines.
        tables: structures at the start position.
        clock: ns since the epoch.
        current: the server, to look up structures.
        xa_packets: reads prepared XA transactions alongside the stream.
        requests: what is requested of the stream.
        read_ahead: whether events may be decoded before earlier ones are delivered.

    Attributes:
        parallel: passes the events of the newest pipeline to decoder processes; ``None`` without any.
    """

    def __init__(
        self,
        config: Configuration,
        settings: PipelineSettings,
        tables: Tables,
        clock: Callable[[], int] = time.time_ns,
        *,
        current: CurrentStructures | None = None,
        xa_packets: XaPackets | None = None,
        requests: StreamRequests = NO_REQUESTS,
        read_ahead: bool = True,
    ) -> None:
        self.parallel: ParallelPipeline[Sequence[Output]] | None = None
        self._by_file = config.capture.gtid_ignore_on_recovery
        self._settings = settings
        self._tables = tables
        self._clock = clock
        self._captured = CapturedTables(settings, tables, clock, current, requests.hidden)
        self._read_xa = None if xa_packets is None else xa_reader(settings, tables, clock, xa_packets, temporary_file)
        self._signals = None
        if requests.signals is not None:
            self._signals = SignalReceiver(settings, requests.signals, tables, self._captured)
        self._requests = requests
        self._read_ahead = read_ahead
        self._processes = decoder_processes(config.streaming.decoder_processes or 0, settings, RecordForm(), clock)

    def make(self, start: SourceOffset) -> Pipeline:
        """Return the pipeline of a stream that begins at a position."""
        pipeline = Pipeline(
            self._settings,
            self._tables,
            start,
            self._clock,
            self._captured,
            self._read_xa,
            self._signals,
            temporary_file,
        )
        if self._by_file:
            pipeline.progress.begin_at_file()
        if self._requests.snapshots is not None:
            self._requests.snapshots.attach(pipeline, self._captured)
        if self.parallel is not None:
            self.parallel.abandon()
        if self._processes is not None:
            self.parallel = ParallelPipeline(
                pipeline, self._captured, self._settings, self._processes, RecordForm(), self._may_read_ahead
            )
        return pipeline

    def _may_read_ahead(self) -> bool:
        """Return whether no position of the stream needs work: a table to capture, a snapshot or an acknowledgement."""
        snapshots = self._requests.snapshots
        return self._read_ahead and not self._requests.hidden and (snapshots is None or not snapshots.active)

    def close_unused(self) -> None:
        """End the decoder processes if they have had nothing to do for a long time."""
        if self._processes is not None:
            self._processes.close_unused()

    def close(self) -> None:
        """End the decoder processes."""
        if self._processes is not None:
            self._processes.close()
