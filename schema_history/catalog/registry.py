"""All databases and tables that are known at one position, by name. Knows no statements."""

from collections.abc import Callable, Iterable, Iterator

from rowtide.schema_history.ddl.statements import TableOptions
from rowtide.schema_history.model import Database, Table, TableId
from rowtide.schema_history.server import charsets
from rowtide.schema_history.server.query_event import Server
from rowtide.schema_history.structure.context import Context


class TableRegistry:
    """Databases and tables; the values are immutable, so a copy shares them.

    Attributes:
        server: whose tables they are.
        temporary: temporary tables by session and name; statements name them under STATEMENT format.
        variables: server variables of Debezium's histories (``character_set_server``).
    """

    def __init__(self, server: Server) -> None:
        self.server = server
        self.temporary: dict[tuple[int, TableId], Table] = {}
        self.variables: dict[str, str] = {}
        self._tables: dict[TableId, Table] = {}
        self._deferred: dict[TableId, Callable[[], Table | None]] = {}
        self._databases: dict[str, Database] = {}

    def table(self, database: str, name: str) -> Table | None:
        """The table of that name, or ``None``."""
        key = self._key(database, name)
        found = self._tables.get(key)
        return self._made(key) if found is None and key in self._deferred else found

    def put(self, table: Table) -> None:
        """Add or replace a table (from a snapshot, a history record, or a repair)."""
        key = self._key(table.id.database, table.id.table)
        self._tables[key] = table
        self._deferred.pop(key, None)

    def defer(self, table_id: TableId, make: Callable[[], Table | None]) -> None:
        """Add or replace a table that is made when it is first asked for; ``None`` of ``make``: there is none."""
        key = self._key(table_id.database, table_id.table)
        self._tables.pop(key, None)
        self._deferred[key] = make

    def _made(self, key: TableId) -> Table | None:
        table = self._deferred.pop(key)()
        if table is not None:
            self._tables[key] = table
        return table

    def remove(self, table_id: TableId) -> None:
        """Forget a table, if it is known."""
        key = self._key(table_id.database, table_id.table)
        self._tables.pop(key, None)
        self._deferred.pop(key, None)

    def names_of(self, database: str) -> list[TableId]:
        """The names of a database's tables."""
        key = self._name_key(database)
        return [table_id for known in (self._tables, self._deferred) for table_id in known if table_id.database == key]

    def names(self) -> list[TableId]:
        """The names of all tables."""
        return [*self._tables, *self._deferred]

    def database(self, name: str) -> Database | None:
        """The database of that name, or ``None``."""
        return self._databases.get(self._name_key(name))

    def put_database(self, database: Database) -> None:
        """Add or replace a database."""
        self._databases[self._name_key(database.name)] = database

    def put_databases(self, databases: Iterable[Database]) -> None:
        """Let these be all databases; tables stay."""
        self._databases = {self._name_key(database.name): database for database in databases}

    def remove_database(self, name: str) -> None:
        """Forget a database and its tables."""
        key = self._name_key(name)
        self._databases.pop(key, None)
        for table_id in self.names_of(key):
            self.remove(table_id)

    def databases(self) -> Iterator[Database]:
        """All databases, in the order of their making."""
        return iter(self._databases.values())

    def __iter__(self) -> Iterator[Table]:
        for key in list(self._deferred):
            self._made(key)
        return iter(self._tables.values())

    def __len__(self) -> int:
        return len(self._tables) + len(self._deferred)

    def set_variables(self, variables: tuple[tuple[str, str], ...]) -> None:
        """Keep server variables as a history gives them."""
        for name, value in variables:
            self.variables[name] = value.strip("'\"")

    def debezium_charset(self, database: str) -> str | None:
        """The character set of a database's new tables as Debezium tracks it."""
        known = self.database(database)
        if known is not None and known.debezium_charset is not None:
            return known.debezium_charset
        given = self.variables.get("character_set_server")
        if given is not None:
            return given
        return charsets.charset_of(self.server.collation) if self.server.collation else None

    def debezium_charset_after(self, options: TableOptions, known: Database | None, ctx: Context) -> str | None:
        """Debezium's character set of a database after CREATE or ALTER DATABASE: a collation alone counts once."""
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
