"""Applies the statements of the stream to the structures, and makes their history entries and records."""

import json
import logging
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from rowtide.connector.errors import ProtocolError, UnparsedDdl
from rowtide.connector.pipeline.captured_tables import CapturedTables
from rowtide.connector.pipeline.resume_position import Progress
from rowtide.connector.pipeline.table_events import BRINGS_ROWS, moved_rows, table_events
from rowtide.connector.pipeline.transaction_metadata import TransactionMonitor
from rowtide.connector.protocol import events
from rowtide.connector.protocol.statements import query_event
from rowtide.connector.records.batch import Batch, HistoryEntry, Output
from rowtide.connector.records.change import Change
from rowtide.connector.records.codecs.builder import table_schema
from rowtide.connector.records.codecs.python_changes import table_layout
from rowtide.connector.records.lossy_conversions import LossyConversionWarnings
from rowtide.connector.records.offset import SourceOffset, java_hash_map_order
from rowtide.connector.records.schema_changes import schema_change_message
from rowtide.connector.records.settings import PipelineSettings
from rowtide.envelope.converters.json import json_message
from rowtide.envelope.table import TableSchema
from rowtide.schema_history.catalog.changes import ChangeKind, SchemaChange, StatementResult
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.ddl.dml import changed_tables
from rowtide.schema_history.ddl.statements import TableName
from rowtide.schema_history.errors import SchemaHistoryError, UnparsedStatement, without_literals
from rowtide.schema_history.model import Table, TableId
from rowtide.schema_history.queries.table_changes import Words
from rowtide.schema_history.recovery.session_settings import required_sessions
from rowtide.schema_history.server.query_event import QueryEvent
from rowtide.schema_history.store.history_record import history_record
from rowtide.schema_history.structure.context import context_of, statement_text
from rowtide.schema_history.structure.show_create import quoted_name
from rowtide.topics.filters import CapturedNames

log = logging.getLogger(__name__)

_MAY_CHANGE_ROWS = frozenset({"insert", "update", "delete", "replace", "load", "with", "analyze"})
"""Classes of statements that change rows, if the binlog has them; of ``analyze``, those that MariaDB executes."""
_FUNCTION_CALL = re.compile(r"\s*SELECT\s+`((?:[^`]|``)*)`\.`((?:[^`]|``)*)`\(", re.IGNORECASE)
"""How servers log the call of a function that changes rows."""
_MAX_PASSED = 1000
"""Names of tables that are not reported again."""
_DATABASE = frozenset({"create database", "drop database"})
"""Classes that Debezium reports without a table. Other statements without a table count as unparseable."""
_FILTERED = re.compile(
    r"xa|savepoint|release|grant|revoke|(?:analyze|optimize|repair)\b.*|flush relay logs|begin|commit|rollback"
    r"|(?:create|alter|drop|rename) (?:or replace )?(?:user|role|view|function|procedure|trigger).*"
)
"""Classes of statements that ``schema.history.internal.ddl.filter`` skips by default."""
_DROPS_DATABASE = re.compile(r"\s*(?:/\*.*?\*/\s*)*DROP\s+(?:DATABASE|SCHEMA)\b", re.IGNORECASE | re.DOTALL)
_TO_SAVEPOINT = re.compile(rb"\s*ROLLBACK\s+(WORK\s+)?TO\b", re.IGNORECASE)
"""The binlog has it where a non-transactional table was changed; no filter of Debezium matches it."""


@dataclass(frozen=True, slots=True)
class StatementContext:
    """The position, time and session of a statement.

    Attributes:
        progress: its position in the stream.
        micros: its time, in µs since the epoch.
        now: the connector's clock, in ns since the epoch.
        offset: returns the offset of its history entries.
        transaction: returns the ``transaction`` field of the next record of a table, null outside of a transaction.
        about_database: whether it concerns a database as a whole; ``source.table`` is null then.
        temporary: whether it concerns a temporary table whose name is that of a captured one.
        session: the session settings that its history entries need.
    """

    progress: Progress
    micros: int
    now: int
    offset: Callable[[], SourceOffset]
    transaction: Callable[[str], dict[str, object] | None]
    about_database: bool = False
    temporary: bool = False
    session: Mapping[str, Any] | None = None


def statement_context(progress: Progress, monitor: TransactionMonitor | None, now: int) -> StatementContext:
    """Return the context of the current statement.

    Args:
        progress: its position in the stream.
        monitor: of its transaction, if transaction metadata is on.
        now: the connector's clock, in ns since the epoch.
    """
    micros = progress.change_micros() // 1000 * 1000  # Debezium's time of a statement is in milliseconds
    if monitor is None:
        recorded = progress.statement_offset(None)
        return StatementContext(progress, micros, now, lambda: recorded, lambda _table: None)
    recorded = progress.statement_offset(monitor.offset_fields())
    return StatementContext(progress, micros, now, lambda: recorded, monitor.block)


