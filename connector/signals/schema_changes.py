"""``schema-changes``: replaces the structure of tables with the one that the signal describes."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from rowtide.connector.errors import SignalError
from rowtide.connector.records.batch import HistoryEntry, Output
from rowtide.connector.records.schema_changes import schema_change_message
from rowtide.connector.records.settings import PipelineSettings
from rowtide.connector.signals.signal import Signal, SignalContext
from rowtide.schema_history.catalog.changes import ChangeKind, SchemaChange
from rowtide.schema_history.errors import SchemaHistoryError
from rowtide.schema_history.model import Table
from rowtide.schema_history.recovery.table_history import merge_recorded
from rowtide.schema_history.store.history_record import RecordedTable, history_record, recorded_table


def schema_changes(
    settings: PipelineSettings, clock: Callable[[], int], signal: Signal, context: SignalContext
) -> Iterator[Output]:
    """Change the structures, and write their history entries and schema change messages.

    Args:
        settings: of the records.
        clock: nanoseconds since the epoch.
        signal: with ``database``, ``schema`` and ``changes`` in Debezium's form of table changes.
        context: the context of the signal.

    Raises:
        SignalError: a parameter is wrong; nothing is changed.
    """
    changes = _changes(signal)
    for change in changes:
        assert change.table_id is not None
        if change.table is None:
            context.tables.remove(change.table_id)
        else:
            context.tables.put(change.table)
        context.captured.changed(change.table_id, exists=change.table is not None)
    now, comments = clock(), settings.rules.values.include_schema_comments
    for change in changes:
        position = context.after.to_map()
        yield HistoryEntry(history_record(change, settings.topic_prefix, position, now // 1_000_000, comments=comments))
        if settings.schema_changes:
            of_row, progress = context.table or change.table_id, context.progress  # the signal's row, as in Debezium
            assert of_row is not None
            micros, now_ms = progress.change_micros(), now // 1_000_000
            source = progress.source(settings, of_row.database, of_row.table, micros)
            yield schema_change_message(settings, change, source, context.at, now_ms=now_ms, ts_ms=micros // 1000)


def _changes(signal: Signal) -> list[SchemaChange]:
    database, schema, items = signal.text("database"), signal.text("schema"), signal.data.get("changes")
    if not database:
        raise SignalError("'database' is missing from the data")
    if not isinstance(items, list) or not items:
        raise SignalError("'changes' is missing from the data: a list of table changes, as in the schema history")
    return [_change(item, database, schema) for item in items]


def _change(item: Any, database: str, schema: str | None) -> SchemaChange:
    try:
        recorded = recorded_table(_with_defaults(item))
        table = None if recorded.kind is ChangeKind.DROP else _table(recorded)
    except (ValueError, LookupError, TypeError, AttributeError, SchemaHistoryError) as error:
        raise SignalError(f"an item of 'changes' is not a table change ({error!r}): {item!r:.300}") from error
    return SchemaChange(recorded.kind, database, "", recorded.id, recorded.previous_id, table, schema=schema)


def _table(recorded: RecordedTable) -> Table:
    table = merge_recorded(None, recorded, all_applied=True)
    if not table.columns:
        raise ValueError("the table has no columns")
    return table


def _with_defaults(item: Any) -> Mapping[str, Any]:
    """Return the change with Debezium's additions.

    A nullable column has the default null unless the signal specifies another one.
    """
    if not isinstance(item, Mapping):
        raise TypeError("not a JSON object")
    table = item.get("table")
    if not isinstance(table, Mapping) or not isinstance(table.get("columns"), list):
        return item
    columns = [
        {"hasDefaultValue": column.get("optional", True), **column} if isinstance(column, Mapping) else column
        for column in table["columns"]
    ]
    return {**item, "table": {**table, "columns": columns}}
