"""skip.messages.without.change, where the converter writes a column's default for null."""

from __future__ import annotations

import struct
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from rowtide.connector.protocol.events.classes import Rows, RowsKind
from rowtide.connector.records.codecs.debezium_messages import TableCodec
from rowtide.connector.records.codecs.rows import EventContext
from rowtide.connector.rows import layouts
from rowtide.connector.rows.column_output import ColumnOutput
from rowtide.connector.rows.layouts import ColumnDecoding, column_layout
from rowtide.connector.rows.row_compiler import Column
from rowtide.envelope.json.text import DEFAULT_FORMAT
from rowtide.envelope.schema import INT32
from rowtide.envelope.schema import struct as connect_struct
from rowtide.envelope.settings import JsonSettings
from rowtide.envelope.types.column_type import ColumnType, Fallback, str_expression

CONTEXT = EventContext('{"row":', "}", '"ts_ms":0', ())


def codec(*, skip: bool) -> TableCodec:
    schema = replace(INT32.with_optional(True), default=7)
    number = ColumnType(INT32, "int", lambda value: value, str_expression)
    output = ColumnOutput("n", number, Fallback("7", lambda value, error: None), None, schema, DEFAULT_FORMAT)
    column = Column(column_layout(layouts.LONG, 0), ColumnDecoding("int"), nullable=True, output=output)
    envelope = connect_struct("e", {"after": INT32})
    table = SimpleNamespace(id="d.t")
    records: Any = SimpleNamespace(
        key=None, envelope=envelope, key_columns=(), key_constants=(), topic="t", table=table
    )
    return TableCodec(records, [column], JsonSettings(), JsonSettings(False), tombstones=False, skip_unchanged=skip)


def image(value: int | None) -> bytes:
    return b"\1" if value is None else b"\0" + struct.pack("<i", value)


@pytest.mark.parametrize(
    ("before", "after", "written"), [(None, 7, 1), (7, None, 1), (None, None, 0), (7, 7, 0), (7, 8, 1)]
)
def test_null_differs_from_the_default_written_for_it(before: int | None, after: int | None, written: int) -> None:
    data = image(before) + image(after)
    event: Any = SimpleNamespace(
        partial=False, kind=RowsKind.UPDATE, buffer=data, start=0, end=len(data), columns=b"\1", columns_after=b"\1"
    )
    for skip, count in ((True, written), (False, 1)):
        made = codec(skip=skip)
        messages = made.messages(cast("Rows", event), made.rows(event), 0, CONTEXT)
        assert len(messages) == count
        for _, value, _ in messages:
            assert value is not None
            assert f'"before":{{"n":{before or 7}}},"after":{{"n":{after or 7}}}'.encode() in value
