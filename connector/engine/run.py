"""One run of a connector: check, recover the schema history, take a snapshot if one is due, and stream until stopped.

The calling thread reads, a second thread delivers. When one of them ends, the other one does, too.
"""

import contextlib
import enum
import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from rowtide.connector.check import CheckedTable, CheckFailedError, require
from rowtide.connector.config import Configuration
from rowtide.connector.delivery.delivery_loop import Delivery
from rowtide.connector.delivery.event_store import StoreClosed
from rowtide.connector.delivery.kafka.offset_store import KafkaOffsetStore
from rowtide.connector.delivery.offset_store import OffsetStore
from rowtide.connector.delivery.sinks import RecordSink
from rowtide.connector.engine.cascade_check import require_derivable
from rowtide.connector.engine.heartbeat import HeartbeatRecords
from rowtide.connector.engine.reader import BinlogReader
from rowtide.connector.engine.reported_tables import ReportedTables
from rowtide.connector.engine.run_guards import RunGuards
from rowtide.connector.engine.run_stop import RunStop
from rowtide.connector.engine.start.demanded_position import resume_position
from rowtide.connector.engine.start.included_tables import (
    SET_INCLUDE_LIST,
    CapturedTablesChanged,
    IncludedTables,
    set_include_list,
    with_included_tables,
)
from rowtide.connector.engine.start.new_table_requests import NewTableRequests
from rowtide.connector.engine.start.new_tables import plan_new_tables
from rowtide.connector.engine.start.position import decide_start, included_findings, log_findings
from rowtide.connector.engine.start.record_values import bool_findings, changed_values, first_fields, with_values
from rowtide.connector.engine.start.recovered_tables import recovered_tables
from rowtide.connector.engine.start.table_lookup import StartTables, new_tables_at_start
from rowtide.connector.engine.stream_attempts import StreamAttempts
from rowtide.connector.engine.stream_output import StreamOutput
from rowtide.connector.engine.stream_pipelines import BoundaryWork, StreamPipelines, StreamRequests
from rowtide.connector.engine.wiring import Components, build_components, heartbeat_action
from rowtide.connector.errors import ConnectorError
from rowtide.connector.records.notifications import Notifications
from rowtide.connector.records.offset import SourceOffset, describe
from rowtide.connector.records.settings import PipelineSettings
from rowtide.connector.records.transforms import Transformer
from rowtide.connector.signals.signalling import Signalling, new_signal_id
from rowtide.connector.snapshot import Decision, SnapshotProgress
from rowtide.connector.snapshot.on_demand import requested_snapshots
from rowtide.connector.source.current_structure import CurrentStructure
from rowtide.connector.source.mirror.streams import stream_factory, xa_packets
from rowtide.connector.telemetry import Lineage, Tracing, tracing
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.compaction.compacting_history import CompactingHistory
from rowtide.schema_history.compaction.history_reader import StoredHistory

log = logging.getLogger(__name__)


class Checks(enum.Enum):
    """What a run checks before it starts. Every run checks its topics, position and schema history."""

    ALL = enum.auto()
    """The server, the account, the tables and Kafka."""
    SERVER = enum.auto()
    """The server and the account: the connector moves from another worker, which has checked the rest."""
    NONE = enum.auto()
    """Nothing else: it is the next run of a task."""


@dataclass(frozen=True, slots=True)
class _Start:
    """The input of a run, starting at the stored offset.

    Attributes:
        config: with the list of captured tables that a signal has set.
        settings: of the pipeline, with the same list.
        included: that list, if there is one.
    """

    config: Configuration
    settings: PipelineSettings
    included: IncludedTables | None


