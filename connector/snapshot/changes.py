"""A captured table while a snapshot reads its rows as Python values."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from rowtide.connector.records.batch import Batch
from rowtide.connector.records.change import UNAVAILABLE, Change, DebeziumMessage, SourcePosition
from rowtide.connector.records.codecs.builder import absent_value, column_output
from rowtide.connector.records.codecs.changes import table_layout
from rowtide.connector.records.codecs.python_values import python_output
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.records.settings import PipelineSettings
from rowtide.connector.rows.text_protocol_rows import ResultColumn, Rows, TextRows, key_value_rows
from rowtide.connector.snapshot.records import Moment, SnapshotTable
from rowtide.envelope.source import Snapshot
from rowtide.schema_history.model import Table


class ChangeTable(SnapshotTable):
    """A captured table whose rows become changes instead of messages."""

    def __init__(self, table: Table, settings: PipelineSettings) -> None:
        super().__init__(table, settings)
        self._layout = table_layout(self._records)
        self._row_bytes = 0

    def reader(self, names: Sequence[str]) -> TextRows:
        """Compile the reader of a result set; each row also has its place in the piece that it was read from."""
        columns = []
        for record in self._records.columns:
            output = python_output(column_output(record, self._settings), record)
            absent = None if absent_value(record.column, record, self._settings) is None else UNAVAILABLE
            columns.append(ResultColumn(record.column, output, "", absent))
        compiled = key_value_rows(columns, self._key_places(), names)
        json_reader = super().reader

        def rows(buffer: bytes) -> tuple[Rows, int]:
            found, stop = compiled.rows(buffer)
            piece = _Piece(lambda: json_reader(names).rows(buffer)[0])
            self._row_bytes = stop // max(1, len(found))
            return [(key, row, piece, place) for place, (key, row) in enumerate(found)], stop

        def row(payload: bytes) -> tuple[Any, ...]:
            self._row_bytes = len(payload)
            return (*compiled.row(payload), _Piece(lambda: [json_reader(names).row(payload)]), 0)

        return TextRows(rows, row)

    def messages(self, rows: Rows, marker: Snapshot, moment: Moment) -> Sequence[Any]:
        """The changes of rows that have the same marker."""
        now = moment.clock()
        moment = replace(moment, clock=lambda: now)
        offset = moment.offset
        position = SourcePosition(offset.file, offset.pos, None, 0, None, None, moment.micros, now, snapshot=marker)
        json_messages = super().messages

        def debezium(piece: _Piece, place: int) -> DebeziumMessage:
            def message(_change: Change) -> tuple[bytes | None, bytes]:
                ((key, value, _headers),) = json_messages([piece.row(place)], marker, moment)
                return key, value

            return message

        return [
            Change("r", self._layout, key, None, row, position, 0, debezium(piece, place))
            for key, row, piece, place in rows
        ]

    def batch(self, messages: Sequence[Any], ts_ms: int, offset: SourceOffset) -> Batch:
        """The batch of changes; its size is estimated from that of the last rows."""
        return Batch(self.topic, -1, (), offset, len(messages) * self._row_bytes, ts_ms, changes=messages)


class _Piece:
    """A piece of a result set, whose rows are read as JSON when one is needed.

    Args:
        read: reads them.
    """

    __slots__ = ("_read", "_rows")

    def __init__(self, read: Callable[[], Rows]) -> None:
        self._read = read
        self._rows: Rows | None = None

    def row(self, place: int) -> tuple[Any, ...]:
        """The row at a place, as JSON."""
        if self._rows is None:
            self._rows = self._read()
        return self._rows[place]


def snapshot_table(table: Table, settings: PipelineSettings) -> SnapshotTable:
    """A captured table in the form that the settings ask for."""
    return ChangeTable(table, settings) if settings.changes else SnapshotTable(table, settings)
