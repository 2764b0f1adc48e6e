"""After every recorded statement of MySQL and MariaDB, rowtide's tables equal those of the server."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from rowtide.cli import main
from tests.support.ddl.corpus import NOT_IN_THE_BINLOG, comparable, events, fold, lines, name_of, recordings


def _answers(path: Path, flavor: str) -> Iterator[dict[str, Any]]:
    """The results of ``rowtide schema apply`` for the events of a recording."""
    result = CliRunner().invoke(main, ["schema", "apply", "--flavor", flavor], input="\n".join(events(path)))
    assert result.exit_code == 0, result.output
    return map(json.loads, result.output.splitlines())


@pytest.mark.parametrize("path", recordings(), ids=name_of)
def test_tables_equal_those_of_the_server_after_every_statement(path: Path) -> None:
    recorded = lines(path)
    header = next(recorded)
    flavor, name = header["server"], name_of(path)
    answers = _answers(path, flavor)
    databases, truth, unknown = dict(header["databases"]), {}, set()
    known_databases, known = dict(databases), {}
    for record in recorded:
        for _ in record["binlog"]:
            answer = next(answers)
            assert answer["error"] is None or (name, record["n"]) in NOT_IN_THE_BINLOG, answer["error"]
            fold(known_databases, answer["databases"])
            fold(known, answer["changed"])
        fold(databases, record.get("databases", {}))
        fold(truth, record["changed"])
        if (name, record["n"]) in NOT_IN_THE_BINLOG:
            unknown |= set(record["changed"])
        unknown = {table for table in unknown if table in truth} | _renamed(record, unknown)
        assert known.keys() - unknown == truth.keys() - unknown, record["statement"]
        for table in (record["changed"].keys() & truth.keys()) - unknown:
            assert comparable(known[table], flavor) == comparable(truth[table], flavor), record["statement"]
        assert known_databases == databases, record["statement"]
    assert next(answers, None) is None


def _renamed(record: dict[str, Any], unknown: set[str]) -> set[str]:
    """New names of tables whose structure cannot be known."""
    gone = {name for name, value in record["changed"].items() if value is None and name in unknown}
    made = {name for name, value in record["changed"].items() if value is not None}
    return made if gone and "RENAME" in record["statement"] else set()
