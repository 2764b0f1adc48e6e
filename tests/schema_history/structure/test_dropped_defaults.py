"""Dropped defaults in the records of the schema history."""

from __future__ import annotations

import pytest

from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.server.query_event import Flavor, QueryEvent, Server


@pytest.mark.parametrize(
    "alteration",
    [
        "ALTER TABLE t ALTER a DROP DEFAULT, ALTER b DROP DEFAULT",
        "ALTER TABLE t ALTER a SET DEFAULT NULL, ALTER b DROP DEFAULT",
    ],
)
def test_a_nullable_column_without_a_default_has_the_default_null(alteration: str) -> None:
    tables = Tables(Server(Flavor.MYSQL))
    tables.apply(QueryEvent("CREATE DATABASE d", "d"))
    tables.apply(QueryEvent("CREATE TABLE t (a INT DEFAULT 5, b INT NOT NULL DEFAULT 5)", "d"))
    tables.apply(QueryEvent(alteration, "d"))
    table = tables.table("d", "t")
    assert table is not None
    forms = [column.debezium for column in table.columns if column.debezium]
    assert [(form.has_default, form.default_expression) for form in forms] == [(True, None), (False, None)]
