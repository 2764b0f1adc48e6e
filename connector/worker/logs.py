"""Sets up the worker's log, on standard error or in a file."""

import json
import logging
import math
import sys
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

FORMATS = ("text", "json")
LEVELS = ("debug", "info", "warning", "error")

_CHATTY = ("aiohttp", "aiokafka", "asyncio", "faust", "httpx", "httpx2", "mode")
"""Libraries that log their own life cycle, or each request, at ``info``; only their warnings are shown."""


_MINUTE_S = 60.0
_MOST_REPEATED = 5
_MOST_SEEN = 1000
"""Texts that are compared with those before."""


class TextFormatter(logging.Formatter):
    """Formats a record as a line of text. The timestamp is ISO 8601 in local time, with the offset from UTC.

    Args:
        threads: whether lines name the thread, which has the name of its connector.
    """

    def __init__(self, *, threads: bool = False) -> None:
        thread = " [%(threadName)s]" if threads else ""
        super().__init__(f"%(asctime)s %(levelname)-7s{thread} %(name)s: %(message)s")

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: N802 - logging's name
        """Return the timestamp of a record."""
        return _time(record).astimezone().isoformat(timespec="milliseconds")


class JsonFormatter(logging.Formatter):
    """Formats a record as a JSON object on one line.

    Its fields are ``timestamp`` (ISO 8601, UTC), ``level``, ``logger``, ``thread``, ``message``, and ``exception`` with
    a traceback.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        fields = {
            "timestamp": _time(record).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "thread": record.threadName,
            "message": record.getMessage(),
        }
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        return json.dumps(fields, ensure_ascii=False)


def _time(record: logging.LogRecord) -> datetime:
    return datetime.fromtimestamp(record.created, UTC)


class ConsoleHandler(logging.Handler):
    """Writes lines above the live view on the same terminal."""

    def __init__(self, console: "Console") -> None:
        super().__init__()
        self._console = console

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line."""
        try:
            self._console.print(self.format(record), markup=False, highlight=False, emoji=False, soft_wrap=True)
        except Exception:  # noqa: BLE001 - like every handler: a failing log must not stop the worker
            self.handleError(record)


class LogFile(logging.FileHandler):
    """Writes lines to a file, and to standard error while the file cannot be written, as on a full disk."""

    _told = -math.inf

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's name
        """Write the line to standard error, and once a minute the reason."""
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            super().handleError(record)
            return
        with suppress(OSError, ValueError):
            if not 0 <= record.created - self._told < _MINUTE_S:
                self._told = record.created
                sys.stderr.write(f"{self.baseFilename} cannot be written: {error.strerror}. Its lines come here\n")
            sys.stderr.write(f"{self.format(record)}\n")


class RepeatedLines(logging.Filter):
    """Omits a warning or an error that repeats unchanged: at most five a minute are written.

    Otherwise, the error of an operation that is retried constantly, such as accepting a connection while too many files
    are open, would fill the disk.
    """

    def __init__(self) -> None:
        super().__init__()
        self._seen: dict[tuple[str, str], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether to write a line; the last one of a minute notes that others follow."""
        if record.levelno < logging.WARNING:
            return True
        text = record.getMessage()
        since, count = self._seen.pop((record.name, text), (record.created, 0))
        if not 0 <= record.created - since < _MINUTE_S:
            since, count = record.created, 0
        self._seen[record.name, text] = since, count + 1
        if len(self._seen) > _MOST_SEEN:
            del self._seen[next(iter(self._seen))]
        if count + 1 == _MOST_REPEATED:
            record.msg, record.args = f"{text} (this line is omitted if it is repeated within a minute)", ()
        return count < _MOST_REPEATED


def set_up(
    level: str | int = "info",
    file: str | None = None,
    console: "Console | None" = None,
    *,
    as_json: bool = False,
    threads: bool = False,
) -> None:
    """Send the log of this process to a file, a console, or else standard error.

    Args:
        level: the level of rowtide's own lines. Other libraries log warnings and errors; with ``debug``, everything.
        file: the file to append to.
        console: the terminal that shows the live view.
        as_json: one JSON object per line, instead of text.
        threads: whether lines of text name the thread.
    """
    handler: logging.Handler
    if file is not None:
        handler = LogFile(file, encoding="utf-8")
    elif console is not None:
        handler = ConsoleHandler(console)
    else:
        handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(RepeatedLines())
    handler.setFormatter(JsonFormatter() if as_json else TextFormatter(threads=threads))
    number = level if isinstance(level, int) else logging.getLevelNamesMapping()[level.upper()]
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(number)
    for name in _CHATTY:
        logging.getLogger(name).setLevel(max(number, logging.WARNING) if number > logging.DEBUG else number)
    logging.captureWarnings(capture=True)
