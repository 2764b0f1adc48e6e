"""The Query event: a statement in the binlog, with everything that determines its effect."""

from dataclasses import dataclass, field
from enum import StrEnum


class Flavor(StrEnum):
    """The kind of server, which also selects the Debezium connector that rowtide is compatible with."""

    MYSQL = "mysql"
    MARIADB = "mariadb"


@dataclass(frozen=True, slots=True)
class Server:
    """The properties of a server that its binlog does not contain.

    Attributes:
        flavor: MySQL or MariaDB.
        version: result of ``SELECT version()``, for example ``8.4.3`` or ``11.4.5-MariaDB-log``.
        lower_case_table_names: 0: names as written, 1: stored in lower case, 2: compared in lower case.
        collation: ``collation_server``, the default of new databases, if the event does not have it.
        explicit_defaults_for_timestamp: its setting, if the event does not have it.
    """

    flavor: Flavor
    version: str = ""
    lower_case_table_names: int = 0
    collation: str = ""
    explicit_defaults_for_timestamp: bool = True

    @property
    def version_number(self) -> int:
        """The version in the form of executable comments: 80023 for 8.0.23, 110405 for 11.4.5."""
        parts = [
            int("".join(c for c in part if c.isdigit()) or 0) for part in self.version.split("-")[0].split(".")[:3]
        ]
        parts += [0] * (3 - len(parts))
        if not self.version:
            return 90700 if self.flavor is Flavor.MYSQL else 110405
        return parts[0] * 10000 + parts[1] * 100 + parts[2]


@dataclass(frozen=True, slots=True)
class QueryEvent:
    """A statement in the binlog.

    Attributes:
        sql: its text; bytes are in the client character set of ``charset``.
        database: the default database of the event, ``""`` if none.
        sql_mode: bit mask of the event, ``None`` if it has none.
        charset: collation ids (client, connection, server) of the event, ``None`` if it has none.
        flags2: status variable Q_FLAGS2, ``None`` if absent.
        explicit_defaults_for_timestamp: MySQL's status variable, ``None`` if absent.
        default_collation_for_utf8mb4: MySQL's status variable (collation id), ``None`` if absent.
        character_set_collations: MariaDB's pairs (character set's default collation id, its replacement).
        charset_database: collation id of the database, if the event has it.
        thread_specific: LOG_EVENT_THREAD_SPECIFIC, set for statements on temporary tables.
        thread_id: id of the session, which owns temporary tables.
        xid: transaction id of a DDL statement on a table of InnoDB (MySQL 8.0), ``None`` if absent.
        error_code: error of the statement on the server, 0 if none.
        position: position of the event, for messages.
        effective: false if it changes nothing: the first part of an ALTER that MariaDB logs in two parts
            (``binlog_alter_two_phase``), and the second part if the ALTER failed.
    """

    sql: str | bytes
    database: str = ""
    sql_mode: int | None = None
    charset: tuple[int, int, int] | None = None
    flags2: int | None = None
    explicit_defaults_for_timestamp: bool | None = None
    default_collation_for_utf8mb4: int | None = None
    character_set_collations: tuple[tuple[int, int], ...] = field(default=())
    charset_database: int | None = None
    thread_specific: bool = False
    thread_id: int = 0
    xid: int | None = None
    error_code: int = 0
    position: str = ""
    effective: bool = True
