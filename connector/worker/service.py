"""The service that runs one connector in Faust's life cycle, and can pause, resume and restart it."""

import asyncio
import contextlib
import functools
import logging
import os
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

from mode import Service

from rowtide._version import __version__
from rowtide.connector.config import Configuration
from rowtide.connector.delivery.counters import OTHER_TOPICS
from rowtide.connector.engine.run import Checks
from rowtide.connector.engine.task import ConnectorTask
from rowtide.connector.errors import SignalError
from rowtide.connector.records.settings import MessageForm
from rowtide.connector.rows.native import implementation
from rowtide.connector.signals.actions import SignalHook
from rowtide.connector.signals.signalling import Signalling
from rowtide.connector.source.binlog_end import BinlogEnd
from rowtide.connector.worker.failures import StopTimeoutError
from rowtide.connector.worker.offsets import read_offsets, write_offsets
from rowtide.connector.worker.status import Status, status_of
from rowtide.connector.worker.web.connect_rest import (
    BadRequest,
    ConnectorState,
    StandsBy,
    StillStopping,
    connect_state,
)

log = logging.getLogger(__name__)

_LAG_TIMEOUT_S = 2.0
"""A page waits this long for the lag in bytes, then it is served without it."""
_STOP_POLL_S = 0.5
_RESTARTING = "RESTARTING"
_STANDBY = "STANDBY"
_PAUSED = frozenset({"PAUSED", "STOPPED"})