class Statements:
    """Applies statements to the structure, and makes history entries, schema change messages and truncate records."""

    def __init__(self, settings: PipelineSettings, tables: Tables, captured: CapturedTables) -> None:
        self._settings = settings
        self._captured = captured
        self._tables = tables
        self._lossy_warnings = LossyConversionWarnings(settings)
        self._names = CapturedNames(settings.tables, tables.exists)
        self._recorded = _recorded(settings, self._names)
        self._passed: set[TableId] = set()
        self._no_views: set[TableId] = set()

    def handle(self, event: events.Query, context: StatementContext) -> list[Output]:
        """Apply one statement.

        Raises:
            UnparsedDdl: the statement cannot be parsed (``schema.history.internal.skip.unparseable.ddl``), and may
                concern a captured table (``rowtide.unparseable.ddl.lookup``).
            ProtocolError: it changes rows, and the binlog does not have them.
            TopicClash: it truncates a table whose topic belongs to another table.
        """
        position = f"{context.progress.file}:{context.progress.pos}"
        try:
            statement = query_event(event, position)
            before = self._tables.copy() if _DROPS_DATABASE.match(event.text) else None
            applied = self._tables.apply(statement)
        except SchemaHistoryError as error:
            problem = error.message(literals=self._settings.show_values)
            if self._settings.skip_unparseable_ddl:
                log.warning("skipped because of schema.history.internal.skip.unparseable.ddl=true: %s", problem)
                return []
            strict = self._settings.form is not None or self._settings.table_events
            if strict or not isinstance(error, UnparsedStatement):
                raise UnparsedDdl(problem) from error
            return self._unparsed(Words(error.statement, event.database), problem, error, context)
        if applied.statement_class in _MAY_CHANGE_ROWS or _FUNCTION_CALL.match(event.text):
            if self._changes_captured_rows(event, statement, applied.statement_class, position):
                self._refuse_dml(event, position)
            return []
        if applied.statement_class == "create view":
            self._no_views.clear()
        if applied.made_by_query is not None:
            if self._names.captures(applied.made_by_query.database, applied.made_by_query.table):
                self._refuse_dml(event, position)
            else:
                self._report_passed([applied.made_by_query], position)
        for altered, now in applied.altered:
            self._captured.changed(altered, exists=now is not None)
        for former, new in applied.renamed():
            self._captured.renamed(former, new)
        if self._captured.cascades is not None:
            for table, _, _ in applied.renamed_columns:
                self._captured.cascades.column_renamed(table)
        for change in applied.changes:
            if change.kind is ChangeKind.TRUNCATE and change.table_id is not None:
                self._captured.truncated(change.table_id)
        self._warn_of_moved_rows(applied, event.text, position)
        out: list[Output] = []
        if _FILTERED.fullmatch(applied.statement_class) and not _TO_SAVEPOINT.match(event.statement):
            return out
        messages = list(self._in_form(applied, statement, context))
        messages += self._table_events(applied, event, context)
        gone = [HistoryEntry(self._history_text(change, context)) for change in self._gone(applied)]
        if self._settings.only_captured_tables_ddl and not self._is_recorded(applied):
            return [*gone, *messages]
        sessions = required_sessions(self._tables, statement, applied, self._recorded)
        about_database, temporary = applied.statement_class in _DATABASE, self._hides_captured(applied)
        context = replace(context, about_database=about_database, temporary=temporary)
        for change in self._emptied(applied, before):
            self._truncated(change, replace(context, about_database=False), out)
        for change, session in zip(applied.changes, sessions, strict=True):
            if change.kind is ChangeKind.TRUNCATE:
                self._truncated(change, context, out)
            else:
                self._changed(change, replace(context, session=session), out)
        return _together([*out, *gone, *messages])

    def _unparsed(
        self, words: Words, problem: str, error: SchemaHistoryError, context: StatementContext
    ) -> list[Output]:
        """Forget the structures of the tables that a statement names, which cannot be parsed.

        No row is decoded with a structure that the statement may have changed: the next rows of such a table, or the
        server, have to show its structure.
        """
        named = [table for table in self._tables.names() if words.may_name(table)]
        captured = [table for table in named if self._names.captures(table.database, table.table)]
        if not self._settings.look_up_unparseable_ddl:
            captures = self._settings.tables.captures
            if captured or any(captures(table.database, table.table) for table in words.candidates()):
                raise UnparsedDdl(problem) from error
        out: list[Output] = []
        for table in named:
            out.append(HistoryEntry(self._history_text(_dropped(table), context)))
            self._tables.remove(table)
            self._captured.changed(table, exists=False)
        consequence = (
            f"The structure of {', '.join(map(str, captured))} is taken from the next rows or from the server"
            if captured
            else "It names no captured table that is known"
        )
        log.warning("skipped: %s. %s (rowtide.unparseable.ddl.lookup)", problem, consequence)
        return out

    def _emptied(self, applied: StatementResult, before: Tables | None) -> Iterator[SchemaChange]:
        """Yield the captured tables that a statement drops or replaces, or to which it gives another name.

        With exact values their topics say that the rows are gone, by the record of a TRUNCATE. Debezium's do not.

        Args:
            applied: the result of the statement.
            before: the structures before it, if it drops a database.
        """
        if not self._settings.rules.values.exact or self._settings.table_events:
            return
        known = {table: before.table(table.database, table.table) for table, _ in applied.altered} if before else {}
        known |= {table: structure for table, structure in applied.before if structure is not None}
        former = {new: old for old, new in applied.renamed()}
        for table, now in applied.altered:
            # The rows of an online schema change's helper table are those of the table.
            moved = table in former and not self._names.leaves_out(former[table].database, former[table].table)
            replaced = now is None or moved or applied.statement_class in ("create table", "create sequence")
            if replaced and (structure := known.get(table)) is not None:
                yield SchemaChange(ChangeKind.TRUNCATE, table.database, "", table, table=structure, tables=(table,))
            if moved and self._names.captures(table.database, table.table):
                log.warning(
                    "%s was called %s before: its topic lacks the earlier rows. Send an execute-snapshot signal for it",
                    table, former[table],
                )  # fmt: skip

    def _gone(self, applied: StatementResult) -> Iterator[SchemaChange]:
        """Return the deletions of tables that have left the history by a rename, which it does not record.

        A restart would still have them. Another table that gets such a name later would have their structure.
        """
        recorded, renames = self._recorded, [change for change in applied.changes if change.previous_id is not None]
        if recorded is None or applied.databases_before is not None:
            return
        if not renames and any(change.table_id and recorded(change.table_id) for change in applied.changes):
            return  # it is recorded as it is
        moved = {change.previous_id for change in renames if change.table_id and recorded(change.table_id)}
        for table, now in applied.altered:
            if now is None and recorded(table) and table not in moved:
                yield _dropped(table)

    def _in_form(self, applied: StatementResult, statement: QueryEvent, context: StatementContext) -> Iterator[Batch]:
        """Yield the messages in the form that replaces Debezium's (``PipelineSettings.form``).

        Debezium does not report a statement that changes nothing but indexes.
        """
        form, captures = self._settings.form, self._names.captures
        if form is None:
            return
        named = [(change, (change.table_id, change.previous_id)) for change in applied.changes]
        reported = {table for _, ids in named for table in ids}
        sql = statement_text(statement, self._tables.server.flavor)
        for table, now in applied.altered:
            if now is not None and table not in reported:
                named.append((SchemaChange(ChangeKind.ALTER, table.database, sql, table, table=now), (table, None)))
        changes = [
            (change, self._records(change))
            for change, ids in named
            if any(one and captures(one.database, one.table) for one in ids)
        ]
        if changes:
            position = context.progress.source_position(context.micros, context.now)
            made = form.statement(changes, statement, self._tables.server, position, context.offset())
            if made is not None:
                yield made

    def _table_events(
        self, applied: StatementResult, event: events.Query, context: StatementContext
    ) -> Iterator[Batch]:
        """Yield the effects of the statement on captured tables as a whole (``PipelineSettings.table_events``)."""
        if not self._settings.table_events:
            return

        def records(table: Table) -> TableSchema:
            topic = self._captured.topics.topic(table.id)
            return table_schema(table, topic, self._settings.rules, "stream", lambda _table, _column: None)

        words = moved_rows(applied.statement_class, event.text)
        made = list(table_events(applied, self._names, records, event.header.timestamp, words))
        if made:
            yield Batch("", -1, (), context.offset(), len(event.text), context.micros // 1000, tables=made)

    def _warn_of_moved_rows(self, applied: StatementResult, text: str, position: str) -> None:
        tables = [table for table, now in applied.altered if now is not None]
        captured = [str(table) for table in tables if self._names.captures(table.database, table.table)]
        words = moved_rows(applied.statement_class, text)
        if not captured or words is None:
            return
        if BRINGS_ROWS.search(text):
            consequence = (
                "moved rows, which the binlog does not have. Send an execute-snapshot signal for the rows that are "
                "there now; rows that were there before stay in the topic"
            )
        else:
            consequence = (
                "removed rows, which the binlog does not have: they stay in the topic. To delete them there, too, run "
                "rowtide verify --repair"
            )
        log.warning("%s: %s at %s has %s", ", ".join(captured), words, position, consequence)

    def _is_recorded(self, applied: StatementResult) -> bool:
        """Return whether a statement concerns captured tables or databases, or a table that may get a captured name."""
        if applied.statement_class in _DATABASE:
            return any(self._settings.tables.captures_database(change.database) for change in applied.changes)
        named = (*(change.table_id for change in applied.changes), *applied.temporary)
        return any(table is not None and self._names.keeps_structure(table.database, table.table) for table in named)

    def _changes_captured_rows(self, event: events.Query, statement: QueryEvent, kind: str, position: str) -> bool:
        """Return whether a statement that was logged instead of its rows may have changed captured tables.

        The databases that an event lists include those that the statement only reads.

        Args:
            event: the statement.
            statement: the statement in the form of the schema history.
            kind: its class.
            position: its position.
        """
        tables, server = self._settings.tables, self._tables.server

        def has_column(name: TableName, column: str) -> bool:
            table = self._tables.table(name.database or event.database, name.table)
            return table is None or table.column(column) is not None

        text, dialect = statement_text(statement, server.flavor), context_of(statement, server).dialect
        named = changed_tables(text, dialect, has_column)
        databases = event.status.updated_databases or (event.database,)
        if named is None:
            if (call := _FUNCTION_CALL.match(event.text)) and not event.status.updated_databases:
                function = TableId(*(part.replace("``", "`") for part in call.groups()))
                databases = event.database, function.database
                if not any(map(tables.captures_database, databases)):
                    self._report_passed([function], position)
            return kind != "analyze" and any(map(tables.captures_database, databases))
        changed = [self._tables.table_id(name.database or event.database, name.table) for name in named]
        for table in changed:
            if statement.thread_specific and (event.thread_id, table) in self._tables.temporary:
                continue
            known = self._tables.exists(table.database, table.table)
            if self._names.captures(table.database, table.table) or not (known or self._is_table(table)):
                return True
        if any(tables.captures_database(name) for name in databases):
            self._report_passed(changed, position)
        return False

    def _is_table(self, name: TableId) -> bool:
        """Return whether an unknown name is that of a table, not of a view.

        Without an answer of the server, one in a captured database may be that of a view.
        """
        if name in self._no_views:
            return True
        is_view = self._captured.is_view(name)
        if self._settings.tables.captures_database(name.database) if is_view is None else is_view:
            return False
        if len(self._no_views) >= _MAX_PASSED:
            self._no_views.clear()
        self._no_views.add(name)
        return True

    def _report_passed(self, changed: list[TableId], position: str) -> None:
        new = [table for table in changed if table not in self._passed]
        if new and len(self._passed) < _MAX_PASSED:
            self._passed.update(new)
            log.warning(
                "a session with binlog_format STATEMENT or MIXED changes %s (first at %s): these rows are skipped, as "
                "the table is not captured. If its triggers, or functions of the statement, change captured tables, "
                "their rows are not in the binlog",
                ", ".join(map(str, new)), position,
            )  # fmt: skip

    def _hides_captured(self, applied: StatementResult) -> bool:
        """Return whether a statement concerns temporary tables with captured names, which a restart must know."""
        return any(self._names.keeps_structure(table.database, table.table) for table in applied.temporary)

    def _refuse_dml(self, event: events.Query, position: str) -> None:
        """Handle rows that were logged as a statement, because the session's ``binlog_format`` was not ROW."""
        sql = event.text if self._settings.show_values else without_literals(event.text)
        message = (
            f"a session with binlog_format STATEMENT or MIXED changed rows by {sql[:200]!r} in database "
            f"{event.database!r}: the changed rows are not in the binlog. Let all sessions use binlog_format=ROW, or "
            "set event.processing.failure.handling.mode=warn to continue without these changes"
        )
        if self._settings.processing_failure == "fail":
            raise ProtocolError(message)
        if self._settings.processing_failure == "warn":
            log.warning("%s (at %s)", message, position)

    def _changed(self, change: SchemaChange, context: StatementContext, out: list[Output]) -> None:
        settings = self._settings
        table = change.table_id if change.table is not None or change.kind is ChangeKind.DROP else None
        captured = table is None or self._names.captures(table.database, table.table)
        kept = captured or (table is not None and self._names.keeps_structure(table.database, table.table))
        if change.database and not settings.tables.captures_database(change.database):
            recorded = not (settings.only_captured_databases_ddl or settings.only_captured_tables_ddl)
        else:
            recorded = kept or not settings.only_captured_tables_ddl
        if not recorded:
            if context.temporary:
                out.append(HistoryEntry(self._history_text(change, context)))
            return
        if captured and change.table is not None and not settings.changes and settings.form is None:
            self._lossy_warnings.table_changed(change.table)
        out.append(HistoryEntry(self._history_text(change, context)))
        if settings.schema_changes and (captured or not settings.only_captured_tables_ddl):
            source, now_ms, ts_ms = self._source(change, context), context.now // 1_000_000, context.micros // 1000
            out.append(schema_change_message(settings, change, source, context.offset(), now_ms=now_ms, ts_ms=ts_ms))

    def _history_text(self, change: SchemaChange, context: StatementContext) -> str:
        return history_record(
            change,
            self._settings.topic_prefix,
            context.offset().to_map(),
            context.now // 1_000_000,
            comments=self._settings.rules.values.include_schema_comments,
            session=context.session,
        )

    def _source(self, change: SchemaChange, context: StatementContext) -> dict[str, object]:
        names = java_hash_map_order({str(table): table.table for table in change.tables})
        table = None if context.about_database else ",".join(names.values())
        return context.progress.source(self._settings, change.database, table, context.micros)

    def _records(self, change: SchemaChange) -> TableSchema | None:
        """Return the schemas of the records of a changed table; ``None`` if it no longer exists."""
        if change.table is None:
            return None
        topic = self._captured.topics.topic(change.table.id)
        return table_schema(change.table, topic, self._settings.rules, "stream", lambda table, column: None)

    def _truncated(self, change: SchemaChange, context: StatementContext, out: list[Output]) -> None:
        """Make a ``t`` record, unless ``skipped.operations`` has it, or messages have a different form."""
        settings = self._settings
        table_id = change.table_id
        if "t" in settings.skipped_operations or table_id is None or change.table is None:
            return
        if settings.form is not None and not settings.changes:
            return
        if not self._names.captures(table_id.database, table_id.table):
            return
        records = self._records(change)
        assert records is not None
        transaction = context.transaction(str(table_id))
        value = {
            "source": self._source(change, context),
            "transaction": transaction,
            "op": "t",
            "ts_ms": context.now // 1_000_000,
            "ts_us": context.now // 1000,
            "ts_ns": context.now,
        }
        data = json_message(records.envelope, value, settings.values)
        batch = Batch(
            records.topic, -1, (), context.offset(), len(data), context.micros // 1000, (None, records.envelope)
        )
        if settings.changes:
            position = context.progress.source_position(context.micros, context.now)
            text = None if transaction is None else f'"transaction":{json.dumps(transaction)}'
            truncated = Change("t", table_layout(records), (), None, None, position, 0, lambda _: (None, data), text)
            out.append(batch._replace(changes=[truncated]))
        else:
            out.append(batch._replace(messages=[(None, data, settings.headers)]))


def _dropped(table: TableId) -> SchemaChange:
    """Return the change that removes a table from the history."""
    ddl = f"DROP TABLE IF EXISTS {quoted_name(table.database)}.{quoted_name(table.table)}"
    return SchemaChange(ChangeKind.DROP, table.database, ddl, table, tables=(table,))


def _recorded(settings: PipelineSettings, names: CapturedNames) -> Callable[[TableId], bool] | None:
    """Return the tables whose statements the history records; ``None`` for all."""
    tables = settings.tables
    if settings.only_captured_tables_ddl:
        return lambda table: names.keeps_structure(table.database, table.table)
    if settings.only_captured_databases_ddl:
        return lambda table: tables.captures_database(table.database)
    return None


def _together(outputs: list[Output]) -> list[Output]:
    """Return all history entries, then the messages of each topic as one batch: they are committed together."""
    batches: dict[str, Batch] = {}
    for output in outputs:
        if isinstance(output, Batch):
            known = batches.get(output.topic)
            if known is not None:
                batches[output.topic] = output._replace(
                    messages=[*known.messages, *output.messages],
                    changes=[*known.changes, *output.changes],
                    tables=[*known.tables, *output.tables],
                    size=known.size + output.size,
                )
            else:
                batches[output.topic] = output
    entries = [output for output in outputs if isinstance(output, HistoryEntry)]
    return [*entries, *batches.values()]
