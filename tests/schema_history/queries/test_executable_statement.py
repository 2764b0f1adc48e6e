"""Statements that other sessions execute."""

import pytest

from rowtide.schema_history.ddl.lexer import ANSI_QUOTES, MSSQL, NO_BACKSLASH_ESCAPES, ORACLE, REAL_AS_FLOAT, Dialect
from rowtide.schema_history.queries.executable_statement import executable, required_mode
from rowtide.schema_history.server.query_event import Flavor

STRICT = 1 << 21 | 1 << 23 | 1 << 24 | 1 << 5
"""MySQL's default."""


@pytest.mark.parametrize(
    ("sql", "expected", "mode"),
    [
        ("CREATE TABLE `t` (\n  `a` int\n) START TRANSACTION", "CREATE TABLE `t` (\n  `a` int\n)", 0),
        ("create table t (a int) engine=InnoDB start transaction;", "create table t (a int) engine=InnoDB", 0),
        ("CREATE TABLE t (start int) /*!50100 PARTITION BY KEY (start) */ START TRANSACTION", None, 0),
        ("CREATE TABLE t (a int) COMMENT 'START TRANSACTION'", None, 0),
        ('CREATE TABLE "t" ("a`b" INT DEFAULT \'"\')', "CREATE TABLE `t` (`a``b` INT DEFAULT '\"')", ANSI_QUOTES),
        ('ALTER TABLE d."a""b" RENAME TO "c"', 'ALTER TABLE d.`a"b` RENAME TO `c`', ANSI_QUOTES),
        ('ALTER TABLE t COMMENT "a`b" /* "x" */', None, 0),
        (r"CREATE TABLE t (a CHAR(9) DEFAULT 'a\b''c\')", r"CREATE TABLE t (a CHAR(9) DEFAULT 'a\\b''c\\')", 1 << 20),
        (r"CREATE TABLE t (a CHAR(9) DEFAULT N'\n') COMMENT 'x'", None, 0),
        (r'CREATE TABLE t (a ENUM("\"))', r'CREATE TABLE t (a ENUM("\\"))', NO_BACKSLASH_ESCAPES),
        (
            'ALTER TABLE "t" ADD "\\" ENUM(\'\\\')',
            "ALTER TABLE `t` ADD `\\` ENUM('\\\\')",
            ANSI_QUOTES | NO_BACKSLASH_ESCAPES,
        ),
        ("ALTER TABLE t ADD x CHAR(5) DEFAULT 'unclosed", "ALTER TABLE t ADD x CHAR(5) DEFAULT 'unclosed", 0),
    ],
)
def test_only_what_other_sessions_do_not_understand_is_written_in_another_way(
    sql: str, expected: str | None, mode: int
) -> None:
    if expected is None:
        expected = sql.removesuffix(" START TRANSACTION")
    assert executable(sql, Dialect(Flavor.MYSQL, 80400, mode | STRICT)) == expected


def test_names_in_brackets_get_backquotes() -> None:
    assert executable("CREATE TABLE [a`b] (c INT)", Dialect(Flavor.MARIADB, 110400, MSSQL)) == (
        "CREATE TABLE `a``b` (c INT)"
    )


@pytest.mark.parametrize(
    ("flavor", "mode", "expected"),
    [
        (Flavor.MYSQL, STRICT | ANSI_QUOTES | NO_BACKSLASH_ESCAPES, ""),
        (Flavor.MYSQL, STRICT | REAL_AS_FLOAT | 2 | 1 << 25, "REAL_AS_FLOAT,PIPES_AS_CONCAT,ALLOW_INVALID_DATES"),
        (Flavor.MYSQL, ORACLE, ""),
        (Flavor.MARIADB, ORACLE | 1 << 32, "ORACLE,EMPTY_STRING_IS_NULL"),
        (Flavor.MYSQL, 1 << 32, "TIME_TRUNCATE_FRACTIONAL"),
    ],
)
def test_the_mode_that_a_statement_needs(flavor: Flavor, mode: int, expected: str) -> None:
    assert required_mode(Dialect(flavor, 100000, mode)) == expected
