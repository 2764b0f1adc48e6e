"""Edge: lets a connector run while this process has its lock, with ``rowtide.standby``.

::

              the lock is taken
    STANDBY ───────────────────► the connector runs ──► it fails: another copy may take the lock
       ▲                                  │
       └──────────────────────────────────┘
         the lock is lost, or this process did not run for nearly the session, or Kafka has fenced the connector

The lock avoids that two copies fence each other; it does not exclude that both run for a moment. Kafka does: both write
in transactions with the same transactional id, and the one that starts later ends those of the other.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Any, Protocol

from mode import Service

from rowtide.connector.config import Configuration
from rowtide.connector.delivery.errors import ProducerFenced, TakenOver
from rowtide.connector.worker.group_lock import SESSION_S, GroupLock
from rowtide.connector.worker.lease import Lease
from rowtide.connector.worker.service import ConnectorService

log = logging.getLogger(__name__)

_LEASE_S = SESSION_S - 1
_LOOK_S = 0.1


class Lock(Protocol):
    """A lock as :class:`~rowtide.connector.worker.group_lock.GroupLock` is one."""

    @property
    def owned(self) -> bool: ...
    def start(self) -> None: ...
    def close(self) -> None: ...


def lock_of(config: Configuration) -> tuple[object, ...]:
    """Return what determines the lock of a connector. If it changes, the connector needs another :class:`Standby`."""
    delivery, history = config.delivery, config.history
    return delivery.standby, delivery.group_id, history.topic, history.consumer, history.admin


class Standby(Service):
    """Begins and ends the runs of a connector.

    Args:
        connector: the connector, which stands by from now on.
        lock: makes a lock; see ``GroupLock``.
        patience: seconds in which the lock must be lost after the connector was fenced; otherwise it was fenced by a
            process that needs no lock.
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
        """Take notice that the connector has ended; returns whether it stands by instead of having failed."""
        if self._connector.failure is not None:
            return False
        if isinstance(failure, ProducerFenced | TakenOver):
            self._connector.lapse()
            self._next(lambda: self._fenced(failure))
            return True
        self._next(self._leave)
        return False

    @Service.task
    async def _work(self) -> None:
        """Do one step after the other."""
        while not self.should_stop:
            step = await self.wait(self._steps.get())
            if not step.stopped:
                await step.result()

    def _next(self, step: Callable[[], Any]) -> None:
        """Do a step after those before; may be called in any thread."""
        with contextlib.suppress(RuntimeError):  # the loop is closed already
            self.loop.call_soon_threadsafe(self._steps.put_nowait, step)

    async def _join(self) -> None:
        if self._lock is None:
            self._lock = self._new_lock(self._connector.config, self._changed, self._refused, self._asked)
            self._lock.start()

    async def _leave(self) -> None:
        lock, self._lock = self._lock, None
        if lock is not None:
            await asyncio.to_thread(lock.close)

    def _changed(self, lock: Lock, owned: bool) -> None:
        """Take notice that the lock was taken or lost, in its thread."""
        if lock is not self._lock:
            return
        if owned:
            self._next(self._taken)
        else:
            self._lost = True
            self._withdraw("this process has lost the lock of rowtide.standby")

    def _withdraw(self, reason: str) -> None:
        """Stop the connector immediately, in any thread; the next step is to stand by."""
        if not self._connector.stands_by:
            log.warning("connector %s stops and stands by: %s", self._connector.config.name, reason)
            self._connector.lapse()
        self._next(self._connector.withdraw)

    async def _taken(self) -> None:
        if self._lock is not None and self._lock.owned:
            self._lost = False
            log.info("connector %s: no other process runs it; this one begins", self._connector.config.name)
            await self._connector.begin()

    def _lapsed(self, seconds: float) -> None:
        """Give the lock back, in the thread of the lease: another copy may have it."""
        self._withdraw(f"this process did not run for {seconds:.1f} s")
        self._next(self._leave)
        self._next(self._join)

    async def _fenced(self, failure: BaseException) -> None:
        """Stand by, if another copy has the lock. Otherwise a program without one runs the connector."""
        await self._connector.withdraw()
        for _ in range(round(self._patience / _LOOK_S)):
            if self._lost or self.should_stop:
                log.info("connector %s: another process has taken it over", self._connector.config.name)
                return
            await self.sleep(_LOOK_S)
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
            self._connector.obstacle = problem
