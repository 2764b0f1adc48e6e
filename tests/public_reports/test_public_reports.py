"""Public bug reports of other readers, on real servers: stream and snapshot have the server's rows."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pytest

from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.source import server_queries
from rowtide.connector.source.session import Session
from rowtide.schema_history.catalog.tables import Tables
from tests.public_reports.cases import CASES, Case
from tests.support.mysql.live_database import Rows, apply, configured, snapshot, streamed
from tests.support.recordings.live_snapshot import binlog_end

if TYPE_CHECKING:
    from rowtide_stack import Database, SqlServer

pytestmark = pytest.mark.servers

EXACT = {
    "rowtide.values": "exact",
    "decimal.handling.mode": "string",
    "bigint.unsigned.handling.mode": "string",
    "connector.class": "",
}


def written(server: SqlServer, case: Case, databases: contextlib.ExitStack) -> Database:
    """A new database after the statements of a case."""
    database: Database = databases.enter_context(server.database())
    with server.connect(database.name) as connection, connection.cursor() as cursor:
        for statement in case.statements:
            cursor.execute(statement.replace("{db}", database.name))
        connection.commit()
    return database


def problems(server: SqlServer, cases: Sequence[Case]) -> Iterator[str]:
    """What is wrong with some cases: all are read together, and one by one if reading fails."""
    with contextlib.ExitStack() as stack:
        server.execute("FLUSH BINARY LOGS")
        start = SourceOffset(binlog_end(server)[0], 4)  # no structure is known there
        try:
            databases = [written(server, case, stack) for case in cases]
            names = {"database.include.list": ",".join(database.name for database in databases)}
            config = configured(databases[0], EXACT | names | {"database.flavor": server.name})
            with Session(config.database, mariadb=server.name == "mariadb") as session:
                tables = Tables(server_queries.server(session))
            stream: Rows = {}
            for step in streamed(config, tables, start, binlog_end(server)):
                apply(stream, step.outputs)
            taken: Rows = {}
            apply(taken, snapshot(config).outputs())
        except Exception as error:  # noqa: BLE001 - whatever it is, it belongs to a case
            if len(cases) == 1:
                yield f"{cases[0].report}: {cases[0].about}: {type(error).__name__}: {error}"
                return
            found = [problem for case in cases for problem in problems(server, [case])]
            yield from found or [f"together: {error}"]
            return
        for case, database in zip(cases, databases, strict=True):
            here = [
                {(topic, key): row for (topic, key), row in rows.items() if topic.split(".")[1] == database.name}
                for rows in (stream, taken)
            ]
            rows = {
                next(iter(json.loads(key).values())): row
                for (topic, key), row in here[1].items()
                if topic.endswith(".t")
            }
            wanted = rows if case.rows is None else case.rows
            seen = {key: {name: row.get(name, "missing") for name in wanted.get(key, row)} for key, row in rows.items()}
            if here[0] != here[1] or seen != wanted or not rows:
                yield f"{case.report}: {case.about}: stream {here[0]}, snapshot {here[1]}, rows {case.rows}"


@pytest.mark.parametrize("flavor", [pytest.param("mysql", marks=pytest.mark.nightly), "mariadb"])
def test_reports(flavor: str, request: pytest.FixtureRequest) -> None:
    server: SqlServer = request.getfixturevalue(flavor)
    assert list(problems(server, [case for case in CASES if case.server in ("", flavor)])) == []


def test_a_wrong_row_is_found(mysql: SqlServer) -> None:
    case = CASES[0]._replace(rows={1: {"a": "other"}})
    refused = CASES[0]._replace(statements=["CREATE TABLE"], about="refused")
    [wrong, error] = problems(mysql, [case, refused])
    assert "rows {1: {'a': 'other'}}" in wrong
    assert "refused: ProgrammingError" in error
