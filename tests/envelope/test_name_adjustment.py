"""Name adjustment for Avro."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowtide.envelope.name_adjustment import field_name_adjuster, schema_name_adjuster


@pytest.mark.parametrize(
    ("name", "avro", "unicode"),
    [
        ("plain_1.x", "plain_1.x", "plain_u005f1.x"),
        ("1a-b", "_1a_b", "_u0031a_u002db"),
        ("", "", ""),
        ("é😀", "___", "_u00e9_ud83d_ude00"),
        ("Ā\t", "__", "_u100_u009"),
        ("٣x", "_٣x", "_u663x"),
        (".a", "_a", "_u002ea"),
    ],
)
def test_schema_names_keep_dots_after_the_first_character(name: str, avro: str, unicode: str) -> None:
    assert schema_name_adjuster("avro")(name) == avro
    assert schema_name_adjuster("avro_unicode")(name) == unicode
    assert schema_name_adjuster("none")(name) == name


def test_dots_in_field_names_are_replaced() -> None:
    assert field_name_adjuster("avro")("a.b") == "a_b"
    assert field_name_adjuster("avro_unicode")("a.b") == "a_u002eb"


def test_an_unknown_mode_is_an_error() -> None:
    with pytest.raises(ValueError, match="unknown name adjustment 'avr'; the modes are none, avro, avro_unicode"):
        schema_name_adjuster("avr")


@given(st.text(st.characters(codec="ascii")))
def test_adjusted_ascii_names_are_valid(name: str) -> None:
    adjusted = field_name_adjuster("avro")(name)
    assert not adjusted or (adjusted.isidentifier() and adjusted.isascii())
