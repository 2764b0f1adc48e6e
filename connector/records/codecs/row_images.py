"""Decodes the row images of one table: from the bytes of a row event to rows in a codec's form.

It compiles a decoder for each set of columns that images hold, and caches the most recently used ones.
"""

import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from rowtide.connector.protocol.events.classes import Rows, RowsKind
from rowtide.connector.protocol.json.binary import STREAM, JsonStyle
from rowtide.connector.records.codecs.recently_used import MAX_DECODERS, RecentlyUsed
from rowtide.connector.rows.partial_update import expand_images, with_json_diffs
from rowtide.connector.rows.row_compiler import Column
from rowtide.schema_history.model import TableId

Row = TypeVar("Row")
"""A decoded image, in the form of the codec."""

Decoder = Callable[[bytes, int, int], list[Row]]
"""From the event's bytes, the offset of the first image and the offset after the last one to the decoded images."""

_Decoders = RecentlyUsed[tuple[bytes, ...], Decoder[Row]]
"""Decoders by the bitmaps of the columns that images hold."""


class RowImages(ABC, Generic[Row]):
    """Decodes the row images of one table.

    Args:
        table: the table, for messages.
        columns: all columns of the row images.
        key_columns: indexes of the columns of the key, which images must contain.
        insert_columns: the columns for images of new rows that may lack columns, ``None`` without minimal images.
        json_style: how to write documents that an event changes in part.
    """

    def __init__(
        self,
        table: TableId,
        columns: Sequence[Column],
        key_columns: Sequence[int],
        insert_columns: Sequence[Column] | None = None,
        json_style: JsonStyle = STREAM,
    ) -> None:
        self._table = table
        self._columns = columns
        self._key_columns = key_columns
        self._minimal_images = insert_columns is not None
        self._insert_columns = columns if insert_columns is None else insert_columns
        self._json_style = json_style
        self._insert_decoders: _Decoders[Row] = RecentlyUsed(MAX_DECODERS)
        self._decoders: _Decoders[Row] = RecentlyUsed(MAX_DECODERS)
        self._partial_decoders: _Decoders[Row] = RecentlyUsed(MAX_DECODERS)

    @abstractmethod
    def compiled(self, columns: Sequence[Column], *layouts: Sequence[bool], carry: bool) -> Decoder[Row]:
        """Compile the decoder of images.

        Args:
            columns: all columns of the table.
            layouts: for each column whether the images hold it; two of them if images come in pairs that differ.
            carry: whether a column that the second image of a pair omits has its value from the first one.
        """

    def rows(self, event: Rows) -> list[Row]:
        """Return each image of an event; the images of updates come in pairs.

        Raises:
            ValueError: the images do not match the structure.
        """
        if event.kind is RowsKind.UPDATE:
            decode = self.decode_partial if event.partial else self.decode
            return self._paired(decode(event.buffer, event.start, event.end, event.columns, event.columns_after))
        if self._minimal_images and event.kind is RowsKind.WRITE:
            present = (event.columns,)
            rows = self._insert_decoders.get(present)
            if rows is None:
                rows = self._compiled(present, self._insert_columns)
                self._insert_decoders.put(present, rows)
            return self._decoded(rows, event.buffer, event.start, event.end)
        return self.decode(event.buffer, event.start, event.end, event.columns)

    def _paired(self, rows: list[Row]) -> list[Row]:
        """Return the images of updates. An image without its partner would be a lost change, and is refused."""
        if len(rows) % 2:
            raise ValueError(
                f"an update of table {self._table} has {len(rows)} row images instead of pairs: the structure does not "
                "match, or the event is damaged"
            )
        return rows

    def decode(self, buffer: bytes, start: int, end: int, *present: bytes) -> list[Row]:
        """Return each image, in the form of the codec.

        Args:
            buffer: the event.
            start: of the first image.
            end: of the last image.
            present: bitmap of the columns in the images; two of them for pairs of images.

        Raises:
            ValueError: the images do not match the structure.
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
                f"the row images of table {self._table} end inside a value ({error}): the structure does not "
                "match, or the event is damaged"
            ) from error

    def decode_partial(self, buffer: bytes, start: int, end: int, before: bytes, after: bytes) -> list[Row]:
        """Decode pairs of images, as :meth:`decode` does; the second one may hold differences of JSON documents."""
        present = before, after
        rows = self._partial_decoders.get(present)
        if rows is None:
            rows = self._compiled(present, with_json_diffs(self._columns, self._json_style))
            self._partial_decoders.put(present, rows)
        layouts = [column.layout for column in self._columns]
        whole = expand_images(buffer, start, end, layouts, *(self.present_columns(bitmap) for bitmap in present))
        return rows(whole, 0, len(whole))

    def present_columns(self, present: bytes) -> list[bool]:
        """Return, for each column, whether images with that bitmap hold it."""
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
                f"the {image} image of a row of table {self._table} lacks the columns {names}: "
                "a session changed rows with binlog_row_image=MINIMAL. Let all sessions use FULL or NOBLOB, or set "
                "binlog.row.image.minimal.allowed=true to get a placeholder or null for what is missing"
            )

    def _refuse_keyless(self, layout: Sequence[bool], columns: Sequence[Column]) -> None:
        """Refuse images without a column of the key."""
        for index in self._key_columns:
            output = columns[index].output
            has_default = columns is self._insert_columns and columns[index].default_text is not None
            if output is not None and not layout[index] and not has_default:
                raise ValueError(
                    f"a row image of table {self._table} lacks {output.field}, which is part of the key: a "
                    "session changed rows with binlog_row_image=MINIMAL. Let all sessions use FULL, or take the "
                    "primary key (message.key.columns)"
                )
