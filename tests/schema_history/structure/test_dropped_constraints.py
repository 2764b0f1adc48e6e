"""DROP CONSTRAINT, and REFERENCES as an attribute of a column."""

import pytest

from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.server.query_event import Flavor, QueryEvent, Server
from tests.support.ddl.made_tables import made

PARENT = "CREATE TABLE p (id INT PRIMARY KEY)"


@pytest.mark.parametrize("flavor", Flavor)
def test_a_unique_key_replaces_the_index_of_a_foreign_key(flavor: Flavor) -> None:
    create = "CREATE TABLE t (a INT REFERENCES p (id), b INT, UNIQUE (b))"
    assert made(flavor, PARENT, create, "ALTER TABLE t ADD UNIQUE (a)")["unique_keys"] == {"b": ["b"], "a": ["a"]}


def test_a_spatial_index_stays_and_keeps_its_name() -> None:
    create = "CREATE TABLE t (b GEOMETRYCOLLECTION REFERENCES p (id)) ENGINE=MyISAM"
    assert made(Flavor.MARIADB, create, "ALTER TABLE t ADD UNIQUE (b)")["unique_keys"] == {"b_2": ["b(8)"]}


def test_drop_constraint_means_the_foreign_key_first() -> None:
    create = "CREATE TABLE t (a INT REFERENCES p (id), b INT REFERENCES p (id), UNIQUE t_ibfk_2 (b, a))"
    drop = "ALTER TABLE t DROP CONSTRAINT t_ibfk_2"
    assert made(Flavor.MARIADB, PARENT, create, drop)["unique_keys"] == {"t_ibfk_2": ["b", "a"]}
    assert made(Flavor.MARIADB, PARENT, create, drop, drop)["unique_keys"] == {}


@pytest.mark.parametrize("flavor", Flavor)
def test_drop_constraint_finds_the_primary_key_by_name(flavor: Flavor) -> None:
    create = "CREATE TABLE t (a INT PRIMARY KEY, UNIQUE con (a))"
    found = made(flavor, create, "ALTER TABLE t DROP CONSTRAINT con, DROP CONSTRAINT `PRIMARY`")
    assert (found["primary_key"], found["unique_keys"]) == ([], {})


def test_drop_constraint_if_exists_does_not_find_a_hashed_key() -> None:
    create = "CREATE TABLE t (a TEXT, b INT, UNIQUE con (a), UNIQUE nor (b))"
    alter = "ALTER TABLE t DROP CONSTRAINT IF EXISTS con, DROP CONSTRAINT IF EXISTS nor"
    assert made(Flavor.MARIADB, create, alter)["unique_keys"] == {"con": ["a"]}
    assert made(Flavor.MARIADB, create, "ALTER TABLE t DROP CONSTRAINT con")["unique_keys"] == {"nor": ["b"]}


def foreign_keys(server: Server, *statements: str) -> list[str]:
    """The names of the foreign keys of all tables after the statements."""
    tables = Tables(server)
    for statement in (PARENT, *statements):
        tables.apply(QueryEvent(statement, "d"))
    found = (tables.table(name.database, name.table) for name in tables.names())
    return [key.name for table in found if table is not None for key in table.constraints if key.kind == "foreign"]


@pytest.mark.parametrize(
    ("server", "column", "index"),
    [
        (Server(Flavor.MYSQL, "5.7.44"), [], ["i"]),
        (Server(Flavor.MYSQL, "8.0.15"), [], ["i"]),
        (Server(Flavor.MYSQL, "8.4.3"), [], ["t_ibfk_1"]),
        (Server(Flavor.MYSQL, "9.0.0"), ["t_ibfk_1"], ["t_ibfk_1"]),
        (Server(Flavor.MARIADB, "10.4.34-MariaDB"), [], ["i"]),
        (Server(Flavor.MARIADB, "10.5.0-MariaDB"), ["t_ibfk_1"], ["i"]),
    ],
)
def test_foreign_keys_of_columns_and_names_of_indexes(server: Server, column: list[str], index: list[str]) -> None:
    assert foreign_keys(server, "CREATE TABLE t (a INT PRIMARY KEY REFERENCES p (id))") == column
    assert foreign_keys(server, "CREATE TABLE t (a INT, FOREIGN KEY i (a) REFERENCES p (id))") == index


@pytest.mark.parametrize("flavor", Flavor)
def test_names_of_foreign_keys_have_the_next_number_and_follow_the_table(flavor: Flavor) -> None:
    key = "FOREIGN KEY (a) REFERENCES p (id)"
    two = f"CREATE TABLE t (a INT, b INT, {key}, FOREIGN KEY (b) REFERENCES p (id))"
    again = f"ALTER TABLE t DROP FOREIGN KEY t_ibfk_1, ADD {key}"
    assert foreign_keys(Server(flavor), two, again) == ["t_ibfk_2", "t_ibfk_3"]
    for rename in ("RENAME TABLE t TO u", "ALTER TABLE t RENAME TO u"):
        assert foreign_keys(Server(flavor), two, again, rename) == ["u_ibfk_2", "u_ibfk_3"]
    assert foreign_keys(Server(flavor), f"{two} ENGINE=MyISAM", "ALTER TABLE t ENGINE=InnoDB") == []
