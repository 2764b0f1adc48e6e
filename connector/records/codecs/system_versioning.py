"""MariaDB's system-versioned tables: finds the current rows among the row versions in the binlog.

A change logs the old version of the row as one more row, whose row_end is in the past, and a DELETE is an update that
sets row_end. Records describe the table as a query sees it: historical rows are skipped, and the end of a row is its
deletion. With ``skipped.operations=u`` these deletions are skipped too. Tables versioned by transaction ids have no row
events: MariaDB logs their changes as statements.
"""

from collections.abc import Callable, Sequence

from rowtide.connector.protocol.events.classes import Rows, RowsKind
from rowtide.connector.records.codecs.recently_used import MAX_DECODERS, RecentlyUsed
from rowtide.connector.rows.column_output import ColumnOutput
from rowtide.connector.rows.layouts import ColumnDecoding
from rowtide.connector.rows.row_compiler import Column, ValueRows
from rowtide.connector.rows.row_decoder import value_rows
from rowtide.envelope.json.text import DEFAULT_FORMAT
from rowtide.envelope.schema import STRING
from rowtide.envelope.types.column_type import ColumnType, Fallback
from rowtide.schema_history.model import Extra, Table

_LAST_SECOND = 2**31 - 1
"""The largest TIMESTAMP, in 2038; since MariaDB 11.5 it is in 2106."""


def row_end(table: Table) -> int | None:
    """Return the index of the row_end column; ``None`` for a table without system versioning."""
    return next((place for place, column in enumerate(table.row_columns) if column.row is Extra.ROW_END), None)


def is_current(end: int | None) -> bool:
    """Return whether a row version is the current one.

    Args:
        end: row_end in µs since the epoch; ``None`` if the image does not hold it.
    """
    if end is None:
        return True
    seconds, micros = divmod(end, 1_000_000)
    return micros == 999_999 and seconds in (_LAST_SECOND, 2**32 - 1)


class CurrentRows:
    """Finds which row images of an event are current.

    Args:
        columns: all columns of the row images.
        end: index of the row_end column among them.
    """

    def __init__(self, columns: Sequence[Column], end: int) -> None:
        self._columns = [
            _end_column(column) if place == end else Column(column.layout, column.decoding, column.nullable, None)
            for place, column in enumerate(columns)
        ]
        self._ends: RecentlyUsed[tuple[bytes, ...], ValueRows] = RecentlyUsed(MAX_DECODERS)

    def of(self, event: Rows, layout: Callable[[bytes], Sequence[bool]]) -> list[bool]:
        """Return, for each image of an event, whether its row is current.

        Args:
            event: the event.
            layout: returns, for the bitmap of columns, whether images hold each of them.
        """
        present = (event.columns, event.columns_after) if event.kind is RowsKind.UPDATE else (event.columns,)
        ends = self._ends.get(present)
        if ends is None:
            ends = value_rows(self._columns, *map(layout, present))
            self._ends.put(present, ends)
        return [is_current(end) for (end,) in ends(event.buffer, event.start, event.end)]


def _end_column(column: Column) -> Column:
    text = ColumnType(STRING, "timestamp", lambda value: value, lambda v, _bind, _fallback: f"str({v})")
    output = ColumnOutput("end", text, Fallback("null", _refuse), None, STRING, DEFAULT_FORMAT)
    return Column(column.layout, ColumnDecoding("timestamp"), column.nullable, output)


def _refuse(value: object, error: Exception) -> None:
    raise ValueError("row_end cannot be converted") from error
