"""The base class of the codecs: decodes the row images of one table, and calls the codec for each kind of change.

A codec belongs to one structure of a table and one TABLE_MAP. It compiles a decoder for each set of columns that
images hold, and caches those that were used last.
"""

import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from rowtide.connector.protocol.events.classes import Rows, RowsKind
from rowtide.connector.records.batch import Batch, Headers
from rowtide.connector.records.change import DebeziumMessage, SourcePosition
from rowtide.connector.records.codecs.recently_used import RecentlyUsed
from rowtide.connector.records.codecs.system_versioning import CurrentRows
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.rows.partial_update import expand_images, with_json_diffs
from rowtide.connector.rows.row_compiler import Column
from rowtide.envelope.table import TableSchema

Row = TypeVar("Row")
"""A decoded image: its key and its row, in the form of the codec."""

Record = TypeVar("Record")
"""What the codec makes of a change."""

Decoder = Callable[[bytes, int, int], list[Row]]
"""From the event's bytes, the offset of the first image and the offset behind the last one to the decoded images."""

_Decoders = RecentlyUsed[tuple[bytes, ...], Decoder[Row]]
"""Decoders by the bitmaps of the columns that images hold."""

_MAX_DECODERS = 32
"""With minimal images, every set of changed columns has a decoder of its own."""


@dataclass(frozen=True, slots=True)
class EventContext:
    """What an event adds to the records of its rows: its position, and JSON text that is rendered once.

    Attributes:
        before_row: ``source`` up to the row number.
        after_row: ``source`` behind the row number.
        times: ``"ts_ms":…,"ts_us":…,"ts_ns":…`` of the processing.
        headers: of every record.
        transactions: returns the next ``"transaction":…`` fields, if transaction metadata is on.
        position: where the event stands.
        debezium: makes Debezium's message of a change, for codecs of changes.
    """

    before_row: str
    after_row: str
    times: str
    headers: Headers
    transactions: Callable[[int], Sequence[str]] | None = None
    position: SourcePosition | None = None
    debezium: DebeziumMessage | None = None


