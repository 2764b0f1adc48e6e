"""``rowtide check --ddl``: every subject that a statement changes is asked for."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from typing import ClassVar

import pytest

from rowtide.connector.check.findings import Severity
from rowtide.connector.check.topic_checks import CheckedTable
from rowtide.connector.config import from_properties
from rowtide.connector.engine import registry_check
from rowtide.connector.engine.registry_check import registry_findings
from rowtide.envelope.avro.differences import DifferenceKind, SchemaDifference
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.server.query_event import Flavor, QueryEvent, Server
from tests.support.configurations import PROPERTIES

CAPTURED = [CheckedTable("shop", name, 1, None, f"p.shop.{name}") for name in ("orders", "lines")]
AVRO = {
    f"{side}.converter{more}": value
    for side in ("key", "value")
    for more, value in {
        "": "io.confluent.connect.avro.AvroConverter",
        ".schema.registry.url": "http://registry:8081",
    }.items()
}


BEFORE = ["p.shop.orders-key", "p.shop.orders-value", "p.shop.lines-value"]


class Registry:
    """A registry that refuses what comes after the present schemas, and keeps the subjects that it was asked."""

    asked: ClassVar[list[str]] = []

    def __init__(self, _config: object) -> None:
        pass

    def incompatibilities(self, subject: str, _kind: str, _text: str) -> list[SchemaDifference]:
        Registry.asked.append(subject)
        return [SchemaDifference(DifferenceKind.NEW, "version 1")] if len(Registry.asked) > len(BEFORE) else []


@pytest.mark.parametrize(
    ("statement", "subjects"),
    [
        ("ALTER TABLE orders ADD c INT", {"orders-key", "orders-value"}),
        ("ALTER TABLE orders ADD c INT, DROP PRIMARY KEY, ADD PRIMARY KEY (id, c)", {"orders-key", "orders-value"}),
        ("ALTER TABLE `lines` ADD c INT NOT NULL", {"lines-value"}),  # without a key
        ("RENAME TABLE orders TO x, `lines` TO orders, x TO `lines`", {"orders-value", "lines-key", "lines-value"}),
    ],
)
def test_each_subject_that_would_refuse_a_statement_is_named(
    statement: str, subjects: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = Tables(Server(Flavor.MYSQL))
    tables.apply(QueryEvent("CREATE TABLE orders (id INT PRIMARY KEY)", database="shop"))
    tables.apply(QueryEvent("CREATE TABLE `lines` (n INT)", database="shop"))
    monkeypatch.setattr(registry_check, "Session", lambda *_, **__: nullcontext())
    monkeypatch.setattr(registry_check.server_queries, "structures", lambda *_: tables)
    monkeypatch.setattr("rowtide.connector.schema_registry.SchemaRegistry", Registry)
    monkeypatch.setattr(Registry, "asked", [])
    found = registry_findings(from_properties({**PROPERTIES, **AVRO}), CAPTURED, statement)
    assert Registry.asked[:3] == BEFORE
    names = {f"p.shop.{name}" for name in subjects}
    assert set(Registry.asked[3:]) == names
    assert {(one.severity, one.planned) for one in found} == {(Severity.ERROR, True)}
    assert {name for name in names if any(f"subject {name}," in one.message for one in found)} == names
    assert len(found) == len(names)


def test_a_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rowtide.connector.schema_registry", None)
    (finding,) = registry_findings(from_properties({**PROPERTIES, **AVRO}), CAPTURED)
    assert finding.message.endswith("pip install 'rowtide[avro]'")
