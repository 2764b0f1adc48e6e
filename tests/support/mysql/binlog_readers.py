"""The connections that read the binlog of a server."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pymysql

if TYPE_CHECKING:
    from rowtide_stack import SqlServer

__all__ = ["binlog_readers", "end_binlog_readers"]


def binlog_readers(server: SqlServer) -> list[int]:
    """The ids of the connections that read the binlog."""
    found = server.query("SELECT id FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%'")
    return [int(number) for (number,) in found]


def end_binlog_readers(server: SqlServer) -> None:
    """Kill these connections, because the server does not notice that a connector has ended."""
    for number in binlog_readers(server):
        with contextlib.suppress(pymysql.err.OperationalError):  # it may have ended by now
            server.execute(f"KILL {number}")
