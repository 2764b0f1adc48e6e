"""A statement as the binlog carries it: the Query event, with everything in it that decides what the statement does."""

from dataclasses import dataclass, field
from enum import Enum


class Flavor(Enum):
    """Which of the two servers."""

    MYSQL = "mysql"
    MARIADB = "mariadb"


@dataclass(frozen=True, slots=True)
class Server:
    """What must be known of the server beside its binlog.

    Attributes:
        flavor: MySQL or MariaDB.
        version: as ``SELECT version()`` says, e.g. ``8.4.3`` or ``11.4.5-MariaDB-log``.
        lower_case_table_names: 0 names as written, 1 stored in lower case, 2 compared in lower case.
        collation: ``collation_server``, for databases made without a character set when the event does not tell.
        explicit_defaults_for_timestamp: used if an event does not say.
    """

    flavor: Flavor
    version: str = ""
    lower_case_table_names: int = 0
    collation: str = ""
    explicit_defaults_for_timestamp: bool = True

    @property
    def version_number(self) -> int:
        """The version as executable comments write it: 8.0.23 is 80023, 11.4.5 is 110405."""
        parts = [
            int("".join(c for c in part if c.isdigit()) or 0) for part in self.version.split("-")[0].split(".")[:3]
        ]
        parts += [0] * (3 - len(parts))
        if not self.version:
            return 90700 if self.flavor is Flavor.MYSQL else 110405
        return parts[0] * 10000 + parts[1] * 100 + parts[2]


@dataclass(frozen=True, slots=True)
class QueryEvent:
    """One statement of the binlog.

    Attributes:
        sql: the text; bytes are decoded by the client character set of ``charset``.
        database: the default database of the event, ``""`` if none.
        sql_mode: bit mask of the event, ``None`` if it has none.
        charset: collation ids (client, connection, server) of the event, ``None`` if it has none.
        flags2: status variable Q_FLAGS2, ``None`` if absent.
        explicit_defaults_for_timestamp: MySQL's status variable, ``None`` if absent.
        default_collation_for_utf8mb4: MySQL's status variable (collation id), ``None`` if absent.
        character_set_collations: MariaDB's pairs (character set's default collation id, its replacement).
        charset_database: collation id of the database, if the event has it.
        thread_specific: LOG_EVENT_THREAD_SPECIFIC, set for statements on temporary tables.
        thread_id: the session, which owns temporary tables.
        error_code: the error with which the statement ended on the server, 0 if none.
        position: where the event stands, for messages.
        effective: false if it changes nothing: the first part of an ALTER that MariaDB logs in two
            (``binlog_alter_two_phase``), and the second part of one that it gave up.
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
    error_code: int = 0
    position: str = ""
    effective: bool = True
