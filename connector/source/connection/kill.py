"""Ends queries that a server would continue although their connection is closed."""

import contextlib
from collections.abc import Sequence
from dataclasses import replace

import pymysql

from rowtide.connector.source.connection.errors import DatabaseUnreachableError
from rowtide.connector.source.connection.login import log_in
from rowtide.connector.source.connection.open_connections import ServerSession

_TIMEOUT_MS = 1000


def kill_queries(sessions: Sequence[ServerSession]) -> None:
    """End the queries of sessions whose connections were interrupted, as far as their server can be reached.

    A server that sorts, or waits for a lock, does not soon notice that the connection is closed, and a waiting lock
    blocks others. A session is identified by its port, too, because behind a load balancer the same id can be a session
    of another server.

    Args:
        sessions: the sessions, all with the same server and account.
    """
    if not sessions:
        return
    config = replace(sessions[0].config, connect_timeout_ms=_TIMEOUT_MS, query_timeout_ms=_TIMEOUT_MS)
    known = {(session.id, session.port) for session in sessions}
    with (
        contextlib.suppress(DatabaseUnreachableError, pymysql.MySQLError),
        contextlib.closing(log_in(config)) as client,
    ):
        for number, _user, host, _database, command, *_ in client.fetch("SHOW PROCESSLIST"):
            port = str(host).rpartition(":")[2]
            if command == "Query" and port.isdecimal() and (number, int(port)) in known:
                with contextlib.suppress(pymysql.MySQLError):  # it has already ended
                    client.fetch(f"KILL {number}")
