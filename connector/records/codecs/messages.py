"""From the row images of one table to messages: everything about a table that is worth computing only once.

A codec belongs to one structure of a table and one form of its TABLE_MAP. It compiles the row decoder, keeps the schema
half of every key and value as bytes, and joins the rest per row. It knows neither positions nor transactions: an
:class:`EventContext` brings what an event adds.
"""

import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import repeat

from rowtide.connector.protocol.events.classes import Rows, RowsKind
from rowtide.connector.records.batch import Headers, Message
from rowtide.connector.rows.compiler import Column, TextRows, text_rows
from rowtide.connector.rows.partial_update import whole_images, with_json_parts
from rowtide.envelope.json.headers import header_text
from rowtide.envelope.json.reader import parse_value
from rowtide.envelope.json.text import schema_text, value_text
from rowtide.envelope.schema import Schema
from rowtide.envelope.settings import JsonSettings
from rowtide.envelope.table import TableSchema

NO_TRANSACTION = '"transaction":null'
_MARK = "\0"
"""Stands before a default that is written for null, while rows are compared; JSON text has no such character."""


@dataclass(frozen=True, slots=True)
class EventContext:
    """What an event adds to the records of its rows, as JSON text.

    Attributes:
        before_row: ``source`` up to the row number.
        after_row: ``source`` behind the row number.
        times: ``"ts_ms":…,"ts_us":…,"ts_ns":…`` of the processing.
        headers: of every record.
        transactions: gives the next ``"transaction":…`` fields, if transaction metadata is on.
    """

    before_row: str
    after_row: str
    times: str
    headers: Headers
    transactions: Callable[[int], Sequence[str]] | None = None


