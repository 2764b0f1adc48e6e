"""The status variables of a QUERY event: the session's settings under which its statement ran.

The codes are those of MySQL 9.7 (``statement_events.h``) and MariaDB 11.4 (``log_event.h``). A variable's length
follows from its code alone, so nothing after an unknown code can be parsed; the error names that code.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rowtide.connector.errors import UnsupportedEvent
from rowtide.connector.protocol.byte_reader import ByteReader

_TOO_MANY_DATABASES = 254


@dataclass(frozen=True, slots=True)
class QueryStatus:
    """Session settings; ``None`` for those that are not in the event.

    Attributes:
        flags2: SQL_AUTO_IS_NULL 0x4000, NOT AUTOCOMMIT 0x80000, NO_FOREIGN_KEY_CHECKS 1<<26, RELAXED_UNIQUE_CHECKS
            1<<27.
        sql_mode: bits of ``@@sql_mode``.
        catalog: always ``std``.
        auto_increment: increment and offset.
        charset: collation ids of character_set_client, collation_connection, collation_server.
        time_zone: ``@@time_zone``.
        lc_time_names: number of the locale.
        charset_database: collation id of the database.
        table_map_for_update: bit per table that a multi-table UPDATE changes.
        master_data_written: original size, in relay logs of version 4 servers.
        invoker: user and host of CURRENT_USER() in a statement that uses it.
        updated_databases: databases that the statement changes; empty if there are more than 16.
        microseconds: fraction of the statement's start time.
        commit_timestamp: unused since MySQL 5.7.
        explicit_defaults_for_timestamp: the variable of that name.
        xid: transaction id of a DDL statement.
        default_collation_for_utf8mb4: collation id.
        sql_require_primary_key: the variable of that name.
        default_table_encryption: the variable of that name.
        enable_cascade_triggers: the variable of that name (MySQL 9.7).
        mariadb_gtid_flags3: MariaDB: flags and, for COMMIT and ROLLBACK ALTER, the sequence number of START ALTER.
        character_set_collations: MariaDB: default collations of character sets, as pairs of collation ids.
    """

    flags2: int | None = None
    sql_mode: int | None = None
    catalog: str | None = None
    auto_increment: tuple[int, int] | None = None
    charset: tuple[int, int, int] | None = None
    time_zone: str | None = None
    lc_time_names: int | None = None
    charset_database: int | None = None
    table_map_for_update: int | None = None
    master_data_written: int | None = None
    invoker: tuple[str, str] | None = None
    updated_databases: tuple[str, ...] | None = None
    microseconds: int | None = None
    commit_timestamp: int | None = None
    explicit_defaults_for_timestamp: bool | None = None
    xid: int | None = None
    default_collation_for_utf8mb4: int | None = None
    sql_require_primary_key: bool | None = None
    default_table_encryption: bool | None = None
    enable_cascade_triggers: bool | None = None
    mariadb_gtid_flags3: tuple[int, int | None] | None = None
    character_set_collations: tuple[tuple[int, int], ...] | None = None

    @property
    def client_collation(self) -> int | None:
        """Collation id of character_set_client, the character set of the statement."""
        return self.charset[0] if self.charset else None


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")


def _terminated_catalog(reader: ByteReader) -> str:
    catalog = _text(reader.string(1))
    reader.take(1)
    return catalog


def _updated_databases(reader: ByteReader) -> tuple[str, ...]:
    count = reader.uint(1)
    return () if count == _TOO_MANY_DATABASES else tuple(_text(reader.terminated()) for _ in range(count))


def _gtid_flags3(reader: ByteReader) -> tuple[int, int | None]:
    flags = reader.uint(1)
    completes_alter = flags & (0x0004 | 0x0008)  # FL_COMMIT_ALTER_E1, FL_ROLLBACK_ALTER_E1
    return flags, reader.uint(8) if completes_alter else None


_VARIABLES: dict[int, tuple[str, Callable[[ByteReader], Any]]] = {
    0: ("flags2", lambda r: r.uint(4)),
    1: ("sql_mode", lambda r: r.uint(8)),
    2: ("catalog", _terminated_catalog),
    3: ("auto_increment", lambda r: (r.uint(2), r.uint(2))),
    4: ("charset", lambda r: (r.uint(2), r.uint(2), r.uint(2))),
    5: ("time_zone", lambda r: _text(r.string(1))),
    6: ("catalog", lambda r: _text(r.string(1))),
    7: ("lc_time_names", lambda r: r.uint(2)),
    8: ("charset_database", lambda r: r.uint(2)),
    9: ("table_map_for_update", lambda r: r.uint(8)),
    10: ("master_data_written", lambda r: r.uint(4)),
    11: ("invoker", lambda r: (_text(r.string(1)), _text(r.string(1)))),
    12: ("updated_databases", _updated_databases),
    13: ("microseconds", lambda r: r.uint(3)),
    14: ("commit_timestamp", lambda r: r.uint(8)),
    15: ("commit_timestamp", lambda r: r.uint(8)),
    16: ("explicit_defaults_for_timestamp", lambda r: bool(r.uint(1))),
    17: ("xid", lambda r: r.uint(8)),
    18: ("default_collation_for_utf8mb4", lambda r: r.uint(2)),
    19: ("sql_require_primary_key", lambda r: bool(r.uint(1))),
    20: ("default_table_encryption", lambda r: bool(r.uint(1))),
    21: ("enable_cascade_triggers", lambda r: bool(r.uint(1))),
    128: ("microseconds", lambda r: r.uint(3)),
    129: ("xid", lambda r: r.uint(8)),
    130: ("mariadb_gtid_flags3", _gtid_flags3),
    131: ("character_set_collations", lambda r: tuple((r.uint(2), r.uint(2)) for _ in range(r.uint(1)))),
}

_CACHE_LIMIT = 1024
PARSED: dict[bytes, QueryStatus] = {}
"""The settings that were parsed, by their bytes."""


def parse_query_status(block: bytes) -> QueryStatus:
    """Parse a block of status variables. A session repeats the same block, so results are cached.

    Raises:
        UnsupportedEvent: unknown code of a variable.
        TruncatedEvent: the block ends inside a variable.
    """
    status = PARSED.get(block)
    if status is None:
        status = _parse(block)
        if len(PARSED) >= _CACHE_LIMIT:
            PARSED.clear()
        PARSED[block] = status
    return status


def _parse(block: bytes) -> QueryStatus:
    reader = ByteReader(block, 0, len(block))
    fields: dict[str, Any] = {}
    while reader.remaining():
        code = reader.uint(1)
        try:
            name, read = _VARIABLES[code]
        except KeyError:
            raise UnsupportedEvent(
                f"QUERY event with unknown status variable {code}; the block is {block.hex()}"
            ) from None
        fields[name] = read(reader)
    return QueryStatus(**fields)
