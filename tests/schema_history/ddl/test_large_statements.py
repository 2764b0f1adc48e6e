"""Statements with very long expressions and very large numbers."""

import pytest

from rowtide.schema_history.ddl.expressions import canonical
from rowtide.schema_history.ddl.lexer import Dialect
from rowtide.schema_history.errors import InconsistentDdl, SchemaHistoryError, UnparsedStatement
from rowtide.schema_history.server.query_event import Flavor
from tests.support.ddl.made_tables import column, made

DIGITS = "9" * 5000
ZEROS = "0" * 5000


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("a and b and c", "((0 <> `a`) and (0 <> `b`) and (0 <> `c`))"),
        ("a and (b and c) or d or (e or f)", "(((0 <> `a`) and (0 <> `b`) and (0 <> `c`)) or (0 <> `d`) or "),
        ("not (a and b and c)", "((0 = `a`) or (0 = `b`) or (0 = `c`))"),
        (" and ".join(["a > 1"] * 20_000), " and ".join(["(`a` > 1)"] * 20_000)),
    ],
)
def test_conditions_are_joined_to_one_list(written: str, expected: str) -> None:
    assert expected in canonical(written, Dialect(Flavor.MYSQL, 90700, 0))


@pytest.mark.parametrize("flavor", Flavor)
@pytest.mark.parametrize(
    "definition",
    [f"INT({DIGITS})", f"VARCHAR({DIGITS})", f"DATETIME({DIGITS})", f"DECIMAL(10,{DIGITS})", f"BLOB({DIGITS})"],
)
def test_a_length_that_no_server_accepts_is_not_parsed(flavor: Flavor, definition: str) -> None:
    with pytest.raises(UnparsedStatement, match="a number of at most 20 digits"):
        made(flavor, f"CREATE TABLE t (a {definition})")


@pytest.mark.parametrize("flavor", Flavor)
@pytest.mark.parametrize(
    "definition",
    [
        f"INT DEFAULT {DIGITS}",
        f"INT DEFAULT '{DIGITS}'",
        f"DOUBLE DEFAULT {DIGITS}.{DIGITS}",
        f"CHAR(9) DEFAULT 1e{DIGITS}",
        f"SET('a') DEFAULT 1e{DIGITS}",
        f"BIT(8) DEFAULT {DIGITS}",
        f"YEAR DEFAULT {DIGITS}",
        f"TIME DEFAULT '{DIGITS}'",
        f"DATETIME DEFAULT {DIGITS}",
    ],
)
@pytest.mark.parametrize("statement", ["CREATE TABLE t (x INT, a {})", "ALTER TABLE t ADD a {}"])
def test_a_default_that_no_server_accepts_is_an_error_of_the_statement(
    flavor: Flavor, definition: str, statement: str
) -> None:
    with pytest.raises(InconsistentDdl, match="a number is too large"):
        made(flavor, "CREATE TABLE t (x INT)", statement.format(definition))


@pytest.mark.parametrize("flavor", Flavor)
def test_leading_zeros_do_not_count(flavor: Flavor) -> None:
    found = column(flavor, f"CREATE TABLE t (a DECIMAL({ZEROS}10,{ZEROS}2) DEFAULT {ZEROS}5)")
    assert (found["column_type"], found["column_default"]) == ("decimal(10,2)", "5.00")


def test_large_numbers_elsewhere_do_not_matter() -> None:
    for flavor in Flavor:
        table = made(
            flavor, f"CREATE TABLE t (a INT) AUTO_INCREMENT={DIGITS} PARTITION BY HASH (a) PARTITIONS {DIGITS}"
        )
        assert [found["name"] for found in table["columns"]] == ["a"]
    with pytest.raises(SchemaHistoryError):
        made(Flavor.MYSQL, f"CREATE TABLE t (a INT, KEY (a({DIGITS})))")


@pytest.mark.parametrize("flavor", Flavor)
def test_many_signs_are_one(flavor: Flavor) -> None:
    signs = "- " * 5001
    assert column(flavor, f"CREATE TABLE t (a INT DEFAULT {signs}5)")["column_default"] == "-5"
