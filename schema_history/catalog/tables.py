"""The catalog and the one way to change it: a statement of the binlog or of a history."""

from rowtide.schema_history.catalog.catalog import Catalog
from rowtide.schema_history.catalog.changes import Applied
from rowtide.schema_history.catalog.execution import Execution
from rowtide.schema_history.ddl.parser import parse
from rowtide.schema_history.errors import UnparsedDdl
from rowtide.schema_history.server.query_event import QueryEvent, Server
from rowtide.schema_history.structure.context import context_of, statement_text


class Tables(Catalog):
    """All databases and tables at one position; ``apply`` moves it past one statement."""

    def apply(self, event: QueryEvent) -> Applied:
        """Apply one statement.

        Raises:
            UnparsedDdl: the statement is not understood; nothing is changed.
            InconsistentDdl: it does not fit what is known; nothing is changed.
        """
        if not event.effective:
            return Applied("part of an alter table")
        ctx = context_of(event, self.server)
        sql = statement_text(event, self.server.flavor)
        try:
            statement = parse(sql, ctx.dialect)
        except UnparsedDdl as problem:
            if problem.position or not event.position:
                raise
            raise UnparsedDdl(problem.statement, problem.reason, problem.offset, event.position) from None
        return Execution(self, event, ctx, statement, sql).run()

    def before(self, applied: Applied, server: Server) -> "Tables":
        """An independent copy as it was before the last statement, for trials, under a server's settings."""
        other = self.copy()
        other.server = server
        for table_id, _ in applied.altered:
            other.remove(table_id)
        for _, table in applied.before:
            if table is not None:
                other.put(table)
        if applied.databases_before is not None:
            other.put_databases(applied.databases_before)
        return other

    def copy(self) -> "Tables":
        """An independent copy; cheap, since the values are shared."""
        other = Tables(self.server)
        other.temporary = dict(self.temporary)
        other.variables = dict(self.variables)
        other._tables = dict(self._tables)
        other._deferred = dict(self._deferred)
        other._databases = dict(self._databases)
        return other
