"""The life cycle of a connector: runs one after the other, until it is stopped or a failure is final.

A run restores lost connections itself. After a failure that only a fresh start repairs, such as a fatal error of the
producer, the task starts a new run from the stored offset.
"""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import replace

from rowtide.connector.backoff import Backoff
from rowtide.connector.check import CheckFailedError
from rowtide.connector.config import Configuration
from rowtide.connector.delivery.errors import DeliveryError, TopicMissing
from rowtide.connector.delivery.sinks import RecordSink
from rowtide.connector.engine.pipeline_settings import pipeline_settings, run_id
from rowtide.connector.engine.run import Checks, ConnectorRun
from rowtide.connector.engine.start.included_tables import CapturedTablesChanged, IncludedTables
from rowtide.connector.errors import RegistryUnreachable
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.records.settings import MessageForm
from rowtide.connector.rows.native import implementation
from rowtide.connector.signals.signalling import Signalling
from rowtide.connector.snapshot.status import SnapshotStatus
from rowtide.connector.source.binlog_stream import StreamBroken
from rowtide.connector.source.connection import AnswerUnreadableError, DatabaseUnreachableError
from rowtide.connector.telemetry import Lineage, lineage
from rowtide.schema_history.store.history_store import HistoryStoreError
from rowtide.topics.errors import KafkaUnreachable

log = logging.getLogger(__name__)

_FIRST_WAIT_S = 1.0
_UNREADABLE_TRIES = 3
"""How often the same unreadable answer is requested: it is not damaged in transit, so it does not change."""
GRACEFUL = 0.9
"""The part of ``task.shutdown.graceful.timeout.ms`` in which a stop must succeed; the rest is for the report."""
_LOOK_S = 0.1
"""How often a stop looks whether there is anything left to wait for."""
_GOOD_S = 60.0
"""After a run of this length the pauses start over."""


