"""Canal's filters of tables."""

from __future__ import annotations

import pytest

from rowtide.canal.entries.filters import EntryFilter, TablePatterns, split_patterns
from rowtide.topics.java_regex import InvalidPatternError


@pytest.mark.parametrize(
    ("text", "patterns"),
    [
        ("", []),
        (r"a\.b , c\..*,", [r"a\.b", r"c\..*"]),
        (r"a\.\d{1,2},b\.(x,y)", [r"a\.\d{1,2}", r"b\.(x,y)"]),
        (r"a\,b\.c", [r"a\,b\.c"]),
        (r"a\.[b,c]", [r"a\.[b,c]"]),
    ],
)
def test_lists_are_divided_outside_of_brackets(text: str, patterns: list[str]) -> None:
    assert split_patterns(text) == patterns


@pytest.mark.parametrize(
    ("white", "black", "table", "passes"),
    [
        (r".*\..*", "", "shop.orders", True),
        ("", "", "shop.orders", True),
        (r"shop\.orders", "", "SHOP.Orders", True),
        (r"shop\.order", "", "shop.orders", False),
        (r"shop\..*", r"shop\.ord.*", "shop.orders", False),
        (r"shop\.a,shop\.b\d{1,2}", "", "shop.b12", True),
    ],
)
def test_tables(white: str, black: str, table: str, passes: bool) -> None:
    found = EntryFilter(TablePatterns.parse(white), TablePatterns.parse(black))
    assert found.passes(*table.split(".")) is passes


def test_a_broken_expression_is_named() -> None:
    with pytest.raises(InvalidPatternError, match=r"a\(b"):
        TablePatterns.parse("x,a(b")