class TableCodec:
    """Turns row images of one table into messages."""

    def __init__(
        self,
        records: TableSchema,
        columns: Sequence[Column],
        key_settings: JsonSettings,
        value_settings: JsonSettings,
        *,
        tombstones: bool,
        skip_unchanged: bool,
        minimal_images: bool = False,
    ) -> None:
        self.records = records
        self._columns = [_marked(column) for column in columns] if skip_unchanged else columns
        self._marks = self._columns != columns
        self._tombstones = tombstones
        self._skip_unchanged = skip_unchanged
        self._minimal_images = minimal_images
        self._inserted_columns = [_inserted(column) for column in self._columns] if minimal_images else self._columns
        self._insert_decoders: dict[bytes, TextRows] = {}
        self._decoders: dict[tuple[bytes, ...], TextRows] = {}
        self._partial_decoders: dict[tuple[bytes, ...], TextRows] = {}
        self._key_open, self._key_close = wrapping(records.key, key_settings)
        self._value_open, self._value_close = wrapping(records.envelope, value_settings)
        self._keyed = records.key is not None
        self.schemas = records.key, records.envelope

    @property
    def topic(self) -> str:
        """The topic of the records."""
        return self.records.topic

    def rows(self, event: Rows) -> list[tuple[str, str]]:
        """The key and the row of each image of an event, as JSON; the images of updates come in pairs.

        Raises:
            ValueError: the images do not fit the structure.
        """
        if event.partial:
            return self.decode_partial(event.buffer, event.start, event.end, event.columns, event.columns_after)
        if event.kind is RowsKind.UPDATE:
            return self.decode(event.buffer, event.start, event.end, event.columns, event.columns_after)
        if self._minimal_images and event.kind is RowsKind.WRITE:
            rows = self._insert_decoders.get(event.columns)
            if rows is None:
                rows = self._compiled((event.columns,), self._inserted_columns)
                self._insert_decoders[event.columns] = rows
            return self._decoded(rows, event.buffer, event.start, event.end)
        return self.decode(event.buffer, event.start, event.end, event.columns)

    def messages(self, event: Rows, rows: Sequence[tuple[str, str]], skip: int, context: EventContext) -> list[Message]:
        """The messages of an event's rows, without the first ``skip`` rows of it."""
        if event.kind is RowsKind.WRITE:
            return self.plain(self.created(rows[skip:], skip, context))
        if event.kind is RowsKind.DELETE:
            return self.plain(self.deleted(rows[skip:], skip, context))
        return self.plain(self.updated(rows[2 * skip :: 2], rows[2 * skip + 1 :: 2], skip, context))

    def plain(self, messages: list[Message]) -> list[Message]:
        """The messages without the marks of nulls, which have served when rows were compared."""
        if not self._marks:
            return messages
        mark = _MARK.encode()
        return [
            (key and key.replace(mark, b""), value and value.replace(mark, b""), headers)
            for key, value, headers in messages
        ]

    def decode(self, buffer: bytes, start: int, end: int, *present: bytes) -> list[tuple[str, str]]:
        """The key and the row of each image, as JSON.

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
            rows = self._decoders[present] = self._compiled(present, self._columns)
        return self._decoded(rows, buffer, start, end)

    def _decoded(self, rows: TextRows, buffer: bytes, start: int, end: int) -> list[tuple[str, str]]:
        try:
            return rows(buffer, start, end)
        except (struct.error, IndexError) as error:
            raise ValueError(
                f"the row images of table {self.records.table.id} end inside a value ({error}): the structure does not "
                "fit, or the event is damaged"
            ) from error

    def decode_partial(self, buffer: bytes, start: int, end: int, before: bytes, after: bytes) -> list[tuple[str, str]]:
        """As :meth:`decode`, for pairs of images of which the second may hold differences of JSON documents."""
        present = before, after
        rows = self._partial_decoders.get(present)
        if rows is None:
            rows = self._partial_decoders[present] = self._compiled(present, with_json_parts(self._columns))
        layout = [column.wire for column in self._columns]
        whole = whole_images(buffer, start, end, layout, *(self.layout(bitmap) for bitmap in present))
        return rows(whole, 0, len(whole))

    def layout(self, present: bytes) -> list[bool]:
        """For each column whether images with that bitmap hold it."""
        return [bool(present[index >> 3] >> (index & 7) & 1) for index in range(len(self._columns))]

    def _compiled(self, present: tuple[bytes, ...], columns: Sequence[Column]) -> TextRows:
        layouts = [self.layout(bitmap) for bitmap in present]
        if len(layouts) == 2 and layouts[0] == layouts[1]:
            del layouts[1]  # pairs of one layout are a sequence of it
        if self._minimal_images:
            self._refuse_keyless(layouts[0], columns)
        else:
            for place, layout in enumerate(layouts):
                self._refuse_partial(layout, after=place == len(layouts) - 1)
        key, constants = self.records.key_columns, self.records.key_constants
        return text_rows(columns, key, *layouts, key_constants=constants, carry=self._minimal_images)

    def _refuse_partial(self, layout: Sequence[bool], *, after: bool) -> None:
        """A row image may leave out BLOB and TEXT columns (NOBLOB), for which there is a placeholder, but no others."""
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
        """A key cannot be made of what the first image of a row leaves out."""
        for index in self.records.key_columns:
            output = columns[index].output
            told = columns is self._inserted_columns and columns[index].inserted_text is not None
            if output is not None and not layout[index] and not told:
                raise ValueError(
                    f"a row image of table {self.records.table.id} lacks {output.field}, which is part of the key: a "
                    "session changed rows with binlog_row_image=MINIMAL. Let all sessions use FULL, or take the "
                    "primary key (message.key.columns)"
                )

    def created(self, rows: Sequence[tuple[str, str]], first: int, context: EventContext) -> list[Message]:
        """One ``c`` record for each image."""
        values = self._values("c", rows, None, first, context)
        return list(zip(self._keys(rows), values, repeat(context.headers)))

    def deleted(self, rows: Sequence[tuple[str, str]], first: int, context: EventContext) -> list[Message]:
        """One ``d`` record for each image, each with its tombstone."""
        headers, values = context.headers, self._values("d", None, rows, first, context)
        if not self._tombstones:
            return list(zip(self._keys(rows), values, repeat(headers)))
        messages: list[Message] = []
        for key, value in zip(self._keys(rows), values, strict=True):
            messages += ((key, value, headers), (key, None, headers))  # also without a key: Debezium does not ask
        return messages

    def updated(
        self,
        before: Sequence[tuple[str, str]],
        after: Sequence[tuple[str, str]],
        first: int,
        context: EventContext,
    ) -> list[Message]:
        """One ``u`` record for each pair of images; where the key changes, ``d``, tombstone and ``c``.

        With ``skip.messages.without.change`` none for an update that changed nothing that is published. Debezium then
        drops a change of the key too, where only the key has the changed column: that would be a lost change.
        """
        keys_stay = not self._keyed or [key for key, _ in before] == [key for key, _ in after]
        if keys_stay and not self._skip_unchanged:
            values = self._values("u", after, before, first, context)
            return list(zip(self._keys(after), values, repeat(context.headers)))
        messages: list[Message] = []
        for row, (old, new) in enumerate(zip(before, after, strict=True), first):
            if old[0] != new[0]:
                messages.extend(self._moved(old, new, row, context))
            elif not self._skip_unchanged or old[1] != new[1]:
                messages.append((self._key(new[0]), self._values("u", [new], [old], row, context)[0], context.headers))
        return messages

    def _moved(self, old: tuple[str, str], new: tuple[str, str], row: int, context: EventContext) -> Iterable[Message]:
        """A change of the key: the old key's record is deleted, the new key's created, and each names the other."""
        old_key, new_key = self._key(old[0]), self._key(new[0])
        to_new = [("__debezium.newkey", self._key_header(new[0])), *context.headers]
        to_old = [("__debezium.oldkey", self._key_header(old[0])), *context.headers]
        yield old_key, self._values("d", None, [old], row, context)[0], to_new
        if self._tombstones:
            yield old_key, None, to_new
        yield new_key, self._values("c", [new], None, row, context)[0], to_old

    def _key_header(self, key: str) -> bytes:
        """A key as Connect's SimpleHeaderConverter writes it, which is not quite JSON."""
        schema = self.records.key
        assert schema is not None
        return (header_text(schema, parse_value(schema, key.replace(_MARK, ""))) or "").encode()

    def _keys(self, rows: Sequence[tuple[str, str]]) -> Sequence[bytes | None]:
        if not self._keyed:
            return [None] * len(rows)
        opening, closing = self._key_open, self._key_close
        return [opening + key.encode() + closing for key, _ in rows]

    def _key(self, key: str) -> bytes | None:
        return self._key_open + key.encode() + self._key_close if self._keyed else None

    def _values(
        self,
        op: str,
        after: Sequence[tuple[str, str]] | None,
        before: Sequence[tuple[str, str]] | None,
        first: int,
        context: EventContext,
    ) -> list[bytes]:
        start, close = self._value_open, self._value_close
        middle = f',"source":{context.before_row}'
        if context.transactions is not None:
            behind = f'"op":"{op}",{context.times}}}'.encode() + close
            return [
                start
                + f'{{"before":{old},"after":{new}{middle}{row}{context.after_row},{transaction},'.encode()
                + behind
                for row, (old, new, transaction) in enumerate(
                    zip(
                        _texts(before, after),
                        _texts(after, before),
                        context.transactions(len(after or before or ())),
                        strict=True,
                    ),
                    first,
                )
            ]
        # The whole end is one text: joining it costs a copy of the schema each time.
        tail = f'{context.after_row},{NO_TRANSACTION},"op":"{op}",{context.times}}}{close.decode()}'
        if before is None:
            assert after is not None
            return [
                start + f'{{"before":null,"after":{new}{middle}{row}{tail}'.encode()
                for row, (_, new) in enumerate(after, first)
            ]
        if after is None:
            return [
                start + f'{{"before":{old},"after":null{middle}{row}{tail}'.encode()
                for row, (_, old) in enumerate(before, first)
            ]
        return [
            start + f'{{"before":{old},"after":{new}{middle}{row}{tail}'.encode()
            for row, ((_, old), (_, new)) in enumerate(zip(before, after, strict=True), first)
        ]


