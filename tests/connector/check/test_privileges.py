"""Privileges parsed from rows of SHOW GRANTS that real servers returned."""

import pytest

from rowtide.connector.check.privileges import Privileges

CDC = ("SELECT", "RELOAD", "SHOW DATABASES", "REPLICATION SLAVE", "REPLICATION CLIENT")
MYSQL = ["GRANT SELECT, RELOAD, SHOW DATABASES, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO `a`@`%`"]
MARIADB = [
    "GRANT SELECT, RELOAD, SHOW DATABASES, REPLICATION SLAVE, BINLOG MONITOR ON *.* TO `a` IDENTIFIED BY PASSWORD '*D8'"
]


@pytest.mark.parametrize("rows", [MYSQL, MARIADB])
def test_global_privileges_of_both_servers(rows: list[str]) -> None:
    privileges = Privileges.parse(rows)
    assert all(privileges.has(name) for name in CDC)
    assert privileges.has("SELECT", "any", "table")
    assert not privileges.has("LOCK TABLES")


@pytest.mark.parametrize(
    "row",
    [
        "GRANT ALL PRIVILEGES ON *.* TO `d`@`%` IDENTIFIED BY PASSWORD '*D8' WITH GRANT OPTION",
        "GRANT ALL PRIVILEGES ON *.* TO 'root'@'localhost'",
    ],
)
def test_all_privileges_are_all(row: str) -> None:
    assert all(Privileges.parse([row]).has(name) for name in CDC)


def test_dynamic_privileges_and_active_roles() -> None:
    privileges = Privileges.parse(
        [
            "GRANT SELECT, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO `b`@`%`",
            "GRANT FLUSH_TABLES,BACKUP_ADMIN ON *.* TO `b`@`%`",
            "GRANT `r1`@`%`,`r2`@`%` TO `b`@`%`",
        ]
    )
    assert privileges.has("FLUSH_TABLES")
    assert privileges.roles == ("`r1`@`%`", "`r2`@`%`")


def test_a_role_of_mariadb_lists_its_own_row() -> None:
    privileges = Privileges.parse(
        [
            "GRANT `r1` TO `b`@`%`",
            "GRANT USAGE ON *.* TO `b`@`%` IDENTIFIED BY PASSWORD '*D8'",
            "GRANT SELECT, REPLICATION SLAVE, BINLOG MONITOR, REPLICATION SLAVE ADMIN ON *.* TO `r1`",
            "SET DEFAULT ROLE `r1` FOR `b`@`%`",
        ]
    )
    assert privileges.has("REPLICATION CLIENT")
    assert privileges.has("REPLICATION SLAVE")
    assert not privileges.has("USAGE OF NOTHING")


def test_privileges_on_parts() -> None:
    privileges = Privileges.parse(
        [
            "GRANT USAGE ON *.* TO `c`@`%`",
            "GRANT SELECT, LOCK TABLES ON `shop\\_%`.* TO `c`@`%`",
            "GRANT SELECT, INSERT (`x`, `y`), UPDATE ON `other`.`t``q` TO `c`@`%`",
            "GRANT SELECT (`only`) ON `other`.`part` TO `c`@`%`",
        ]
    )
    assert not privileges.has("SELECT")
    assert privileges.has("SELECT", "shop_1")
    assert privileges.has("SELECT", "shop_1", "t")
    assert not privileges.has("SELECT", "shopX1")
    assert privileges.has("SELECT", "other", "t`q")
    assert not privileges.has("SELECT", "other")
    assert privileges.has("UPDATE", "other", "t`q")
    assert not privileges.has("INSERT", "other", "t`q")
    assert not privileges.has("SELECT", "other", "part")


def test_a_partial_revoke_takes_a_database_out() -> None:
    privileges = Privileges.parse(
        ["GRANT SELECT, RELOAD ON *.* TO `c`@`%`", "REVOKE SELECT ON `secret`.* FROM `c`@`%`"]
    )
    assert privileges.has("SELECT", "shop", "t")
    assert not privileges.has("SELECT", "secret", "t")
    assert privileges.has("RELOAD")


def test_rows_of_other_kinds_are_ignored() -> None:
    privileges = Privileges.parse(["GRANT PROXY ON ``@`` TO `root`@`localhost` WITH GRANT OPTION", "nonsense"])
    assert privileges.grants == ()
    assert privileges.roles == ()
