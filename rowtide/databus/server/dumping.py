"""Edge: when dumps are made and announced, while this server runs."""

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import aclosing

from rowtide.cluster.fence import TermEndedError
from rowtide.cluster.session import ZooKeeperError
from rowtide.connector.errors import ConnectorError
from rowtide.databus.discovery import DumpDescriptor
from rowtide.databus.errors import DatabusError, DiscoveryError
from rowtide.databus.server.folder import DumpFolder
from rowtide.databus.server.registration import Registration
from rowtide.databus.server.source import DumpSource

log = logging.getLogger(__name__)

_LOOK_S = 1.0
_FIRST_WAIT_S = 5.0
_LONGEST_WAIT_S = 300.0
_KEPT = 2
"""How many dumps are kept: the present one, and the one that clients may have read the name of."""


class Dumping:
    """Makes a dump if this server begins to run and does not have the one that is announced, and then regularly.

    Args:
        source: makes the dumps.
        folder: has them.
        registration: of this server.
        interval_s: how long a dump is announced, in seconds; ``None`` for ever (``dumpclock``).
        clock: in seconds.
    """

    def __init__(
        self,
        source: DumpSource,
        folder: DumpFolder,
        registration: Registration,
        interval_s: float | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._source = source
        self._folder = folder
        self._registration = registration
        self._interval_s = interval_s
        self._clock = clock
        self._term: int | None = None  # in which there is a dump
        self._due = 0.0  # when the next one is due in it, by the clock

    async def run(self) -> None:
        """Make dumps until it is cancelled. What fails is logged and repeated."""
        wait = _FIRST_WAIT_S
        while True:
            try:
                await self.poll()
                wait = _FIRST_WAIT_S
                await asyncio.sleep(_LOOK_S)
            except (ConnectorError, DatabusError, ZooKeeperError, OSError) as error:
                log.error("no dump is made: %s; retry in %.0f s", error, wait)  # noqa: TRY400
                await asyncio.sleep(wait)
                wait = min(2 * wait, _LONGEST_WAIT_S)

    async def poll(self) -> None:
        """Make a dump if this server runs and one is due.

        Raises:
            ConnectorError, DatabusError: the source cannot be read.
            ZooKeeperError: no answer, or another server runs by now.
            OSError: the dump cannot be written.
        """
        term = self._registration.term
        if term is None:
            return
        if term != self._term:
            if await asyncio.to_thread(self._has_announced):
                self._made(term)
                return
        elif self._clock() < self._due:
            return
        await self._make(term)

    def _has_announced(self) -> bool:
        """Whether the dump that is announced is here: this server was started again, or the folder is shared."""
        try:
            announced = self._registration.dump()
            found = None if announced is None else self._folder.open(announced.file)
        except (DiscoveryError, ValueError) as error:
            log.warning("%s; a new dump is made", error)
            return False
        if announced is not None and found is None:
            log.info("the dump that is announced, %s, is not on this server; a new one is made", announced.file)
        if found is not None:
            found.close()
        return found is not None

    async def _make(self, term: int) -> None:
        begin = self._clock()
        name = self._folder.new_name()
        dump = await self._source.dump()
        with await asyncio.to_thread(self._folder.writer, name) as writer:
            async with aclosing(dump.parts()) as parts:
                async for part in parts:
                    if self._registration.term != term:
                        raise TermEndedError("another server may run")
                    await asyncio.to_thread(writer.add, part)
            await asyncio.to_thread(writer.complete)
        descriptor = DumpDescriptor(name, dump.position, dump.offset)
        await asyncio.to_thread(self._registration.announce, descriptor, term)
        log.info("dump %s is complete: %d rows in %.0f s", name, writer.rows, self._clock() - begin)
        self._made(term)
        await asyncio.to_thread(self._folder.keep, name, _KEPT)

    def _made(self, term: int) -> None:
        self._term = term
        self._due = float("inf") if self._interval_s is None else self._clock() + self._interval_s
