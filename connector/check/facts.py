"""The facts about a server, to which the rules of the check are applied."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from rowtide.connector.config import Configuration
from rowtide.schema_history.server.query_event import Flavor
from rowtide.topics.filters import CapturedNames

VARIABLES = frozenset(
    {
        "binlog_annotate_row_events",
        "binlog_expire_logs_auto_purge",
        "binlog_expire_logs_seconds",
        "binlog_format",
        "binlog_row_image",
        "binlog_row_value_options",
        "binlog_rows_query_log_events",
        "enforce_gtid_consistency",
        "expire_logs_days",
        "gtid_mode",
        "innodb_native_foreign_keys",
        "log_bin",
        "log_replica_updates",
        "log_slave_updates",
        "rpl_semi_sync_master_enabled",
        "rpl_semi_sync_master_timeout",
        "rpl_semi_sync_source_enabled",
        "rpl_semi_sync_source_timeout",
        "server_id",
        "sql_mode",
    }
)
"""The global variables that are queried. A server has 600 to 1 100."""


@dataclass(frozen=True, slots=True)
class Replica:
    """A replica that is connected to the server.

    Attributes:
        server_id: its server id.
        host: the host name that it reports; usually empty.
        uuid: the UUID that it reports; empty if it reports none.
    """

    server_id: int
    host: str
    uuid: str = ""


@dataclass(frozen=True, slots=True)
class ColumnFact:
    """A column as information_schema describes it.

    Attributes:
        name: its name.
        column_type: its type, such as ``bigint unsigned``.
        nullable: whether it allows NULL.
        has_default: whether it has a default other than NULL that Debezium's schema includes.
        in_primary_key: whether it is part of the primary key.
    """

    name: str
    column_type: str
    nullable: bool
    has_default: bool = False
    in_primary_key: bool = False


@dataclass(frozen=True, slots=True)
class TableFact:
    """A base table that the account can see.

    Attributes:
        database: its database.
        name: its name.
        columns: its columns in order.
        rows: the server's estimate of its rows; ``None`` if it was not queried or is unknown.
        created_at: when it was created or last rebuilt, in seconds since the epoch; ``None`` if unknown.
    """

    database: str
    name: str
    columns: tuple[ColumnFact, ...] = ()
    rows: int | None = None
    created_at: int | None = None


@dataclass(frozen=True, slots=True)
class Cascade:
    """A foreign key that changes rows when other rows change.

    Attributes:
        database: the database of the table whose rows it changes.
        name: that table.
        parent: the table that it refers to, as ``database.table``.
        rules: its actions: ``ON DELETE CASCADE``, ``ON UPDATE SET NULL``, ...
    """

    database: str
    name: str
    parent: str
    rules: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """A server as its query results describe it.

    Attributes:
        version: ``VERSION()``.
        variables: those of :data:`VARIABLES` that the server has, by name in lower case.
        grants: the rows of ``SHOW GRANTS``.
        do_databases: the databases to which the server's binlog is limited (``binlog-do-db``).
        ignored_databases: the databases that its binlog omits (``binlog-ignore-db``).
        replicas: the connected replicas; ``None`` if the account may not list them.
        is_replica: whether the server is a replica itself; ``None`` if the account may not query that.
        unreadable_status: the reason why the account cannot read the binlog's position; ``None`` if it can.
        refused_heartbeat: the reason why the server refuses ``heartbeat.action.query``; ``None`` if it does not.
        refused_queries: the reasons why the server refuses queries of ``snapshot.select.statement.overrides``, by
            property.
        tables: the tables that the account can see; ``None`` if they were not queried.
        cascades: the foreign keys of these tables that change rows.
    """

    version: str
    variables: Mapping[str, str]
    grants: tuple[str, ...]
    do_databases: tuple[str, ...] = ()
    ignored_databases: tuple[str, ...] = ()
    replicas: tuple[Replica, ...] | None = None
    is_replica: bool | None = None
    unreadable_status: str | None = None
    refused_heartbeat: str | None = None
    refused_queries: Mapping[str, str] = field(default_factory=dict)
    tables: tuple[TableFact, ...] | None = field(default=None)
    cascades: tuple[Cascade, ...] = ()

    @property
    def flavor(self) -> Flavor:
        """MySQL or MariaDB, by the version."""
        return Flavor.MARIADB if "mariadb" in self.version.lower() else Flavor.MYSQL

    @property
    def release(self) -> tuple[int, int]:
        """Major and minor number of the version."""
        # MariaDB 10 used to answer "5.5.5-10.4.1-MariaDB", so that old replicas would accept it.
        match = re.match(r"(?:5\.5\.5-)?(\d+)\.(\d+)", self.version)
        return (int(match[1]), int(match[2])) if match else (0, 0)

    def value(self, name: str) -> str | None:
        """Return the value of a variable in upper case; ``None`` if the server does not have it.

        Raises:
            KeyError: the variable is not queried.
        """
        if name not in VARIABLES:
            raise KeyError(name)
        found = self.variables.get(name)
        return None if found is None else found.upper()

    @property
    def takes_zero_dates(self) -> bool:
        """Whether a session with the default ``sql_mode`` can write zero and partial dates; ``False`` if unknown."""
        sql_mode = self.value("sql_mode")
        if sql_mode is None:
            return False
        modes = set(sql_mode.split(","))
        strict = modes & {"STRICT_TRANS_TABLES", "STRICT_ALL_TABLES", "TRADITIONAL"}
        return not (strict and {"NO_ZERO_DATE", "NO_ZERO_IN_DATE"} <= modes)

    def is_on(self, name: str) -> bool:
        """Return whether a boolean variable is on."""
        return self.value(name) in ("ON", "1")


def captured_names(config: Configuration, tables: Iterable[TableFact]) -> CapturedNames:
    """Return which of these tables are captured."""
    return CapturedNames.among(config.capture.tables, ((table.database, table.name) for table in tables))
