"""Every action of ALTER TABLE on real servers: rowtide's tables equal the server's after each accepted statement."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from ddl_alter_actions import PREFIXES, TABLES, actions
from ddl_corpus import comparable
from ddl_recorder import DdlRecorder

from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.errors import SchemaHistoryError
from rowtide.schema_history.model import Database
from rowtide.schema_history.queries.information_schema import table_json
from rowtide.schema_history.server.query_event import Flavor, Server

COMBINATIONS = 60
NAMES = ("t", "t2", "p")


def statements(flavor: Flavor) -> Iterator[str]:
    """Every action alone, every prefix, and random combinations of actions."""
    found, generator = actions(flavor), random.Random(20)
    yield from (f"ALTER TABLE t {action}" for action in found)
    yield from (f"{prefix}ADD x INT" for prefix in PREFIXES[flavor])
    for _ in range(COMBINATIONS):
        chosen = generator.sample(found, generator.choice((2, 2, 3)))
        yield generator.choice(PREFIXES[flavor]) + ", ".join(chosen)


def difference(recorder: DdlRecorder, server: Server, statement: str) -> str | None:
    """Run a statement on new tables; what differs afterwards, or ``None``."""
    for name in NAMES:
        recorder.run(f"DROP TABLE IF EXISTS {name}")
    recorder.events()
    tables = Tables(server)
    for name, options in recorder.databases().items():
        tables.put_database(Database(name, options["charset"], options["collation"]))
    for create in TABLES:
        recorder.run(create)
    recorder.run(statement)
    try:
        for event in recorder.events():
            tables.apply(event)
    except SchemaHistoryError as error:
        return f"{statement}\n  {error}"
    kind = server.flavor
    ours = {str(table.id): comparable(table_json(table, kind), kind.value) for table in tables}
    theirs = {name: comparable(table, kind.value) for name, table in recorder.tables().items()}
    return None if ours == theirs else f"{statement}\n  the server has {theirs}\n  rowtide has    {ours}"


@pytest.mark.servers
@pytest.mark.parametrize("flavor", Flavor, ids=lambda flavor: flavor.value)
def test_every_action_of_alter_table(flavor: Flavor, request: pytest.FixtureRequest) -> None:
    running = request.getfixturevalue(flavor.value)
    lower, collation = running.query("SELECT @@lower_case_table_names, @@collation_server")[0]
    server = Server(flavor, running.version, lower, collation)
    recorder = DdlRecorder(running, flavor)
    recorder.run("CREATE DATABASE d_alter")
    try:
        recorder.run("USE d_alter")
        found = [difference(recorder, server, statement) for statement in statements(flavor)]
        assert [text for text in found if text is not None] == []
    finally:
        recorder.run("DROP DATABASE d_alter")
        recorder.close()
