"""Every key is in exactly one range, in the server's order, for all types that can be a key."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from rowtide.connector.config import Flavor as ConnectorFlavor
from rowtide.connector.snapshot.chunks.key_ranges import Bound, KeyRanges, row_key, surrogate_key
from rowtide.connector.source.session import Session
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.model import Table
from rowtide.schema_history.server.query_event import Flavor, QueryEvent, Server
from tests.support.mysql.key_types import MARIADB_TYPES, TYPES
from tests.support.mysql.live_database import configured

if TYPE_CHECKING:
    from rowtide_stack import Database


def table(definition: str, flavor: Flavor = Flavor.MYSQL) -> Table:
    tables = Tables(Server(flavor))
    for statement in ("create database d default charset utf8mb4", f"create table t ({definition})"):
        tables.apply(QueryEvent(statement, database="d"))
    found = tables.table("d", "t")
    assert found is not None
    return found


def ranges(definition: str) -> KeyRanges:
    described = table(definition)
    key = row_key(described)
    assert key is not None
    return key.ranges(described.id)


def test_the_first_and_the_last_range_are_open() -> None:
    of_id = ranges("id int primary key")
    assert of_id.where(None, None) == "TRUE"
    assert of_id.where(None, ("5",)) == "`id` <= 5"
    assert of_id.where(("5",), ("9",)) == "`id` > 5 AND `id` <= 9"
    assert of_id.where(("9",), None) == "`id` > 9"


def test_a_key_of_several_columns_is_compared_column_by_column() -> None:
    of_both = ranges("a int, b char(2) character set latin1, primary key (a, b)")
    assert of_both.where(("1", "62"), None) == "`a` >= 1 AND (`a` > 1 OR (`a` = 1 AND `b` > _latin1 x'62'))"
    assert of_both.where(None, ("1", "62")) == "`a` <= 1 AND (`a` < 1 OR (`a` = 1 AND `b` <= _latin1 x'62'))"
    assert of_both.order == "`d`.`t`.`a`, `d`.`t`.`b`"


def test_a_descending_column_is_compared_the_other_way_round() -> None:
    of_both = ranges("a int, b int, primary key (a desc, b)")
    assert of_both.where(("5", "1"), None) == "`a` <= 5 AND (`a` < 5 OR (`a` = 5 AND `b` > 1))"
    assert of_both.order == "`d`.`t`.`a` DESC, `d`.`t`.`b`"
    assert of_both.last_query().endswith("ORDER BY `d`.`t`.`a`, `d`.`t`.`b` DESC LIMIT 1")


def test_a_bound_and_a_condition_limit_the_search() -> None:
    assert ranges("id int primary key").bound_query(("3",), 10, upto=("99",), condition="x or y") == (
        "SELECT CAST(`id` AS CHAR) FROM `d`.`t` WHERE `id` > 3 AND `id` <= 99 AND (x or y) "
        "ORDER BY `d`.`t`.`id` LIMIT 1 OFFSET 9"
    )


@pytest.mark.parametrize(
    ("kind", "text"), [("int", "1 or 1"), ("binary(4)", "0"), ("char(4)", "zz"), ("datetime", "2024'"), ("double", "")]
)
def test_text_that_is_not_a_value_of_the_key_is_refused(kind: str, text: str) -> None:
    with pytest.raises(ValueError, match="not a value of a key"):
        ranges(f"id {kind} primary key").where((text,), None)


def test_a_bound_of_another_key_is_refused() -> None:
    with pytest.raises(ValueError, match="not a key of the 1 columns"):
        ranges("id int primary key").where(("1", "2"), None)


def test_a_type_without_an_order_is_refused() -> None:
    described = table("j json")
    key = surrogate_key(described, "j")
    assert key is not None
    with pytest.raises(ValueError, match="column j is a json"):
        key.ranges(described.id)


def names(definition: str) -> list[str] | None:
    key = row_key(table(definition))
    return None if key is None else [column.name for column in key.columns]


def test_rows_are_identified_by_the_primary_key_or_a_unique_key_without_nulls() -> None:
    assert names("id int primary key, u int not null unique") == ["id"]
    assert names("a int, b int not null unique, c int not null unique") == ["b"]
    assert names("a int unique, b int") is None
    assert names("a varchar(99) not null, unique (a(3))") is None
    assert names("a int, unique ((a + 1))") is None


def test_a_surrogate_key_identifies_rows_if_it_is_unique_and_never_null() -> None:
    described = table("a int not null unique, b int unique, c int not null, d int not null, unique (c, d)")
    assert [surrogate_key(described, name).unique for name in "ABcd"] == [True, False, False, False]  # type: ignore[union-attr]
    assert surrogate_key(described, "nosuch") is None


def described(session: Session, database: Database, name: str) -> Table:
    """The structure of a table, from the server's statement."""
    tables = Tables(Server(Flavor.MARIADB if session.mariadb else Flavor.MYSQL))
    create = session.query(f"SHOW CREATE TABLE {database.name}.{name}")[0][1]
    for statement in (f"create database {database.name}", create):
        tables.apply(QueryEvent(statement, database=database.name))
    found = tables.table(database.name, name)
    assert found is not None
    return found


def read(session: Session, key: KeyRanges, table: str, size: int) -> list[list[tuple[object, ...]]]:
    """The rows of each range of a size."""
    found = []
    lower: Bound | None = None
    while True:
        bounds = session.query(key.bound_query(lower, size))
        upper = key.bound(bounds[0]) if bounds else None
        found.append(session.query(f"SELECT n FROM {table} WHERE {key.where(lower, upper)} ORDER BY {key.order}"))
        lower = upper
        if upper is None:
            return found


