"""The databases and tables at one position, and the effect of statements on them."""

from collections.abc import Callable
from dataclasses import replace

from rowtide.schema_history.catalog.by_table import ChangedByTable
from rowtide.schema_history.catalog.changes import StatementResult
from rowtide.schema_history.catalog.registry import TableRegistry
from rowtide.schema_history.catalog.statement_executor import StatementExecutor
from rowtide.schema_history.ddl.parser import parse
from rowtide.schema_history.errors import SchemaHistoryError, UnparsedStatement
from rowtide.schema_history.model import Table, TableId
from rowtide.schema_history.server.query_event import QueryEvent, Server
from rowtide.schema_history.structure.context import context_of, statement_text
from rowtide.schema_history.structure.show_create import show_create


class Tables(TableRegistry):
    """All databases and tables at one position; ``apply`` moves them past one statement."""

    def apply(self, event: QueryEvent) -> StatementResult:
        """Apply one statement of the binlog or of a history.

        Raises:
            UnparsedStatement: the statement cannot be parsed; nothing is changed.
            InconsistentDdl: the statement does not match the tables; nothing is changed.
        """
        if not event.effective:
            return StatementResult("part of an alter table")
        ctx = context_of(event, self.server)
        sql = statement_text(event, self.server.flavor)
        try:
            statement = parse(sql, ctx.dialect)
        except UnparsedStatement as problem:
            if problem.position or not event.position:
                raise
            raise UnparsedStatement(problem.statement, problem.reason, problem.offset, event.position) from None
        return StatementExecutor(self, event, ctx, statement, sql).run()

    def before(
        self, result: StatementResult, server: Server, visible: Callable[[TableId], bool] | None = None
    ) -> "Tables":
        """Return the state before the last statement, with another server's settings; valid until these tables change.

        Args:
            result: the result of the last statement.
            server: the settings of the copy.
            visible: returns which tables are included; ``None`` for all.
        """
        other = Tables(server)
        other.temporary, other.variables = dict(self.temporary), dict(self.variables)
        other._databases = dict(self._databases)
        # Every statement is tested on this state, and copies of 100 000 names would take longer than the statement.
        other._tables, other._deferred = ChangedByTable(self._tables, visible), ChangedByTable(self._deferred, visible)
        for table_id, _ in result.altered:
            other.remove(table_id)
        for table_id, table in result.before:
            if table is not None and (visible is None or visible(table_id)):
                other.put(table)
        if result.databases_before is not None:
            other.put_databases(result.databases_before)
        return other

    def copy(self) -> "Tables":
        """Return an independent copy; cheap, since the tables themselves are shared."""
        other = Tables(self.server)
        other.temporary = dict(self.temporary)
        other.variables = dict(self.variables)
        other._tables = self._tables.copy()
        other._deferred = self._deferred.copy()
        other._databases = dict(self._databases)
        return other


def as_described_by_snapshot(table: Table, server: Server) -> Table:
    """Return the same table with the Debezium description that a snapshot gives it.

    Debezium derives a description from the text that it reads: from the statements of the stream, or from SHOW CREATE
    TABLE in a snapshot, where the server has replaced synonyms and abbreviations (``BOOL`` is ``tinyint(1)``). A stream
    that starts at an offset follows a snapshot, so the descriptions of its tables must be those of a snapshot.

    Args:
        table: the table as built by its statements.
        server: determines the syntax of SHOW CREATE TABLE.
    """
    tables = Tables(server)
    # SHOW CREATE TABLE does not depend on the sql_mode of the session that created the table.
    event = QueryEvent(show_create(table, server), database=table.id.database, sql_mode=0, position="")
    try:
        tables.apply(event)
    except SchemaHistoryError:
        return table
    found = tables.table(table.id.database, table.id.table)
    if found is None or len(found.columns) != len(table.columns):
        return table
    columns = tuple(
        replace(column, debezium=printed.debezium) for column, printed in zip(table.columns, found.columns, strict=True)
    )
    return replace(table, columns=columns, debezium=found.debezium)
