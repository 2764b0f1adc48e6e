"""Expressions of filters that match nothing, and the hint at the likely mistake."""

from collections.abc import Callable

import pytest

from rowtide.connector.check import evaluate
from rowtide.connector.check.facts import ServerFacts
from rowtide.connector.config import Configuration


@pytest.mark.parametrize(
    ("name", "source", "message"),
    [
        ("table.include.list", "orders", "because it lacks the database: write database.table, such as shop.orders"),
        ("table.include.list", "ord.*s", "lacks the database: write database.table, such as shop.orders"),
        ("table.include.list", "nothing", "'nothing' matches nothing, because it lacks the database: write"),
        ("table.include.list", r"shop\.ordrs", "table shop.ordrs does not exist, or the account"),
        ("table.include.list", "shop.x{3}", "'shop.x{3}' matches nothing on the server now"),
        ("table.exclude.list", "lines", "such as shop.lines"),
        ("database.include.list", "shop.orders", "because it is not the name of a database: use table.include.list"),
        ("database.include.list", "shopp", "'shopp' matches nothing on the server now. Did you mean shop?"),
        ("column.exclude.list", "orders.note", "write database.table.column, such as shop.orders.note"),
        ("column.exclude.list", "shop.orders.nte", "Did you mean shop.orders.note?"),
    ],
)  # fmt: skip
def test_the_likely_mistake_is_named(
    name: str,
    source: str,
    message: str,
    facts: Callable[..., ServerFacts],
    configured: Callable[..., Configuration],
) -> None:
    found = evaluate(configured({name: source}), facts())
    assert [message in finding.message for finding in found if finding.subject == name].count(True) == 1
