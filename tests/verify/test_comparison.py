"""How rows of both sides are compared."""

from __future__ import annotations

import pytest

from rowtide.verify.comparison import difference, different_columns, retyped_columns
from rowtide.verify.fold import FoldState


@pytest.mark.parametrize(
    ("source", "topic", "different", "retyped"),
    [
        ("i5", "i5", False, False),
        ("i5", "d5", False, False),
        ("i1", "b1", False, False),
        ("i5", "s5", False, True),
        ("s2024-01-01", "t2024-01-01", False, True),
        ("i5", "s6", True, False),
        ("i5", "-", True, False),
        ("-", "-", False, False),
        ("i5", "?", False, False),
    ],
)
def test_values_that_are_the_same_as_texts_only(source: str, topic: str, different: bool, retyped: bool) -> None:
    rows = {"n": source}, {"n": topic}
    assert bool(different_columns(*rows)) is different
    assert bool(retyped_columns(*rows)) is retyped


def test_a_wrong_type_is_a_difference() -> None:
    found = difference(
        {"id": "i1"}, {"id": "i1", "m": "i1", "n": "i5"}, FoldState({"id": "i1", "m": "i2", "n": "s5"}, ()), ["n"]
    )
    assert (found.kind, found.columns) == ("stale", ("m", "n"))
