"""The server that takes the writes. A second one replicates from it by GTID, and can replace it."""

from __future__ import annotations

import contextlib
import threading
import time
from typing import TYPE_CHECKING, Any

import pymysql

if TYPE_CHECKING:
    from pymysql.connections import Connection
    from pymysql.cursors import Cursor
    from rowtide_stack import SqlServer

    from tests.chaos.network import Link

__all__ = ["Primary"]

_WAIT_S = 60


class Primary:
    """The primary server.

    Args:
        server: the primary server at first.
        replica: a second server without data; it begins to replicate.

    Attributes:
        server: the primary server now.
    """

    def __init__(self, server: SqlServer, replica: SqlServer | None = None) -> None:
        self.server = server
        self._replica = replica
        self._closed = threading.Event()
        if replica is not None:
            self._follow(replica, server)

    def connect(self, database: str | None, **arguments: Any) -> Connection[Cursor]:
        """Connect as a writer.

        Raises:
            pymysql.OperationalError: a fail-over is under way, or the server does not answer.
        """
        if self._closed.is_set():
            raise pymysql.OperationalError("a fail-over is under way")
        return self.server.connect(database, **arguments)

    def fail_over(self, link: Link) -> None:
        """Kill the server when the other one has all its changes, and promote that one.

        No committed change is lost: writers are disconnected before. A fail-over that loses changes is refused by the
        connector, and has its own test.
        """
        old = self.server
        self._closed.set()
        try:
            self._end_writers(old)
            self.promote(kill=True)
            link.redirect(self.server.host, self.server.port)
        finally:
            self._closed.clear()

    def promote(self, *, kill: bool = False) -> None:
        """Make the other server the primary when it has all changes, and ``kill`` the one that was."""
        old, new = self.server, self._replica
        assert new is not None
        self._await(new, old)
        if kill:
            old.kill()
        new.execute(*_statements(new, "STOP REPLICA", "RESET REPLICA ALL"))
        self.server, self._replica = new, old

    def rejoin(self) -> None:
        """Start the server that was killed as the replica of the other one."""
        assert self._replica is not None
        self._replica.start()
        self._follow(self._replica, self.server)

    def _end_writers(self, server: SqlServer) -> None:
        """End the connections of writers, which use a database, and wait until their transactions have ended."""
        end = time.monotonic() + _WAIT_S
        while numbers := server.query("SELECT ID FROM information_schema.PROCESSLIST WHERE DB IS NOT NULL"):
            assert time.monotonic() < end, "writers do not end"
            for (number,) in numbers:
                with contextlib.suppress(pymysql.MySQLError):
                    server.execute(f"KILL {number}")
            time.sleep(0.1)

    def _await(self, replica: SqlServer, source: SqlServer) -> None:
        if source.name == "mysql":
            position = source.query("SELECT @@GLOBAL.gtid_executed")[0][0]
            wait = "SELECT WAIT_FOR_EXECUTED_GTID_SET(%s, %s)"
        else:
            position = source.query("SELECT @@GLOBAL.gtid_binlog_pos")[0][0]
            wait = "SELECT MASTER_GTID_WAIT(%s, %s)"
        failed = replica.query(wait, (position, _WAIT_S))[0][0]
        assert failed == 0, f"the replica does not reach {position}: {replica.query('SHOW REPLICA STATUS')}"

    def _follow(self, replica: SqlServer, source: SqlServer) -> None:
        if replica.name == "mysql":
            name, gtids = "SOURCE", "SOURCE_AUTO_POSITION = 1, GET_SOURCE_PUBLIC_KEY = 1, SOURCE_CONNECT_RETRY = 1"
        else:
            replica.execute(f"SET GLOBAL gtid_slave_pos = '{replica.query('SELECT @@gtid_binlog_pos')[0][0]}'")
            name, gtids = "MASTER", "MASTER_USE_GTID = slave_pos, MASTER_CONNECT_RETRY = 1"
        account = f"{name}_USER = '{source.user}', {name}_PASSWORD = '{source.password}'"
        address = f"{name}_HOST = '{source.host}', {name}_PORT = {source.port}"
        replica.execute(
            f"CHANGE {'REPLICATION SOURCE' if name == 'SOURCE' else name} TO {address}, {account}, {gtids}",
            *_statements(replica, "START REPLICA"),
        )


def _statements(server: SqlServer, *statements: str) -> list[str]:
    return [text if server.name == "mysql" else text.replace("REPLICA", "SLAVE") for text in statements]