class ConnectorTask:
    """Runs one connector in a thread. The worker and :class:`~rowtide.connector.engine.engine.Engine` are built on it.

    Args:
        config: the configuration.
        on_end: called once in the task's thread when the task has ended, with the failure if there was one.
        sink: a sink to use instead of ``rowtide.sink``.
        changes: make :class:`~rowtide.connector.records.change.Change` objects from rows.
        signalling: the signals of the connector.
        form: the form of the messages of rows and statements, instead of Debezium's.
        checks: what the first run checks.

    Attributes:
        current: the current run, or the last one.
        failure: the failure that ended the task; ``None`` if it was stopped.
        restarts: the number of runs after the first.
        snapshot: the progress of snapshots.
    """

    def __init__(
        self,
        config: Configuration,
        *,
        on_end: Callable[[BaseException | None], None] = lambda _failure: None,
        sink: RecordSink | None = None,
        changes: bool = False,
        signalling: Signalling | None = None,
        form: MessageForm | None = None,
        checks: Checks = Checks.ALL,
    ) -> None:
        self.config = config
        self._sink = sink
        self.started_at = time.time()
        self.failure: BaseException | None = None
        self._error: str | None = None
        self.restarts = 0
        self.snapshot = SnapshotStatus(time.monotonic)
        self._signalling = signalling or Signalling()
        self._run_id = run_id()
        self._lineage: Lineage | None = None
        settings = pipeline_settings(config, self._run_id, changes=changes, form=form)
        self._settings = replace(settings, on_notification=self._signalling.notifications.add)
        self._ended: str | None = None
        self._on_end = on_end
        self._stop = threading.Event()
        self._stored: SourceOffset | None = None  # at the end of the last run
        self._included: IncludedTables | None = None  # as a signal has set them
        self._waiting = False
        self.current = self._new_run(checks)
        self._thread = threading.Thread(target=self._run, name=f"{config.name}/reader", daemon=True)

    @property
    def state(self) -> str:
        """The state of the current run, or ``RESTARTING``, ``STOPPING``, ``STOPPED``, ``FAILED``."""
        if self._ended is not None:
            return self._ended
        if self._stop.is_set():
            return "STOPPING"
        return "RESTARTING" if self._waiting else self.current.state

    @property
    def error(self) -> str | None:
        """The message of the last failure of a run, until the next run works."""
        if self._error is not None and self._ended is None and not self._waiting and self.current.works:
            self._error = None
        return self._error

    @property
    def ended(self) -> bool:
        """Whether the task has ended."""
        return self._ended is not None

    @property
    def over(self) -> bool:
        """Whether the task has not started, or has ended."""
        return not self._thread.is_alive()

    @property
    def left_behind(self) -> bool:
        """Whether a stop does not wait for the thread: see ``ConnectorRun.left_behind``."""
        return self._ended is None and self.current.left_behind

    def start(self) -> None:
        """Start, in a thread."""
        if implementation.STALE:
            log.warning("rows are decoded in Python, which is slower, because %s", implementation.STALE)
        self._thread.start()

    def stop(self, timeout: float | None = None) -> bool:
        """Stop reading, deliver everything read so far, and store the last offset.

        Args:
            timeout: seconds to wait for the end; by default nearly ``task.shutdown.graceful.timeout.ms``. The thread is
                left behind after that, or as soon as everything is delivered: it waits for a server that does not
                answer.

        Returns:
            Whether everything was delivered.
        """
        limit = self.config.delivery.shutdown_timeout_ms / 1000 * GRACEFUL if timeout is None else timeout
        deadline = time.monotonic() + limit
        self._stop.set()
        if self._thread.ident is None:
            return True  # it stands by; a run that begins now ends immediately
        self.current.stop()
        while self._thread.is_alive() and not self.left_behind and time.monotonic() < deadline:
            self._thread.join(min(_LOOK_S, max(0.0, deadline - time.monotonic())))
        return self.failure is None and (self.left_behind or not self._thread.is_alive())

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the end, and return whether the task has ended."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _new_run(self, checks: Checks) -> ConnectorRun:
        return ConnectorRun(
            self.config,
            self._settings,
            self._stop,
            self.snapshot,
            checks=checks,
            sink=self._sink,
            stored=self._stored,
            signalling=self._signalling,
            included=self._included,
            lineage=self._lineage,
        )

    def _run(self) -> None:
        failure: BaseException | None
        try:
            self._lineage = self.current.lineage = lineage(self.config, self._run_id)
            if self._lineage is not None:
                self._lineage.started()
            failure = self._runs()
        except BaseException as error:  # noqa: BLE001 - whatever it is: otherwise the thread would end unnoticed
            failure = error
        if self._lineage is not None:
            self._lineage.completed() if failure is None else self._lineage.failed(failure)
            self._lineage.close()
        self.failure = failure
        self._error = self._error if failure is None else str(failure)
        self._ended = "STOPPED" if failure is None else "FAILED"
        self._on_end(failure)

    def _runs(self) -> BaseException | None:
        """Run until a stop or a final failure, and return the failure."""
        failure: BaseException | None = None
        stored, unchanged = self._stored, 0
        backoff = Backoff(_FIRST_WAIT_S, max(_FIRST_WAIT_S, self.config.failure.retry_wait_ms / 1000))
        while True:
            begin = time.monotonic()
            failure = self.current.run()
            self._stored = self.current.last_stored
            self._included = self.current.included
            if isinstance(failure, CapturedTablesChanged):
                failure = None
                if not self._stop.is_set():
                    self.current = self._new_run(Checks.NONE)
                    continue
            if failure is None or not self._passes(failure):
                break
            unchanged = unchanged + 1 if str(failure) == self._error and self._stored == stored else 1
            if isinstance(failure, AnswerUnreadableError) and unchanged == _UNREADABLE_TRIES:
                break
            self._error, stored = str(failure), self._stored
            if not self._stop.is_set():
                if time.monotonic() - begin > _GOOD_S:
                    backoff.succeeded()
                wait = backoff.failed()
                log.warning("%s; the connector starts again from its stored position in %.0f s", failure, wait)
                if self._lineage is not None:
                    self._lineage.failed(failure)
                self._waiting = True
                self._stop.wait(wait)
            if self._stop.is_set():
                delivery = self.current.delivery
                if delivery is None or delivery.failure is None:
                    log.warning("%s; the connector stops", failure)
                    failure = None
                break
            self.restarts += 1
            self.current = self._new_run(Checks.ALL if isinstance(failure, CheckFailedError) else Checks.NONE)
            self._waiting = False
        return failure

    def _passes(self, failure: BaseException) -> bool:
        """Return whether a new run may succeed, and is allowed."""
        limit = self.config.failure.max_retries
        if 0 <= limit <= self.restarts:
            return False
        if isinstance(failure, TopicMissing):  # a new run creates it
            return self.config.topics.creation.enabled or failure.topic == self.config.delivery.offset_topic
        if isinstance(failure, DeliveryError):
            return failure.restartable
        if isinstance(failure, CheckFailedError | DatabaseUnreachableError):
            return failure.retriable
        if isinstance(failure, StreamBroken):  # the reader has used up its own attempts
            return self.current.reader is None
        if isinstance(failure, HistoryStoreError):
            return failure.retriable
        return isinstance(failure, KafkaUnreachable | RegistryUnreachable)
