"""Masked columns in rows of the binlog: hidden in the value, not in the key."""

from rowtide.connector.rows import layouts
from rowtide.connector.rows.column_output import ColumnOutput
from rowtide.connector.rows.layouts import ColumnDecoding, column_layout
from rowtide.connector.rows.row_compiler import Column, text_rows
from rowtide.envelope.json.text import DEFAULT_FORMAT, string_text
from rowtide.envelope.schema import STRING
from rowtide.envelope.types.column_type import ColumnType, Fallback


def no_failure(value: object, error: Exception) -> None:
    raise error


def masked(*, nullable: bool) -> Column:
    text = ColumnType(STRING, "text", lambda value: value, lambda v, bind, fallback: f"{bind(string_text)}({v})")
    output = ColumnOutput(
        "c", text, Fallback("null", no_failure), None, STRING, DEFAULT_FORMAT, change=lambda value: "***"
    )
    return Column(column_layout(layouts.VARCHAR, 20), ColumnDecoding("text"), nullable, output)


def test_a_mask_hides_values_and_null_except_in_the_key() -> None:
    for nullable in (False, True):
        rows = text_rows([masked(nullable=nullable)], [0], [True])
        assert rows(b"\x00\x03abc", 0, 5) == [('{"c":"abc"}', '{"c":"***"}')]
    assert rows(b"\x01", 0, 1) == [('{"c":null}', '{"c":"***"}')]


def test_the_key_has_the_format_of_its_own_converter() -> None:
    number = ColumnType(STRING, "text", lambda value: value, lambda v, bind, fallback: f"'7' if {v} else '8'")
    in_key = ColumnOutput("c", DECORATED, Fallback('"none"', no_failure), None, STRING, DEFAULT_FORMAT)
    output = ColumnOutput("c", number, Fallback("null", no_failure), None, STRING, DEFAULT_FORMAT, key=in_key)
    column = Column(column_layout(layouts.VARCHAR, 20), ColumnDecoding("text"), nullable=True, output=output)
    rows = text_rows([column], [0], [True])
    assert rows(b"\x00\x03abc", 0, 5) == [('{"c":"<abc>"}', '{"c":7}')]
    assert rows(b"\x01", 0, 1) == [('{"c":"none"}', '{"c":null}')]


DECORATED = ColumnType(STRING, "text", lambda value: value, lambda v, bind, fallback: f"""'"<' + {v} + '>"'""")
