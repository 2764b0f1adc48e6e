"""All databases and tables that are known at one position, and the one way to change them: a statement."""

from collections.abc import Iterator

from rowtide.schema_history.changes import Applied
from rowtide.schema_history.model import Database, Table, TableId
from rowtide.schema_history.query import QueryEvent, Server


class Tables:
    """The catalog. Values in it are immutable; ``copy`` is cheap."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._tables: dict[tuple[str, str], Table] = {}
        self._databases: dict[str, Database] = {}

    def apply(self, event: QueryEvent) -> Applied:
        """Apply one statement.

        Raises:
            UnparsedDdlError: the statement is not understood; nothing is changed.
            InconsistentDdlError: it speaks of something that is not known; nothing is changed.
        """
        raise NotImplementedError(event)

    def table(self, database: str, name: str) -> Table | None:
        """The table of that name, or ``None``."""
        return self._tables.get(self._key(database, name))

    def put(self, table: Table) -> None:
        """Add or replace a table (from a snapshot, a history record, or a repair)."""
        self._tables[self._key(table.id.database, table.id.table)] = table

    def remove(self, table_id: TableId) -> Table | None:
        """Forget a table; returns it if it was known."""
        return self._tables.pop(self._key(table_id.database, table_id.table), None)

    def database(self, name: str) -> Database | None:
        """The database of that name, or ``None``."""
        return self._databases.get(self._name_key(name))

    def put_database(self, database: Database) -> None:
        """Add or replace a database."""
        self._databases[self._name_key(database.name)] = database

    def remove_database(self, name: str) -> None:
        """Forget a database and its tables."""
        key = self._name_key(name)
        self._databases.pop(key, None)
        for table_key in [k for k in self._tables if k[0] == key]:
            del self._tables[table_key]

    def databases(self) -> Iterator[Database]:
        """All databases, in the order of their making."""
        return iter(self._databases.values())

    def __iter__(self) -> Iterator[Table]:
        return iter(self._tables.values())

    def __len__(self) -> int:
        return len(self._tables)

    def copy(self) -> "Tables":
        """An independent copy."""
        other = Tables(self.server)
        other._tables = dict(self._tables)
        other._databases = dict(self._databases)
        return other

    def _name_key(self, name: str) -> str:
        return name.lower() if self.server.lower_case_table_names else name

    def _key(self, database: str, name: str) -> tuple[str, str]:
        if self.server.lower_case_table_names:
            return database.lower(), name.lower()
        return database, name
