"""The 19-byte header of every event, and the names of event types and flags."""

from enum import IntEnum
from struct import Struct
from typing import NamedTuple

HEADER_LENGTH = 19
HEADER = Struct("<IBIIIH")

IN_USE = 0x0001
"""LOG_EVENT_BINLOG_IN_USE_F, on FORMAT_DESCRIPTION only: the file has not been closed. Not part of the checksum."""
ARTIFICIAL = 0x0020
"""LOG_EVENT_ARTIFICIAL_F: made by the sender and not in the file, such as the ROTATE at the start of a dump."""
IGNORABLE = 0x0080
"""LOG_EVENT_IGNORABLE_F: a replica that does not support the type may skip the event."""


class EventType(IntEnum):
    """Type codes of MySQL up to 9.7 (``binlog_event.h``) and MariaDB up to 11.4 (``log_event.h``)."""

    UNKNOWN = 0
    START_V3 = 1
    QUERY = 2
    STOP = 3
    ROTATE = 4
    INTVAR = 5
    LOAD = 6
    SLAVE = 7
    CREATE_FILE = 8
    APPEND_BLOCK = 9
    EXEC_LOAD = 10
    DELETE_FILE = 11
    NEW_LOAD = 12
    RAND = 13
    USER_VAR = 14
    FORMAT_DESCRIPTION = 15
    XID = 16
    BEGIN_LOAD_QUERY = 17
    EXECUTE_LOAD_QUERY = 18
    TABLE_MAP = 19
    WRITE_ROWS_V0 = 20
    UPDATE_ROWS_V0 = 21
    DELETE_ROWS_V0 = 22
    WRITE_ROWS_V1 = 23
    UPDATE_ROWS_V1 = 24
    DELETE_ROWS_V1 = 25
    INCIDENT = 26
    HEARTBEAT = 27
    IGNORABLE = 28
    ROWS_QUERY = 29
    WRITE_ROWS = 30
    UPDATE_ROWS = 31
    DELETE_ROWS = 32
    GTID = 33
    ANONYMOUS_GTID = 34
    PREVIOUS_GTIDS = 35
    TRANSACTION_CONTEXT = 36
    VIEW_CHANGE = 37
    XA_PREPARE = 38
    PARTIAL_UPDATE_ROWS = 39
    TRANSACTION_PAYLOAD = 40
    HEARTBEAT_V2 = 41
    GTID_TAGGED = 42
    MARIADB_ANNOTATE_ROWS = 160
    MARIADB_BINLOG_CHECKPOINT = 161
    MARIADB_GTID = 162
    MARIADB_GTID_LIST = 163
    MARIADB_START_ENCRYPTION = 164
    MARIADB_QUERY_COMPRESSED = 165
    MARIADB_WRITE_ROWS_COMPRESSED_V1 = 166
    MARIADB_UPDATE_ROWS_COMPRESSED_V1 = 167
    MARIADB_DELETE_ROWS_COMPRESSED_V1 = 168
    MARIADB_WRITE_ROWS_COMPRESSED = 169
    MARIADB_UPDATE_ROWS_COMPRESSED = 170
    MARIADB_DELETE_ROWS_COMPRESSED = 171


ROWS_TYPES = frozenset({*range(20, 26), *range(30, 33), EventType.PARTIAL_UPDATE_ROWS, *range(166, 172)})
"""The types of rows events."""
HEARTBEATS = frozenset({EventType.HEARTBEAT, EventType.HEARTBEAT_V2})
"""The events that a server sends while it has no new ones."""
GTID_TYPES = frozenset({EventType.GTID, EventType.ANONYMOUS_GTID, EventType.GTID_TAGGED, EventType.MARIADB_GTID})
"""The types of events that start a transaction, or a statement outside of one."""


def type_name(type_code: int) -> str:
    """Return the name of an event type, or its number if it is unknown."""
    try:
        return EventType(type_code).name
    except ValueError:
        return f"event type {type_code}"


def end_of_event(start: int, size: int, log_pos: int) -> int:
    """Return the end of an event that a stream sends after ``start``.

    That is ``log_pos``, which is stored modulo 2**32. MariaDB leaves it 0 inside a transaction: such an event begins
    at ``start``.
    """
    return start + size + ((log_pos - size - start) & 0xFFFFFFFF if log_pos else 0)


class EventHeader(NamedTuple):
    """The common header of an event.

    Attributes:
        timestamp: start of the statement, in seconds since the epoch; 0 on artificial events.
        type_code: see `EventType`; a number, because the type may be unknown.
        server_id: the server that first logged the change.
        size: bytes of the whole event, including header and checksum.
        log_pos: position after the event in its binlog file; 0 for artificial events and inside a TRANSACTION_PAYLOAD,
            and modulo 2**32 in files larger than 4 GiB.
        flags: `IN_USE`, `ARTIFICIAL`, `IGNORABLE` and others.
    """

    timestamp: int
    type_code: int
    server_id: int
    size: int
    log_pos: int
    flags: int

    @property
    def start(self) -> int:
        """Position of the event's first byte in its binlog file; 0 if ``log_pos`` is not set."""
        return self.log_pos - self.size if self.log_pos else 0

    @property
    def type_name(self) -> str:
        """The event type's name, for messages."""
        return type_name(self.type_code)

    @property
    def artificial(self) -> bool:
        """Whether the sender made this event, so that it is not in the file."""
        return bool(self.flags & ARTIFICIAL)
