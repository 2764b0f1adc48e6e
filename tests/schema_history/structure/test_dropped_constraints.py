"""DROP CONSTRAINT, and REFERENCES as an attribute of a column."""

import pytest

from rowtide.schema_history.server.query_event import Flavor
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
