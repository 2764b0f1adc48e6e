# The compiled reader of usual events, written in C; see native/events.c.

from collections.abc import Callable
from typing import Self

from rowtide.connector.protocol.events.classes import Event, Gtid, Query, RowsKind, TableMap
from rowtide.connector.protocol.events.query_status import QueryStatus
from rowtide.connector.protocol.events.table_structure import TableStructure

class EventReader:
    # classes: of the header, GTID, QUERY, XID, TABLE_MAP, rows, and MariaDB's GTID event and GTID; uuids and statuses:
    # what Python has parsed, which is all that an event may contain
    def __new__(
        cls,
        classes: tuple[type, ...],
        kinds: tuple[RowsKind, ...],
        crc32: Callable[[bytes], int],
        uuids: dict[bytes, str],
        statuses: dict[bytes, QueryStatus],
    ) -> Self: ...
    # None: Python has to decode the event, or one of the three
    def decode(
        self, packet: bytes, checksum: bool, verify: bool, structures: dict[bytes, TableStructure], /
    ) -> Event | None: ...
    def opening(
        self, packets: list[bytes], at: int, checksum: bool, verify: bool, structures: dict[bytes, TableStructure], /
    ) -> tuple[Gtid, Query, TableMap] | None: ...
