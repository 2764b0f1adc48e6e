"""The notifications of snapshots alongside the stream, in Debezium's form."""

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Literal

from rowtide.connector.protocol.charset import charset_decoder
from rowtide.connector.records.batch import Batch
from rowtide.connector.records.notifications import Notifier
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.records.settings import PipelineSettings
from rowtide.connector.snapshot.chunks.key_ranges import Bound
from rowtide.connector.snapshot.incremental.read_chunks.attempts import Attempts
from rowtide.connector.snapshot.incremental.state import IncrementalTable, SnapshotState
from rowtide.connector.snapshot.status import SnapshotProgress
from rowtide.schema_history.model import Column, TableId

log = logging.getLogger(__name__)

ScanStatus = Literal["SUCCEEDED", "EMPTY", "NO_PRIMARY_KEY", "SQL_EXCEPTION", "UNKNOWN_SCHEMA"]
SETTLED: frozenset[ScanStatus] = frozenset({"SUCCEEDED", "EMPTY", "UNKNOWN_SCHEMA"})
"""A new table with one of these is not to be read at the next start."""

_AGGREGATE = "Incremental Snapshot"


class Reports:
    """Makes the notifications of snapshots alongside the stream, and reports the progress of each table.

    The id of a notification is that of the signal that requested the table, or a new one for the initial snapshot.

    Args:
        settings: of the records.
        clock: nanoseconds since the epoch.
        progress: receives the progress.
    """

    def __init__(self, settings: PipelineSettings, clock: Callable[[], int], progress: SnapshotProgress | None) -> None:
        self._notifier = Notifier(settings, clock)
        self._progress = progress

    def resumed(self, state: SnapshotState) -> None:
        """Report that the snapshots of a start offset continue."""
        names = [table.name for table in state.tables]
        if names:
            log.info("the %s snapshot of %s continues after its last chunk", state.tables[0].kind, ", ".join(names))
            if self._progress is not None:
                self._progress.added(names)

    def changed(
        self, kind: Literal["STARTED", "PAUSED", "RESUMED", "ABORTED"], signal_id: str, tables: Sequence[str],
        offset: SourceOffset,
    ) -> Iterator[Batch]:  # fmt: skip
        """Report that a snapshot started, paused or resumed with these tables, or these tables are no longer read."""
        if self._progress is not None and kind == "STARTED":
            self._progress.added(tables)
        elif self._progress is not None and kind == "ABORTED":
            self._progress.left(tables)
        data = {"data_collections": ",".join(tables)}
        yield from self._notifier.notify(_AGGREGATE, kind, data, offset, signal_id=signal_id)

    def renamed(self, former: TableId, now: TableId, *, remains: bool) -> None:
        """Report that a pending table was renamed; ``remains``: a table with the former name is pending, too."""
        log.info("table %s was renamed to %s, and is read from its beginning", former, now)
        if self._progress is not None:
            self._progress.left([] if remains else [str(former)])
            self._progress.added([str(now)])

    def stopped(self, tables: Sequence[IncrementalTable], offset: SourceOffset) -> Iterator[Batch]:
        """Report that tables are no longer read, each with the id of the signal that requested it."""
        for signal_id in dict.fromkeys(table.signal_id for table in tables):
            names = [table.name for table in tables if table.signal_id == signal_id]
            yield from self.changed("ABORTED", signal_id, names, offset)

    def progress(
        self, state: SnapshotState, columns: Sequence[Column], key: Bound | None, offset: SourceOffset
    ) -> Iterator[Batch]:
        """Report that a chunk of the first table was read, up to a key; its rows do not count yet."""
        table = state.tables[0]
        aggregate = _aggregate(table)
        if self._progress is not None:
            self._progress.rows(table.name, table.rows, table.estimated, finished=False)
        data = {
            "data_collections": ",".join(state.names(table.signal_id)),
            "current_collection_in_progress": table.name,
            "maximum_key": _shown(columns, table.last),
            "last_processed_key": _shown(columns, key),
        }
        yield from self._notifier.notify(aggregate, "IN_PROGRESS", data, offset, signal_id=table.signal_id)

    def read_in_vain(self, name: str, attempts: Attempts, reason: str) -> None:
        """Report that a chunk of a table must be read again, if this happens repeatedly."""
        if not attempts.to_report:
            return
        problem = (
            f"table {name} makes no progress: its last chunk was read {attempts.in_vain} times without success, "
            f"because {reason}"
        )
        log.warning("%s", problem)
        if self._progress is not None:
            self._progress.stuck(name, problem)

    def scanned(
        self, state: SnapshotState, status: ScanStatus, offset: SourceOffset, error: str | None = None
    ) -> Iterator[Batch]:
        """Report that the first table is done, and also its signal, if this was the last table of the signal."""
        table: IncrementalTable = state.tables[0]
        aggregate = _aggregate(table)
        if self._progress is not None and status in ("SUCCEEDED", "EMPTY"):
            self._progress.rows(table.name, table.rows, table.estimated, finished=True)
        elif self._progress is not None:
            self._progress.left([table.name])
        data = {
            "data_collections": ",".join(state.names(table.signal_id)),
            "scanned_collection": table.name,
            "total_rows_scanned": str(table.rows),
            "status": status,
        }
        yield from self._notifier.notify(
            aggregate, "TABLE_SCAN_COMPLETED", data, offset, signal_id=table.signal_id, error=error
        )
        if not state.without_first().names(table.signal_id):
            if table.initial:
                log.info("the initial snapshot is complete")
            yield from self._notifier.notify(aggregate, "COMPLETED", {}, offset, signal_id=table.signal_id)


def _aggregate(table: IncrementalTable) -> str:
    return "Initial Snapshot" if table.initial else _AGGREGATE


def _shown(columns: Sequence[Column], bound: Bound | None) -> str:
    """Return a key as text."""
    if bound is None:
        return "<null>"
    return ",".join(_value(column, text) for column, text in zip(columns, bound, strict=True))


def _value(column: Column, text: str) -> str:
    if column.charset is not None and column.data_type not in ("enum", "set"):
        return charset_decoder(column.charset)(bytes.fromhex(text))
    if column.data_type == "enum":
        return column.labels[int(text) - 1] if 0 < int(text) <= len(column.labels) else ""
    return text
