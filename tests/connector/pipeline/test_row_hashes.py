"""Hidden hash columns of MariaDB tables: their number follows from the keys and the TABLE_MAP."""

from __future__ import annotations

import pytest

from rowtide.connector.pipeline.structures.lookup import with_row_hashes
from rowtide.connector.protocol.events.table_structure import BinlogType, MappedColumn, TableStructure
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.model import Table
from rowtide.schema_history.server.query_event import Flavor, QueryEvent, Server


def made(*statements: str, flavor: Flavor = Flavor.MARIADB) -> Table:
    tables = Tables(Server(flavor))
    for statement in statements:
        tables.apply(QueryEvent(statement, "d"))
    (table,) = tables
    return table


def hashes(table: Table, *types: BinlogType, names: tuple[str | None, ...] = ()) -> int:
    """The hidden columns that the table has for a TABLE_MAP of these types."""
    named = names or (None,) * len(types)
    columns = tuple(MappedColumn(kind, 0, nullable=True, name=name) for kind, name in zip(types, named, strict=True))
    return len(with_row_hashes(table, TableStructure("d", "t", columns)).hidden)


INT, BIGINT = BinlogType.LONG, BinlogType.LONGLONG


@pytest.mark.parametrize(
    ("definition", "count"),
    [
        ("a INT, UNIQUE (a) USING HASH", 1),
        ("a INT, b INT, UNIQUE USING HASH (a), UNIQUE (b, a) USING HASH", 2),
        ("a INT, KEY (a) USING HASH", 0),
        ("a TEXT UNIQUE", 1),
        ("a TEXT, UNIQUE (a(10))", 0),
        ("a VARCHAR(3000), UNIQUE (a)", 1),
        ("a GEOMETRY UNIQUE", 1),
        ("a GEOMETRY, UNIQUE (a(3))", 0),
        ("a POINT UNIQUE", 0),
    ],
)
def test_a_new_table_has_a_hash_for_each_key_that_needs_or_declares_one(definition: str, count: int) -> None:
    assert len(made(f"CREATE TABLE t ({definition}) CHARSET utf8mb4").hidden) == count


def test_only_mariadb_and_only_engines_without_such_indexes_have_hashes() -> None:
    assert made("CREATE TABLE t (a INT, UNIQUE (a) USING HASH)", flavor=Flavor.MYSQL).hidden == ()
    assert made("CREATE TABLE t (a INT, UNIQUE (a) USING HASH) ENGINE=MEMORY").hidden == ()


def test_the_table_map_decides_how_many_are_left() -> None:
    table = made("CREATE TABLE t (a INT, UNIQUE (a) USING HASH)", "ALTER TABLE t FORCE")
    assert hashes(table, INT) == 0
    assert hashes(table, INT, BIGINT) == 1
    assert hashes(table, INT, BIGINT, names=("a", "DB_ROW_HASH_1")) == 1


def test_a_column_that_no_key_explains_is_not_a_hash() -> None:
    bare = made("CREATE TABLE t (a INT, UNIQUE (a))")
    assert hashes(bare, INT, BIGINT) == 0
    table = made("CREATE TABLE t (a INT, b INT, UNIQUE (a) USING HASH, UNIQUE (b) USING HASH)")
    unchanged = len(table.hidden)
    assert hashes(table, INT, INT, INT) == unchanged  # no hash
    assert hashes(table, INT, INT, BIGINT, names=("a", "b", "c")) == unchanged
    assert hashes(table, INT) == unchanged  # a column is missing
    assert hashes(table, INT, INT, BIGINT, BIGINT, BIGINT) == unchanged
