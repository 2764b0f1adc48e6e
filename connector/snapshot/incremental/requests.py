"""Which tables signals mean. Pure."""

from collections.abc import Iterable

from rowtide.connector.pipeline.signals.snapshot_requests import Collections, SnapshotRequest, StopRequest
from rowtide.connector.snapshot.incremental.state import SnapshotState, TableToRead
from rowtide.schema_history.model import TableId


def requested_tables(request: SnapshotRequest, captured: Iterable[TableId]) -> list[TableToRead]:
    """The tables to read, in the order of the signal. A name that matches no table stands for itself, as in Debezium.

    Args:
        request: the signal's request.
        captured: all captured tables.
    """
    captured = tuple(captured)
    names: dict[str, TableId | None] = {}
    for source in request.collections.sources:
        selected = Collections.parse([source]).select(captured)
        names.update((str(table), table) for table in selected)
        if not selected:
            names[source] = None
    return [
        TableToRead(
            name,
            table,
            request.signal.id,
            None if table is None else request.filter_of(table),
            request.surrogate_key,
        )
        for name, table in names.items()
    ]


def stopped_tables(request: StopRequest, state: SnapshotState) -> list[TableToRead]:
    """The tables that are no longer to be read; all without a list."""
    collections = request.collections
    return [
        table
        for table in state.tables
        if not collections
        or table.name in collections.sources
        or (table.table is not None and collections.select([table.table]))
    ]
