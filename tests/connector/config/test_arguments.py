"""Properties that a program gives as Python values."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from rowtide.connector.config import ConfigurationError
from rowtide.connector.config.arguments import property_texts
from rowtide.connector.config.catalogue import PROPERTIES
from rowtide.topics.filters import split_list

LISTS = [entry.name for entry in PROPERTIES.values() if "list" in entry.kind.label]


def test_values_are_written_as_in_a_file() -> None:
    given: dict[str, Any] = {
        "database.port": 3307,
        "include.query": True,
        "snapshot.max.threads.multiplier.shop.orders": 1.5,
        "offset.storage.file.filename": Path("/var/lib/offsets"),
        "topic.prefix": "shop",
    }
    assert property_texts(given, {"tombstones_on_delete": False, "topic_prefix": "other"}) == {
        "database.port": "3307",
        "include.query": "true",
        "snapshot.max.threads.multiplier.shop.orders": "1.5",
        "offset.storage.file.filename": "/var/lib/offsets",
        "topic.prefix": "other",
        "tombstones.on.delete": "false",
    }


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize("kind", [list, tuple, set])
def test_every_list_takes_the_lists_of_python(name: str, kind: type) -> None:
    assert property_texts({name: kind(["c", "u"])}) == {name: "c,u"}


@pytest.mark.parametrize("item", ["shop.a{1,2}", r"shop\.a\,b", r"a\\,b", "(a,b|c)", ",", r"\\\,"])
def test_a_comma_in_an_expression_does_not_divide_the_list(item: str) -> None:
    written = property_texts({"table.include.list": [item, "shop.b"]})["table.include.list"]
    assert split_list(written) == (
        re.sub(r"\\(\\|,)", lambda found: found[0] if found[1] != "," else ",", item),
        "shop.b",
    )


def test_key_columns_are_divided_by_semicolons() -> None:
    texts = property_texts({"message.key.columns": ["shop.a:x,y", "shop.b:z"]})
    assert texts == {"message.key.columns": "shop.a:x,y;shop.b:z"}


def test_a_list_for_columns_of_a_family() -> None:
    assert property_texts({"column.mask.with.3.chars": ["shop.a.x", "shop.a.y"]}) == {
        "column.mask.with.3.chars": "shop.a.x,shop.a.y"
    }


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "is None; omit the property"),
        ([], "is an empty list; omit the property"),
        (["a", 1], "is of the type int"),
        ({"a": 1}, "is of the type dict"),
        (b"shop.orders", "is of the type bytes"),
        (object(), "is of the type object"),
    ],
)
def test_other_values_are_refused(value: Any, reason: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        property_texts({"topic.prefix": object(), "table.include.list": value})  # type: ignore[dict-item]
    first, second = caught.value.problems
    assert first.property == "topic.prefix"
    assert second.property == "table.include.list"
    assert second.message.startswith(reason)


def test_one_value_is_not_a_list() -> None:
    with pytest.raises(ConfigurationError, match=r"database\.hostname: is a list, but the property has one value"):
        property_texts({"database.hostname": ["a", "b"]})


def test_a_name_is_a_text() -> None:
    with pytest.raises(ConfigurationError, match="5: is of the type int"):
        property_texts({5: "a"})  # type: ignore[dict-item]
