"""What a start says about values that change, and about BOOL columns."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from rowtide.connector.check.facts import ColumnFact, TableFact
from rowtide.connector.check.findings import Finding, Severity
from rowtide.connector.check.table_rules import exact_differences, values_finding
from rowtide.connector.config import Configuration, from_properties
from rowtide.connector.engine.start.record_values import bool_findings, changed_values, with_values
from rowtide.connector.records.offset import SourceOffset
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.server.query_event import Flavor, QueryEvent, Server
from tests.support.configurations import PROPERTIES

CLASS = {"connector.class": "io.debezium.connector.mysql.MySqlConnector"}
OTHERS = {"rowtide_snapshot_lists": "{}"}
COLUMNS = (
    ColumnFact("id", "bigint unsigned", nullable=False, in_primary_key=True),
    ColumnFact("n", "int", nullable=True, has_default=True),
    ColumnFact("born", "date", nullable=False),
    ColumnFact("kind", "enum('a,b','c')", nullable=False),
    ColumnFact("text", "text", nullable=True),
)
TABLES = (TableFact("shop", "t", COLUMNS), TableFact("other", "t", COLUMNS))
OF_COLUMNS = {
    "bigint.unsigned.handling.mode": "shop.t.id",
    "zero.date.handling.mode": "shop.t.born",
    "enable.time.adjuster": "shop.t.born",
    "value.converter.replace.null.with.default": "shop.t.n",
    "rowtide.values": "shop.t.kind",
}


def configured(**properties: str) -> Configuration:
    return from_properties(PROPERTIES | {"database.include.list": "shop"} | properties)


def stored(fields: Mapping[str, str] | None) -> SourceOffset:
    return SourceOffset("b.000001", 4, carried=fields)


def differences(config: Configuration) -> dict[str, str]:
    """The columns that change, by setting."""
    found = (text.split(". ")[0] for text in exact_differences(config, TABLES))
    return {text.split()[0]: text.split()[-1] for text in found}


def test_the_first_start_on_a_position_of_debezium_says_what_changes() -> None:
    config = configured()
    (finding,) = changed_values(config, stored(OTHERS), exact_differences(config, TABLES))
    assert (finding.severity, finding.subject) == (Severity.WARNING, "rowtide.values")
    assert differences(config) == OF_COLUMNS
    for part in (*OF_COLUMNS, "shop.t.born", "skipped.operations is t", "rowtide.values=debezium keeps"):
        assert part in finding.message
    assert "other.t" not in finding.message


def test_what_is_set_does_not_change() -> None:
    names = ("bigint.unsigned.handling.mode", "zero.date.handling.mode", "skipped.operations")
    config = configured(**dict(zip(names, ("precise", "null", "t"), strict=True)))
    assert differences(config).keys() == OF_COLUMNS.keys() - set(names)
    (finding,) = changed_values(config, stored(None), ())
    assert not any(name in finding.message for name in names)


def test_a_position_with_exact_values_is_marked() -> None:
    config = configured()
    marked = with_values(config, OTHERS)
    assert marked == OTHERS | {"rowtide_values": "exact"}
    assert changed_values(config, stored(marked), ()) == []
    assert SourceOffset.from_json(stored(marked).to_json()).carried == marked
    assert changed_values(config, None, ()) == []
    assert with_values(configured(**CLASS), marked) == OTHERS
    assert with_values(configured(**CLASS), with_values(config, None)) is None


@pytest.mark.parametrize("carried", [None, OTHERS])
def test_debeziums_values_go_on_silently(carried: Mapping[str, str] | None) -> None:
    assert changed_values(configured(**CLASS), stored(carried), ()) == []


def test_debeziums_values_after_exact_ones_are_reported() -> None:
    (finding,) = changed_values(configured(**CLASS), stored(with_values(configured(), OTHERS)), ())
    assert finding.message.startswith("debezium, but the records up to the stored position have exact values")


@pytest.mark.parametrize(
    ("properties", "text"),
    [
        ({}, "exact, because connector.class is not set: values are as the server stores them"),
        ({"rowtide.values": "exact"}, "exact, as set: values are as the server stores them"),
        (CLASS, "debezium, because connector.class names Debezium's class: values are as Debezium writes them"),
        (
            {"rowtide.values": "debezium", "enable.time.adjuster": "false"},
            "debezium, as set: values are as Debezium writes them; enable.time.adjuster as set",
        ),
    ],
)
def test_a_check_says_which_values_hold_and_why(properties: dict[str, str], text: str) -> None:
    assert values_finding(configured(**properties)) == Finding(Severity.REMARK, "rowtide.values", text)


@pytest.fixture
def tables() -> Tables:
    found = Tables(Server(Flavor.MYSQL))
    for statement in (
        "create database shop",
        "create table t (b bool, c boolean not null, d tinyint(1), primary key (c))",
        "create table u (b bool)",
    ):
        found.apply(QueryEvent(statement, database="shop"))
    return found


@pytest.mark.parametrize(
    ("properties", "columns"),
    [
        (CLASS, "shop.t.b, shop.t.c, shop.u.b"),
        (CLASS | {"table.include.list": r"shop\.t", "column.exclude.list": r"shop\.t\.b"}, "shop.t.c"),
        (CLASS | {"rowtide.bool.handling.mode": "int16"}, None),
        ({}, None),
        ({"rowtide.bool.handling.mode": "boolean"}, "shop.t.b, shop.t.c, shop.u.b"),
    ],
)
def test_bool_columns_are_named(properties: dict[str, str], columns: str | None, tables: Tables) -> None:
    found = bool_findings(configured(**properties), tables)
    if columns is None:
        assert found == []
    else:
        (finding,) = found
        assert (finding.severity, finding.subject) == (Severity.WARNING, "rowtide.bool.handling.mode")
        assert f" in {columns}. int16 keeps them" in finding.message
