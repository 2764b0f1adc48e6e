"""ALTER TABLE with several clauses that influence each other; every expectation was observed on a real server."""

import pytest

from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.server.query_event import Flavor, QueryEvent, Server
from tests.support.ddl.made_tables import made

MYSQL, MARIADB = Flavor.MYSQL, Flavor.MARIADB
GENERAL, DEFAULT = "utf8mb4_general_ci", "utf8mb4_0900_ai_ci"
TABLE = "CREATE TABLE t (a VARCHAR(20)) CHARACTER SET utf8mb4 COLLATE utf8mb4_swedish_ci"


@pytest.mark.parametrize("flavor", Flavor)
@pytest.mark.parametrize(
    ("actions", "columns"),
    [
        ("ADD x INT, ADD y INT", "a x y"),
        ("ADD x INT DEFAULT 5", "a x"),
        ("ADD remove INT", "a remove"),
        ("CHANGE a b INT", "b"),
        ("RENAME COLUMN a TO b", "b"),
        ("ADD x INT, DROP a", "x"),
        ("ADD PRIMARY KEY (a)", "a"),
        ("ADD CHECK (a > 3)", "a"),
        ("ALTER a SET DEFAULT 5", "a"),
        ("CONVERT TO CHARACTER SET latin1", "a"),
        ("ALGORITHM=COPY, ADD INDEX (a)", "a"),
        ("ADD x INT, ALGORITHM=COPY", "a x"),
        ("ADD x INT, COMMENT 'c'", "a x"),
    ],
)
@pytest.mark.parametrize("partitions", ["REMOVE PARTITIONING", "PARTITION BY HASH (a) PARTITIONS 2"])
def test_partition_clauses_follow_the_last_action_without_a_comma(
    flavor: Flavor, actions: str, columns: str, partitions: str
) -> None:
    table = made(flavor, "CREATE TABLE t (a INT) PARTITION BY HASH (a)", f"ALTER TABLE t {actions} {partitions}")
    assert " ".join(column["name"] for column in table["columns"]) == columns


@pytest.mark.parametrize(
    ("alter", "mysql", "mariadb"),
    [
        ("CONVERT TO CHARACTER SET utf8mb4", (DEFAULT, DEFAULT), (GENERAL, GENERAL)),
        (
            "CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, DEFAULT CHARACTER SET utf8mb4",
            ("utf8mb4_bin", "utf8mb4_bin"),
            (GENERAL, "utf8mb4_bin"),
        ),
        (
            "DEFAULT CHARACTER SET utf8mb4, CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
            ("utf8mb4_bin", "utf8mb4_bin"),
            (GENERAL, "utf8mb4_bin"),
        ),
        (
            "COLLATE utf8mb4_czech_ci, CONVERT TO CHARACTER SET utf8mb4",
            (DEFAULT, DEFAULT),
            ("utf8mb4_czech_ci", GENERAL),
        ),
        (
            "CONVERT TO CHARACTER SET utf8mb4, COLLATE utf8mb4_czech_ci",
            ("utf8mb4_czech_ci", DEFAULT),
            ("utf8mb4_czech_ci", GENERAL),
        ),
        (
            "CHARACTER SET utf8mb4 COLLATE utf8mb4_czech_ci, CONVERT TO CHARACTER SET DEFAULT",
            (GENERAL, GENERAL),
            ("utf8mb4_czech_ci", GENERAL),
        ),
        (
            "CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, CONVERT TO CHARACTER SET utf8mb4",
            (DEFAULT, DEFAULT),
            ("utf8mb4_bin", "utf8mb4_bin"),
        ),
        (
            "CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, CONVERT TO CHARACTER SET DEFAULT",
            (GENERAL, GENERAL),
            ("utf8mb4_bin", "utf8mb4_bin"),
        ),
        (
            "CONVERT TO CHARACTER SET utf8mb4, CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
            ("utf8mb4_bin", "utf8mb4_bin"),
            ("utf8mb4_bin", "utf8mb4_bin"),
        ),
    ],
)
def test_the_collations_of_convert_to_beside_table_options(
    alter: str, mysql: tuple[str, str], mariadb: tuple[str, str]
) -> None:
    for flavor, expected in ((MYSQL, mysql), (MARIADB, mariadb)):
        table = made(flavor, TABLE, f"ALTER TABLE t {alter}")
        assert (table["collation"], table["columns"][0]["collation"]) == expected


def test_collate_default_is_the_default_collation_of_the_character_set_in_mariadb() -> None:
    for alter in ("COLLATE DEFAULT", "CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, COLLATE DEFAULT"):
        assert made(MARIADB, TABLE, f"ALTER TABLE t {alter}")["collation"] == GENERAL


@pytest.mark.parametrize("flavor", Flavor)
@pytest.mark.parametrize("rename", ["RENAME = u", "RENAME TO u", "RENAME AS u", "RENAME u"])
@pytest.mark.parametrize(
    "options", ["COMMENT 'c'", "COMMENT='c', ENGINE=InnoDB", "ALGORITHM=COPY", "ROW_FORMAT=DYNAMIC"]
)
def test_a_rename_can_follow_table_options(flavor: Flavor, rename: str, options: str) -> None:
    tables = Tables(Server(flavor))
    for statement in ("CREATE TABLE t (a INT)", f"ALTER TABLE t {options}, {rename}"):
        tables.apply(QueryEvent(statement, "d"))
    assert [str(name) for name in tables.names()] == ["d.u"]


def test_options_of_storage_engines_of_mariadb_are_skipped() -> None:
    table = made(MARIADB, "CREATE TABLE t (a INT)", "ALTER TABLE t COMMENT 'c', IETF_QUOTES=YES, `x` = 5, ADD b INT")
    assert [column["name"] for column in table["columns"]] == ["a", "b"]
