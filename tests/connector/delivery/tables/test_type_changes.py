"""Which changes of column types keep the values."""

from __future__ import annotations

import pytest

from rowtide.connector.delivery.tables.type_changes import keeps_values
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.model import Column
from rowtide.schema_history.server.query_event import Flavor, QueryEvent, Server


@pytest.mark.parametrize(
    ("old", "new", "kept"),
    [
        ("INT", "INT UNSIGNED", False),
        ("INT UNSIGNED", "BIGINT", True),
        ("BIGINT", "DECIMAL(19,0)", True),
        ("BIGINT", "DECIMAL(18,0)", False),
        ("DECIMAL(5,2)", "DECIMAL(6,2)", True),
        ("DECIMAL(5,2)", "DECIMAL(5,3)", False),
        ("VARCHAR(5)", "VARCHAR(6)", True),
        ("VARCHAR(6)", "CHAR(6)", False),
        ("VARCHAR(300)", "TEXT", True),
        ("TEXT", "TINYTEXT", False),
        ("TEXT", "MEDIUMTEXT", True),
        ("TEXT CHARACTER SET latin1", "VARCHAR(20000) CHARACTER SET latin1", False),
        ("VARCHAR(5) CHARACTER SET latin1", "VARCHAR(5) CHARACTER SET utf8mb4", True),
        ("VARCHAR(5) CHARACTER SET utf8mb4", "VARCHAR(5) CHARACTER SET latin1", False),
        ("ENUM('a','b')", "ENUM('b','a','c')", True),
        ("ENUM('a','b')", "ENUM('a')", False),
        ("SET('a','b')", "SET('a','b','c')", True),
        ("SET('a','b')", "SET('b','a')", False),
        ("SET('a') CHARACTER SET latin1", "SET('a') CHARACTER SET utf8mb4", True),
        ("ENUM('a') CHARACTER SET latin1", "ENUM('a') CHARACTER SET utf8mb4", True),
        ("VARBINARY(5)", "BLOB", True),
        ("BINARY(5)", "BINARY(6)", False),
        ("DATETIME", "DATETIME(3)", True),
        ("DATETIME(3)", "DATETIME", False),
        ("BIT(1)", "BIT(8)", True),
        ("FLOAT", "DOUBLE", True),
        ("DOUBLE", "FLOAT", False),
        ("DATE", "DATETIME", False),
        ("INT", "VARCHAR(20)", False),
    ],
)
def test_changes_of_types(old: str, new: str, *, kept: bool) -> None:
    def column(kind: str) -> Column:
        tables = Tables(Server(Flavor.MYSQL))
        tables.apply(QueryEvent(f"CREATE TABLE t (c {kind})".encode(), database="shop", position="here"))
        found = tables.table("shop", "t")
        assert found is not None
        return found.columns[0]

    assert keeps_values(column(old), column(new)) is kept
