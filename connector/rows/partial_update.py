"""Makes whole images of the rows of a PARTIAL_UPDATE_ROWS event, so that one row compiler is enough.

Under ``binlog_row_value_options=PARTIAL_JSON`` the after image may hold the differences of a JSON document instead of
the document. Here the differences and the document of the before image are put together into one value, which
:func:`json_text_of_parts` knows; everything else is copied.

Layout: before image, value options (packed integer; 1: partial bits follow), partial bits (one for each JSON column
of the table, whether an image has it or not), null bitmap, values. See ``Rows_log_event`` in MySQL's ``log_event.h``.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from rowtide.connector.errors import RemoteProtocolError, UnsupportedEvent
from rowtide.connector.protocol.byte_reader import Reader
from rowtide.connector.protocol.json.binary import json_text, patched_json_text
from rowtide.connector.rows.compiler import Column
from rowtide.connector.rows.layouts import JSON, Wire

_PARTIAL_JSON = 1
_PARTS = 0xFF  # not a type of binary JSON


def whole_images(
    data: bytes, start: int, end: int, layout: Sequence[Wire], before: Sequence[bool], after: Sequence[bool]
) -> bytes:
    """The pairs of images without value options and partial bits.

    Args:
        data: the event.
        start: of the first image.
        end: of the last image.
        layout: all columns of the table.
        before: for each column whether before images hold it.
        after: for each column whether after images hold it.

    Raises:
        RemoteProtocolError: there are differences of a document that the before image does not hold.
        UnsupportedEvent: a value option that is not known.
    """
    reader = Reader(data, start, end)
    out = bytearray()
    json_columns = [index for index, wire in enumerate(layout) if wire.type == JSON]
    while reader.remaining():
        at = reader.pos
        documents = {index: value for index, value in _values(reader, layout, before) if layout[index].type == JSON}
        out += data[at : reader.pos]
        partial = _partial_columns(reader, json_columns)
        at = reader.pos
        for index, value in _values(reader, layout, after):
            if index in partial:
                document = documents.get(index)
                if document is None:
                    raise RemoteProtocolError(
                        f"column {index + 1} has differences of a JSON document, and the before image lacks it: a "
                        "session changed rows with binlog_row_image=MINIMAL or NOBLOB"
                    )
                size = layout[index].size
                out += data[at : reader.pos - len(value) - size]
                parts = bytes((_PARTS,)) + len(document).to_bytes(4, "little") + document + value
                out += len(parts).to_bytes(size, "little") + parts
                at = reader.pos
        out += data[at : reader.pos]
    return bytes(out)


def _partial_columns(reader: Reader, json_columns: Sequence[int]) -> set[int]:
    options = reader.packed()
    if options & ~_PARTIAL_JSON:
        raise UnsupportedEvent(f"PARTIAL_UPDATE_ROWS with value options {options:#x}; known: 1, PARTIAL_JSON")
    if not options:
        return set()
    bits = reader.uint((len(json_columns) + 7) // 8)
    return {index for bit, index in enumerate(json_columns) if bits & 1 << bit}


def _values(reader: Reader, layout: Sequence[Wire], present: Sequence[bool]) -> Iterator[tuple[int, bytes]]:
    """The columns of one image that are not NULL, with their bytes; the reader stands behind the one that is given."""
    nulls = reader.uint((sum(present) + 7) // 8)
    bit = 0
    for index, wire in enumerate(layout):
        if present[index]:
            if not nulls >> bit & 1:
                yield index, reader.take(wire.size) if wire.fixed else reader.string(wire.size)
            bit += 1


def with_json_parts(columns: Sequence[Column]) -> list[Column]:
    """The columns for decoding what :func:`whole_images` gives."""
    return [
        replace(column, meaning=replace(column.meaning, json_text=json_text_of_parts))
        if column.meaning.json_text is not None
        else column
        for column in columns
    ]


def json_text_of_parts(value: bytes) -> str | None:
    """The text of a JSON value that may be a document with differences; ``None`` of no bytes."""
    if value[:1] != bytes((_PARTS,)):
        return json_text(value) if value else None
    end = 5 + int.from_bytes(value[1:5], "little")
    return patched_json_text(value[5:end], value[end:])
