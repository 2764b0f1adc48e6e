"""Masked columns in rows of the binlog: hidden in the record, as they are in the key."""

from rowtide.connector.rows import layouts
from rowtide.connector.rows.compiler import Column, Output, text_rows
from rowtide.connector.rows.layouts import Meaning
from rowtide.envelope.json.text import DEFAULT_FORMAT, string_text
from rowtide.envelope.schema import STRING
from rowtide.envelope.types.column_type import ColumnType, Fallback


def no_failure(value: object, error: Exception) -> None:
    raise error


def masked(*, nullable: bool) -> Column:
    text = ColumnType(STRING, "text", lambda value: value, lambda v, bind, fallback: f"{bind(string_text)}({v})")
    output = Output("c", text, Fallback("null", no_failure), None, STRING, DEFAULT_FORMAT, change=lambda value: "***")
    return Column(layouts.wire(layouts.VARCHAR, 20), Meaning("text"), nullable, output)


def test_a_mask_hides_values_and_null_but_nothing_in_the_key() -> None:
    for nullable in (False, True):
        rows = text_rows([masked(nullable=nullable)], [0], [True])
        assert rows(b"\x00\x03abc", 0, 5) == [('{"c":"abc"}', '{"c":"***"}')]
    assert rows(b"\x01", 0, 1) == [('{"c":null}', '{"c":"***"}')]


def test_the_key_has_the_form_of_its_own_converter() -> None:
    number = ColumnType(STRING, "text", lambda value: value, lambda v, bind, fallback: f"'7' if {v} else '8'")
    in_key = Output("c", DECORATED, Fallback('"none"', no_failure), None, STRING, DEFAULT_FORMAT)
    output = Output("c", number, Fallback("null", no_failure), None, STRING, DEFAULT_FORMAT, key=in_key)
    column = Column(layouts.wire(layouts.VARCHAR, 20), Meaning("text"), nullable=True, output=output)
    rows = text_rows([column], [0], [True])
    assert rows(b"\x00\x03abc", 0, 5) == [('{"c":"<abc>"}', '{"c":7}')]
    assert rows(b"\x01", 0, 1) == [('{"c":"none"}', '{"c":null}')]


DECORATED = ColumnType(STRING, "text", lambda value: value, lambda v, bind, fallback: f"""'"<' + {v} + '>"'""")
