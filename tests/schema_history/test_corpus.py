"""After every recorded statement of MySQL and MariaDB the model equals the server's structure."""

from pathlib import Path
from typing import Any

import pytest
from ddl_corpus import NOT_IN_THE_BINLOG, comparable, lines, name_of, recordings

from rowtide.schema_history.apply import apply_entry, tables_of_header
from rowtide.schema_history.information_schema import database_json, table_json
from rowtide.schema_history.query import Flavor
from rowtide.schema_history.tables import Tables


def _fold(known: dict[str, Any], changed: dict[str, Any]) -> None:
    for name, value in changed.items():
        if value is None:
            known.pop(name, None)
        else:
            known[name] = value


def _apply(tables: Tables, record: dict[str, Any], name: str) -> None:
    for entry in record["binlog"]:
        outcome = apply_entry(tables, entry)
        assert outcome["error"] is None or (name, record["n"]) in NOT_IN_THE_BINLOG, outcome["error"]


@pytest.mark.parametrize("path", recordings(), ids=name_of)
def test_the_model_equals_the_servers_structure_after_every_statement(path: Path) -> None:
    recorded = lines(path)
    header = next(recorded)
    flavor, name = Flavor(header["server"]), name_of(path)
    tables = tables_of_header(header, flavor)
    databases, truth, unknown = dict(header["databases"]), {}, set()
    for record in recorded:
        _apply(tables, record, name)
        _fold(databases, record.get("databases", {}))
        _fold(truth, record["changed"])
        if (name, record["n"]) in NOT_IN_THE_BINLOG:
            unknown |= set(record["changed"])
        model = {str(table.id): table for table in tables}
        unknown = {table for table in unknown if table in truth} | _renamed(record, unknown)
        assert model.keys() - unknown == truth.keys() - unknown, record["statement"]
        for table in (record["changed"].keys() & truth.keys()) - unknown:
            got = comparable(table_json(model[table], flavor), flavor.value)
            assert got == comparable(truth[table], flavor.value), record["statement"]
        assert {d.name: database_json(d) for d in tables.databases()} == databases, record["statement"]


def _renamed(record: dict[str, Any], unknown: set[str]) -> set[str]:
    """New names of tables whose structure cannot be known."""
    gone = {name for name, value in record["changed"].items() if value is None and name in unknown}
    made = {name for name, value in record["changed"].items() if value is not None}
    return made if gone and "RENAME" in record["statement"] else set()
