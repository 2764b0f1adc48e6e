"""Rewrites PARTIAL_UPDATE_ROWS events as plain row images, so that the row compiler can decode them.

With ``binlog_row_value_options=PARTIAL_JSON`` an after image may hold the differences of a JSON document instead of the
document. :func:`expand_images` replaces them by one value made of the document in the before image and the differences,
which :func:`json_text_with_diffs` decodes. Everything else is copied.

Layout: before image, value options (packed integer; 1: partial bits follow), partial bits (one for each JSON column
of the table, whether an image has it or not), null bitmap, values. See ``Rows_log_event`` in MySQL's ``log_event.h``.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from rowtide.connector.errors import RemoteProtocolError, UnsupportedEvent
from rowtide.connector.protocol.byte_reader import ByteReader
from rowtide.connector.protocol.json.binary import STREAM, JsonStyle, json_text, patched_json_text
from rowtide.connector.rows.layouts import JSON, ColumnLayout
from rowtide.connector.rows.row_compiler import Column

_PARTIAL_JSON = 1
_DIFF_MARKER = 0xFF  # not a type of binary JSON


def expand_images(
    data: bytes,
    start: int,
    end: int,
    layouts: Sequence[ColumnLayout],
    before: Sequence[bool],
    after: Sequence[bool],
    *,
    needs_documents: bool = True,
) -> bytes:
    """Return the pairs of images without value options and partial bits.

    Args:
        data: the event.
        start: offset of the first image.
        end: offset after the last image.
        layouts: all columns of the table.
        before: for each column, whether before images hold it.
        after: for each column, whether after images hold it.
        needs_documents: refuse differences of a document that the before image lacks; otherwise it is empty.

    Raises:
        RemoteProtocolError: the before image lacks the document that differences apply to.
        UnsupportedEvent: an unknown value option.
    """
    reader = ByteReader(data, start, end)
    out = bytearray()
    json_columns = [index for index, layout in enumerate(layouts) if layout.type == JSON]
    while reader.remaining():
        at = reader.pos
        values = image_values(reader, layouts, before)
        documents = {index: value for index, value in values if layouts[index].type == JSON}
        out += data[at : reader.pos]
        partial = _partial_columns(reader, json_columns)
        at = reader.pos
        for index, value in image_values(reader, layouts, after):
            if index in partial:
                document = documents.get(index, None if needs_documents else b"")
                if document is None:
                    raise RemoteProtocolError(
                        f"column {index + 1} has differences of a JSON document, and the before image lacks it: a "
                        "session changed rows with binlog_row_image=MINIMAL or NOBLOB"
                    )
                size = layouts[index].size
                out += data[at : reader.pos - len(value) - size]
                parts = bytes((_DIFF_MARKER,)) + len(document).to_bytes(4, "little") + document + value
                out += len(parts).to_bytes(size, "little") + parts
                at = reader.pos
        out += data[at : reader.pos]
    return bytes(out)


def _partial_columns(reader: ByteReader, json_columns: Sequence[int]) -> set[int]:
    options = reader.packed()
    if options & ~_PARTIAL_JSON:
        raise UnsupportedEvent(f"PARTIAL_UPDATE_ROWS with value options {options:#x}; known: 1, PARTIAL_JSON")
    if not options:
        return set()
    bits = reader.uint((len(json_columns) + 7) // 8)
    return {index for bit, index in enumerate(json_columns) if bits & 1 << bit}


def image_values(
    reader: ByteReader, layouts: Sequence[ColumnLayout], present: Sequence[bool]
) -> Iterator[tuple[int, bytes]]:
    """Yield index and bytes of each column of one image that is not NULL; the reader is then after these bytes."""
    nulls = reader.uint((sum(present) + 7) // 8)
    bit = 0
    for index, layout in enumerate(layouts):
        if present[index]:
            if not nulls >> bit & 1:
                yield index, reader.take(layout.size) if layout.fixed else reader.string(layout.size)
            bit += 1


def with_json_diffs(columns: Sequence[Column], style: JsonStyle = STREAM) -> list[Column]:
    """Return the columns for decoding the result of :func:`expand_images`, with documents in a style."""
    return [
        replace(column, decoding=replace(column.decoding, json_text=partial(json_text_with_diffs, style=style)))
        if column.decoding.json_text is not None
        else column
        for column in columns
    ]


def json_text_with_diffs(value: bytes, style: JsonStyle = STREAM) -> str | None:
    """Return the text of a JSON value that may be a document with differences; ``None`` for no bytes."""
    parts = split_differences(value)
    if parts is None:
        return json_text(value, style) if value else None
    return patched_json_text(*parts, style)


def split_differences(value: bytes) -> tuple[bytes, bytes] | None:
    """Return a document of the before image and its differences; ``None`` for a value without differences."""
    if value[:1] != bytes((_DIFF_MARKER,)):
        return None
    end = 5 + int.from_bytes(value[1:5], "little")
    return value[5:end], value[end:]
