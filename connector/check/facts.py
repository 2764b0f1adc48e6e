"""What is known of a server before the connector starts: plain values, for the rules to judge."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from rowtide.connector.config.catalogue.property import Flavor


@dataclass(frozen=True, slots=True)
class Replica:
    """A replica that is connected to the server."""

    server_id: int
    host: str


@dataclass(frozen=True, slots=True)
class ColumnFact:
    """A column as information_schema has it."""

    name: str
    column_type: str
    nullable: bool


@dataclass(frozen=True, slots=True)
class TableFact:
    """A base table that the account can see."""

    database: str
    name: str
    columns: tuple[ColumnFact, ...] = ()


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """A server as its own answers describe it.

    Attributes:
        version: ``VERSION()``.
        variables: global variables, names in lower case; one that the server does not have is missing.
        grants: the rows of ``SHOW GRANTS``.
        do_databases: the databases that the server's binlog is limited to (``binlog-do-db``).
        ignored_databases: those it leaves out (``binlog-ignore-db``).
        replicas: who reads its binlog now; ``None`` if the account may not ask.
        is_replica: whether it is itself a replica; ``None`` if the account may not ask.
        unreadable_status: why the binlog's position cannot be read, if so.
        tables: what the account can see of the databases that are captured; ``None`` if not looked at.
    """

    version: str
    variables: Mapping[str, str]
    grants: tuple[str, ...]
    do_databases: tuple[str, ...] = ()
    ignored_databases: tuple[str, ...] = ()
    replicas: tuple[Replica, ...] | None = None
    is_replica: bool | None = None
    unreadable_status: str | None = None
    tables: tuple[TableFact, ...] | None = field(default=None)

    @property
    def flavor(self) -> Flavor:
        """What kind of server it is, by its version."""
        return Flavor.MARIADB if "mariadb" in self.version.lower() else Flavor.MYSQL

    @property
    def release(self) -> tuple[int, int]:
        """Major and minor number of the version."""
        # MariaDB 10 used to answer "5.5.5-10.4.1-MariaDB", so that old replicas would accept it.
        match = re.match(r"(?:5\.5\.5-)?(\d+)\.(\d+)", self.version)
        return (int(match[1]), int(match[2])) if match else (0, 0)

    def value(self, name: str) -> str | None:
        """A variable's value in capitals, or ``None``."""
        found = self.variables.get(name)
        return None if found is None else found.upper()

    @property
    def takes_zero_dates(self) -> bool:
        """Whether a session that changes nothing can write zero and partial dates; ``False`` if it is not known."""
        sql_mode = self.value("sql_mode")
        if sql_mode is None:
            return False
        modes = set(sql_mode.split(","))
        strict = modes & {"STRICT_TRANS_TABLES", "STRICT_ALL_TABLES", "TRADITIONAL"}
        return not (strict and {"NO_ZERO_DATE", "NO_ZERO_IN_DATE"} <= modes)

    def is_on(self, name: str) -> bool:
        """Whether a switch is on."""
        return self.value(name) in ("ON", "1")