class ConnectorRun:
    """Runs a connector from the stored offset, once.

    Args:
        config: the configuration.
        settings: of the pipeline.
        stop: set to end the run; :meth:`stop` also interrupts waiting calls.
        progress: receives the progress of a snapshot.
        checks: what to check first; the run refuses to start if there are errors.
        sink: a sink to use instead of ``rowtide.sink``.
        stored: the last offset stored by an earlier run of this process; it is stored again if it was deleted.
        signalling: the signals of the connector.
        included: the list of captured tables that a signal has set in an earlier run of this process.
        lineage: receives the tables and topics.

    Attributes:
        started_at: seconds since the epoch.
        state: ``STARTING``, ``SNAPSHOT``, ``RECOVERING`` or ``RUNNING``.
        reader: set when the run streams.
        delivery: set when the run delivers to a sink.
        components: set when Kafka, if it is used, has been reached.
        stored: the position that was stored when the run began, or later by a consumer in this process.
        guards: watch the topics, and offsets in Kafka for a second writer.
        included: the list of captured tables that a signal has set, for the next run.
        lineage: as given, or set before the run.
    """

    def __init__(
        self,
        config: Configuration,
        settings: PipelineSettings,
        stop: threading.Event,
        progress: SnapshotProgress | None,
        *,
        checks: Checks,
        sink: RecordSink | None = None,
        stored: SourceOffset | None = None,
        signalling: Signalling | None = None,
        included: IncludedTables | None = None,
        lineage: Lineage | None = None,
    ) -> None:
        self.started_at = time.time()
        self.state = "STARTING"
        self.reader: BinlogReader | None = None
        self.delivery: Delivery | None = None
        self.components: Components | None = None
        self.stored = stored
        self.included = included
        self.lineage = lineage
        self._tracing = Tracing()
        self._stop = RunStop(stop, config.delivery.shutdown_timeout_ms / 1000)
        self.guards = RunGuards(self._stop, self._lost)
        self._config = config
        self._settings = settings
        self._progress = progress
        self._checks = checks
        self._sink = sink
        self._signalling = signalling or Signalling()

    @property
    def works(self) -> bool:
        """Whether the run reads and, if there is something to deliver, delivers."""
        reader = None if self.reader is None else self.reader.status
        if self.state != "SNAPSHOT" and (reader is None or not reader.connected):
            return False
        if self.delivery is None or self.components is None or self.delivery.counters().delivered:
            return True
        return reader is not None and reader.idle and not self.components.store.use().held_events

    @property
    def left_behind(self) -> bool:
        """Whether a stopped run has delivered everything, and only waits for a server that does not answer."""
        return self._stop.given_up and not self._stop.ended and (self.delivery is None or self.delivery.complete)

    @property
    def last_stored(self) -> SourceOffset | None:
        """The last offset that this run, or an earlier one, is known to have stored."""
        newest = None if self.delivery is None else self.delivery.counters().offset
        return newest or self.stored

    def run(self) -> BaseException | None:
        """Run until :meth:`stop` is called or a failure ends the run, and return the failure."""
        failure: BaseException | None = None
        try:
            with self._stop.connections:
                self._work()
        except StoreClosed as error:
            failure = None if self._stop.requested else error
        except CheckFailedError as error:
            failure = None if self._stop.connections.interrupted and error.retriable else error
        except ConnectorError as error:
            failure = None if self._stop.connections.interrupted else error
        except BaseException as error:  # noqa: BLE001 - the task decides about every failure
            failure = error
        try:
            failure = self._finish(self.guards.taken_over or failure)
        except BaseException as error:  # noqa: BLE001 - as above
            failure = failure or error
        self._stop.end()
        return failure

    def stop(self) -> None:
        """End the run: stop reading, deliver everything read so far, and store the last offset."""
        self._stop.request()
        if self.reader is not None:
            self.reader.stop()
        self._stop.await_reading()
        if self._stop.given_up and self.components is not None:
            # The reader waits for space in the store, or for a server. The next run reads the events that it has not
            # put.
            self.components.store.close()

    def _finish(self, failure: BaseException | None) -> BaseException | None:
        delivery, components, guards = self.delivery, self.components, self.guards
        self._signalling.stop()
        guards.stop()
        if delivery is not None and self._sink is not None and guards.taken_over is None:
            delivery.drain(self._stop.event)  # to interrupt the sink is to close it, and the next run needs it
        limit = 0.0 if guards.taken_over is not None else self._stop.time_left()  # the other program delivers the rest
        if delivery is not None and not delivery.stop(limit):
            failure = (
                guards.taken_over or delivery.failure or failure
            )  # a failed delivery ends reading: it is the cause
        elif delivery is None and components is not None and components.sink is not None:
            components.sink.close()
        self._tracing.flush()
        failure = guards.cause_of(failure)
        if self._settings.transforms is not None:
            self._settings.transforms.close()
        if components is not None:
            components.store.close(failure)  # a consumer takes the rest, and then gets the end
            try:
                components.history.close()
            except Exception as error:  # noqa: BLE001 - as above
                failure = failure or error
        return failure

    def _work(self) -> None:
        captured, differences = self._checked()
        if self._stop.requested:
            return
        components = self.components = build_components(self._config, self._sink)
        if self._stop.requested:
            return  # nobody has closed the new store
        if components.sink is not None:
            components.sink.open()  # fences an older instance: only now is the stored offset final
        if isinstance(components.offsets, KafkaOffsetStore):
            self.guards.exclude_second_writer(self._config, components.offsets, check=self._checks is not Checks.NONE)
        self.stored = self._load(components.offsets)
        config, included, offset = with_included_tables(self._config, self.included, self.stored)
        self.included = included
        if included is not None:
            log_findings(included_findings(config, included))
        log_findings(changed_values(config, offset, differences))
        if offset is not None:
            offset = replace(offset, carried=with_values(config, offset.carried))
        settings = replace(self._settings, tables=config.capture.tables)
        self.guards.watch_topics(config, components, self._sent_topics)
        decision = decide_start(config, offset, components.history)
        for note in decision.notes:
            log.info("%s", note)
        self._deliver(components)
        start = _Start(config, settings, included)
        if decision.snapshot:
            tables, position = self._snapshot(start, components, decision)
            records = config.history.compact_interval  # a snapshot's records are in no summary
        else:
            assert decision.position is not None
            self.state, position = "RECOVERING", decision.position
            kept = StoredHistory(components.history, config.topics.prefix, components.summaries)
            tables, records = recovered_tables(config, kept, position)
            if not decision.continues:
                self._notify_skipped(settings, components, position)
        reported = self._reported(settings, tables)
        if decision.stream and not self._stop.requested:
            new_tables = new_tables_at_start(config, position, tables, captured)
            log_findings((*new_tables.findings, *bool_findings(config, tables)))
            require_derivable(config, tables)
            self._stream(start, components, tables, new_tables, records, reported)

    def _checked(self) -> tuple[tuple[CheckedTable, ...] | None, tuple[str, ...]]:
        """Check the database and Kafka; returns the captured tables, and why values would not be exact."""
        if self._checks is Checks.NONE or self._stop.requested:
            return None, ()
        server_only = self._checks is Checks.SERVER
        database, kafka = self._config.database, self._config.kafka.bootstrap_servers
        place = f" and Kafka at {kafka}" if self._config.uses_kafka and not server_only else ""
        log.info("checking the database at %s:%d%s", database.hostname, database.port, place)
        report = require(self._config, server_only=server_only)
        log_findings(report.findings)
        return report.tables, report.exact_differences

    def _deliver(self, components: Components) -> None:
        """Begin to deliver, unless a consumer in this process takes the batches from the store."""
        if components.sink is None:
            return
        self._tracing = tracing(self._config)
        self.delivery = Delivery(
            components.store,
            components.sink,
            components.policy,
            ensure_topics=components.ensure_topics,
            fitting=components.fitting,
            on_failure=self._delivery_failed,
            on_delivered=None if components.acknowledgements is None else components.acknowledgements.delivered,
            on_acknowledged=self._tracing.acknowledged,
            name=self._config.name,
        )
        self.delivery.start()

    def _reported(self, settings: PipelineSettings, tables: Tables) -> list[BoundaryWork]:
        """Report the tables to OpenLineage, if it is used, and return the work that reports their changes."""
        if self.lineage is None:
            return []
        self.lineage.running()
        work = ReportedTables(
            self.lineage, settings, tables, self._sent_topics if self._config.delivery.sink == "kafka" else None
        )
        work.report()
        return [work]

    def _load(self, offsets: OffsetStore) -> SourceOffset | None:
        """Return the stored offset. One that was deleted after an earlier run of this process is stored again."""
        found = offsets.load()
        log.info("%s", "no position is stored yet" if found is None else f"the stored position is {describe(found)}")
        if found is not None:
            start, note = resume_position(self._config, found)
            if note:
                log.warning("%s", note)
            return start
        if self.stored is not None:
            log.warning("the stored position was deleted while the connector ran; it is stored again")
            offsets.save(self.stored)
            return self.stored
        return None

    def _include(self, tables: IncludedTables) -> None:
        """End the run, so that the next one captures these tables. Later signals may be about them."""
        self.included = tables
        self._signalling.inbox.held = True
        if self.reader is not None:
            self.reader.stop()

    def _interrupts_snapshots(self) -> bool:
        """Return whether a blocking snapshot is to be interrupted, which the next run takes again."""
        return self._stop.requested or self._signalling.inbox.held

    def _sent_topics(self) -> list[str]:
        return [] if self.delivery is None or self._sink is not None else self.delivery.topics

    def _lost(self, failure: BaseException) -> None:
        """End the run: deliver everything read so far, and store the last offset."""
        if self.components is not None:
            self.components.store.close(failure)
        self._delivery_failed(failure)

    def _delivery_failed(self, _failure: BaseException) -> None:
        """Stop the reader, which would not notice the closed store while it has nothing to put."""
        if self.reader is not None:
            self.reader.stop()

    def _snapshot(self, start: "_Start", components: Components, decision: Decision) -> tuple[Tables, SourceOffset]:
        from rowtide.connector.engine.start.written_snapshot import take_snapshot  # noqa: PLC0415 - few starts take one
        from rowtide.connector.snapshot.initial import Snapshot  # noqa: PLC0415

        self.state, config = "SNAPSHOT", start.config
        self._stop.wait(config.snapshot.delay_ms / 1000)
        snapshot = Snapshot(
            config.database,
            start.settings,
            config.snapshot,
            decision,
            time.time_ns,
            self._progress,
            carried=first_fields(config, start.included),
        )
        take_snapshot(snapshot, components.history, components.store, self._stop.event)
        return snapshot.tables, decision.position or snapshot.offset

    @staticmethod
    def _notify_skipped(settings: PipelineSettings, components: Components, start: SourceOffset) -> None:
        """Send the notification that no snapshot was due, if notifications are enabled."""
        transforms = settings.transforms
        for batch in Notifications(settings, time.time_ns).ended("SKIPPED", start):
            components.store.put([Transformer(transforms).batch(batch) if transforms else batch])

    def _stream(
        self,
        start: "_Start",
        components: Components,
        tables: Tables,
        new: StartTables,
        unsummarised: int,
        work: Sequence[BoundaryWork],
    ) -> None:
        """Read the binlog from the start position.

        Args:
            start: the configuration.
            components: of the run.
            tables: the structures at the start position.
            new: the start position, and the tables that are new there.
            unsummarised: number of records of the schema history that are in no summary.
            work: further work between two transactions.
        """
        self.state = "RUNNING"
        config, settings, signalling = start.config, start.settings, self._signalling
        self._stop.wait(config.streaming.delay_ms / 1000)
        history = components.history
        if components.summaries is not None:
            kept = StoredHistory(history, config.topics.prefix, components.summaries)
            history = CompactingHistory(kept, tables.server, config.history.compact_interval, unsummarised)
        snapshots = requested_snapshots(
            config,
            settings,
            tables,
            new.start,
            time.time_ns,
            self._progress,
            self._interrupts_snapshots,
            signalling.inbox.run,
        )
        plan = partial(plan_new_tables, config)
        new_tables = NewTableRequests(settings, new, snapshots.entered, plan, snapshots, time.time_ns, new_signal_id)
        actions = {SET_INCLUDE_LIST: partial(set_include_list, self._config, self._include)}
        requests = StreamRequests(
            signalling.actions(config, settings, snapshots, actions),
            snapshots,
            new_tables.hidden,
            [new_tables, signalling.inbox, *work],
        )
        begin = replace(new.start, snapshot=None)
        pipelines = StreamPipelines(
            config,
            settings,
            tables,
            current=CurrentStructure(config.database, mariadb=config.mariadb),
            xa_packets=xa_packets(config),
            requests=requests,
            read_ahead=components.acknowledgements is None,
        )
        self.reader = BinlogReader(
            StreamAttempts(config.failure, begin),
            stream_factory(config),
            pipelines,
            StreamOutput(components.store, history, begin),
            HeartbeatRecords(settings, config.heartbeat.interval_ms / 1000, heartbeat_action(config)),
            requests=requests,
            acknowledgements=components.acknowledgements,
        )
        if not self._stop.requested and not components.store.closed:
            signalling.start(config, new.start, lambda: self.last_stored)
            with contextlib.closing(snapshots):
                self.reader.run()
        if self.included is not start.included and not self._stop.requested:
            raise CapturedTablesChanged
