"""Semi-synchronous replication of a server, and clients whose commits wait for it."""

from __future__ import annotations

import contextlib
import json
import threading
from typing import TYPE_CHECKING

import pymysql

if TYPE_CHECKING:
    from rowtide_stack import Database, SqlServer

    from tests.support.kafka.topic_tools import Topics

__all__ = ["FOREVER_MS", "SemiSync", "Writers", "keys"]

FOREVER_MS = 3_600_000


class SemiSync:
    """Semi-synchronous replication of a server.

    Args:
        server: MySQL, whose plugin is installed, or MariaDB.
    """

    def __init__(self, server: SqlServer) -> None:
        self._server = server
        self._side = "source" if server.name == "mysql" else "master"
        if server.name == "mysql" and not server.query("SHOW VARIABLES LIKE 'rpl_semi_sync_source_enabled'"):
            server.execute("INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so'")

    def set(self, **variables: str | int) -> None:
        """Set global variables."""
        for name, value in variables.items():
            self._server.execute(f"SET GLOBAL rpl_semi_sync_{self._side}_{name} = {value}")

    def status(self, name: str) -> str:
        """The value of a status variable."""
        return str(self._server.query(f"SHOW GLOBAL STATUS LIKE 'Rpl_semi_sync_{self._side}_{name}'")[0][1])


def keys(topics: Topics, topic: str) -> list[int]:
    """The keys of all records of a topic, in their order."""
    return [json.loads(seen.key or b"{}")["id"] for seen in topics.read(topic)]


class Writers:
    """Clients that insert rows into the table ``t``, and note those whose commit has succeeded.

    A client whose connection is lost, because the server was killed, connects again and inserts the next row.

    Args:
        database: has the table.
        count: number of clients.
    """

    def __init__(self, database: Database, count: int = 4) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._told: set[int] = set()
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._write, args=(number,)) for number in range(count)]

    def start(self) -> None:
        """Begin."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Wait for the last commits."""
        self._stop.set()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()

    def further(self, count: int) -> bool:
        """Whether more rows than so many are committed."""
        return len(self.told()) > count

    def told(self) -> set[int]:
        """The rows of successful commits."""
        with self._lock:
            return set(self._told)

    def _write(self, number: int) -> None:
        key = number + 1
        while not self._stop.is_set():
            with contextlib.suppress(pymysql.err.OperationalError), self._database.connect() as connection:
                while not self._stop.is_set():
                    row, key = key, key + len(self._threads)
                    with connection.cursor() as cursor:
                        cursor.execute(f"INSERT INTO t VALUES ({row})")
                    with self._lock:
                        self._told.add(row)
            self._stop.wait(0.05)
