"""How far behind the server's binlog a reader is, in bytes. An edge: asks the server now and then."""

import threading
import time
from collections.abc import Callable, Sequence

import pymysql

from rowtide.connector.config import Configuration, Flavor
from rowtide.connector.source.connection import DatabaseUnreachableError
from rowtide.connector.source.server_queries import binlog_files
from rowtide.connector.source.session import Session

_FRESH_S = 5.0
"""An answer is not asked for again before it is so old: scrapers may come often, and large servers have many files."""


class BinlogEnd:
    """Knows the server's binlog files and their sizes, as of a few seconds ago; may be asked from any thread.

    Args:
        config: how the server is reached.
        clock: seconds, monotonic.
    """

    def __init__(self, config: Configuration, clock: Callable[[], float] = time.monotonic) -> None:
        self._config = config
        self._clock = clock
        self._lock = threading.Lock()
        self._session: Session | None = None
        self._logs: list[tuple[str, int]] = []
        self._asked_at: float | None = None

    def behind(self, file: str, pos: int) -> int | None:
        """Bytes between a place and the end of the binlog; ``None`` if the server does not tell.

        While one thread waits for the server, others get the last answer.
        """
        if self._lock.acquire(blocking=False):
            try:
                if self._asked_at is None or self._clock() - self._asked_at > _FRESH_S:
                    self._logs = self._ask()
                    self._asked_at = self._clock()
            finally:
                self._lock.release()
        return bytes_behind(self._logs, file, pos)

    def _ask(self) -> list[tuple[str, int]]:
        try:
            if self._session is None:
                self._session = Session(self._config.database, mariadb=self._config.flavor is Flavor.MARIADB)
            return binlog_files(self._session)
        except (DatabaseUnreachableError, pymysql.MySQLError, OSError):
            self._forget()
            return []

    def _forget(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.close()

    def close(self) -> None:
        """End the connection."""
        if self._lock.acquire(blocking=False):
            try:
                self._forget()
            finally:
                self._lock.release()


def bytes_behind(logs: Sequence[tuple[str, int]], file: str, pos: int) -> int | None:
    """Bytes between a place and the end of the last file; ``None`` if the file is not among them.

    Args:
        logs: names and sizes of the files, in order.
        file: a binlog file.
        pos: a position in it.
    """
    names = [name for name, _ in logs]
    if file not in names:
        return None
    index = names.index(file)
    return max(0, logs[index][1] - pos) + sum(size for _, size in logs[index + 1 :])
