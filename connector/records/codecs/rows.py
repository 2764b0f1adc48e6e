"""The base class of the codecs of records: decodes row images, and calls the codec for each kind of change.

A codec belongs to one structure of a table and one TABLE_MAP.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Generic, NamedTuple, TypeVar

from rowtide.connector.protocol.events.classes import Rows, RowsKind
from rowtide.connector.protocol.json.binary import STREAM, JsonStyle
from rowtide.connector.records.batch import Batch, Headers
from rowtide.connector.records.change import DebeziumMessage, SourcePosition
from rowtide.connector.records.codecs.row_images import Row, RowImages
from rowtide.connector.records.codecs.system_versioning import CurrentRows
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.rows.row_compiler import Column
from rowtide.envelope.table import TableSchema

Record = TypeVar("Record")
"""The codec's output for a change."""


_MAX_ROWS = 4096
"""Rows in a batch at most. A row event has more only if ``binlog_row_event_max_size`` is larger than 8 KB."""
_MAX_QUERY_BYTES = 16 << 20
"""Bytes of SQL in a batch at most: with ``include.query`` each record repeats its statement."""


class EventContext(NamedTuple):
    """The parts that an event adds to the records of its rows: its position, and JSON text that is rendered once.

    Attributes:
        before_row: ``source`` up to the row number.
        after_row: ``source`` after the row number.
        times: ``"ts_ms":…,"ts_us":…,"ts_ns":…`` of the processing.
        headers: of every record.
        transactions: returns the next ``"transaction":…`` fields, if transaction metadata is on.
        position: the position of the event.
        debezium: makes Debezium's message of a change, for codecs of changes.
    """

    before_row: str
    after_row: str
    times: str
    headers: Headers
    transactions: Callable[[int], Sequence[str]] | None = None
    position: SourcePosition | None = None
    debezium: DebeziumMessage | None = None


class RowsCodec(RowImages[Row], Generic[Row, Record]):
    """Turns row images of one table into records.

    Args:
        records: the schemas of the table's records.
        columns: all columns of the row images.
        insert_columns: the same for images of new rows that may lack columns, ``None`` without minimal images.
        current: finds the current rows of a system-versioned table; ``None`` for other tables.
        json_style: how to write documents that an event changes in part.
    """

    def __init__(
        self,
        records: TableSchema,
        columns: Sequence[Column],
        insert_columns: Sequence[Column] | None = None,
        current: CurrentRows | None = None,
        json_style: JsonStyle = STREAM,
    ) -> None:
        super().__init__(records.table.id, columns, records.key_columns, insert_columns, json_style)
        self.records = records
        self._current = current

    @property
    def topic(self) -> str:
        """The topic of the records."""
        return self.records.topic

    def batch_rows(self, event: Rows, rows: int, position: SourcePosition) -> int:
        """Return the maximum number of rows of an event in a batch.

        Args:
            event: the event.
            rows: the number of its rows.
            position: its position.
        """
        query = position.query
        return _MAX_ROWS if query is None else min(_MAX_ROWS, _MAX_QUERY_BYTES // (len(query) + 1) + 1)

    @abstractmethod
    def created(self, rows: Sequence[Row], first: int, context: EventContext) -> list[Record]:
        """Return the records of new rows; ``first`` is the row number of the first one in its event."""

    @abstractmethod
    def updated(self, before: Sequence[Row], after: Sequence[Row], first: int, context: EventContext) -> list[Record]:
        """Return the records of changed rows."""

    @abstractmethod
    def deleted(self, rows: Sequence[Row], first: int, context: EventContext) -> list[Record]:
        """Return the records of deleted rows."""

    @abstractmethod
    def packed(self, records: Sequence[Record], event: Rows, offset: SourceOffset, ts_ms: int) -> Batch:
        """Return the batch of an event's records, with the offset after them."""

    def batch(
        self,
        event: Rows,
        rows: Sequence[Row],
        skip: int,
        context: EventContext,
        offset: Callable[[], SourceOffset],
    ) -> Batch | None:
        """Return the batch of an event's rows, without the first ``skip`` rows of it; ``None`` if nothing is published.

        Args:
            event: the event.
            rows: its images, from :meth:`rows`.
            skip: the number of rows that are already published.
            context: of the event.
            offset: returns the offset after the event; it is called when the records are made.
        """
        made = self.messages(event, rows, skip, context)
        if not made:
            return None
        position = context.position
        return self.packed(made, event, offset(), 0 if position is None else position.ts_us // 1000)

    def messages(self, event: Rows, rows: Sequence[Row], skip: int, context: EventContext) -> list[Record]:
        """Return the records of an event's rows, without the first ``skip`` rows of it."""
        if self._current is not None:
            return self._current_messages(event, rows, skip, context, self._current.of(event, self.present_columns))
        if event.kind is RowsKind.WRITE:
            return self.created(rows[skip:], skip, context)
        if event.kind is RowsKind.DELETE:
            return self.deleted(rows[skip:], skip, context)
        return self.updated(rows[2 * skip :: 2], rows[2 * skip + 1 :: 2], skip, context)

    def _current_messages(
        self, event: Rows, rows: Sequence[Row], skip: int, context: EventContext, current: Sequence[bool]
    ) -> list[Record]:
        """Return the records of an event's changes to the current rows of a system-versioned table."""
        made: list[Record] = []
        step = 2 if event.kind is RowsKind.UPDATE else 1

        def images(place: int) -> tuple[bool, bool]:
            """Return whether there is a current row before and after the change at a place."""
            first, last = place * step, place * step + step - 1
            return event.kind is not RowsKind.WRITE and current[first], event.kind is not RowsKind.DELETE and current[
                last
            ]

        for (before, after), run in groupby(range(skip, len(rows) // step), images):
            places = list(run)
            begin, first, end = places[0], places[0] * step, (places[-1] + 1) * step
            if before and after:
                made += self.updated(rows[first:end:step], rows[first + 1 : end : step], begin, context)
            elif after:
                made += self.created(rows[first + step - 1 : end : step], begin, context)
            elif before:
                made += self.deleted(rows[first:end:step], begin, context)
        return made