def _marked(column: Column) -> Column:
    """The column with null told from the default that is written for it: from one to the other is a change."""
    output = column.output
    if output is None or output.fallback_value is not None or output.fallback.text == "null":
        return column
    fallback = replace(output.fallback, text=_MARK + output.fallback.text)
    return replace(column, output=replace(output, fallback=fallback))


def _inserted(column: Column) -> Column:
    return column if column.inserted_text is None else replace(column, absent_text=column.inserted_text)


def _texts(rows: Sequence[tuple[str, str]] | None, others: Sequence[tuple[str, str]] | None) -> Iterable[str]:
    if rows is not None:
        return [row for _, row in rows]
    return ["null"] * len(others or ())


def wrapping(schema: Schema | None, settings: JsonSettings) -> tuple[bytes, bytes]:
    """What stands before and behind a payload (``JsonConverter`` with ``schemas.enable``)."""
    if schema is None or not settings.schemas_enable:
        return b"", b""
    return f'{{"schema":{schema_text(schema, json_format=settings.json_format)},"payload":'.encode(), b"}"


def json_message(schema: Schema, value: object, settings: JsonSettings) -> bytes:
    """A whole key or value that is not worth compiling for."""
    opening, closing = wrapping(schema, settings)
    return opening + value_text(schema, value, settings.json_format).encode() + closing
