"""Applies one statement to the tables: creates, changes and drops tables and databases, and collects the changes.

Changes are staged and applied at the end, so that a statement that fails changes nothing.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from rowtide.schema_history.catalog.changes import ChangeKind, SchemaChange, StatementResult
from rowtide.schema_history.catalog.registry import TableRegistry
from rowtide.schema_history.ddl.statements import AddKey as AddKeyAction
from rowtide.schema_history.ddl.statements import (
    AlterDatabase,
    AlterSequence,
    AlterTable,
    ChangeColumn,
    CreateDatabase,
    CreateIndex,
    CreateSequence,
    CreateTable,
    CreateTableLike,
    DropColumn,
    DropDatabase,
    DropIndex,
    DropKey,
    DropTable,
    ExchangePartition,
    NoStructure,
    RenameColumn,
    RenameTable,
    RenameTo,
    SetVariables,
    Statement,
    TableName,
    TruncateTable,
    Use,
)
from rowtide.schema_history.debezium_form.apply import (
    apply_alter_table,
    apply_create_index,
    apply_create_like,
    apply_create_table,
)
from rowtide.schema_history.debezium_form.normalizer import normalized
from rowtide.schema_history.errors import InconsistentDdl, UncertainDdl
from rowtide.schema_history.model import Constraint, Database, Table, TableId
from rowtide.schema_history.server import charsets
from rowtide.schema_history.server.charsets import unicode_text
from rowtide.schema_history.server.query_event import QueryEvent
from rowtide.schema_history.structure.alter import alter
from rowtide.schema_history.structure.context import Context
from rowtide.schema_history.structure.keys import reprinted
from rowtide.schema_history.structure.tables import alter_sequence, build_sequence, build_table, charset_and_collation

_ATOMIC_DDL = 80_000
"""The first version of MySQL whose DDL on tables of InnoDB is atomic."""
_ENGINE = re.compile(r"ENGINE", re.IGNORECASE)
_SESSION_ID = re.compile(r"CONNECTION_ID", re.IGNORECASE)


class StatementExecutor:
    """The execution of one statement."""

    def __init__(self, catalog: TableRegistry, event: QueryEvent, ctx: Context, statement: Statement, sql: str) -> None:
        self.catalog = catalog
        self.event = event
        self.ctx = ctx
        self.statement = statement
        self.sql = sql
        self.staged: dict[TableId, Table | None] = {}
        self.temporary: list[TableId] = []
        self.renamed_columns: list[tuple[TableId, str, str]] = []
        self.dropped_columns: list[tuple[TableId, str]] = []
        self.made_by_query: TableId | None = None
        self.changes: list[tuple[ChangeKind, str, str, TableId | None, TableId | None]] = []

    def run(self) -> StatementResult:
        """Apply the statement.

        Raises:
            InconsistentDdl: the statement does not match the known tables; nothing is changed.
        """
        body = self.statement.body
        what = body.what if isinstance(body, NoStructure) else _HANDLERS[type(body)][0]
        about_databases = isinstance(body, CreateDatabase | AlterDatabase | DropDatabase)
        databases = tuple(self.catalog.databases()) if about_databases else None
        try:
            if not isinstance(body, NoStructure):
                _HANDLERS[type(body)][1](self, body)
        except LookupError as problem:
            raise self._inconsistent(str(problem.args[0] if problem.args else problem)) from problem
        except (ArithmeticError, ValueError) as problem:  # of numbers with thousands of digits, which no server accepts
            raise self._inconsistent(f"a number is too large ({type(problem).__name__})") from problem
        before = tuple((table_id, self.catalog.table(table_id.database, table_id.table)) for table_id in self.staged)
        for table_id, table in self.staged.items():
            if table is None:
                self.catalog.remove(table_id)
            else:
                self.catalog.put(table)
        return StatementResult(
            what,
            self._reported(what),
            tuple(self.staged.items()),
            before,
            databases,
            tuple(self.temporary),
            tuple(self.renamed_columns),
            tuple(self.dropped_columns),
            self.made_by_query,
        )

    # ------------------------------------------------------------ names

    def _inconsistent(self, reason: str) -> InconsistentDdl:
        return InconsistentDdl(self.sql, reason, self.event.position)

    def _id(self, name: TableName) -> TableId:
        return self.catalog.table_id(name.database if name.database is not None else self.ctx.database, name.table)

    def _table(self, table_id: TableId) -> Table | None:
        if table_id in self.staged:
            return self.staged[table_id]
        return self.catalog.table(table_id.database, table_id.table)

    def _is_temporary(self, table_id: TableId) -> bool:
        return self.event.thread_specific and (self.event.thread_id, table_id) in self.catalog.temporary

    def _is_older_temporary(self, table: Table) -> bool:
        """Return whether a statement alters a temporary table with a table's name whose creation is not known.

        Both servers mark the statement, but also one of a procedure that has used another temporary table before, or
        with CONNECTION_ID(). MySQL logs it with the id of a transaction if it concerns a table that is and stays one of
        InnoDB.

        Raises:
            UncertainDdl: the event does not show which table it is.
        """
        if not self.event.thread_specific:
            return False
        if not self.ctx.mariadb:
            atomic = self.ctx.server.version_number >= _ATOMIC_DDL and table.engine.upper() in ("", "INNODB")
            return atomic and self.event.xid is None and not _ENGINE.search(self.sql)
        defaults = (column.default or "" for column in table.columns)
        if not any(_SESSION_ID.search(text) for text in (self.sql, *defaults)):
            raise UncertainDdl(self.sql, f"its session may have had one called {table.id}", 0, self.event.position)
        return False

    def _temporary(self, table_id: TableId) -> Table | None:
        """Return the temporary table; ``None`` also stands for an unknown structure."""
        return self.catalog.temporary.get((self.event.thread_id, table_id)) if self.event.thread_specific else None

    def _set_temporary(self, table_id: TableId, table: Table | None) -> None:
        self.temporary.append(table_id)
        self.catalog.temporary[self.event.thread_id, table_id] = table

    def _drop_temporary(self, table_id: TableId) -> None:
        self.temporary.append(table_id)
        self.catalog.temporary.pop((self.event.thread_id, table_id), None)

    def _report(
        self, kind: ChangeKind, text: str, table_id: TableId | None, previous: TableId | None = None, database: str = ""
    ) -> None:
        self.changes.append((kind, table_id.database if table_id else database, text, table_id, previous))

    def _reported(self, what: str) -> tuple[SchemaChange, ...]:
        if not self.changes:
            if isinstance(self.statement.body, NoStructure) and what == "empty":
                return ()
            return (SchemaChange(ChangeKind.DATABASE, self.ctx.database, unicode_text(self.sql.strip())),)
        named: dict[str, list[TableId]] = {}
        for _, database, _, table_id, _ in self.changes:
            if table_id is not None and table_id not in named.setdefault(database, []):
                named[database].append(table_id)
        result = []
        for kind, database, text, table_id, previous in self.changes:
            table = self._table(table_id) if table_id is not None and kind is not ChangeKind.DROP else None
            tables = tuple(named.get(database, ()))
            ddl = unicode_text(normalized(text, self.ctx))
            result.append(SchemaChange(kind, database, ddl, table_id, previous, table, tables))
        return tuple(result)

    # ------------------------------------------------------------ tables

    def create_table(self, body: CreateTable) -> None:
        """CREATE TABLE."""
        table_id = self._id(body.name)
        if self._creation_failed(table_id, body):
            return
        known = None if body.temporary else self._table(table_id)
        if known is not None and body.if_not_exists and not body.or_replace:
            return
        if body.temporary:
            if not (body.if_not_exists and self._is_temporary(table_id)):
                self._set_temporary(table_id, None if body.query else self._built(body, table_id))
            return
        if body.query:
            self.made_by_query = table_id
            self.staged[table_id] = None
            self._report(ChangeKind.DROP, self.statement.text, table_id)
            return
        self.staged[table_id] = self._built(body, table_id)
        self._report(ChangeKind.CREATE, self.statement.text, table_id)

    def _creation_failed(self, table_id: TableId, body: CreateTable | CreateTableLike) -> bool:
        """Return whether the server failed to create the table; CREATE OR REPLACE has then dropped the old table."""
        if self.event.error_code and body.or_replace:
            if body.temporary:
                self._drop_temporary(table_id)
            elif self._table(table_id) is not None:
                self.staged[table_id] = None
        return bool(self.event.error_code)

    def _built(self, body: CreateTable, table_id: TableId) -> Table:
        database = self.catalog.database(table_id.database)
        table = build_table(body, table_id, database, self.ctx)
        charset = self.catalog.debezium_charset(table_id.database) or charsets.charset_of(self.ctx.server_collation)
        return apply_create_table(table, body, charset, self.ctx)

    def create_like(self, body: CreateTableLike) -> None:
        """CREATE TABLE ... LIKE."""
        table_id, like = self._id(body.name), self._id(body.like)
        if self._creation_failed(table_id, body):
            return
        if body.temporary and body.if_not_exists and self._is_temporary(table_id):
            return
        if not body.temporary and body.if_not_exists and self._table(table_id) is not None:
            return
        source = self._temporary(like) if self._is_temporary(like) else self._table(like)
        if source is None:  # the new one is not known either, as in Debezium
            if body.temporary:
                self._set_temporary(table_id, None)
            else:
                self.staged[table_id] = None
            return
        constraints = tuple(
            Constraint(_renamed_check(c.name, like.table, table_id.table), c.kind, c.columns)
            for c in source.constraints
            if c.kind != "foreign"
        )
        indexes = tuple(reprinted(index, source.columns) for index in source.indexes)
        table = apply_create_like(replace(source, id=table_id, constraints=constraints, indexes=indexes))
        if body.temporary:
            self._set_temporary(table_id, table)
            return
        self.staged[table_id] = table
        self._report(ChangeKind.CREATE, self.statement.text, table_id)

    def alter_table(self, body: AlterTable) -> None:
        """ALTER TABLE."""
        table_id = self._id(body.name)
        is_temporary = self._is_temporary(table_id)
        table = self._temporary(table_id) if is_temporary else self._table(table_id)
        names = [self._id(action.name) for action in body.actions if isinstance(action, RenameTo)]
        if table is not None and not is_temporary and self._is_older_temporary(table):
            is_temporary, table = True, None
        if table is None and is_temporary:
            self._drop_temporary(table_id)
            self._set_temporary(names[-1] if names else table_id, None)
            return
        if table is None:
            for new_id in () if body.if_exists else names[-1:]:  # as in rename_table
                self.staged[new_id] = None
                self._report(ChangeKind.ALTER, self.statement.text, new_id, table_id)
            return
        table_id, new_id = table.id, names[-1] if names else table.id
        self._exchange(body, table)
        # CONVERT TO CHARACTER SET DEFAULT uses the table's database, in MySQL that of the session.
        database = self.catalog.database(table_id.database if self.ctx.mariadb else self.ctx.database)
        altered = alter(table, body.actions, self.ctx, database)
        altered = apply_alter_table(table, altered, body, self.ctx).renamed(new_id)
        if is_temporary:
            self._drop_temporary(table_id)
            self._set_temporary(new_id, altered)
            return
        self.staged |= {table_id: None, new_id: altered}
        self.renamed_columns += [(new_id, *names) for names in _renamed_columns(table, body)]
        self.dropped_columns += [(new_id, one.name) for one in body.actions if isinstance(one, DropColumn)]
        self._report(ChangeKind.ALTER, self.statement.text, new_id)

    def _exchange(self, body: AlterTable, table: Table) -> None:
        for action in body.actions:
            if isinstance(action, ExchangePartition):
                other = self._id(action.table)
                if action.makes:
                    self.staged[other] = replace(table, id=other)
                elif action.consumes:
                    self.staged[other] = None
                elif (known := self._table(other)) is not None:  # its structure stays, and its rows are others
                    self.staged[known.id] = known

    def create_index(self, body: CreateIndex) -> None:
        """CREATE INDEX."""
        actions: list[Any] = [AddKeyAction(body.definition)]
        if body.or_replace and body.definition.name:
            actions.insert(0, DropKey("index", body.definition.name, if_exists=True))
        self._alter_keys(body.table, actions, body)

    def drop_index(self, body: DropIndex) -> None:
        """DROP INDEX."""
        kind = "primary" if body.name.upper() == "PRIMARY" else "index"
        self._alter_keys(body.table, [DropKey(kind, body.name)], None)

    def _alter_keys(self, name: TableName, actions: list[Any], index: CreateIndex | None) -> None:
        table_id = self._id(name)
        is_temporary = self._is_temporary(table_id)
        table = self._temporary(table_id) if is_temporary else self._table(table_id)
        if table is not None and not is_temporary and self._is_older_temporary(table):
            self._set_temporary(table_id, None)
            return
        if table is None:
            self.temporary += [table_id] if is_temporary else []
            return
        altered = alter(table, actions, self.ctx)
        reported = False
        if index is not None:
            altered, reported = apply_create_index(altered, index)
        if is_temporary:
            self._set_temporary(table_id, altered)
            return
        self.staged[table_id] = altered
        if reported:
            text = self.statement.text
            if not self.ctx.mariadb:
                text = text.split(None, 1)[1]  # Debezium omits the word CREATE here
            self._report(ChangeKind.ALTER, text, table_id)

    def drop_table(self, body: DropTable) -> None:
        """DROP TABLE."""
        for name in body.names:
            table_id = self._id(name)
            if self._is_temporary(table_id):
                self._drop_temporary(table_id)
                continue
            if body.temporary:
                continue
            known = self._table(table_id)
            if known is not None:
                self.staged[known.id] = None
            if "SEQUENCE" in body.prefix.upper().split():
                continue
            behaviour = f" {body.behaviour}" if body.behaviour else ""
            self._report(ChangeKind.DROP, f"{body.prefix}{_backticks(table_id)}{behaviour}", table_id)

    def rename_table(self, body: RenameTable) -> None:
        """RENAME TABLE."""
        for (old, new), text in zip(body.pairs, body.texts, strict=True):
            old_id, new_id = self._id(old), self._id(new)
            # MariaDB renames temporary tables, too, and does not mark the event as one that concerns them.
            if self.ctx.mariadb and (self.event.thread_id, old_id) in self.catalog.temporary:
                temporary = self.catalog.temporary[self.event.thread_id, old_id]
                self._drop_temporary(old_id)
                self._set_temporary(new_id, None if temporary is None else temporary.renamed(new_id))
                continue
            table = self._table(old_id)
            if table is not None:
                self.staged[table.id] = None
                self.staged[new_id] = table.renamed(new_id)
            elif not body.if_exists:  # what was known by the new name was renamed without being recorded
                self.staged[new_id] = None
            self._report(ChangeKind.ALTER, text, new_id, old_id)

    def truncate_table(self, body: TruncateTable) -> None:
        """TRUNCATE TABLE."""
        table_id = self._id(body.name)
        if not self._is_temporary(table_id):
            self._report(ChangeKind.TRUNCATE, self.statement.text, table_id)

    # ------------------------------------------------------------ sequences

    def create_sequence(self, body: CreateSequence) -> None:
        """CREATE SEQUENCE."""
        table_id = self._id(body.name)
        if body.temporary:
            self._set_temporary(table_id, None)
            return
        if body.if_not_exists and self._table(table_id) is not None:
            return
        table = build_sequence(table_id, body, self.catalog.database(table_id.database), self.ctx)
        self.staged[table_id] = table  # not reported: Debezium does not support sequences

    def alter_sequence(self, body: AlterSequence) -> None:
        """ALTER SEQUENCE."""
        table_id = self._id(body.name)
        if self._is_temporary(table_id):
            self._set_temporary(table_id, None)
            return
        table = self._table(table_id)
        if table is not None and body.type is not None:
            self.staged[table.id] = alter_sequence(table, body.type, self.ctx)

    # ------------------------------------------------------------ databases

    def _database_name(self, name: str) -> str:
        return name.lower() if self.ctx.server.lower_case_table_names == 1 else name

    def create_database(self, body: CreateDatabase) -> None:
        """CREATE DATABASE."""
        name = self._database_name(body.name)
        known = self.catalog.database(name)
        if known is None or not body.if_not_exists:
            if body.or_replace:
                self._drop_database(name)
            default = (charsets.charset_of(self.ctx.server_collation), self.ctx.server_collation)
            options = body.options
            charset, collation = charset_and_collation(options, self.ctx, *default)
            form = self.catalog.debezium_charset_after(options, None, self.ctx)
            self.catalog.put_database(Database(name, charset, collation, form))
        else:  # Debezium uses the options even if the database exists
            form = self.catalog.debezium_charset_after(body.options, known, self.ctx)
            self.catalog.put_database(replace(known, debezium_charset=form))
        self._report(ChangeKind.DATABASE, self.statement.text, None, database=body.name)

    def alter_database(self, body: AlterDatabase) -> None:
        """ALTER DATABASE."""
        name = self._database_name(body.name or self.ctx.database)
        known = self.catalog.database(name)
        default = (charsets.charset_of(self.ctx.server_collation), self.ctx.server_collation)
        base = default if known is None or body.options.charset == "" else (known.charset, known.collation)
        charset, collation = charset_and_collation(body.options, self.ctx, *base)
        form = self.catalog.debezium_charset_after(body.options, known, self.ctx)
        self.catalog.put_database(Database(name, charset, collation, form))

    def _drop_database(self, name: str) -> None:
        for table_id in self.catalog.names_of(name):
            self.staged[table_id] = None
        self.catalog.remove_database(name)

    def drop_database(self, body: DropDatabase) -> None:
        """DROP DATABASE."""
        self._drop_database(self._database_name(body.name))
        self._report(ChangeKind.DATABASE, self.statement.text, None, database=body.name)

    def set_variables(self, body: SetVariables) -> None:
        """SET in a history."""
        self.catalog.set_variables(body.variables)
        self._report(ChangeKind.DATABASE, self.statement.text, None, database=self.ctx.database)

    def use(self, body: Use) -> None:
        """USE in a history."""
        self._report(ChangeKind.DATABASE, self.statement.text, None, database=body.database)


def _backticks(table_id: TableId) -> str:
    names = (table_id.database, table_id.table) if table_id.database else (table_id.table,)
    return ".".join("`" + name.replace("`", "``") + "`" for name in names)


def _renamed_columns(table: Table, body: AlterTable) -> Iterator[tuple[str, str]]:
    """Yield the former and the new name of each column that an ALTER TABLE renames."""
    for action in body.actions:
        if isinstance(action, ChangeColumn) and not action.modify:
            old, new = action.old, action.column.name
        elif isinstance(action, RenameColumn):
            old, new = action.old, action.new
        else:
            continue
        known = table.column(old)
        if known is not None and known.name != new:
            yield known.name, new


def _renamed_check(name: str, old: str, new: str) -> str:
    return new + name[len(old) :] if name.startswith(f"{old}_chk_") else name


_HANDLERS: dict[type, tuple[str, Callable[[StatementExecutor, Any], None]]] = {
    CreateTable: ("create table", StatementExecutor.create_table),
    CreateTableLike: ("create table", StatementExecutor.create_like),
    AlterTable: ("alter table", StatementExecutor.alter_table),
    CreateIndex: ("create index", StatementExecutor.create_index),
    DropIndex: ("drop index", StatementExecutor.drop_index),
    DropTable: ("drop table", StatementExecutor.drop_table),
    RenameTable: ("rename table", StatementExecutor.rename_table),
    TruncateTable: ("truncate table", StatementExecutor.truncate_table),
    CreateSequence: ("create sequence", StatementExecutor.create_sequence),
    AlterSequence: ("alter sequence", StatementExecutor.alter_sequence),
    CreateDatabase: ("create database", StatementExecutor.create_database),
    AlterDatabase: ("alter database", StatementExecutor.alter_database),
    DropDatabase: ("drop database", StatementExecutor.drop_database),
    SetVariables: ("set", StatementExecutor.set_variables),
    Use: ("use", StatementExecutor.use),
}
