"""Writes the messages of one table: Debezium's keys, values and tombstones, from the JSON text of decoded rows.

The codec keeps everything that is the same for all rows, such as the schemas of keys and values, as bytes.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import repeat

from rowtide.connector.protocol.events.classes import Rows
from rowtide.connector.protocol.json.binary import STREAM, JsonStyle
from rowtide.connector.records.batch import Batch, Message
from rowtide.connector.records.codecs.rows import EventContext, RowsCodec
from rowtide.connector.records.codecs.system_versioning import CurrentRows
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.rows.messages import message_bytes, message_parts, message_values
from rowtide.connector.rows.row_compiler import Column, TextRows
from rowtide.connector.rows.row_decoder import text_rows
from rowtide.envelope.converters.json import BETWEEN_ROWS, SOURCE, EnvelopeText, wrapping
from rowtide.envelope.converters.plain import SimpleHeaderConverter
from rowtide.envelope.json.reader import parse_value
from rowtide.envelope.settings import JsonSettings
from rowtide.envelope.table import TableSchema

NEW_KEY, OLD_KEY = "__debezium.newkey", "__debezium.oldkey"
"""The headers of a change of a key, with the other key."""
_MARK = "\0"
"""Precedes a default that is written for null while rows are compared; JSON text never contains this character."""


class TableCodec(RowsCodec[tuple[str, str], Message]):
    """Turns row images of one table into Debezium's messages; a row is the JSON of its key and the JSON of itself.

    ``headers``: writes the other key of a changed key; without it, the header has the key as JSON, for transforms and
    other converters.
    """

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
        current: CurrentRows | None = None,
        json_style: JsonStyle = STREAM,
        headers: SimpleHeaderConverter | None = None,
    ) -> None:
        marked = [_marked(column) for column in columns] if skip_unchanged else columns
        with_defaults = [_with_default(column) for column in marked] if minimal_images else None
        super().__init__(records, marked, with_defaults, current, json_style)
        self._marks = marked != columns
        self._tombstones = tombstones
        self._skip_unchanged = skip_unchanged
        self._headers = headers
        self._key_open, self._key_close = wrapping(records.key, key_settings)
        self._envelope = EnvelopeText(records.envelope, value_settings)
        self._keyed = records.key is not None
        self.schemas = records.key, records.envelope

    def compiled(self, columns: Sequence[Column], *layouts: Sequence[bool], carry: bool) -> TextRows:
        """Compile the function that writes JSON text."""
        key, constants = self.records.key_columns, self.records.key_constants
        return text_rows(columns, key, *layouts, key_constants=constants, carry=carry)

    def packed(self, records: Sequence[Message], event: Rows, offset: SourceOffset, ts_ms: int) -> Batch:
        """Return the batch of an event's messages."""
        return Batch(self.topic, -1, records, offset, message_bytes(records), ts_ms, self.schemas)

    def messages(self, event: Rows, rows: Sequence[tuple[str, str]], skip: int, context: EventContext) -> list[Message]:
        """Return the messages of an event's rows, without the first ``skip`` rows of it."""
        made = super().messages(event, rows, skip, context)
        return self.plain(made) if self._marks else made

    def message(
        self, op: str, before: tuple[str, str] | None, after: tuple[str, str] | None, row: int, context: EventContext
    ) -> tuple[bytes | None, bytes]:
        """Return the key and the value of one record."""
        image = after or before
        assert image is not None
        value = self._values(op, [after] if after else None, [before] if before else None, row, context)[0]
        return self._key(image[0]), value

    def plain(self, messages: list[Message]) -> list[Message]:
        """Return the messages without the marks of nulls, which are only needed to compare rows."""
        mark = _MARK.encode()
        return [
            (key and key.replace(mark, b""), value and value.replace(mark, b""), headers)
            for key, value, headers in messages
        ]

    def created(self, rows: Sequence[tuple[str, str]], first: int, context: EventContext) -> list[Message]:
        """Return one ``c`` record for each image."""
        values = self._values("c", rows, None, first, context)
        return list(zip(self._keys(rows), values, repeat(context.headers)))

    def deleted(self, rows: Sequence[tuple[str, str]], first: int, context: EventContext) -> list[Message]:
        """Return one ``d`` record for each image, each with its tombstone."""
        headers, values = context.headers, self._values("d", None, rows, first, context)
        if not self._tombstones:
            return list(zip(self._keys(rows), values, repeat(headers)))
        messages: list[Message] = []
        for key, value in zip(self._keys(rows), values, strict=True):
            messages += ((key, value, headers), (key, None, headers))  # also without a key, as in Debezium
        return messages

    def updated(
        self,
        before: Sequence[tuple[str, str]],
        after: Sequence[tuple[str, str]],
        first: int,
        context: EventContext,
    ) -> list[Message]:
        """Return one ``u`` record for each pair of images; if the key changes, ``d``, tombstone and ``c`` instead.

        With ``skip.messages.without.change`` there is no record of an update that changes no published column. A change
        of the key always has records; Debezium drops it if the changed column is only in the key, which loses the
        change.
        """
        same_keys = not self._keyed or [key for key, _ in before] == [key for key, _ in after]
        if same_keys and not self._skip_unchanged:
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
        """Yield a change of the key: a delete and a create, each with the other key in a header."""
        old_key, new_key = self._key(old[0]), self._key(new[0])
        to_new = [(NEW_KEY, self._key_header(new[0])), *context.headers]
        to_old = [(OLD_KEY, self._key_header(old[0])), *context.headers]
        yield old_key, self._values("d", None, [old], row, context)[0], to_new
        if self._tombstones:
            yield old_key, None, to_new
        yield new_key, self._values("c", [new], None, row, context)[0], to_old

    def _key_header(self, key: str) -> bytes:
        text, schema = key.replace(_MARK, ""), self.records.key
        if self._headers is None:
            return text.encode()
        assert schema is not None
        return self._headers.header(schema, parse_value(schema, text)) or b""

    def _keys(self, rows: Sequence[tuple[str, str]]) -> Sequence[bytes | None]:
        if not self._keyed:
            return [None] * len(rows)
        return message_parts(self._key_open, rows, 0, self._key_close)

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
        envelope, middle = self._envelope, SOURCE + context.before_row
        if context.transactions is not None:
            return [
                envelope.opening
                + f"{old}{BETWEEN_ROWS}{new}{middle}{row}"
                f"{envelope.tail(op, context.after_row, context.times, transaction)}".encode()
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
        # One text for everything after the row: joining parts would copy the schema once more per row.
        tail = envelope.tail(op, context.after_row, context.times)
        return message_values(envelope.opening, before, BETWEEN_ROWS, after, middle, first, tail)


def _marked(column: Column) -> Column:
    """Return the column with a mark before the default that is written for null, so that rows compare as different."""
    output = column.output
    if output is None or output.fallback_value is not None or output.fallback.text == "null":
        return column
    fallback = replace(output.fallback, text=_MARK + output.fallback.text)
    return replace(column, output=replace(output, fallback=fallback))


def _with_default(column: Column) -> Column:
    return column if column.default_text is None else replace(column, absent_text=column.default_text)


def _texts(rows: Sequence[tuple[str, str]] | None, others: Sequence[tuple[str, str]] | None) -> Iterable[str]:
    if rows is not None:
        return [row for _, row in rows]
    return ["null"] * len(others or ())
