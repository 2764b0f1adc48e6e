"""Random statements on real servers: rowtide's tables equal the server's after every accepted statement.

``python -m tests.schema_history.catalog.test_random_ddl mysql|mariadb SEED SECONDS`` runs for some time and prints
every difference. Differences found so far are rules in ``structure/`` and cases in ``test_rules.py``.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[3] / "docker"))

from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.errors import SchemaHistoryError
from rowtide.schema_history.model import Database
from rowtide.schema_history.queries.information_schema import database_json, table_json
from rowtide.schema_history.server.charsets import charset_of
from rowtide.schema_history.server.query_event import Flavor, Server
from rowtide.schema_history.structure.show_create import show_create
from tests.support.ddl import shown_tables
from tests.support.ddl.corpus import comparable
from tests.support.ddl.random_statements import DATABASES, RandomDdl
from tests.support.ddl.recorder import DdlRecorder
from tests.support.ddl.shown_tables import shown_again

if TYPE_CHECKING:
    from rowtide_stack import SqlServer

_NOT_LOGGED = ("1416 ", "1025 ")
"""What MariaDB says of a shape whose default is none, and of a rename that fails: it has altered the table, and has not
logged it."""
STATEMENTS = 60
"""Statements of a sequence; each begins with empty databases."""


def differences(recorder: DdlRecorder, server: Server, seed: int) -> Iterator[str]:
    """Run one sequence of statements up to the first difference, and yield it."""
    recorder.renew()
    recorder.run("SET foreign_key_checks = 0")
    for database in DATABASES:
        recorder.run(f"DROP DATABASE IF EXISTS {database}")
        recorder.run(f"CREATE DATABASE {database}")
    recorder.run("SET foreign_key_checks = 1")
    recorder.run(f"USE {DATABASES[0]}")
    recorder.events()
    tables = Tables(server)
    for name, database in recorder.databases().items():
        charset, collation = database["charset"], database["collation"]
        tables.put_database(Database(name, charset, collation, charset_of(collation)))
    random = RandomDdl(seed, server.flavor)
    for _ in range(STATEMENTS):
        statement = random.statement()
        error = recorder.run(statement) or ""
        events = recorder.events()
        if error.startswith(_NOT_LOGGED) and not events:
            return
        try:
            for event in events:
                tables.apply(event)
        except SchemaHistoryError as error:
            yield f"seed {seed}: {statement}\n  {error}"
            return
        if events:
            random.tables = recorder.tables()
            found = list(_compared(tables, recorder, random.tables))
            if found:
                yield "\n  ".join((f"seed {seed}: {statement}", *found))
                return


def _compared(tables: Tables, recorder: DdlRecorder, truth: dict[str, Any]) -> Iterator[str]:
    flavor = tables.server.flavor
    model = {str(table.id): table_json(table, flavor) for table in tables}
    if model.keys() != truth.keys():
        yield f"tables: the server has {sorted(truth)}, the model {sorted(model)}"
    for name in model.keys() & truth.keys():
        wanted, got = comparable(truth[name], flavor.value), comparable(model[name], flavor.value)
        if wanted != got:
            yield f"{name}: the server has {wanted}\n    the model {got}"
    for table in tables:
        if table.kind != "SEQUENCE" and shown_again(table, tables.server) != shown_tables.comparable(table):
            yield f"{table.id}: SHOW CREATE TABLE of the model is another one: {show_create(table, tables.server)}"
    databases = {database.name: database_json(database) for database in tables.databases()}
    if databases != recorder.databases():
        yield f"databases: the server has {recorder.databases()}, the model {databases}"


def server_of(running: SqlServer, flavor: Flavor) -> Server:
    """The properties of a running server."""
    lower, collation = running.query("SELECT @@lower_case_table_names, @@collation_server")[0]
    return Server(flavor, running.version, lower, collation)


@pytest.mark.servers
@pytest.mark.parametrize("flavor", Flavor, ids=lambda flavor: flavor.value)
def test_the_model_follows_random_statements(flavor: Flavor, request: pytest.FixtureRequest) -> None:
    running = request.getfixturevalue(flavor.value)
    recorder = DdlRecorder(running, flavor)
    try:
        found = [text for seed in SEEDS for text in differences(recorder, server_of(running, flavor), seed)]
        assert found == []
    finally:
        recorder.run("SET foreign_key_checks = 0")
        for database in DATABASES:
            recorder.run(f"DROP DATABASE IF EXISTS {database}")
        recorder.close()


SEEDS = range(6)
"""About 15 seconds on each server."""


def _main(name: str, seed: str, seconds: str) -> None:
    import rowtide_stack

    flavor = Flavor(name)
    with (rowtide_stack.MySQL if flavor is Flavor.MYSQL else rowtide_stack.MariaDB)() as running:
        recorder = DdlRecorder(running, flavor)
        end, at = time.monotonic() + float(seconds), int(seed)
        while time.monotonic() < end:
            for text in differences(recorder, server_of(running, flavor), at):
                print(text, flush=True)
            at += 1
        print(f"seeds {seed} to {at - 1}")


if __name__ == "__main__":
    _main(*sys.argv[1:])
