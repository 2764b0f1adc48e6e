"""Canal's filters of tables."""

from __future__ import annotations

import json

import pytest

from rowtide.canal.entries.entry import Entry, EntryColumn, EntryHeader, EventType, RowChange
from rowtide.canal.entries.filters import EntryColumnFilter, EntryFilter, TablePatterns, parse_fields
from rowtide.canal.entries.flat_message import flat_message
from rowtide.topics.java_regex import InvalidPatternError, compile_java
from tests.support.canal.golden import flattened

COLUMNS = [
    EntryColumn(index, name, False, 12, 12, 12, None, "text") for index, name in enumerate(("id", "Name", "note"))
]


@pytest.mark.parametrize(
    ("text", "patterns"),
    [
        ("", []),
        (r"a\.b , c\..*,", [r"a\.b", r"c\..*"]),
        (r"a\.\d{1,2},b\.(x,y)", [r"a\.\d{1,2}", r"b\.(x,y)"]),
        (r"a\,b\.c", [r"a\,b\.c"]),
        (r"a\{,b\.c", [r"a\{", r"b\.c"]),
        (r"a\.[b,c]", [r"a\.[b,c]"]),
    ],
)
def test_lists_are_divided_outside_of_brackets(text: str, patterns: list[str]) -> None:
    assert TablePatterns.parse(text) == TablePatterns(
        text, tuple(compile_java(one, ignore_case=True) for one in patterns)
    )


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


@pytest.mark.parametrize(
    ("white", "black", "kept"),
    [
        ("", "", ["id", "Name", "note"]),
        ("shop.orders:ID/name", "", [COLUMNS[0].name, "Name"]),
        ("Shop.Orders : id/none", "shop.orders:id", ["id"]),
        ("", "shop.orders:note,shop.other:id", ["id", "Name"]),
        ("shop.other:id", "", ["id", "Name", "note"]),
    ],
)
def test_columns(white: str, black: str, kept: list[str]) -> None:
    found = EntryColumnFilter(parse_fields(white), parse_fields(black)).kept("shop", "orders", COLUMNS)
    assert [column.name for column in found] == kept
    assert [column.index for column in found] == [COLUMNS.index(column) for column in found]


@pytest.mark.parametrize("text", ["a.b", "a.b:", "b:c", "a.b:c:d"])
def test_an_item_of_columns_that_is_wrong_is_named(text: str) -> None:
    with pytest.raises(ValueError, match=f"not '{text}'"):
        parse_fields(f"x.y:z,{text}")


def test_entries_have_the_values_of_the_columns_that_are_left() -> None:
    change = RowChange(EventType.INSERT, 1, [COLUMNS[2]], [(None, ("1", "2", "3"))])
    entry = Entry(EntryHeader("f", 4, 1, 1, 1, "shop", "orders"), change)
    assert flattened(entry.encoded())["rows.0.after.2.value"] == "3"
    assert json.loads(flat_message(entry, 1, 0) or "")["data"] == [{"note": "3"}]


def test_a_filter_of_a_client_is_matched_however_it_backtracks() -> None:
    found = EntryFilter(TablePatterns.of_client(r"([\w.]+)+!,shop\..*"), TablePatterns.parse(r"(\w+\.?)+_tmp"))
    assert found.passes("shop", "a" * 60)
    assert not found.passes("other", "a" * 60)
    assert not found.passes("shop", "a" * 60 + "_tmp")


def test_a_filter_of_a_client_that_takes_too_long_is_refused() -> None:
    text = ",".join([r"([\w.]+)+!"] * 100)
    with pytest.raises(InvalidPatternError, match="too long"):
        TablePatterns.of_client(text)
    assert TablePatterns.parse(text)  # the configuration may have it
