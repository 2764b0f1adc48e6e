"""Who reads the binlog of a server, as the server knows it."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pymysql

if TYPE_CHECKING:
    from rowtide_stack import SqlServer

__all__ = ["binlog_readers", "end_binlog_readers"]


def binlog_readers(server: SqlServer) -> list[int]:
    """The connections that read the binlog."""
    found = server.query("SELECT id FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%'")
    return [int(number) for (number,) in found]


def end_binlog_readers(server: SqlServer) -> None:
    """End them: the server does not notice by itself that a connector has gone."""
    for number in binlog_readers(server):
        with contextlib.suppress(pymysql.err.OperationalError):  # it may be gone meanwhile
            server.execute(f"KILL {number}")
