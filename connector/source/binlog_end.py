"""Measures the unread part of the server's binlog, and the time for which the server keeps the files."""

import contextlib
import threading
import time
from collections.abc import Callable, Sequence

import pymysql

from rowtide.connector.config import Configuration
from rowtide.connector.errors import ConnectorError
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.source.binlog_runway import Runway, RunwayQuery
from rowtide.connector.source.connection import Client, DatabaseUnreachableError
from rowtide.connector.source.server_queries import binlog_files
from rowtide.connector.source.session import Session

_FRESH_S = 5.0
"""A list of binlog files is used this long: scrapes may be frequent, and large servers have many files."""
_FRESH_IDLE_S = 60.0
"""The same for a connector that does not read, such as a paused one, which keeps no connection."""


class BinlogEnd:
    """The end of the server's binlog, queried at most every few seconds; any thread may call it.

    Queries run in a daemon thread: a server that does not answer delays neither a caller nor the end of the process.

    Args:
        config: the connection settings.
        clock: a monotonic clock, in seconds.
    """

    def __init__(self, config: Configuration, clock: Callable[[], float] = time.monotonic) -> None:
        self._config = config
        self._clock = clock
        self._lock = threading.Lock()
        self._session: Session | None = None
        self._files: list[tuple[str, int]] = []
        self._runways = RunwayQuery(config)
        self._runway: Runway | None = None
        self._queried_at: float | None = None
        self._refused = self._closed = False
        self._answered = threading.Event()
        self._answered.set()

    def look(
        self, read: tuple[str, int] | None, needed: SourceOffset | None, timeout: float, *, reads: bool = True
    ) -> tuple[int | None, Runway | None]:
        """Return the lag of a reader behind the end of the binlog, and how long the server keeps a position's file.

        Args:
            read: the last binlog file and position read; ``None`` if nothing was read.
            needed: the position.
            timeout: seconds to wait for the server.
            reads: whether the connector reads now. Otherwise, no connection is kept, and the server is not queried
                again after a refused log-in, which might lock the account.

        Returns:
            The bytes and the runway, each ``None`` if unknown.
        """
        with self._lock:
            fresh_s = _FRESH_S if reads else _FRESH_IDLE_S
            stale = self._queried_at is None or self._clock() - self._queried_at > fresh_s
            allowed = reads or not self._refused
            if stale and allowed and self._answered.is_set():
                self._answered.clear()
                name = f"{self._config.name}/binlog-end"
                threading.Thread(target=self._query, args=[needed, reads], name=name, daemon=True).start()
        if not self._answered.wait(timeout):
            return None, None
        known = self._runway
        fits = known is not None and needed is not None and known.file == needed.file
        return None if read is None else bytes_behind(self._files, *read), known if fits else None

    def _query(self, needed: SourceOffset | None, stays: bool) -> None:
        self._runway, self._refused = None, False
        try:
            if self._session is None:
                self._session = Session(self._config.database, mariadb=self._config.mariadb)
            self._files = binlog_files(self._session.client)
            if needed is not None:
                self._runway = self._asked(self._session.client, needed)
        except (DatabaseUnreachableError, pymysql.MySQLError, OSError) as error:
            self._files = []
            self._refused = isinstance(error, DatabaseUnreachableError) and not error.retriable
            self._disconnect()
        finally:
            if not stays or self._closed:
                self._disconnect()
            self._queried_at = self._clock()
            self._answered.set()

    def _asked(self, client: Client, needed: SourceOffset) -> Runway | None:
        """Return the runway of a position. An account that may not see it can still see the end."""
        with contextlib.suppress(ConnectorError, pymysql.MySQLError, OSError):
            return self._runways.ask(client, needed, self._files)
        return None

    def close(self) -> None:
        """Close the connection permanently; a running query closes it when it ends."""
        self._closed = True
        self._disconnect()

    def _disconnect(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.close()


def bytes_behind(files: Sequence[tuple[str, int]], file: str, pos: int) -> int | None:
    """Return the bytes between a position and the end of the last file; ``None`` if the file is not one of them.

    Args:
        files: names and sizes of the binlog files, oldest first.
        file: a binlog file.
        pos: a position in it.
    """
    names = [name for name, _ in files]
    if file not in names:
        return None
    index = names.index(file)
    return max(0, files[index][1] - pos) + sum(size for _, size in files[index + 1 :])