class ConnectorService(Service):
    """Runs a connector in Faust's life cycle.

    A held connector has stopped as at the end of the process: everything read is delivered, and the position is stored.
    Resuming it creates a new task, which begins at that position.

    Args:
        config: the connector's configuration.
        form: the form of the messages of rows and statements, instead of Debezium's.
        checks: what the first start checks.

    Attributes:
        connector: the task that runs the connector.
        failure: the error if the service could not stop in time.
        on_end: called in the event loop when the connector ends without a request.
        obstacle: the reason why it cannot stop standing by; ``None`` if it can.
        undecided: whether it stands by only until it is known whether another process runs it.
        problem: the reason why a changed configuration is not used; ``None`` if there is none.
        reread: reads the configuration again at a request for a restart; returns whether that has restarted it.
    """

    logger = logging.getLogger("mode.rowtide")

    def __init__(
        self, config: Configuration, form: MessageForm | None = None, checks: Checks = Checks.ALL, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.config = config
        self._form = form
        self.on_end: Callable[[], None] = lambda: None
        self.failure: BaseException | None = None
        self.obstacle: str | None = None
        self.undecided = False
        self.problem: str | None = None
        self.reread: Callable[[], Awaitable[bool]] = _not_changed
        self._compete: Callable[[], None] | None = None
        self._binlog_end = BinlogEnd(config)
        self._signalling = Signalling()
        self._held: str | None = None
        self._topics = set[str]()
        self._before_reset: dict[str, int] = {}
        self._change = asyncio.Lock()
        self._tasks_made = 0
        self.connector = self._new_task(checks)

    def _new_task(self, checks: Checks = Checks.ALL) -> ConnectorTask:
        self._tasks_made += 1
        on_end = functools.partial(self._ended, self._tasks_made)
        return ConnectorTask(self.config, on_end=on_end, signalling=self._signalling, form=self._form, checks=checks)

    def properties(self) -> Mapping[str, str]:
        """Return the configuration, with secrets masked."""
        return self.config.masked_properties()

    def signal(self, fields: Mapping[str, Any], channel: str = "in-process") -> str:
        """Send a signal to the connector, which carries it out while it streams.

        Args:
            fields: ``type``, ``data``, and ``id``, which is a new one by default.
            channel: the channel through which it arrived.

        Returns:
            The id.

        Raises:
            SignalError: it is not a signal, or another process runs the connector.
        """
        if self._held == _STANDBY:
            raise SignalError(f"connector {self.config.name} stands by: send the signal to the process that runs it")
        return self._signalling.send(fields, channel)

    def on_signal(self, kind: str, action: SignalHook) -> None:
        """Call a function for each signal of a type; see :meth:`rowtide.Engine.on_signal`."""
        self._signalling.hooks[kind] = action

    def notifications(self, signal_id: str | None = None) -> list[Mapping[str, Any]]:
        """Return the last notifications, oldest first; those of one signal if its id is given."""
        return self._signalling.notifications.all(signal_id)

    @property
    def ended(self) -> bool:
        """Whether the connector has ended without a request, and is not held."""
        return self._held is None and (self.connector.ended or self.failure is not None)

    @property
    def stands_by(self) -> bool:
        """Whether the connector waits for :meth:`begin`."""
        return self._held == _STANDBY

    @property
    def paused(self) -> str | None:
        """``PAUSED`` or ``STOPPED``, if a request has set this state."""
        return self._held if self._held in _PAUSED else None

    def hold_first(self, state: str) -> None:
        """Start in one of these states."""
        self._held = state

    def stand_by(self, compete: Callable[[], None] | None = None) -> None:
        """Do not start the connector before :meth:`begin`, because another process runs it.

        Args:
            compete: called when a connector that failed or was held should start again: it stands by until
                :meth:`begin`. By default it starts immediately.
        """
        self._held = _STANDBY
        self._compete = compete

    async def begin(self) -> None:
        """Stop standing by, and start the connector."""
        async with self._change:
            if self._held == _STANDBY and not self.should_stop:
                self._held = None
                self.connector.start()

    def lapse(self) -> None:
        """Stop the connector immediately, because another process may run it; may be called from any thread."""
        self._held = _STANDBY
        self.connector.stop(0)

    async def withdraw(self) -> None:
        """Stand by again once the connector has stopped. Two tasks must never run at the same time."""
        async with self._change:
            self._held = _STANDBY
            await asyncio.to_thread(self.connector.stop, 0)
            while not self.connector.over and not self.should_stop:
                await self.sleep(_STOP_POLL_S)
            self._prepare()

    def give_up(self, failure: BaseException) -> None:
        """Stop the connector, and let the process fail; may be called from any thread."""
        self.failure = failure
        self.connector.stop()
        if self._held == _STANDBY:  # it has no thread that reports its end
            self._held = None
            self._ended(self._tasks_made, failure)

    async def on_start(self) -> None:
        """Log the configuration, and start the connector in its thread."""
        log.info(
            "rowtide %s (rows: %s) starts connector %s, process %d",
            __version__,
            implementation.NAME,
            self.config.name,
            os.getpid(),
        )
        for name, value in sorted(self.properties().items()):
            log.info("  %s = %s", name, value)
        for note in self.config.warnings:
            log.info("note: %s", note)
        if self._held is None:
            self.connector.start()

    async def on_stop(self) -> None:
        """Deliver what was read, store the last offset, and stop."""
        begin = time.monotonic()
        try:
            complete = await asyncio.to_thread(self.connector.stop)
        except Exception as failure:  # noqa: BLE001 - the worker reports it; Mode would only log it
            self.failure = failure
            return
        self._binlog_end.close()
        if complete:
            took = time.monotonic() - begin
            rest = ", without waiting for a server that does not answer" if self.connector.left_behind else ""
            log.info(
                "connector %s: stopped in %.1f s%s; everything that was read is delivered", self.config.name, took, rest
            )
        elif self.connector.failure is None:
            self.failure = StopTimeoutError(self.config.delivery.shutdown_timeout_ms)

    async def topics(self) -> list[str]:
        """Return the topics that records were sent to since the last reset, or the start of the process."""
        self._topics |= {topic for topic, sent in self._sent().items() if sent > self._before_reset.get(topic, 0)}
        return sorted(self._topics)

    async def reset_topics(self) -> None:
        """Forget these topics."""
        self._topics.clear()
        self._before_reset = self._sent()

    def _sent(self) -> dict[str, int]:
        """Return the number of records by topic of the running task."""
        delivery = self.connector.current.delivery
        counted = {} if delivery is None else delivery.counters().topics
        return {topic: messages for topic, (messages, _) in counted.items() if topic != OTHER_TOPICS}

    async def hold(self, state: str) -> None:
        """Stop the connector until it is resumed.

        Args:
            state: ``PAUSED`` or ``STOPPED``, which is reported until then.

        Raises:
            StandsBy: another process runs it.
        """
        async with self._change:
            await self._hold(state)

    async def _hold(self, state: str) -> None:
        if self._held == _STANDBY:
            raise StandsBy(f"connector {self.config.name} stands by: send the request to the process that runs it")
        stopped = self._held is not None
        self._held = state
        if not stopped:
            complete = await asyncio.to_thread(self.connector.stop)
            rest = "everything that was read is delivered" if complete else "the rest is read again"
            log.info("connector %s is %s; %s", self.config.name, state, rest)

    async def resume(self) -> None:
        """Start the connector again at the stored position, if it is held.

        Raises:
            StillStopping: it has not stopped yet. Two tasks must never run at the same time.
        """
        async with self._change:
            if self._held not in (None, _STANDBY):
                self._resume()

    def _resume(self) -> None:
        if self.should_stop or self._held == _STANDBY:
            return
        if not self.connector.over:
            raise StillStopping(f"connector {self.config.name} has not stopped yet, because a server does not answer")
        self._prepare()
        self.failure = None
        if self._compete is not None:  # one that has failed gave the lock to another process
            self._held = _STANDBY
            self._compete()
            return
        self._held = None
        log.info("connector %s is started again", self.config.name)
        self.connector.start()

    def _prepare(self) -> None:
        """Create the next task."""
        self._topics |= self._sent().keys() - self._before_reset.keys()
        self._before_reset = {}
        self.connector = self._new_task()

    async def rerun(self) -> None:
        """Stop the connector and start it again at the stored position, unless it is held.

        Its configuration is read again before that.

        Raises:
            BadRequest: the configuration has changed, and is wrong.
            StillStopping: it has not stopped in time; it is started as soon as it stops, unless it is held before that.
        """
        if not await self.reread():
            async with self._change:
                await self._rerun()

    async def reconfigure(self, config: Configuration) -> None:
        """Stop the connector and start it again with another configuration. A held connector uses it when it starts.

        Args:
            config: the configuration, with the same name.

        Raises:
            StillStopping: as for :meth:`rerun`.
        """
        async with self._change:
            await asyncio.to_thread(self._binlog_end.close)
            self.config, self._binlog_end = config, BinlogEnd(config)
            if self._held == _STANDBY:
                self._prepare()
            await self._rerun()

    async def _rerun(self) -> None:
        if self._held is not None:
            return
        await self._hold(_RESTARTING)
        try:
            self._resume()
        except StillStopping:
            self.add_future(self._resume_when_stopped())
            raise

    async def _resume_when_stopped(self) -> None:
        while not self.should_stop:
            await self.sleep(_STOP_POLL_S)
            async with self._change:
                if self._held != _RESTARTING:
                    return
                with contextlib.suppress(StillStopping):
                    self._resume()

    async def status(self) -> Status:
        """Return the connector's status, with the lag in bytes and the runway, for which the server is queried."""
        status = self._status()
        reader = None if status.reader is None or self.connector.failure else status.reader
        mirror = self.config.streaming.mirror
        needed = None if mirror is not None and mirror.always else status.stored
        if self._held == _STANDBY or (reader is None and needed is None):
            return status
        read = None if reader is None else (reader.file, reader.pos)
        reads = reader is not None and self._held is None
        look = functools.partial(self._binlog_end.look, read, needed, _LAG_TIMEOUT_S, reads=reads)
        behind, runway = await asyncio.to_thread(look)
        return replace(status, lag_bytes=behind, runway=runway)

    async def connect_state(self) -> ConnectorState:
        """Return the connector's state for Kafka Connect's REST interface."""
        status = self._status()
        return ConnectorState(connect_state(status.state), trace=status.problem or "")

    async def offsets(self) -> list[dict[str, Any]]:
        """Return the stored position; see ``Controlled.offsets``."""
        return await read_offsets(self.config)

    async def alter_offsets(self, changes: list[Any] | None) -> None:
        """Store another position while the connector is stopped; see ``Controlled.alter_offsets``."""
        async with self._change:
            if self._held != "STOPPED":
                raise BadRequest(f"connector {self.config.name} is no longer stopped")
            await write_offsets(self.config, changes)

    async def status_at_once(self) -> Status:
        """Return the connector's status without queries to the server, which could delay it."""
        return self._status()

    def _status(self) -> Status:
        status = replace(status_of(self.connector, time.time()), rejected=self.problem)
        if self._held == _STANDBY and self.obstacle is not None:
            return replace(status, state="RECONNECTING", error=self.obstacle)
        if self._held == _STANDBY and self.undecided:
            return replace(status, state="STARTING")
        if self._held is None and self.failure is not None:
            return replace(status, state="FAILED", error=str(self.failure))
        return status if self._held is None else replace(status, state=self._held)

    def _ended(self, task: int, _failure: BaseException | None) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed already
            self.loop.call_soon_threadsafe(self._report_end, task)

    def _report_end(self, task: int) -> None:
        if not self.should_stop and self._held is None and task == self._tasks_made:
            self.on_end()


async def _not_changed() -> bool:
    """Do nothing: no configuration is read again."""
    return False
