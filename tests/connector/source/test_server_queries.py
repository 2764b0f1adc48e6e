"""What the answers of servers mean."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest

from rowtide.connector.source import server_queries
from rowtide.connector.source.server_queries import binlog_files
from rowtide.connector.source.session import Session
from rowtide.schema_history.model import TableId
from tests.support.mysql.live_database import configured

if TYPE_CHECKING:
    from rowtide_stack import MariaDB


class Answer:
    """A connection with one answer."""

    def __init__(self, *rows: tuple[Any, ...]) -> None:
        self.rows = list(rows)

    def fetch(self, _statement: str) -> list[tuple[Any, ...]]:
        return self.rows


@pytest.mark.parametrize(
    ("row", "size"),
    [
        (("binlog.000001", 1366, "Yes"), 854),  # of MySQL 9.7, whose SHOW BINARY LOG STATUS said 854
        (("binlog.000001", 1366, "No"), 1366),
        (("binlog.000001", 1366), 1366),  # MySQL before 8.0.14, MariaDB
    ],
)
def test_sizes_of_binlog_files_are_those_that_positions_count(row: tuple[Any, ...], size: int) -> None:
    assert binlog_files(cast("Any", Answer(row))) == [("binlog.000001", size)]


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        ("`c` binary(2) DEFAULT 'é'".encode(), "`c` binary(2) DEFAULT 'é'"),
        (b"DEFAULT '\\0\xff\\'\\\\\\n'''", "DEFAULT  x'00ff275c0a27'"),
        (b"`a'\xc3\xa9` DEFAULT '\xff' COMMENT 'it''s \xc3\xa9'", "`a'é` DEFAULT  x'ff' COMMENT 'it''s é'"),
        (b"CHECK (`a` <> _binary'\xfe')", "CHECK (`a` <> _binary x'fe')"),
    ],
)
def test_defaults_that_are_no_text_are_hexadecimal(shown: bytes, text: str) -> None:
    assert server_queries.statement_text(shown) == text


@pytest.mark.servers
def test_defaults_of_binary_columns(mariadb: MariaDB) -> None:
    with mariadb.database() as database:
        columns = (
            "b BINARY(4) DEFAULT x'00ff27', c VARBINARY(9) DEFAULT x'ff5c0afe', `d'` BINARY DEFAULT 'x' COMMENT 'é'"
        )
        database.execute(f"CREATE TABLE t (id INT, {columns})")
        with Session(configured(database).database, mariadb=True) as session:
            [table] = server_queries.structures(session, [TableId(database.name, "t")])
            text = server_queries.create_statement(session, table.id)
    text.encode()  # can be stored
    assert [column.default for column in table.columns] == [None, "\0\xff'\0", "\xff\\\n\xfe", "x"]
