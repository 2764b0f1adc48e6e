"""The compiled reader of the most frequent events; ``None`` where Python reads all events."""

import zlib

from rowtide.connector.protocol.events.classes import Gtid, MariadbGtidEvent, Query, Rows, RowsKind, TableMap, Xid
from rowtide.connector.protocol.events.gtid import UUID_TEXTS
from rowtide.connector.protocol.events.query_status import PARSED
from rowtide.connector.protocol.header import EventHeader
from rowtide.connector.protocol.native.compiled import compiled_module, name_of
from rowtide.schema_history.position.gtid import MariadbGtid

__all__ = ["NAME", "reader"]

_native, _STALE = compiled_module("rowtide.connector.protocol._native", __file__)

NAME = name_of(_native, _STALE)
"""For ``rowtide --version``."""

reader = (
    None
    if _native is None
    else _native.EventReader(
        (EventHeader, Gtid, Query, Xid, TableMap, Rows, MariadbGtidEvent, MariadbGtid),
        (RowsKind.WRITE, RowsKind.UPDATE, RowsKind.DELETE),
        zlib.crc32,
        UUID_TEXTS,
        PARSED,
    )
)
"""Reads an event, or leaves it to Python, for instance if it is damaged, or the first one of a table."""
