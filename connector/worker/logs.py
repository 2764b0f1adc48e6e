"""Edge: sets up the worker's log, on standard error or in a file."""

import logging
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

FORMAT = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"
LEVELS = ("debug", "info", "warning", "error")

_CHATTY = ("aiohttp", "aiokafka", "asyncio", "faust", "mode")
"""Libraries that log their own life cycle at ``info``; only their warnings are shown."""


class ConsoleHandler(logging.Handler):
    """Writes lines above a progress bar on the same terminal."""

    def __init__(self, console: "Console") -> None:
        super().__init__()
        self._console = console

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line."""
        try:
            self._console.print(self.format(record), markup=False, highlight=False, emoji=False, soft_wrap=True)
        except Exception:  # noqa: BLE001 - like every handler: a failing log must not stop the worker
            self.handleError(record)


def set_up(level: str | int = "info", file: str | None = None, console: "Console | None" = None) -> None:
    """Send the log of this process to a file, a console, or else standard error.

    Args:
        level: the level of rowtide's own lines. Other libraries log from ``warning`` on, with ``debug`` everything.
        file: the file to append to.
        console: the terminal that shows the progress bar.
    """
    handler: logging.Handler
    if file is not None:
        handler = logging.FileHandler(file, encoding="utf-8")
    elif console is not None:
        handler = ConsoleHandler(console)
    else:
        handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter(FORMAT))
    number = level if isinstance(level, int) else logging.getLevelNamesMapping()[level.upper()]
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(number)
    for name in _CHATTY:
        logging.getLogger(name).setLevel(max(number, logging.WARNING) if number > logging.DEBUG else number)
    logging.captureWarnings(capture=True)
