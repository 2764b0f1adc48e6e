"""Canal's choice of topics and partitions, beyond what is recorded."""

from __future__ import annotations

import pytest

from rowtide.canal.entries.entry import (
    ABSENT,
    Entry,
    EntryColumn,
    EntryHeader,
    EntryStatement,
    EventType,
    RowChange,
    Values,
)
from rowtide.canal.mq.routing import Router, Routes, java_hash

COLUMNS = [EntryColumn(index, name, index == 0, 12, 12, 12, None, "text") for index, name in enumerate(("id", "Name"))]


def entry(*rows: Values, kind: EventType = EventType.INSERT) -> Entry:
    images = [(row, None) if kind is EventType.DELETE else (None, row) for row in rows]
    return Entry(EntryHeader("f", 4, 1, 1, 1, "shop", "orders"), RowChange(kind, 1, COLUMNS, images))


def places(routes: Routes, found: Entry, *, exact_names: bool = True) -> int | list[int]:
    at = Router(routes).places(found, "t", exact_names=exact_names)
    return at if isinstance(at, int) else list(at)


@pytest.mark.parametrize(
    ("text", "code"),
    [("", 0), ("a", 97), ("shop", 3529462), ("polygenelubricants", 1 << 31), ("😀", 1772899), ("\ud800", 0xD800)],
)
def test_the_hash_is_that_of_java(text: str, code: int) -> None:
    assert java_hash(text) == code


def test_the_smallest_integer_has_a_partition() -> None:
    routes = Routes("t", partitions=3, partition_hash="shop.orders:id", database_hash=False)
    assert places(routes, entry(("polygenelubricants", None))) == [(1 << 31) % 3]


@pytest.mark.parametrize(
    ("columns", "exact_names", "hashed"),
    [
        ("id", True, 49),
        ("ID", True, 0),
        ("ID", False, 49),
        ("id^id", True, 0),
        ("id^id", False, 49),
        ("name^id", False, 49 ^ 97),
        ("none", True, 0),
        ("$PK$", True, 49),
    ],
)
def test_columns(columns: str, exact_names: bool, hashed: int) -> None:
    routes = Routes("t", partitions=1000, partition_hash=f"shop.orders:{columns}", database_hash=False)
    assert places(routes, entry(("1", "a")), exact_names=exact_names) == [hashed]


def test_null_and_values_that_an_image_does_not_hold_count_as_empty() -> None:
    routes = Routes("t", partitions=1000, partition_hash="shop.orders:id^Name", database_hash=False)
    assert places(routes, entry(("1", None), ("1", ABSENT), ("1", ""))) == [49, 49, 49]


def test_the_image_before_a_delete_is_hashed() -> None:
    routes = Routes("t", partitions=1000, partition_hash=".*:id", database_hash=False)
    assert places(routes, entry(("1", None), kind=EventType.DELETE)) == [49]


def test_statements_and_tables_without_a_rule_go_to_the_first_partition() -> None:
    routes = Routes("t", 2, 5, "shop.other")
    statement = Entry(
        EntryHeader("f", 4, 1, 1, 1, "shop", "other"), EntryStatement(EventType.ALTER, "ALTER TABLE x", ddl=True)
    )
    assert (places(routes, statement), places(routes, entry(("1", "a")))) == (0, 0)


@pytest.mark.parametrize(
    ("rules", "topic"),
    [
        ("", "by.default"),
        ("shop.orders", "shop_orders"),
        ("SHOP", "shop"),
        (" shop.orders", "by_default"),
        ("a.b:shop.orders", "a_b"),
        (r"x:shop\..*;y:shop", "x"),
        (r"x:other\..*;y:shop", "y"),
        ("sh.*", "shop"),
        ("shop.*", "shop"),
        (r"x:.*\..*", "x"),
    ],
)
def test_topics(rules: str, topic: str) -> None:
    assert Router(Routes("by.default", dynamic_topic=rules)).topic("shop", "orders") == topic


def test_entries_without_a_table_go_to_the_topic_of_the_destination() -> None:
    assert Router(Routes("by.default", dynamic_topic=".*")).topic("shop", "") == "by_default"


def test_a_topic_may_have_its_own_number_of_partitions() -> None:
    router = Router(Routes("t", 4, 3, ".*", dynamic_partitions="a:7,b.*:5,c:x"))
    assert [router.partitions(topic) for topic in ("a", "A", "bb", "c", "d")] == [7, 7, 5, 3, 3]
    assert Router(Routes("t", 4, 3, "")).partitions("a") == 5
