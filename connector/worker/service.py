"""Edge: the service that runs one connector in Faust's life cycle."""

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import Callable
from typing import Any

from mode import Service

from rowtide import __version__
from rowtide.connector.config import Configuration
from rowtide.connector.engine.task import ConnectorTask
from rowtide.connector.source.binlog_end import BinlogEnd
from rowtide.connector.worker.failures import StopTimeoutError
from rowtide.connector.worker.status import Status, status_of

log = logging.getLogger(__name__)

_LAG_TIMEOUT_S = 2.0
"""A page waits this long for the lag in bytes, then it is served without it."""


class ConnectorService(Service):
    """Runs a connector in Faust's life cycle.

    Args:
        config: the connector's configuration.

    Attributes:
        connector: the task that runs the connector.
        failure: the error if the service could not stop in time.
        on_end: called in the event loop when the connector ends by itself.
    """

    logger = logging.getLogger("mode.rowtide")

    def __init__(self, config: Configuration, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.config = config
        self.on_end: Callable[[], None] = lambda: None
        self._binlog_end = BinlogEnd(config)
        self.failure: BaseException | None = None
        self.connector = ConnectorTask(config, on_end=self._ended)

    async def on_start(self) -> None:
        """Log the configuration, and start the connector in its thread."""
        log.info("rowtide %s starts connector %s, process %d", __version__, self.config.name, os.getpid())
        for name, value in sorted(self.config.masked_properties().items()):
            log.info("  %s = %s", name, value)
        for warning in self.config.warnings:
            log.warning("%s", warning)
        self.connector.start()

    async def on_stop(self) -> None:
        """Deliver what was read, store the last offset, and stop."""
        begin = time.monotonic()
        complete = await asyncio.to_thread(self.connector.stop)
        self._binlog_end.close()
        if complete:
            log.info("stopped in %.1f s; everything that was read is delivered", time.monotonic() - begin)
        elif self.connector.failure is None:
            self.failure = StopTimeoutError(self.config.delivery.shutdown_timeout_ms)

    async def status(self) -> Status:
        """The connector's status."""
        reader = self.connector.current.reader
        behind: int | None = None
        if reader is not None and not self.connector.failure:
            file, pos = reader.status.file, reader.status.pos
            behind = await asyncio.to_thread(self._binlog_end.behind, file, pos, _LAG_TIMEOUT_S)
        return status_of(self.connector, time.time(), behind)

    def _ended(self, _failure: BaseException | None) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed already
            self.loop.call_soon_threadsafe(self._report_end)

    def _report_end(self) -> None:
        if not self.should_stop:
            self.on_end()
