"""Defaults in schemas that the recorded cases do not have."""

from __future__ import annotations

import pytest

from rowtide.envelope.defaults import _decimal
from rowtide.schema_history.model import ColumnForm


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
    assert _decimal(text, ColumnForm("d", 3, "DECIMAL", "DECIMAL", scale=scale)) == number
