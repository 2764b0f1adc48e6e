"""Defaults in schemas that the recorded cases do not contain."""

from __future__ import annotations

import pytest

from rowtide.envelope.settings import ValueSettings
from rowtide.envelope.types.defaults import _decimal, default_value
from rowtide.envelope.types.mapping import column_type
from rowtide.schema_history.model import DebeziumColumn


@pytest.mark.parametrize(
    ("text", "scale", "number"),
    [
        ("0.5", 30, 5 * 10**29),
        ("9" * 35 + "." + "9" * 30, 30, 10**65 - 1),
        ("-" + "1" * 65, None, -int("1" * 65)),
        ("1.25", 1, 13),
    ],
)
def test_a_decimal_keeps_all_its_digits(text: str, scale: int | None, number: int) -> None:
    assert _decimal(text, DebeziumColumn("d", 3, "DECIMAL", "DECIMAL", scale=scale)) == number


def test_current_timestamp_is_a_default_without_a_fraction() -> None:
    now = DebeziumColumn("t", 2014, "TIMESTAMP", "TIMESTAMP", length=6, optional=False, default_expression=_NOW)
    made = column_type(now, ValueSettings(), "stream")
    assert made is not None
    assert default_value(now, made) == "1970-01-01T00:00:00Z"


_NOW = "1970-01-01 00:00:00"
"""The text of CURRENT_TIMESTAMP in the schema history."""
