"""Runs a connector while this process has its lock, with ``rowtide.standby``.

::

              the lock is taken
    STANDBY ───────────────────► the connector runs ──► it fails: another copy may take the lock
       ▲                                  │
       └──────────────────────────────────┘
         the lock is lost, or this process did not run for nearly the session, or Kafka has fenced the connector

The lock prevents two copies from fencing each other, but both may run for a moment. Kafka protects against this: both
write in transactions with the same transactional id, and the copy that starts later fences the other.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from typing import Any, Protocol

from mode import Service

from rowtide.connector.check import Severity, check_database
from rowtide.connector.config import Configuration
from rowtide.connector.delivery.errors import TakenOver
from rowtide.connector.worker.failures import CONTEST_S, is_taken_over
from rowtide.connector.worker.group_lock import SESSION_S, GroupLock
from rowtide.connector.worker.lease import Lease
from rowtide.connector.worker.service import ConnectorService

log = logging.getLogger(__name__)

_LEASE_S = SESSION_S - 1
_LOOK_S = 0.1
_EXAMINE_S = 60.0


class Lock(Protocol):
    """A lock as :class:`~rowtide.connector.worker.group_lock.GroupLock` is one."""

    @property
    def owned(self) -> bool: ...
    def start(self) -> None: ...
    def close(self) -> None: ...


def lock_of(config: Configuration) -> tuple[object, ...]:
    """Return the values that determine the lock of a connector.

    If it changes, the connector needs another :class:`Standby`.
    """
    delivery, history = config.delivery, config.history
    return (delivery.group_id, history.topic, history.consumer, history.admin) if delivery.standby else ()


def unfitness(config: Configuration) -> str | None:
    """Return the reason, as far as the database server shows it, why a connector could not start now.

    ``None`` if it could.
    """
    findings, _ = check_database(config, tables=False)
    errors = [str(finding) for finding in findings if finding.severity is Severity.ERROR]
    return f"it could not take over: {'; '.join(errors)}" if errors else None


class Standby(Service):
    """Starts and ends the runs of a connector.

    Args:
        connector: the connector, which stands by from now on.
        lock: creates a lock; see ``GroupLock``.
        patience: the seconds in which the lock must be lost after fencing; otherwise, a process without the lock did
            it.
    """

    logger = ConnectorService.logger

    def __init__(
        self,
        connector: ConnectorService,
        lock: Callable[..., Lock] = GroupLock,
        patience: float = SESSION_S,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._connector = connector
        self._new_lock = lock
        self._patience = patience
        self._lock: Lock | None = None
        self._lost = False  # since the connector began
        self._contested_at: float | None = None
        self._waits = False  # for another copy
        self._unreachable: str | None = None
        self._unfit: str | None = None
        self._look = asyncio.Event()
        connector.undecided = True
        self._lease = Lease(_LEASE_S, self._lapsed)
        self._steps: asyncio.Queue[Callable[[], Any]] = asyncio.Queue()
        connector.stand_by(lambda: self._next(self._join))

    async def on_start(self) -> None:
        """Try to get the lock."""
        self._lease.start()
        self._steps.put_nowait(self._join)

    async def on_stop(self) -> None:
        """Stop the connector, and then let another copy run it."""
        self._lease.close()
        await self._connector.stop()
        await self._leave()

    def takes(self, failure: BaseException | None) -> bool:
        """Handle the end of the connector, and return whether it stands by instead of failing."""
        if self._connector.failure is not None:
            return False
        if failure is not None and is_taken_over(failure):
            self._connector.lapse()
            self._next(lambda: self._fenced(failure))
            return True
        self._next(self._leave)
        return False

    @Service.task
    async def _work(self) -> None:
        """Perform one step after the other."""
        while not self.should_stop:
            step = await self.wait(self._steps.get())
            if not step.stopped:
                try:
                    await step.result()
                except Exception as failure:  # noqa: BLE001 - nobody would notice that the steps have ended
                    await self._fail(failure)

    @Service.task
    async def _examine(self) -> None:
        """Check from time to time whether this copy could take over, because a take-over is too late to find out."""
        while not self.should_stop:
            if self._waits:
                unfit = await asyncio.to_thread(unfitness, self._connector.config)
                if self._waits:  # it may have taken over since
                    if unfit not in (None, self._unfit):
                        log.warning("connector %s stands by: %s", self._connector.config.name, unfit)
                    self._unfit = unfit
                    self._show()
            await self.wait_first(self._look.wait(), timeout=_EXAMINE_S)
            self._look.clear()

    def _next(self, step: Callable[[], Any]) -> None:
        """Add a step after earlier ones; may be called from any thread."""
        self._in_loop(self._steps.put_nowait, step)

    def _in_loop(self, act: Callable[..., None], *arguments: Any) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed already
            self.loop.call_soon_threadsafe(act, *arguments)

    async def _join(self) -> None:
        if self._lock is None:
            self._lock = self._new_lock(
                self._connector.config, self._changed, self._refused, self._asked, self._waiting
            )
            self._lock.start()
        else:
            await self._taken()

    async def _leave(self) -> None:
        lock, self._lock = self._lock, None
        if lock is not None:
            await asyncio.to_thread(lock.close)

    def _changed(self, lock: Lock, owned: bool) -> None:
        """Handle the gain or loss of the lock, in its thread."""
        if lock is not self._lock:
            return
        if owned:
            self._next(self._taken)
        else:
            self._lost = True
            self._withdraw("this process has lost the lock of rowtide.standby", self._connector.withdraw)

    def _withdraw(self, reason: str, *steps: Callable[[], Any]) -> None:
        """Stop the connector immediately, from any thread, and perform these steps next."""
        if not self._connector.stands_by:
            log.warning("connector %s stops and stands by: %s", self._connector.config.name, reason)
            self._connector.lapse()
        self._waits = False
        self._show()
        for step in steps:
            self._next(step)

    async def _taken(self) -> None:
        self._lost = False  # before it is asked: it may be lost immediately after that
        if self._lock is not None and self._lock.owned:
            self._waits = False
            self._unfit = None  # from now on, the connector itself says what is wrong
            self._show()
            log.info("connector %s: no other process runs it; this one starts", self._connector.config.name)
            await self._connector.begin()

    def _lapsed(self, seconds: float) -> None:
        """Release the lock, in the thread of the lease, because another copy may have it."""
        if self._lock is None:  # the connector has failed
            return
        reason = f"this process did not run for {seconds:.1f} s"
        self._withdraw(reason, self._leave, self._connector.withdraw, self._join)  # others need not wait for its thread

    async def _fenced(self, failure: BaseException) -> None:
        """Stand by if another copy has the lock. Otherwise, start again, but not soon after the last time."""
        await self._connector.withdraw()
        for _ in range(round(self._patience / _LOOK_S)):
            if self._lost or self.should_stop:
                log.info("connector %s: another process has taken over", self._connector.config.name)
                return
            await self.sleep(_LOOK_S)
        before, self._contested_at = self._contested_at, time.monotonic()
        if before is None or self._contested_at - before > CONTEST_S:
            await self._taken()
            return
        await self._fail(
            TakenOver(f"{failure}. If that is a copy of this connector, set rowtide.standby=true for it, too")
        )

    def _refused(self, lock: Lock, failure: BaseException) -> None:
        if lock is self._lock:
            self._next(lambda: self._fail(failure))

    async def _fail(self, failure: BaseException) -> None:
        await self._leave()
        await asyncio.to_thread(self._connector.give_up, failure)

    def _asked(self, lock: Lock, problem: str | None) -> None:
        if lock is self._lock:
            self._unreachable = problem
            self._show()

    def _waiting(self, lock: Lock) -> None:
        """Note that another process has the lock."""
        if lock is self._lock:
            self._waits = True
            self._in_loop(self._look.set)

    def _show(self) -> None:
        self._connector.obstacle = self._unreachable or self._unfit
        self._connector.undecided = not self._waits
