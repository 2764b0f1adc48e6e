"""The codec of Python values: converts a table's row images to :class:`~rowtide.connector.records.change.Change`."""

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any

from rowtide.connector.protocol.events.classes import Rows, RowsKind
from rowtide.connector.protocol.json.binary import JsonStyle
from rowtide.connector.records.batch import Batch
from rowtide.connector.records.change import Change, Layout, Op
from rowtide.connector.records.codecs.debezium_messages import TableCodec
from rowtide.connector.records.codecs.rows import EventContext, RowsCodec
from rowtide.connector.records.codecs.system_versioning import CurrentRows
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.rows.row_compiler import Column, KeyValueRows
from rowtide.connector.rows.row_decoder import key_value_rows
from rowtide.envelope.table import TableSchema
from rowtide.envelope.types.masking import keeps_apart

Values = tuple[tuple[Any, ...], tuple[Any, ...]]
"""The values of a key, and those of a row."""


class ChangeCodec(RowsCodec[Values, Change]):
    """Turns row images of one table into changes.

    Args:
        records: the schemas of the table's records.
        columns: all columns of the row images, with Python values as their output.
        skip_unchanged: ``skip.messages.without.change``.
        minimal_images: whether images may lack columns (``binlog.row.image.minimal.allowed``).
        current: finds the current rows of a system-versioned table.
        json_style: how to write documents that an event changes in part.
        messages: creates the codec of Debezium's messages for the same table; called when a message is requested.
    """

    def __init__(
        self,
        records: TableSchema,
        columns: Sequence[Column],
        *,
        skip_unchanged: bool,
        minimal_images: bool,
        current: CurrentRows | None,
        json_style: JsonStyle,
        messages: Callable[[], TableCodec],
    ) -> None:
        super().__init__(records, columns, columns if minimal_images else None, current, json_style)
        self._skip_unchanged = skip_unchanged
        self._make_messages = messages
        self.layout_of_rows = table_layout(records)

    @cached_property
    def debezium(self) -> TableCodec:
        """The codec of Debezium's messages."""
        return self._make_messages()

    def compiled(self, columns: Sequence[Column], *layouts: Sequence[bool], carry: bool) -> KeyValueRows:
        """Compile the function that reads Python values."""
        return key_value_rows(columns, self.records.key_columns, *layouts, carry=carry)

    def batch(
        self,
        event: Rows,
        rows: Sequence[Values],
        skip: int,
        context: EventContext,
        offset: Callable[[], SourceOffset],
    ) -> Batch | None:
        """Return the batch of an event's changes.

        While the change exists, it can be converted to Debezium's message.
        """
        return super().batch(event, rows, skip, context._replace(debezium=_Messages(self, event, context)), offset)

    def packed(self, records: Sequence[Change], event: Rows, offset: SourceOffset, ts_ms: int) -> Batch:
        """Return the batch of an event's changes.

        Its size is about that of the event and of their objects in memory.
        """
        images = 2 if event.kind is RowsKind.UPDATE else 1
        size = event.end - event.start + len(records) * images * self.layout_of_rows.image_bytes
        return Batch(self.topic, -1, (), offset, size, ts_ms, changes=records)

    def created(self, rows: Sequence[Values], first: int, context: EventContext) -> list[Change]:
        """Return one ``c`` for each image."""
        return self._changes("c", ((key, None, row) for key, row in rows), len(rows), first, context)

    def deleted(self, rows: Sequence[Values], first: int, context: EventContext) -> list[Change]:
        """Return one ``d`` for each image."""
        return self._changes("d", ((key, row, None) for key, row in rows), len(rows), first, context)

    def updated(
        self, before: Sequence[Values], after: Sequence[Values], first: int, context: EventContext
    ) -> list[Change]:
        """Return one ``u`` for each pair of images; where the key changes, a ``d`` and a ``c``."""
        keys_stay = [key for key, _ in before] == [key for key, _ in after]
        if keys_stay and not self._skip_unchanged:
            rows = ((key, old, new) for (_, old), (key, new) in zip(before, after, strict=True))
            return self._changes("u", rows, len(after), first, context)
        made: list[Change] = []
        for row, (old, new) in enumerate(zip(before, after, strict=True), first):
            if old[0] != new[0]:
                made += self.deleted([old], row, context)
                made += self.created([new], row, context)
            elif not self._skip_unchanged or old[1] != new[1]:
                made += self._changes("u", [(new[0], old[1], new[1])], 1, row, context)
        return made

    def _changes(
        self,
        op: Op,
        rows: Iterable[tuple[tuple[Any, ...], tuple[Any, ...] | None, tuple[Any, ...] | None]],
        count: int,
        first: int,
        context: EventContext,
    ) -> list[Change]:
        layout, position, debezium = self.layout_of_rows, context.position, context.debezium
        assert position is not None
        assert debezium is not None
        if context.transactions is None:
            return [
                Change(op, layout, key, before, after, position, row, debezium)
                for row, (key, before, after) in enumerate(rows, first)
            ]
        texts = context.transactions(count)
        return [
            Change(op, layout, key, before, after, position, row, debezium, text)
            for row, ((key, before, after), text) in enumerate(zip(rows, texts, strict=True), first)
        ]


class _Messages:
    """Makes Debezium's messages of an event's changes.

    The images are decoded for this when the first message is needed.
    """

    def __init__(self, codec: ChangeCodec, event: Rows, context: EventContext) -> None:
        self._codec = codec
        self._event = event
        self._context = context
        self._rows: list[tuple[str, str]] | None = None

    def __call__(self, change: Change) -> tuple[bytes | None, bytes]:
        if self._rows is None:
            self._rows = self._codec.debezium.rows(self._event)
        rows, text, context = self._rows, change.transaction_text, self._context
        if text is not None:
            context = context._replace(transactions=lambda _count: [text])
        first = last = change.row
        if self._event.kind is RowsKind.UPDATE:
            first, last = 2 * change.row, 2 * change.row + 1
        before = rows[first] if change.op in ("u", "d") else None
        after = rows[last] if change.op != "d" else None
        return self._codec.debezium.message(change.op, before, after, change.row, context)


def table_layout(records: TableSchema) -> Layout:
    """Return the names of a table's columns in rows and keys: those of MySQL, not adjusted for Avro."""
    names = [column.column.name for column in records.columns if column.in_value]
    by_index = {column.index: column.column.name for column in records.columns}
    keys = [by_index[index] for index in records.key_columns]
    masked = [one.column.name for one in records.columns if one.mapper is not None and not keeps_apart(one.mapper)]
    return Layout(records.table, records.topic, names, keys, masked)
