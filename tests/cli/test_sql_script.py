"""``rowtide schema apply`` with a file of SQL statements."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from rowtide.cli import main
from rowtide.cli.sql_script import statements

SCRIPT = """\
-- a dump; its comments hold delimiters
/*!40101 SET NAMES utf8mb4 */;
CREATE DATABASE shop CHARACTER SET utf8mb4;
USE `shop`;

# the first table
CREATE TABLE item (
  id INT PRIMARY KEY, /* not; here */
  note VARCHAR(20) DEFAULT 'a;b\\';c' COMMENT "it''s; fine"
);
DELIMITER //
CREATE TRIGGER t BEFORE INSERT ON item FOR EACH ROW BEGIN SET NEW.id = 1; END//
DELIMITER ;
ALTER TABLE item ADD `odd;name` INT
"""


def apply(path: Path, *options: str) -> Result:
    return CliRunner().invoke(main, ["schema", "apply", "--flavor", "mysql", *options, str(path)])


def answers(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "shop.sql"
    path.write_text(SCRIPT)
    return path


def test_each_statement_of_a_script_is_applied_in_the_selected_database(script: Path) -> None:
    result = apply(script)
    assert result.exit_code == 0, result.output
    found = answers(result)
    assert [answer["line"] for answer in found] == [2, 3, 7, 12, 14]
    assert [answer["error"] for answer in found] == [None] * 5
    columns = found[-1]["changed"]["shop.item"]["columns"]
    assert [column["name"] for column in columns] == ["id", "note", "odd;name"]
    assert columns[1]["column_default"] == "a;b';c"
    assert columns[1]["comment"] == "it''s; fine"


def test_a_script_from_standard_input() -> None:
    arguments = ["schema", "apply", "--flavor", "mariadb", "--sql"]
    result = CliRunner().invoke(main, arguments, input="CREATE TABLE d.t (a INT);\ufeff")
    assert result.exit_code == 1
    result = CliRunner().invoke(main, arguments, input="\ufeffCREATE TABLE d.t (a INT);")
    assert result.exit_code == 0, result.output
    assert list(answers(result)[0]["changed"]) == ["d.t"]


def test_a_statement_that_is_not_understood_fails_and_the_next_ones_are_applied(tmp_path: Path) -> None:
    path = tmp_path / "x.sql"
    path.write_text("CREATE TABLE d.t (a INT);\n\nCREATE TABEL d.u (a INT);\nALTER TABLE d.t ADD b INT;")
    result = apply(path)
    assert result.exit_code == 1
    first, second, third = answers(result)
    assert (first["error"], third["error"]) == (None, None)
    assert "TABEL d.u" in second["error"]
    assert second["line"] == 3
    assert "1 of 3 statements failed; the first is at line 3" in result.stderr


@pytest.mark.parametrize("garbage", [b"nonsense\n", b"\x00\xff\x80;\x01", b"'never closed", b"/* never closed"])
def test_garbage_in_a_sql_file_fails(tmp_path: Path, garbage: bytes) -> None:
    path = tmp_path / "x.sql"
    path.write_bytes(garbage)
    result = apply(path)
    assert result.exit_code == 1
    assert answers(result)[0]["error"]


def test_garbage_instead_of_events_fails(tmp_path: Path) -> None:
    path = tmp_path / "events"
    path.write_text("nonsense\n[]\n")
    result = apply(path)
    assert result.exit_code == 1
    assert len(answers(result)) == 2
    assert "no line of the input is a Query event" in result.stderr
    assert "--sql" in result.stderr


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("-- nothing\n;;\n# nor here", []),
        ("a;b", [(1, "a"), (1, "b")]),
        ("a--b;c", [(1, "a--b"), (1, "c")]),
        ("\n\n a\n;\nb;", [(3, "a"), (5, "b")]),
        ("delimiter $$\na;b$$\nDELIMITER ;\nc;", [(2, "a;b"), (4, "c")]),
        ("/*!50003 a;b */;c", [(1, "/*!50003 a;b */"), (1, "c")]),
    ],
)
def test_splitting(text: str, expected: list[tuple[int, str]]) -> None:
    assert list(statements(text)) == expected