def check_type(session: Session, database: Database, name: str, kind: str, values: str) -> None:
    table = f"{database.name}.{name}"
    session.execute(f"CREATE TABLE {table} (k {kind} NOT NULL, n INT AUTO_INCREMENT UNIQUE, PRIMARY KEY (k))")
    session.execute(f"INSERT INTO {table} (k) VALUES {values}")
    structure = described(session, database, name)
    key = row_key(structure)
    assert key is not None
    assert key.unique
    ranges = key.ranges(structure.id)
    in_order = session.query(f"SELECT n FROM {table} ORDER BY k")
    for size in (1, 2, 3):
        found = read(session, ranges, table, size)
        assert [row for chunk in found for row in chunk] == in_order
        assert [len(chunk) for chunk in found[:-1]] == [size] * (len(found) - 1)
    last = ranges.bound(session.query(ranges.last_query())[0])
    assert session.query(f"SELECT n FROM {table} WHERE {ranges.where(None, last)} ORDER BY k") == in_order
    assert not session.query(f"SELECT n FROM {table} WHERE {ranges.where(last, None)}")


@pytest.fixture
def session(database: Database) -> Iterator[Session]:
    """A session of the connector on the server of ``database``."""
    config = configured(database)
    with Session(config.database, mariadb=config.flavor is ConnectorFlavor.MARIADB) as found:
        yield found


@pytest.mark.servers
def test_each_row_is_in_one_range_for_every_type(database: Database, session: Session) -> None:
    types = TYPES | (MARIADB_TYPES if session.mariadb else {})
    for place, (kind, values) in enumerate(types.items()):
        check_type(session, database, f"t{place}", kind, values)


@pytest.mark.servers
def test_several_columns_and_descending_ones(database: Database, session: Session) -> None:
    table = f"{database.name}.t"
    session.execute(
        f"CREATE TABLE {table} (a VARCHAR(5), b INT, c DATE, n INT AUTO_INCREMENT UNIQUE, PRIMARY KEY (a, b DESC, c))"
    )
    rows = [f"('{a}', {b}, '2024-01-0{c}')" for a in "aBc" for b in (-1, 0, 5) for c in (1, 2, 3)]
    session.execute(f"INSERT INTO {table} (a, b, c) VALUES {', '.join(rows)}")
    structure = described(session, database, "t")
    key = row_key(structure)
    assert key is not None
    in_order = session.query(f"SELECT n FROM {table} ORDER BY a, b DESC, c")
    for size in (1, 2, 4, 5, 27):
        found = read(session, key.ranges(structure.id), table, size)
        assert [row for chunk in found for row in chunk] == in_order
        assert all(len(chunk) == size for chunk in found[:-1])


@pytest.mark.servers
def test_equal_keys_and_nulls_of_a_surrogate_key(database: Database, session: Session) -> None:
    table = f"{database.name}.t"
    session.execute(f"CREATE TABLE {table} (s INT, n INT)")
    session.execute(f"INSERT INTO {table} VALUES (1,1),(1,2),(1,3),(2,4),(NULL,5),(2,6),(3,7),(NULL,8)")
    structure = described(session, database, "t")
    key = surrogate_key(structure, "s")
    assert key is not None
    ranges = key.ranges(structure.id)
    assert [sorted(chunk) for chunk in read(session, ranges, table, 2)] == [[(1,), (2,), (3,)], [(4,), (6,)], [(7,)]]
    assert session.query(f"SELECT n FROM {table} WHERE {ranges.nulls} ORDER BY n") == [(5,), (8,)]


@pytest.mark.servers
@pytest.mark.parametrize(
    ("definition", "bound"),
    [
        ("a INT, b INT, c INT, PRIMARY KEY (a, b, c)", ("500", "3", "4")),
        ("a VARCHAR(20) CHARACTER SET latin1, b INT, c INT, PRIMARY KEY (a, b)", ("353030", "3")),
        ("a ENUM('x','y'), b INT, c INT, PRIMARY KEY (b, a)", ("500", "1")),
        ("a INT, b INT, c INT, PRIMARY KEY (a, b DESC, c)", ("500", "3", "4")),
    ],
)
def test_a_range_uses_the_index(database: Database, session: Session, definition: str, bound: Bound) -> None:
    """The server reads the rows of the range, and not those before it."""
    table = f"{database.name}.t"
    session.execute(f"CREATE TABLE {table} ({definition}) ENGINE=InnoDB")
    digits = " UNION ALL ".join(f"SELECT {n} AS n" for n in range(1, 10))
    number = "d.n * 81 + e.n * 9 + f.n"
    first = f"1, {number}" if "ENUM" in definition else f"{number}, e.n"
    session.execute(f"INSERT INTO {table} WITH d AS ({digits}) SELECT {first}, f.n FROM d, d AS e, d AS f")
    session.execute(f"ANALYZE TABLE {table}")
    structure = described(session, database, "t")
    key = row_key(structure)
    assert key is not None
    ranges = key.ranges(structure.id)
    session.execute("FLUSH STATUS")
    assert session.query(ranges.bound_query(bound, 10))
    reads = {str(name): int(value) for name, value in session.query("SHOW SESSION STATUS LIKE 'Handler_read%'")}
    assert sum(reads.values()) < 40, reads
