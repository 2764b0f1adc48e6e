"""CREATE, RENAME and DROP in all their forms on real servers: rowtide's tables equal the server's after each one."""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Iterator

import pytest

from rowtide.schema_history.server.query_event import Flavor, Server
from tests.support.ddl.create_alternatives import TABLES, combinations, create_table_statements
from tests.support.ddl.judge import difference
from tests.support.ddl.other_alternatives import DATABASES, other_statements
from tests.support.ddl.recorder import DdlRecorder

COMBINATIONS = 300 if "ROWTIDE_CAMPAIGN" in os.environ else 20


def all_statements(flavor: Flavor) -> Iterator[str]:
    """Every alternative alone, and random combinations."""
    generator = random.Random(15)
    yield from create_table_statements(flavor)
    yield from other_statements(flavor)
    yield from (combinations(flavor, generator) for _ in range(COMBINATIONS))


def judged(recorder: DdlRecorder, server: Server, statement: str) -> str | None:
    """What differs after the statement in a new database."""
    recorder.renew()  # it may have begun a transaction, or changed its default database
    recorder.run("SET foreign_key_checks = 0")
    for database in ("d_create", *DATABASES):
        recorder.run(f"DROP DATABASE IF EXISTS {database}")
    recorder.run("CREATE DATABASE d_create")
    recorder.run("USE d_create")
    recorder.run("SET foreign_key_checks = 1")
    return difference(recorder, server, TABLES, statement)


@pytest.mark.servers
@pytest.mark.timeout(900)  # 500 statements, each in a new database
@pytest.mark.parametrize("flavor", [Flavor.MYSQL, pytest.param(Flavor.MARIADB, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.nightly)], ids=["each third", "all"])
def test_every_form_of_a_statement(flavor: Flavor, step: int, request: pytest.FixtureRequest) -> None:
    running = request.getfixturevalue(flavor.value)
    lower, collation = running.query("SELECT @@lower_case_table_names, @@collation_server")[0]
    recorder = DdlRecorder(running, flavor)
    try:
        server = Server(flavor, running.version, lower, collation)
        found = [
            judged(recorder, server, statement) for statement in itertools.islice(all_statements(flavor), 0, None, step)
        ]
        assert [text for text in found if text is not None] == []
    finally:
        for database in ("d_create", *DATABASES):
            recorder.run(f"DROP DATABASE IF EXISTS {database}")
        recorder.close()
