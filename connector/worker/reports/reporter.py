"""Reports the status of the connectors while the worker runs, on a terminal or in the log."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

from mode import Service

from rowtide.connector.worker.reports.summary import INTERVAL_S, SummaryLog
from rowtide.connector.worker.status import Status

if TYPE_CHECKING:
    from rich.console import Console

log = logging.getLogger(__name__)

_TERMINAL_S = 0.5
_LOG_S = 5.0

StatusSource = Callable[[], Awaitable[Status]]
"""Returns the current status of a connector."""


class Reporter(Service):
    """Draws the live view if there is a terminal, otherwise logs summaries.

    Args:
        sources: returns the statuses of the connectors, which may come and go.

    Attributes:
        console: the terminal, if there is one; set before the start.
        interval: seconds between two summaries; 0 for none.
    """

    logger = logging.getLogger("mode.rowtide")

    def __init__(self, sources: Callable[[], Sequence[StatusSource]], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._sources = sources
        self.console: Console | None = None
        self.interval = INTERVAL_S

    @Service.task
    async def _report(self) -> None:
        if self.console is not None:
            await self._draw(self.console)
        elif self.interval > 0:
            await self._log()

    async def _draw(self, console: "Console") -> None:
        from rowtide.connector.worker.reports.terminal import Terminal  # noqa: PLC0415 - only on a terminal

        terminal = Terminal(console)
        try:
            while not self.should_stop:
                terminal.show([await source() for source in self._sources()])
                await self.sleep(_TERMINAL_S)
        except OSError:  # the terminal was closed; the connector continues
            console.quiet = True
        finally:
            terminal.close()

    async def _log(self) -> None:
        summaries: dict[str, SummaryLog] = {}
        while not self.should_stop:
            now = [await source() for source in self._sources()]
            summaries = {one.name: summaries.get(one.name) or SummaryLog(log.info, self.interval) for one in now}
            for status in now:
                summaries[status.name].tick(status)
            await self.sleep(min(_LOG_S, self.interval))
