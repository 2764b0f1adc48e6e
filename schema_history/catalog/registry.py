"""The databases and tables at one position, by name."""

from collections.abc import Callable, Iterable, Iterator

from rowtide.schema_history.catalog.by_table import ByTable, ChangedByTable
from rowtide.schema_history.ddl.statements import TableOptions
from rowtide.schema_history.model import Database, Table, TableId
from rowtide.schema_history.server import charsets
from rowtide.schema_history.server.query_event import Server
from rowtide.schema_history.structure.context import Context

_Build = Callable[[], Table | None]


class TableRegistry:
    """Databases and tables by name; tables are immutable.

    Attributes:
        server: the server of the tables.
        temporary: temporary tables by session and name, ``None`` if the structure is not known; they occur in the
            binlog with ``binlog_format=STATEMENT``.
        variables: server variables in Debezium's histories (``character_set_server``).
        changes: how many times a table was added, replaced or removed; cached data of tables is valid until it changes.
    """

    def __init__(self, server: Server) -> None:
        self.server = server
        self.temporary: dict[tuple[int, TableId], Table | None] = {}
        self.variables: dict[str, str] = {}
        self.changes = 0
        self._tables: ByTable[Table] | ChangedByTable[Table] = ByTable()
        self._deferred: ByTable[_Build] | ChangedByTable[_Build] = ByTable()
        self._databases: dict[str, Database] = {}

    def table(self, database: str, name: str) -> Table | None:
        """Return the table of that name, or ``None``."""
        key = self._key(database, name)
        found = self._tables.get(key)
        return self._build_deferred(key) if found is None and key in self._deferred else found

    def table_id(self, database: str, name: str) -> TableId:
        """Return the identifier of a table for a name as written in statements."""
        return TableId(
            *((database.lower(), name.lower()) if self.server.lower_case_table_names == 1 else (database, name))
        )

    def exists(self, database: str, name: str) -> bool:
        """Return whether a table of that name exists."""
        key = self._key(database, name)
        return key in self._tables or key in self._deferred

    def put(self, table: Table) -> None:
        """Add or replace a table (from a snapshot, a history record, or a repair)."""
        key = self._key(table.id.database, table.id.table)
        self.changes += 1
        self._tables[key] = table
        self._deferred.pop(key, None)

    def defer(self, table_id: TableId, build: _Build) -> None:
        """Add or replace a table that ``build`` creates on first access; there is no table if it returns ``None``."""
        key = self._key(table_id.database, table_id.table)
        self.changes += 1
        self._tables.pop(key, None)
        self._deferred[key] = build

    def _build_deferred(self, key: TableId) -> Table | None:
        table = self._deferred.pop(key)()
        if table is not None:
            self._tables[key] = table
        return table

    def remove(self, table_id: TableId) -> None:
        """Remove a table, if it is known."""
        key = self._key(table_id.database, table_id.table)
        self.changes += 1
        self._tables.pop(key, None)
        self._deferred.pop(key, None)

    def names_of(self, database: str) -> list[TableId]:
        """Return the names of a database's tables."""
        key = self._name_key(database)
        return [*self._tables.of(key), *self._deferred.of(key)]

    def names(self) -> list[TableId]:
        """Return the names of all tables."""
        return [*self._tables, *self._deferred]

    def database(self, name: str) -> Database | None:
        """Return the database of that name, or ``None``."""
        return self._databases.get(self._name_key(name))

    def put_database(self, database: Database) -> None:
        """Add or replace a database."""
        self._databases[self._name_key(database.name)] = database

    def put_databases(self, databases: Iterable[Database]) -> None:
        """Replace all databases; tables stay."""
        self._databases = {self._name_key(database.name): database for database in databases}

    def remove_database(self, name: str) -> None:
        """Remove a database and its tables."""
        key = self._name_key(name)
        self._databases.pop(key, None)
        for table_id in self.names_of(key):
            self.remove(table_id)

    def databases(self) -> Iterator[Database]:
        """Return all databases in order of creation."""
        return iter(self._databases.values())

    def __iter__(self) -> Iterator[Table]:
        for key in list(self._deferred):
            self._build_deferred(key)
        return iter(self._tables.values())

    def __len__(self) -> int:
        return len(self._tables) + len(self._deferred)

    def set_variables(self, variables: tuple[tuple[str, str], ...]) -> None:
        """Store server variables of a history."""
        for name, value in variables:
            self.variables[name] = value.strip("'\"")

    def debezium_charset(self, database: str) -> str | None:
        """Return the character set that Debezium assumes for new tables of a database."""
        known = self.database(database)
        if known is not None and known.debezium_charset is not None:
            return known.debezium_charset
        given = self.variables.get("character_set_server")
        if given is not None:
            return given
        return charsets.charset_of(self.server.collation) if self.server.collation else None

    def debezium_charset_after(self, options: TableOptions, known: Database | None, ctx: Context) -> str | None:
        """Return the character set that Debezium assumes for a database after CREATE or ALTER DATABASE.

        A collation without a character set counts only the first time.
        """
        before = known.debezium_charset if known is not None else None
        if options.charset == "":
            return before if ctx.mariadb else self.variables.get("character_set_server")
        if options.charset is not None:
            return options.charset
        if options.collation and before is None and not ctx.mariadb:
            named = charsets.known_collation(options.collation, None, ctx.flavor)
            return charsets.charset_of(named) if named else None
        return before

    def _name_key(self, name: str) -> str:
        return name.lower() if self.server.lower_case_table_names else name

    def _key(self, database: str, name: str) -> TableId:
        if self.server.lower_case_table_names:
            return TableId(database.lower(), name.lower())
        return TableId(database, name)
