"""A connector's life: check, recover, take a snapshot if one is due, stream until told to stop.

It knows nothing of Faust: the worker, tests and the demo run it alike. Two threads do the work, the reader here and
delivery; what ends one of them ends the other, and is kept in :attr:`ConnectorTask.failure`.
"""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import replace

from rowtide.connector.assembly import pipeline_settings, run_id
from rowtide.connector.batch import HistoryEntry
from rowtide.connector.check import require
from rowtide.connector.config import Configuration, Flavor
from rowtide.connector.database import connect
from rowtide.connector.delivery import Delivery
from rowtide.connector.event_store import StoreClosed
from rowtide.connector.heartbeat import Heartbeat
from rowtide.connector.offset import SourceOffset
from rowtide.connector.parts import Parts, assemble
from rowtide.connector.reader import Reader, place
from rowtide.connector.snapshot import Decision, PositionCheck, Snapshot, SnapshotProgress, decide
from rowtide.connector.snapshot.availability import check_position
from rowtide.connector.snapshot.listing import server as server_of
from rowtide.connector.snapshot.session import Session
from rowtide.connector.stream import BinlogStream
from rowtide.schema_history.position import BinlogPosition
from rowtide.schema_history.record import parse_record
from rowtide.schema_history.recovery import recover
from rowtide.schema_history.tables import Tables

log = logging.getLogger(__name__)


class ConnectorTask:
    """Runs one connector.

    Args:
        config: what to do.
        progress: is told how a snapshot goes on.
        on_end: called once in the reader's thread when the task has ended, with the failure if there was one.
    """

    def __init__(
        self,
        config: Configuration,
        *,
        progress: SnapshotProgress | None = None,
        on_end: Callable[[BaseException | None], None] = lambda _failure: None,
    ) -> None:
        self.config = config
        self.run = run_id()
        self.failure: BaseException | None = None
        self.state = "STARTING"
        self.reader: Reader | None = None
        self.delivery: Delivery | None = None
        self.parts: Parts | None = None
        self._settings = pipeline_settings(config, self.run)
        self._progress = progress
        self._on_end = on_end
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="rowtide-reader", daemon=True)

    def start(self) -> None:
        """Begin, in a thread."""
        self._thread.start()

    def stop(self, timeout: float | None = None) -> bool:
        """End: no more events are read, what was read is delivered, the last offset is stored.

        Args:
            timeout: seconds until what is left is dropped; ``None`` for as long as it takes.

        Returns:
            Whether everything was delivered.
        """
        self._stop.set()
        if self.reader is not None:
            self.reader.stop()
        self._thread.join(timeout)
        return self.failure is None and not self._thread.is_alive()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the end; returns whether it has come."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            self._work()
        except StoreClosed as error:
            self.failure = (self.delivery.failure if self.delivery else None) or error
        except BaseException as error:  # noqa: BLE001 - whatever it is, the worker must hear of it
            self.failure = error
        finally:
            self._finish()
            self.state = "FAILED" if self.failure else "STOPPED"
            self._on_end(self.failure)

    def _finish(self) -> None:
        delivery = self.delivery
        if delivery is not None and not delivery.stop(self.config.delivery.shutdown_timeout_ms / 1000):
            self.failure = self.failure or delivery.failure
        if self.parts is not None:
            self.parts.history.close()
        if self.failure is not None:
            log.error("the connector %s has failed: %s", self.config.name, self.failure)

    def _work(self) -> None:
        for finding in require(self.config):
            log.warning("%s", finding)
        parts = self.parts = assemble(self.config)
        parts.sink.open()  # fences an older instance; only now is the stored offset sure to be the last one
        offset = parts.offsets.load()
        decision = self._decide(parts, offset)
        self.delivery = Delivery(parts.store, parts.sink, parts.policy, ensure_topic=parts.topics)
        self.delivery.start()
        if decision.snapshot:
            tables, start = self._snapshot(parts, decision)
        else:
            tables, start = self._recovered(parts, decision)
        if decision.stream and not self._stop.is_set():
            self._streaming(parts, tables, start)

    def _decide(self, parts: Parts, offset: SourceOffset | None) -> Decision:
        position: PositionCheck | None = None
        if offset is not None and self.config.streaming.check_position:
            with self._session() as session:
                position = check_position(session, offset, self.config.capture.gtid_sources)
        snapshot = self.config.snapshot
        decision = decide(
            snapshot.mode, offset, history_exists=parts.history.exists(), position=position, flags=snapshot.flags
        )
        for note in decision.notes:
            log.info("%s", note)
        return decision

    def _session(self) -> Session:
        return Session(self.config.database, mariadb=self.config.flavor is Flavor.MARIADB)

    def _snapshot(self, parts: Parts, decision: Decision) -> tuple[Tables, SourceOffset]:
        self.state = "SNAPSHOT"
        self._stop.wait(self.config.snapshot.delay_ms / 1000)
        snapshot = Snapshot(
            self.config.database, self._settings, self.config.snapshot, decision, time.time_ns, self._progress
        )
        with parts.history.buffered():
            for output in snapshot.outputs():
                if isinstance(output, HistoryEntry):
                    parts.history.append(output.text)
                else:
                    parts.store.put([output])
                if self._stop.is_set():
                    break
        log.info("the snapshot is complete; its position is %s", place(snapshot.offset))
        return snapshot.tables, decision.position or snapshot.offset

    def _recovered(self, parts: Parts, decision: Decision) -> tuple[Tables, SourceOffset]:
        offset = decision.position
        assert offset is not None
        self.state = "RECOVERING"
        with self._session() as session:
            server = server_of(session)
        begin = time.monotonic()
        records = parts.history.replay_as(parse_record)
        position = BinlogPosition.from_map(offset.to_map())
        tables = recover(records, server, position, prefer_ddl=self.config.history.prefer_ddl)
        log.info("recovered %d tables from the schema history in %.1f s", len(tables), time.monotonic() - begin)
        return tables, offset

    def _streaming(self, parts: Parts, tables: Tables, start: SourceOffset) -> None:
        self.state = "RUNNING"
        self._stop.wait(self.config.streaming.delay_ms / 1000)
        config = self.config
        action = self._heartbeat_action() if config.heartbeat.action_query else None
        self.reader = Reader(
            config,
            self._settings,
            tables,
            replace(start, snapshot=None),
            parts.store,
            parts.history,
            self._stream,
            Heartbeat(self._settings, config.heartbeat.interval_ms / 1000, action),
        )
        if not self._stop.is_set():
            self.reader.run()

    def _stream(self, start: SourceOffset) -> BinlogStream:
        if self.config.capture.gtid_ignore_on_recovery:
            start = replace(start, gtids=None)
        return BinlogStream(
            self.config.database,
            start,
            mariadb=self.config.flavor is Flavor.MARIADB,
            send_annotations=self.config.values.include_query,
        )

    def _heartbeat_action(self) -> Callable[[], None]:
        """Runs ``heartbeat.action.query`` on a connection of its own; a failure is logged, not fatal."""
        query = self.config.heartbeat.action_query
        assert query is not None

        def run() -> None:
            try:
                with connect(self.config.database) as connection, connection.cursor() as cursor:
                    cursor.execute(query)
            except Exception as error:  # noqa: BLE001 - the next heartbeat tries again
                log.warning("heartbeat.action.query failed: %s", error)

        return run
