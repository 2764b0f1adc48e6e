"""Every action of ALTER TABLE on real servers: rowtide's tables equal the server's after each accepted statement."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from rowtide.schema_history.server.query_event import Flavor, Server
from tests.support.ddl.alter_actions import PREFIXES, TABLES, actions
from tests.support.ddl.judge import difference
from tests.support.ddl.recorder import DdlRecorder

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


def judged(recorder: DdlRecorder, server: Server, statement: str) -> str | None:
    """What differs after the statement on new tables."""
    for name in NAMES:
        recorder.run(f"DROP TABLE IF EXISTS {name}")
    return difference(recorder, server, TABLES, statement)


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
        found = [judged(recorder, server, statement) for statement in statements(flavor)]
        assert [text for text in found if text is not None] == []
    finally:
        recorder.run("DROP DATABASE d_alter")
        recorder.close()