class RowsCodec(ABC, Generic[Row, Record]):
    """Turns row images of one table into records.

    Args:
        records: the schemas of the table's records.
        columns: all columns of the row images.
        insert_columns: the same for images of new rows that may lack columns, ``None`` without minimal images.
        current: finds the current rows of a system-versioned table; ``None`` for other tables.
    """

    def __init__(
        self,
        records: TableSchema,
        columns: Sequence[Column],
        insert_columns: Sequence[Column] | None = None,
        current: CurrentRows | None = None,
    ) -> None:
        self.records = records
        self._current = current
        self._columns = columns
        self._minimal_images = insert_columns is not None
        self._insert_columns = columns if insert_columns is None else insert_columns
        self._insert_decoders: _Decoders[Row] = RecentlyUsed(_MAX_DECODERS)
        self._decoders: _Decoders[Row] = RecentlyUsed(_MAX_DECODERS)
        self._partial_decoders: _Decoders[Row] = RecentlyUsed(_MAX_DECODERS)

    @property
    def topic(self) -> str:
        """The topic of the records."""
        return self.records.topic

    @abstractmethod
    def compiled(self, columns: Sequence[Column], *layouts: Sequence[bool], carry: bool) -> Decoder[Row]:
        """Compile the decoder of images.

        Args:
            columns: all columns of the table.
            layouts: for each column whether the images hold it; two of them if images come in pairs that differ.
            carry: whether a column that the second image of a pair leaves out has its value from the first one.
        """

    @abstractmethod
    def created(self, rows: Sequence[Row], first: int, context: EventContext) -> list[Record]:
        """The records of new rows; ``first`` is the row number of the first one in its event."""

    @abstractmethod
    def updated(self, before: Sequence[Row], after: Sequence[Row], first: int, context: EventContext) -> list[Record]:
        """The records of changed rows."""

    @abstractmethod
    def deleted(self, rows: Sequence[Row], first: int, context: EventContext) -> list[Record]:
        """The records of deleted rows."""

    @abstractmethod
    def packed(self, records: Sequence[Record], event: Rows, offset: SourceOffset, ts_ms: int) -> Batch:
        """The batch of an event's records, with the offset behind them."""

    def batch(
        self,
        event: Rows,
        rows: Sequence[Row],
        skip: int,
        context: EventContext,
        offset: Callable[[], SourceOffset],
    ) -> Batch | None:
        """The batch of an event's rows, without the first ``skip`` rows of it; ``None`` if nothing is published.

        Args:
            event: the event.
            rows: its images, from :meth:`rows`.
            skip: rows that are published already.
            context: of the event.
            offset: returns the offset behind the event; it is called when the records are made.
        """
        made = self.messages(event, rows, skip, context)
        if not made:
            return None
        position = context.position
        return self.packed(made, event, offset(), 0 if position is None else position.ts_us // 1000)

    def rows(self, event: Rows) -> list[Row]:
        """The key and the row of each image of an event; the images of updates come in pairs.

        Raises:
            ValueError: the images do not match the structure.
        """
        if event.partial:
            return self.decode_partial(event.buffer, event.start, event.end, event.columns, event.columns_after)
        if event.kind is RowsKind.UPDATE:
            return self.decode(event.buffer, event.start, event.end, event.columns, event.columns_after)
        if self._minimal_images and event.kind is RowsKind.WRITE:
            present = (event.columns,)
            rows = self._insert_decoders.get(present)
            if rows is None:
                rows = self._compiled(present, self._insert_columns)
                self._insert_decoders.put(present, rows)
            return self._decoded(rows, event.buffer, event.start, event.end)
        return self.decode(event.buffer, event.start, event.end, event.columns)

    def messages(self, event: Rows, rows: Sequence[Row], skip: int, context: EventContext) -> list[Record]:
        """The records of an event's rows, without the first ``skip`` rows of it."""
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
        """The records of what an event changes among the current rows of a system-versioned table."""
        made: list[Record] = []
        step = 2 if event.kind is RowsKind.UPDATE else 1
        for place in range(skip, len(rows) // step):
            first, last = place * step, place * step + step - 1
            before = rows[first] if event.kind is not RowsKind.WRITE and current[first] else None
            after = rows[last] if event.kind is not RowsKind.DELETE and current[last] else None
            if before is not None and after is not None:
                made += self.updated([before], [after], place, context)
            elif after is not None:
                made += self.created([after], place, context)
            elif before is not None:
                made += self.deleted([before], place, context)
        return made

    def decode(self, buffer: bytes, start: int, end: int, *present: bytes) -> list[Row]:
        """The key and the row of each image, in the form of the codec.

        Args:
            buffer: the event.
            start: of the first image.
            end: of the last image.
            present: bitmap of the columns in the images; two of them for pairs of images.

        Raises:
            ValueError: the images do not fit the structure.
        """
        rows = self._decoders.get(present)
        if rows is None:
            rows = self._compiled(present, self._columns)
            self._decoders.put(present, rows)
        return self._decoded(rows, buffer, start, end)

    def _decoded(self, rows: Decoder[Row], buffer: bytes, start: int, end: int) -> list[Row]:
        try:
            return rows(buffer, start, end)
        except (struct.error, IndexError) as error:
            raise ValueError(
                f"the row images of table {self.records.table.id} end inside a value ({error}): the structure does not "
                "match, or the event is damaged"
            ) from error

    def decode_partial(self, buffer: bytes, start: int, end: int, before: bytes, after: bytes) -> list[Row]:
        """As :meth:`decode`, for pairs of images whose second one may hold differences of JSON documents."""
        present = before, after
        rows = self._partial_decoders.get(present)
        if rows is None:
            rows = self._compiled(present, with_json_diffs(self._columns))
            self._partial_decoders.put(present, rows)
        layouts = [column.layout for column in self._columns]
        whole = expand_images(buffer, start, end, layouts, *(self.present_columns(bitmap) for bitmap in present))
        return rows(whole, 0, len(whole))

    def present_columns(self, present: bytes) -> list[bool]:
        """For each column whether images with that bitmap hold it."""
        return [bool(present[index >> 3] >> (index & 7) & 1) for index in range(len(self._columns))]

    def _compiled(self, present: tuple[bytes, ...], columns: Sequence[Column]) -> Decoder[Row]:
        layouts = [self.present_columns(bitmap) for bitmap in present]
        if len(layouts) == 2 and layouts[0] == layouts[1] and any(layouts[0]):
            del layouts[1]  # pairs of one layout are a sequence of it
        if self._minimal_images:
            self._refuse_keyless(layouts[0], columns)
        else:
            for place, layout in enumerate(layouts):
                self._refuse_partial(layout, after=place == len(layouts) - 1)
        return self.compiled(columns, *layouts, carry=self._minimal_images)

    def _refuse_partial(self, layout: Sequence[bool], *, after: bool) -> None:
        """Refuse images without columns other than BLOB and TEXT (NOBLOB), which have a placeholder."""
        missing = [
            column.output.field
            for column, present in zip(self._columns, layout, strict=True)
            if column.output and not present and column.absent_value is None
        ]
        if missing:
            image = "after" if after else "before"
            names = ", ".join(missing)
            raise ValueError(
                f"the {image} image of a row of table {self.records.table.id} lacks the columns {names}: "
                "a session changed rows with binlog_row_image=MINIMAL. Let all sessions use FULL or NOBLOB, or set "
                "binlog.row.image.minimal.allowed=true to have a placeholder or null for what is missing"
            )

    def _refuse_keyless(self, layout: Sequence[bool], columns: Sequence[Column]) -> None:
        """Refuse images without a column of the key."""
        for index in self.records.key_columns:
            output = columns[index].output
            has_default = columns is self._insert_columns and columns[index].default_text is not None
            if output is not None and not layout[index] and not has_default:
                raise ValueError(
                    f"a row image of table {self.records.table.id} lacks {output.field}, which is part of the key: a "
                    "session changed rows with binlog_row_image=MINIMAL. Let all sessions use FULL, or take the "
                    "primary key (message.key.columns)"
                )
