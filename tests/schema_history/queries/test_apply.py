"""``rowtide schema apply`` as a process: every line has a result."""

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.support.ddl.corpus import CORPUS, comparable, events, fold, lines


def answers(flavor: str, *given: str | bytes) -> list[dict[str, Any]]:
    """Run the command and return its results."""
    text = b"\n".join(line if isinstance(line, bytes) else line.encode("utf-8", "surrogateescape") for line in given)
    command = [sys.executable, "-m", "rowtide", "schema", "apply", "--flavor", flavor]
    done = subprocess.run(command, input=text, capture_output=True, check=True)
    assert done.stderr == b""
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("flavor", ["mysql", "mariadb"])
def test_the_result_of_recorded_statements_is_that_of_the_server(flavor: str) -> None:
    path = CORPUS / f"alter_table.sql.{flavor}.jsonl.gz"
    truth: dict[str, Any] = {}
    known: dict[str, Any] = {}
    for record in list(lines(path))[1:]:
        fold(truth, record["changed"])
    for answer in answers(flavor, *events(path)):
        assert answer["error"] is None
        fold(known, answer["changed"])
    assert known.keys() == truth.keys()
    for name, table in truth.items():
        assert comparable(known[name], flavor) == comparable(table, flavor)


def test_every_line_has_a_result_and_the_next_line_is_read() -> None:
    made = '{"db": "d", "sql": "CREATE TABLE t (a INT)"}'
    given = [
        made,
        "nonsense",
        '["a list"]',
        '{"db": "d"}',
        '{"n": 1, "binlog": []}',
        '{"sql": 5}',
        '{"sql": "CREATE TABLE u (a INT)", "charset": ["x"]}',
        '{"sql": "CREATE TABEL u (a INT)"}',
        "",
        '{"sql": "' + "(" * 100_000 + '"}',
        '{"db": "d", "sql": "ALTER TABLE t ADD g INT AS (' + "(" * 3000 + "a" + ")" * 3000 + ')"}',
        '{"db": "d", "sql_hex": "414c544552205441424c452074204144442062205445585420434f4d4d454e542027ff27"}',
    ]
    reasons = [answer["error"] for answer in answers("mysql", *given)]
    wanted = [
        "None",
        "not JSON",
        "a JSON object",
        "no field 'sql'",
        "'binlog'",
        "'sql' is not a string",
        "a field is invalid",
    ]
    wanted += ["TABEL u", "not understood", "None", "None"]
    assert len(reasons) == len(wanted)
    for reason, part in zip(reasons, wanted, strict=True):
        assert part in str(reason)


def test_dropped_tables_are_null() -> None:
    given = ["CREATE DATABASE d CHARACTER SET latin1", "CREATE TABLE d.t (a TEXT)", "DROP DATABASE d"]
    first, second, third = answers("mariadb", *(json.dumps({"sql": sql}) for sql in given))
    assert first["databases"] == {"d": {"charset": "latin1", "collation": "latin1_swedish_ci"}}
    assert second["changed"]["d.t"]["columns"][0]["collation"] == "latin1_swedish_ci"
    assert third == {"error": None, "databases": {"d": None}, "changed": {"d.t": None}}


def test_replacing_a_database_drops_its_tables() -> None:
    given = ["CREATE DATABASE d", "CREATE TABLE d.t (a INT)", "CREATE OR REPLACE DATABASE d CHARACTER SET ascii"]
    *_, last = answers("mariadb", *(json.dumps({"sql": sql}) for sql in given))
    assert last["changed"] == {"d.t": None}
    assert last["databases"] == {"d": {"charset": "ascii", "collation": "ascii_general_ci"}}
