"""Makes the changes of a snapshot: rows as Python values."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal, Protocol

from rowtide.connector.errors import SnapshotError
from rowtide.connector.records.batch import Batch
from rowtide.connector.records.change import Change, DebeziumMessage, SourcePosition
from rowtide.connector.records.codecs.builder import column_output
from rowtide.connector.records.codecs.python_changes import table_layout
from rowtide.connector.records.codecs.python_values import python_output
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.records.settings import PipelineSettings
from rowtide.connector.records.unavailable import UNAVAILABLE
from rowtide.connector.rows.text_protocol_rows import ResultColumn, ResultReader, Rows, result_value_reader
from rowtide.connector.snapshot.records import ReadTime, SnapshotTable
from rowtide.envelope.source import Snapshot
from rowtide.schema_history.model import Table


class ChangeTable(SnapshotTable):
    """A captured table whose rows become changes instead of messages."""

    def __init__(self, table: Table, settings: PipelineSettings, *, custom_query: bool = False) -> None:
        super().__init__(table, settings, custom_query=custom_query)
        self._layout = table_layout(self._records)
        self._row_bytes = 0

    def reader(self, names: Sequence[str]) -> ResultReader:
        """Compile a reader for a result set; each row also has its chunk and its place there."""
        columns = []
        for record in self._records.columns:
            output = python_output(
                column_output(record, self._records, self._settings),
                record,
                documents=self._settings.connector == "mysql",
            )
            columns.append(ResultColumn(record.column, output, "", UNAVAILABLE))
        compiled = result_value_reader(columns, self._key_places(), names)
        json_reader = super().reader

        def rows(buffer: bytes) -> tuple[Rows, int]:
            found, stop = compiled.rows(buffer)
            chunk = _Chunk(lambda: json_reader(names).rows(buffer)[0])
            self._row_bytes = stop // max(1, len(found))
            return [(key, row, chunk, place) for place, (key, row) in enumerate(found)], stop

        def row(payload: bytes) -> tuple[Any, ...]:
            self._row_bytes = len(payload)
            return (*compiled.row(payload), _Chunk(lambda: [json_reader(names).row(payload)]), 0)

        return ResultReader(rows, row)

    def deletions(self, rows: Rows, read_time: ReadTime) -> Sequence[Any]:
        """Return the changes for rows that an incremental snapshot found to be deleted."""
        return self._of_op(rows, "incremental", read_time, "d")

    def _of_op(self, rows: Rows, marker: Snapshot, read_time: ReadTime, op: Literal["r", "d"]) -> Sequence[Any]:
        now = read_time.clock()
        read_time = replace(read_time, clock=lambda: now)
        at = read_time.place
        position = SourcePosition(
            at.file, at.pos, at.gtid, at.server_id, at.thread, None, read_time.micros, now, snapshot=marker
        )
        json_messages = super()._of_op

        def debezium(chunk: _Chunk, place: int) -> DebeziumMessage:
            def message(_change: Change) -> tuple[bytes | None, bytes]:
                ((key, value, _headers),) = json_messages([chunk.row(place)], marker, read_time, op)
                return key, value

            return message

        return [
            Change(
                op,
                self._layout,
                key,
                None if op == "r" else row,
                row if op == "r" else None,
                position,
                0,
                debezium(chunk, place),
            )
            for key, row, chunk, place in rows
        ]

    def batch(self, messages: Sequence[Any], ts_ms: int, offset: SourceOffset) -> Batch:
        """Return a batch of changes; its size in memory is estimated from the latest rows."""
        size = len(messages) * (self._row_bytes + self._layout.image_bytes)
        return Batch(self.topic, -1, (), offset, size, ts_ms, changes=messages)


class _Chunk:
    """A chunk of a result set, whose rows are converted to JSON when the first is requested.

    Args:
        read: converts them.
    """

    __slots__ = ("_read", "_rows")

    def __init__(self, read: Callable[[], Rows]) -> None:
        self._read = read
        self._rows: Rows | None = None

    def row(self, place: int) -> tuple[Any, ...]:
        """Return the row at a place, as JSON."""
        if self._rows is None:
            self._rows = self._read()
        return self._rows[place]


class TableForm(Protocol):
    """Makes the form of a captured table's rows."""

    def __call__(self, table: Table, settings: PipelineSettings, *, custom_query: bool) -> SnapshotTable:
        """Return the table; the arguments are those of :func:`snapshot_table`."""
        ...


def snapshot_table(table: Table, settings: PipelineSettings, *, custom_query: bool) -> SnapshotTable:
    """Return a captured table whose rows become changes or messages, according to the settings.

    Args:
        table: the table's structure.
        settings: the pipeline's settings.
        custom_query: whether the query is one of ``snapshot.select.statement.overrides``.

    Raises:
        SnapshotError: the form of the records has no rows of snapshots.
    """
    if settings.form is not None and not settings.changes:
        raise SnapshotError(f"table {table.id}: the topic has no rows of snapshots; read them from a dump")
    made = ChangeTable if settings.changes else SnapshotTable
    return made(table, settings, custom_query=custom_query)
