"""One run of a connector: check, recover the schema history, take a snapshot if one is due, and stream until stopped.

The calling thread reads, a second thread delivers. When one of them ends, the other one does, too.
"""

import contextlib
import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from rowtide.connector.check import CheckedTable, CheckFailedError, require
from rowtide.connector.config import Configuration, Flavor
from rowtide.connector.delivery.delivery_loop import Delivery
from rowtide.connector.delivery.errors import DeliveryError, TakenOver
from rowtide.connector.delivery.event_store import StoreClosed
from rowtide.connector.delivery.kafka.offset_store import KafkaOffsetStore
from rowtide.connector.delivery.kafka.second_writer import SecondWriterWatch, still_writing
from rowtide.connector.delivery.kafka.writer import Writer
from rowtide.connector.delivery.offset_store import OffsetStore
from rowtide.connector.delivery.sinks import RecordSink
from rowtide.connector.engine.cascade_check import require_derivable
from rowtide.connector.engine.heartbeat import Heartbeat
from rowtide.connector.engine.reader import BoundaryWork, Reader
from rowtide.connector.engine.reported_tables import ReportedTables
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
from rowtide.connector.engine.stream_pipelines import StreamPipelines
from rowtide.connector.engine.topic_guard import TopicGuard
from rowtide.connector.engine.wiring import Components, build_components, heartbeat_action, topic_guard
from rowtide.connector.errors import ConnectorError
from rowtide.connector.records.notifications import Notifications
from rowtide.connector.records.offset import SourceOffset, describe
from rowtide.connector.records.settings import PipelineSettings
from rowtide.connector.records.transforms import Transformer
from rowtide.connector.signals.signalling import Signalling, new_signal_id
from rowtide.connector.snapshot import Decision, SnapshotProgress
from rowtide.connector.snapshot.on_demand import requested_snapshots
from rowtide.connector.source.connection.kill import kill_queries
from rowtide.connector.source.connection.open_connections import OpenConnections
from rowtide.connector.source.current_structure import CurrentStructure
from rowtide.connector.source.mirror.streams import stream_factory, xa_packets
from rowtide.connector.telemetry import Lineage, Tracing, tracing
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.compaction.compacting_history import CompactingHistory
from rowtide.schema_history.compaction.history_reader import StoredHistory

log = logging.getLogger(__name__)

_DRAINING = 0.8
"""The part of ``task.shutdown.graceful.timeout.ms`` in which what was read must be delivered."""
_STOP_QUERIES_S = 1.0
"""How long reading may take to stop before its connections are interrupted: a stream stops within a tick."""
_STOP_READING_S = 1.0
"""How long reading may take to stop after that, before the event store is closed."""


