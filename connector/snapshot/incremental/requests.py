"""Resolves the tables of signals. Pure."""

import difflib
from collections.abc import Iterable

from rowtide.connector.signals.snapshot_requests import Collections, SnapshotRequest, StopRequest
from rowtide.connector.snapshot.incremental.state import IncrementalTable, SnapshotState
from rowtide.schema_history.model import TableId

_COMPARED = 5000
"""With more tables than this, no similar names are suggested: the search takes milliseconds for a thousand."""


ALTERED_TOO_OFTEN = (
    "its structure changed each time before the stream had passed the chunk. The snapshot continues when no "
    "statement alters the table for longer than the stream lags behind the server"
)
_CHANGED_TOO_OFTEN = (
    "rows of the chunk changed each time while it was read, so it is not known which of its rows are older. rowtide "
    "keeps trying; fewer changes of these rows help, and so does binlog_row_image=FULL if sessions set less"
)
_NOT_HELD = "; so does rowtide.semi.sync.acknowledge=received, with which the stream can wait while the chunk is read"
_NOT_VISIBLE = ", unless the server has rpl_semi_sync_master_wait_point=AFTER_SYNC"
"""With it, MariaDB shows a change to no session before it is acknowledged."""


def changed_too_often(*, holds: bool, mariadb: bool) -> str:
    """Return the message that a chunk was repeatedly read without success, with the reason and what helps.

    Args:
        holds: whether the stream can wait while a chunk is read.
        mariadb: whether the server is MariaDB.
    """
    if holds:
        return _CHANGED_TOO_OFTEN
    return _CHANGED_TOO_OFTEN + _NOT_HELD + (_NOT_VISIBLE if mariadb else "")


def requested_tables(request: SnapshotRequest, captured: Iterable[TableId]) -> list[IncrementalTable]:
    """Return the tables to read, in the order of the signal.

    A name that matches no table is returned as it is, as in Debezium.

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
        IncrementalTable(
            name,
            table,
            request.signal.id,
            None if table is None else request.filter_of(table),
            request.surrogate_key,
        )
        for name, table in names.items()
    ]


def unknown_table(name: str, captured: Iterable[TableId]) -> str:
    """Return the message that a name of a signal matches no captured table, with the most similar names."""
    names = [str(table) for table in captured]
    near = difflib.get_close_matches(name.replace("\\", ""), names, n=3, cutoff=0.7) if len(names) <= _COMPARED else []
    hint = f". Did you mean {' or '.join(near)}?" if near else ""
    return f"table {name} of the incremental snapshot is not captured, or does not exist{hint}"


def without_key(table: IncrementalTable, reason: str) -> str:
    """Return the message that a table cannot be cut into chunks, or its rows cannot be read by their keys."""
    skipped = f"table {table.name} is skipped in the incremental snapshot: {reason}"
    if table.keys:
        return skipped
    return f"{skipped}. Name one of its columns in the signal's 'surrogate-key', preferably one with a unique index"


def given_up(name: str, reason: str) -> str:
    """Return the message that a table was tried too often."""
    return (
        f"table {name} is NOT read completely: {reason}. Correct the cause, and send an execute-snapshot signal for "
        "the table"
    )


def lost_key(name: str, reason: str) -> str:
    """Return the message that an interrupted initial snapshot cannot continue reading a table."""
    return (
        f"table {name} was altered since the initial snapshot was interrupted, which cannot continue: {reason}. Set "
        "rowtide.snapshot.resumable=false for one start, which takes the whole snapshot again"
    )


def stopped_tables(request: StopRequest, state: SnapshotState) -> list[IncrementalTable]:
    """Return the tables that must no longer be read.

    All of them without a list, except those of the initial snapshot.
    """
    collections = request.collections
    return [
        table
        for table in state.tables
        if not table.initial
        and (
            not collections
            or table.name in collections.sources
            or (table.table is not None and collections.select([table.table]))
        )
    ]
