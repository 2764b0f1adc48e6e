"""The character set of a statement's text, in contrast to those of its columns."""

import pytest

from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.server.query_event import Flavor, QueryEvent, Server
from rowtide.schema_history.structure.show_create import show_create
from tests.support.ddl.made_tables import column, made
from tests.support.ddl.shown_tables import comparable, shown_again

UTF8MB4, LATIN1, UCS2, UTF32, BINARY = 45, 8, 35, 60, 63


@pytest.mark.parametrize("flavor", Flavor)
@pytest.mark.parametrize("connection", [LATIN1, UTF32, BINARY])
def test_rewritten_statements_are_not_converted(flavor: Flavor, connection: int) -> None:
    own = (
        "CREATE TABLE `t` (\n  `a` enum('日','x') DEFAULT '日',\n  `b` set('\\0C') CHARACTER SET binary DEFAULT NULL\n)"
    )
    event = QueryEvent(own.encode(), "d", charset=(UTF8MB4, connection, UTF8MB4), sql_mode=0)
    first, second = made(flavor, event)["columns"]
    assert first["column_type"] == "enum('日','x')"
    assert first["column_default"].strip("'") == "日"
    assert second["column_type"] == "set('\\0C')"


def test_rewritten_statements_have_the_servers_types() -> None:
    own = "CREATE TABLE `t` (\n  `a` timestamp(5) NULL DEFAULT NULL,\n  `b` date DEFAULT NULL\n)"
    oracle_and_maxdb = 1 << 9 | 1 << 12
    for mode in (oracle_and_maxdb, 1 << 12):
        columns = made(Flavor.MARIADB, QueryEvent(own, "d", sql_mode=mode))["columns"]
        assert [c["data_type"] for c in columns] == ["timestamp", "date"]


@pytest.mark.parametrize("flavor", Flavor)
@pytest.mark.parametrize(
    ("definition", "charset", "wanted"),
    [
        ("ENUM('日','it''s') CHARSET utf32", "binary", "enum('日','it''s')"),
        ("ENUM('日','it''s') CHARSET utf32", "latin1", "enum('?','it''s')"),
        ("SET('日','ü') CHARSET utf8mb4", "latin1", "set('?','ü')"),
        ("SET('日','ü') CHARSET latin1", "utf8mb4", "set('日','ü')"),
    ],
)
def test_labels_of_a_new_column_are_converted(flavor: Flavor, definition: str, charset: str, wanted: str) -> None:
    for action in (f"ADD b {definition}", f"MODIFY a {definition}"):
        alter = f"ALTER TABLE t {action}, CONVERT TO CHARSET {charset}"
        assert column(flavor, "CREATE TABLE t (a INT)", alter)["column_type"] == wanted


@pytest.mark.parametrize(("flavor", "wanted"), [(Flavor.MYSQL, "enum('?')"), (Flavor.MARIADB, "enum('????')")])
def test_invalid_bytes_are_shown_as_question_marks(flavor: Flavor, wanted: str) -> None:
    event = QueryEvent("CREATE TABLE t (a ENUM('it''s') CHARSET utf32)", "d", charset=(UTF8MB4, BINARY, UTF8MB4))
    assert column(flavor, event)["column_type"] == wanted


def test_a_default_of_binary_labels_has_their_bytes() -> None:
    create = "CREATE TABLE t (a ENUM('C','it''s') BYTE DEFAULT 'it''s')"
    event = QueryEvent(create, "d", charset=(UTF8MB4, UCS2, UTF8MB4))
    assert column(Flavor.MARIADB, event)["column_default"] == r"'\0i\0t\0''\0s'"
    assert column(Flavor.MYSQL, event)["column_default"] == "0x"  # up to the first zero byte


def test_a_blob_default_loses_characters_that_the_connection_lacks() -> None:
    event = QueryEvent("CREATE TABLE t (a BLOB DEFAULT '日ü')", "d", charset=(UTF8MB4, LATIN1, UTF8MB4))
    assert column(Flavor.MARIADB, event)["column_default"] == "'?ü'"


def test_mysql_shows_a_default_as_text_if_it_has_three_byte_characters_only() -> None:
    tables = Tables(Server(Flavor.MYSQL))
    types = ("CHAR(3) CHARSET latin1 DEFAULT 'ü'", "CHAR(3) CHARSET utf16 DEFAULT '😀'", "VARBINARY(9) DEFAULT 'ü'",
             "VARBINARY(9) DEFAULT '😀'", "VARBINARY(9) DEFAULT 0xFF00")  # fmt: skip
    columns = ", ".join(f"c{n} {definition}" for n, definition in enumerate(types))
    tables.apply(QueryEvent(f"CREATE TABLE t ({columns})", "d"))
    (table,) = tables
    shown = [line.strip(",").rpartition(" ")[2] for line in show_create(table, tables.server).split("\n")[1:-1]]
    assert shown == ["'ü'", "0xD83DDE00", "'ü'", "0xF09F9880", "0xFF00"]
    assert shown_again(table, tables.server) == comparable(table)
