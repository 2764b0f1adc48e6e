"""Adds the structure of a table to those of the stream, and makes its history entries and messages."""

from collections.abc import Iterator

from rowtide.connector.pipeline.pipeline import Pipeline
from rowtide.connector.records.batch import HistoryEntry, Output
from rowtide.connector.records.schema_changes import schema_change_message
from rowtide.connector.records.settings import PipelineSettings
from rowtide.connector.source.server_queries import quoted_table
from rowtide.schema_history.catalog.changes import ChangeKind, SchemaChange
from rowtide.schema_history.model import TableId
from rowtide.schema_history.server.query_event import QueryEvent
from rowtide.schema_history.store.history_record import history_record


def written_structure(
    settings: PipelineSettings, pipeline: Pipeline, table: TableId, statement: str, now: int
) -> Iterator[Output]:
    """Replace or add a structure in those of the stream.

    Args:
        settings: of the records.
        pipeline: the stream, between two transactions.
        table: the table.
        statement: the text of its SHOW CREATE TABLE.
        now: nanoseconds since the epoch.

    Raises:
        SchemaHistoryError: the statement cannot be parsed.
    """
    tables, at, progress, changes = pipeline.tables, pipeline.offset(), pipeline.progress, []
    if tables.exists(table.database, table.table):
        tables.remove(table)
        drop = f"DROP TABLE IF EXISTS {quoted_table(table)}"
        changes.append(SchemaChange(ChangeKind.DROP, table.database, drop, table, tables=(table,)))
    changes += tables.apply(QueryEvent(statement, table.database, sql_mode=0, position="the server")).changes
    comments = settings.rules.values.include_schema_comments
    for change in changes:
        text = history_record(change, settings.topic_prefix, at.to_map(), now // 1_000_000, comments=comments)
        yield HistoryEntry(text)
    for change in changes if settings.schema_changes else ():
        micros = progress.change_micros()
        source = progress.source(settings, table.database, table.table, micros)
        yield schema_change_message(settings, change, source, at, now_ms=now // 1_000_000, ts_ms=micros // 1000)
