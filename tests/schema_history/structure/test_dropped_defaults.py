"""What the schema history's records say of a default that was dropped."""

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
def test_a_column_that_can_be_null_has_null_for_its_default_when_it_has_no_other(alteration: str) -> None:
    tables = Tables(Server(Flavor.MYSQL))
    tables.apply(QueryEvent("CREATE DATABASE d", "d"))
    tables.apply(QueryEvent("CREATE TABLE t (a INT DEFAULT 5, b INT NOT NULL DEFAULT 5)", "d"))
    tables.apply(QueryEvent(alteration, "d"))
    table = tables.table("d", "t")
    assert table is not None
    forms = [column.debezium for column in table.columns if column.debezium]
    assert [(form.has_default, form.default_expression) for form in forms] == [(True, None), (False, None)]
