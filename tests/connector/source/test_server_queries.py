"""What the answers of servers mean."""

from typing import Any, cast

import pytest

from rowtide.connector.source.server_queries import binlog_files


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