class ConnectorRun:
    """Runs a connector from the stored offset, once.

    Args:
        config: the configuration.
        settings: of the pipeline.
        stop: set to end the run; :meth:`stop` also interrupts waiting calls.
        progress: receives the progress of a snapshot.
        check: check the database and Kafka first, and refuse to start if there are errors.
        sink: a sink to use instead of ``rowtide.sink``.
        stored: the last offset stored by an earlier run of this process; it is stored again if it was deleted.
        signalling: the signals of the connector.
        included: the list of captured tables that a signal has set in an earlier run of this process.
        lineage: receives the tables and topics.

    Attributes:
        state: ``STARTING``, ``SNAPSHOT``, ``RECOVERING`` or ``RUNNING``.
        reader: set when the run streams.
        delivery: set when the run delivers to a sink.
        components: set when Kafka, if it is used, has been reached.
        stored: the position that was stored when the run began, or later by a consumer in this process.
        watch: set while offsets in Kafka are watched for a second writer.
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
        check: bool,
        sink: RecordSink | None = None,
        stored: SourceOffset | None = None,
        signalling: Signalling | None = None,
        included: IncludedTables | None = None,
        lineage: Lineage | None = None,
    ) -> None:
        self.state = "STARTING"
        self.reader: Reader | None = None
        self.delivery: Delivery | None = None
        self.components: Components | None = None
        self.stored = stored
        self.watch: SecondWriterWatch | None = None
        self._included = self.included = included
        self.lineage = lineage
        self._taken_over: TakenOver | None = None
        self._captured: tuple[CheckedTable, ...] | None = None
        self._differences: tuple[str, ...] = ()
        self._config = self._configured = config
        self._settings = settings
        self._progress = progress
        self._check = check
        self._sink = sink
        self._guard: TopicGuard | None = None
        self._signalling = signalling or Signalling()
        self._stop = stop
        self._connections = OpenConnections()
        self._drained_by: float | None = None
        self._given_up = False
        self._done = threading.Event()
        self._tracing = Tracing()
        self._behind = config.history.compact_interval  # a snapshot's records are in no summary

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
        return self._given_up and not self._done.is_set() and (self.delivery is None or self.delivery.complete)

    @property
    def last_stored(self) -> SourceOffset | None:
        """The last offset that this run, or an earlier one, is known to have stored."""
        newest = None if self.delivery is None else self.delivery.counters().offset
        return newest or self.stored

    def run(self) -> BaseException | None:
        """Run until :meth:`stop` is called or a failure ends the run, and return the failure."""
        failure: BaseException | None = None
        try:
            with self._connections:
                self._work()
        except StoreClosed as error:
            failure = None if self._stop.is_set() else error
        except CheckFailedError as error:
            failure = None if self._connections.interrupted and error.retriable else error
        except ConnectorError as error:
            failure = None if self._connections.interrupted else error
        except BaseException as error:  # noqa: BLE001 - the task decides about every failure
            failure = error
        try:
            failure = self._finish(self._taken_over or failure)
        except BaseException as error:  # noqa: BLE001 - as above
            failure = failure or error
        self._done.set()
        return failure

    def stop(self) -> None:
        """End the run: stop reading, deliver everything read so far, and store the last offset."""
        self._drained_by = time.monotonic() + self._config.delivery.shutdown_timeout_ms / 1000 * _DRAINING
        self._stop.set()
        if self.reader is not None:
            self.reader.stop()
        self._done.wait(_STOP_QUERIES_S)
        kill_queries(self._connections.interrupt())  # threads that read chunks are not waited for
        self._given_up = not self._done.wait(_STOP_READING_S)
        if self._given_up and self.components is not None:
            # The reader waits for space in the store, or for a server. The next run reads the events that it has not
            # put.
            self.components.store.close()

    def _finish(self, failure: BaseException | None) -> BaseException | None:
        delivery, components = self.delivery, self.components
        self._signalling.stop()
        if self.watch is not None:
            self.watch.close()
        if self._guard is not None:
            self._guard.stop()
        if delivery is not None and self._sink is not None and self._taken_over is None:
            delivery.drain(self._stop)  # to interrupt the sink is to close it, and the next run needs it
        limit = self._config.delivery.shutdown_timeout_ms / 1000
        if self._drained_by is not None:  # includes the time that reading took to stop
            limit = max(0.0, self._drained_by - time.monotonic())
        if self._taken_over is not None:
            limit = 0.0  # the other one delivers what is left, and stores its own offset
        if delivery is not None and not delivery.stop(limit):
            failure = self._taken_over or delivery.failure or failure  # a failed delivery ends reading: it is the cause
        elif delivery is None and components is not None and components.sink is not None:
            components.sink.close()
        self._tracing.flush()
        if self._guard is not None and self._taken_over is None and not self._stop.is_set():
            failure = (self._guard.explain() if isinstance(failure, DeliveryError) else self._guard.failure) or failure
        if self._settings.transforms is not None:
            self._settings.transforms.close()
        if components is not None:
            components.store.close(failure)  # a consumer takes what is left, and then gets the end
            try:
                components.history.close()
            except Exception as error:  # noqa: BLE001 - as above
                failure = failure or error
        return failure

    def _work(self) -> None:
        if self._check and not self._stop.is_set():
            database, kafka = self._config.database, self._config.kafka.bootstrap_servers
            place = f" and Kafka at {kafka}" if self._config.uses_kafka else ""
            log.info("checking the database at %s:%d%s", database.hostname, database.port, place)
            report = require(self._config)
            self._captured, self._differences = report.tables, report.exact_differences
            log_findings(report.findings)
        if self._stop.is_set():
            return
        components = self.components = build_components(self._config, self._sink)
        if self._stop.is_set():
            return  # nobody has closed the new store
        if components.sink is not None:
            components.sink.open()  # fences an older instance: only now is the stored offset final
        if isinstance(components.offsets, KafkaOffsetStore):
            self._exclude_second_writer(components.offsets)
        self.stored = self._load(components.offsets)
        self._config, self._included, offset = with_included_tables(self._configured, self._included, self.stored)
        self._settings = replace(self._settings, tables=self._config.capture.tables)
        self.included = self._included
        if self._included is not None:
            log_findings(included_findings(self._config, self._included))
        log_findings(changed_values(self._config, offset, self._differences))
        if offset is not None:
            offset = replace(offset, carried=with_values(self._config, offset.carried))
        self._guard = topic_guard(self._config, components.admins, self._sent_topics, self._topic_lost, components.sink)
        self._guard.start()
        decision = decide_start(self._config, offset, components.history)
        for note in decision.notes:
            log.info("%s", note)
        if components.sink is not None:
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
        if decision.snapshot:
            tables, start = self._snapshot(components, decision)
        else:
            tables, start = self._recovered(components, decision)
            if not decision.goes_on:
                self._notify_skipped(components, start)
        reported: list[BoundaryWork] = []
        if self.lineage is not None:
            self.lineage.running()
            sent = self._sent_topics if self._config.delivery.sink == "kafka" else None
            work = ReportedTables(self.lineage, self._settings, tables, sent)
            work.report()
            reported.append(work)
        if decision.stream and not self._stop.is_set():
            new_tables = new_tables_at_start(self._config, start, tables, self._captured)
            log_findings((*new_tables.findings, *bool_findings(self._config, tables)))
            require_derivable(self._config, tables)
            self._streaming(components, tables, new_tables, reported)

    def _exclude_second_writer(self, offsets: KafkaOffsetStore) -> None:
        """Refuse to start while Debezium runs, and watch for a second writer from now on."""
        interval = self._config.delivery.offset_flush_interval_ms / 1000
        if self._check and still_writing(offsets, interval, self._stop.wait) is not None:
            raise TakenOver(
                f"another program, such as Kafka Connect with Debezium, still stores offsets for {self._config.name} "
                f"(topic.prefix={self._config.topics.prefix}) in topic {offsets.topic}. Stop the connector there first"
            )
        self.watch = SecondWriterWatch(offsets, self._config.kafka.consumer, self._newer_writer)
        self.watch.start()

    def _newer_writer(self, writer: Writer) -> None:
        if self._stop.is_set():
            return
        self._taken_over = TakenOver(
            f"{writer} was started later and has taken over connector {self._config.name}, so this process stops. Run "
            "only one of them, or give each its own name and topic.prefix"
        )
        self._delivery_failed(self._taken_over)
        if self.components is not None:
            self.components.store.close(self._taken_over)

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
        """End the run, so that the next one captures these tables."""
        self.included = tables
        if self.reader is not None:
            self.reader.stop()

    def _sent_topics(self) -> list[str]:
        return [] if self.delivery is None or self._sink is not None else self.delivery.topics

    def _topic_lost(self, failure: BaseException) -> None:
        """End the run: deliver everything read so far, and store the last offset."""
        if self.components is not None:
            self.components.store.close(failure)
        self._delivery_failed(failure)

    def _delivery_failed(self, _failure: BaseException) -> None:
        """Stop the reader, which would not notice the closed store while it has nothing to put."""
        if self.reader is not None:
            self.reader.stop()

    def _snapshot(self, components: Components, decision: Decision) -> tuple[Tables, SourceOffset]:
        from rowtide.connector.engine.start.written_snapshot import take_snapshot  # noqa: PLC0415 - few starts take one
        from rowtide.connector.snapshot.initial import Snapshot  # noqa: PLC0415

        self.state = "SNAPSHOT"
        self._stop.wait(self._config.snapshot.delay_ms / 1000)
        snapshot = Snapshot(
            self._config.database,
            self._settings,
            self._config.snapshot,
            decision,
            time.time_ns,
            self._progress,
            carried=first_fields(self._config, self._included),
        )
        take_snapshot(snapshot, components.history, components.store, self._stop)
        return snapshot.tables, decision.position or snapshot.offset

    def _recovered(self, components: Components, decision: Decision) -> tuple[Tables, SourceOffset]:
        offset = decision.position
        assert offset is not None
        self.state = "RECOVERING"
        kept = StoredHistory(components.history, self._config.topics.prefix, components.summaries)
        tables, self._behind = recovered_tables(self._config, kept, offset)
        return tables, offset

    def _notify_skipped(self, components: Components, start: SourceOffset) -> None:
        """Send the notification that no snapshot was due, if notifications are enabled."""
        transforms = self._settings.transforms
        for batch in Notifications(self._settings, time.time_ns).ended("SKIPPED", start):
            components.store.put([Transformer(transforms).batch(batch) if transforms else batch])

    def _streaming(
        self, components: Components, tables: Tables, new: StartTables, work: Sequence[BoundaryWork]
    ) -> None:
        self.state = "RUNNING"
        self._stop.wait(self._config.streaming.delay_ms / 1000)
        config, mariadb = self._config, self._config.flavor is Flavor.MARIADB
        history = components.history
        if components.summaries is not None:
            kept = StoredHistory(components.history, config.topics.prefix, components.summaries)
            history = CompactingHistory(kept, tables.server, config.history.compact_interval, self._behind)
        start = new.start
        snapshots = requested_snapshots(
            config,
            self._settings,
            tables,
            start,
            time.time_ns,
            self._progress,
            self._stop.is_set,
            self._signalling.inbox.run,
        )
        plan = partial(plan_new_tables, config)
        requests = NewTableRequests(
            self._settings, new, snapshots.entered, plan, snapshots, time.time_ns, new_signal_id
        )
        actions = {SET_INCLUDE_LIST: partial(set_include_list, self._configured, self._include)}
        begin = replace(start, snapshot=None)
        pipelines = StreamPipelines(
            config,
            self._settings,
            tables,
            current=CurrentStructure(config.database, mariadb=mariadb),
            xa_packets=xa_packets(config),
            signals=self._signalling.actions(config, self._settings, snapshots, actions),
            snapshots=snapshots,
            hidden=requests.hidden,
            read_ahead=components.acknowledgements is None,
        )
        self.reader = Reader(
            StreamAttempts(config.failure, begin),
            stream_factory(config),
            pipelines,
            StreamOutput(components.store, history, begin),
            Heartbeat(self._settings, config.heartbeat.interval_ms / 1000, heartbeat_action(config)),
            work=[requests, self._signalling.inbox, *work],
            snapshots=snapshots,
            acknowledgements=components.acknowledgements,
        )
        if not self._stop.is_set() and not components.store.closed:
            self._signalling.start(config, start, lambda: self.last_stored)
            with contextlib.closing(snapshots):
                self.reader.run()
        if self.included is not self._included and not self._stop.is_set():
            raise CapturedTablesChanged
