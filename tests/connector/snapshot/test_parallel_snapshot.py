"""Snapshots with several connections: one view, all rows once, and no thread or connection that is left over."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from rowtide.connector.errors import SnapshotError
from rowtide.connector.snapshot.chunks.key_ranges import KeyRanges
from rowtide.connector.snapshot.reading import table_rows
from rowtide.connector.snapshot.view import consistent_view
from rowtide.connector.source import server_queries
from rowtide.connector.source.connection import DatabaseUnreachableError
from rowtide.connector.source.session import Session
from tests.support.mysql.live_database import configured, markers, snapshot
from tests.support.recordings.golden import written

if TYPE_CHECKING:
    from rowtide_stack import Database

pytestmark = pytest.mark.servers

_ROWS = 3000


@pytest.fixture(autouse=True)
def sessions(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Session]]:
    """The connections of the snapshots; in the end, all are closed, and no thread is left."""
    monkeypatch.setattr(table_rows, "PART_ROWS", 400)
    opened: list[Session] = []
    prepare = Session._prepare

    def noted(self: Session) -> None:
        opened.append(self)
        prepare(self)

    monkeypatch.setattr(Session, "_prepare", noted)
    yield opened
    assert not [session for session in opened if session.client.open]
    assert not [thread.name for thread in threading.enumerate() if thread.name.startswith("snapshot-")]


@pytest.fixture
def filled(database: Database) -> Database:
    numbers = f"WITH RECURSIVE s AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM s WHERE n < {_ROWS})"
    recursion = "max_recursive_iterations" if database.server.name == "mariadb" else "cte_max_recursion_depth"
    database.execute(
        f"SET SESSION {recursion} = {_ROWS}",
        "CREATE TABLE a (id INT PRIMARY KEY, v TEXT)",
        f"INSERT INTO a {numbers} SELECT n, REPEAT('x', 300) FROM s",
        "CREATE TABLE b (x VARCHAR(20) COLLATE utf8mb4_general_ci, y DATETIME(3), PRIMARY KEY (x, y DESC)) "
        "CHARSET utf8mb4",
        f"INSERT INTO b {numbers} SELECT CONCAT(IF(n % 2, 'Ä', 'a'), n % 7), '2026-01-01' + INTERVAL n SECOND FROM s",
        "CREATE TABLE c (n INT)",
        f"INSERT INTO c {numbers} SELECT n FROM s",
        "CREATE TABLE d (id INT PRIMARY KEY)",
        "ANALYZE TABLE a, b, c, d",
    )
    return database


@pytest.mark.parametrize("legacy", ["false", "true"])
@pytest.mark.parametrize("locking", ["minimal", "none"])
def test_every_row_is_read_once(filled: Database, locking: str, legacy: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    one = list(snapshot(configured(filled)).outputs())
    properties = {
        "snapshot.max.threads": "3", "snapshot.locking.mode": locking, "legacy.snapshot.max.threads": legacy
    }  # fmt: skip
    several = list(snapshot(configured(filled, properties)).outputs())
    assert "reading 4 tables with 3 connections" in caplog.messages
    assert sorted((table, str(row)) for table, row, _ in markers(several)) == sorted(
        (table, str(row)) for table, row, _ in markers(one)
    )
    of_table: dict[str, list[str]] = {}
    for table, _, marker in markers(several):
        of_table.setdefault(table, []).append(marker)
    assert markers(several)[0][2] == "first"
    assert markers(several)[-1][2] == "last"
    for found in of_table.values():
        assert (found[0], found[-1]) in {
            (first, last)
            for first in ("first", "first_in_data_collection")
            for last in ("last", "last_in_data_collection")
        }
        assert set(found[1:-1]) == {"true"}


def test_notifications_tell_the_parts_of_each_table(filled: Database) -> None:
    properties = {
        "snapshot.max.threads": "3",
        "notification.enabled.channels": "sink",
        "notification.sink.topic.name": "notes",
    }
    read: dict[str, list[dict[str, Any]]] = {}
    for message in written(snapshot(configured(filled, properties)).outputs()):
        if message.topic == "notes":
            note = json.loads(str(message.value))
            data = note["additional_data"]
            name = data.get("current_collection_in_progress") or data.get("scanned_collection", "")
            read.setdefault(name.partition(".")[2], []).append({"type": note["type"], **data})
    assert [note["type"] for note in read.pop("")] == ["STARTED", "COMPLETED"]
    parts = {"a": 8, "b": 8, "c": 1, "d": 1}
    assert read.keys() == parts.keys()
    for name, count in parts.items():
        notes = read[name]
        assert [note["type"] for note in notes[:2]] == ["IN_PROGRESS", "TABLE_CHUNK_IN_PROGRESS"]
        assert [note["type"] for note in notes[-2:]] == ["TABLE_CHUNK_COMPLETED", "TABLE_SCAN_COMPLETED"]
        begun, ended = (
            [note for note in notes if note["type"] == kind]
            for kind in ("TABLE_CHUNK_IN_PROGRESS", "TABLE_CHUNK_COMPLETED")
        )
        assert sorted(int(note["chunk_index"]) for note in begun) == [*range(count)]
        assert sorted(int(note["chunk_index"]) for note in ended) == [*range(count)]
        assert all(int(note["chunk_index"]) < int(note["total_chunks"]) for note in begun)
        assert {note["total_chunks"] for note in ended if int(note["chunk_index"]) == count - 1} == {str(count)}
        assert all(int(note["total_rows_scanned"]) <= int(notes[-1]["total_rows_scanned"]) for note in begun)


@pytest.mark.parametrize("threads", [{}, {"snapshot.max.threads": "2", "legacy.snapshot.max.threads": "true"}])
def test_tables_that_are_read_as_a_whole_have_no_parts_to_tell(filled: Database, threads: dict[str, str]) -> None:
    properties = {**threads, "notification.enabled.channels": "sink", "notification.sink.topic.name": "notes"}
    notes = [
        str(one.value) for one in written(snapshot(configured(filled, properties)).outputs()) if one.topic == "notes"
    ]
    assert len(notes) == 2 + 2 * 4
    assert not [note for note in notes if "CHUNK" in note]


def test_a_snapshot_that_is_stopped(filled: Database, sessions: list[Session]) -> None:
    with closing(snapshot(configured(filled, {"snapshot.max.threads": "3"})).outputs()) as outputs:
        for output in outputs:
            if len(markers([output])) > 1:
                break
        assert len([session for session in sessions if session.client.open]) == 3


def test_a_connection_that_is_lost(filled: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, lost = Session.rows, threading.Event()

    def cut_off(self: Session, *arguments: Any, **options: Any) -> Iterator[Any]:
        if "WHERE" in arguments[1] and not lost.is_set():
            lost.set()
            self.close()
        yield from rows(self, *arguments, **options)

    monkeypatch.setattr(Session, "rows", cut_off)
    with pytest.raises(DatabaseUnreachableError, match=r"table \S+\.[ab] was not read completely") as raised:
        list(snapshot(configured(filled, {"snapshot.max.threads": "3"})).outputs())
    assert raised.value.retriable


def test_a_query_that_the_server_refuses(filled: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = Session.rows

    def wrong(self: Session, table: Any, query: str, reader: Any, **options: Any) -> Iterator[Any]:
        return rows(self, table, query.replace("<=", "<=>=") if "2" in query else query, reader, **options)

    monkeypatch.setattr(Session, "rows", wrong)
    with pytest.raises(SnapshotError, match=r"table \S+\.[ab] cannot be read with"):
        list(snapshot(configured(filled, {"snapshot.max.threads": "3"})).outputs())


def test_a_query_for_ranges_that_the_server_refuses(filled: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(KeyRanges, "bound_query", lambda *_: "SELECT nothing")
    with pytest.raises(SnapshotError, match=r"the server refuses a query for the ranges of a key: .*nothing"):
        list(snapshot(configured(filled, {"snapshot.max.threads": "3"})).outputs())


def test_connections_to_different_servers(
    filled: Database, sessions: list[Session], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    servers = itertools.cycle(["one", "two"])
    monkeypatch.setattr(server_queries, "server_identity", lambda *_, **__: next(servers))
    outputs = snapshot(configured(filled, {"snapshot.max.threads": "3"})).outputs()
    for output in outputs:
        if markers([output]):
            break
    assert len([session for session in sessions if session.client.open]) == 1
    assert len(markers([*outputs])) > 2 * _ROWS
    (warning,) = (text for text in caplog.messages if text.startswith("one connection reads all rows"))
    assert "lead to different servers (one, two)" in warning


@pytest.mark.parametrize("busy", [1, 1000])
def test_views_without_a_lock_are_opened_until_they_are_the_same(
    filled: Database, busy: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    execute, commits = Session.execute, [0]

    def busy_server(self: Session, statement: str) -> None:
        execute(self, statement)
        if statement.startswith("START TRANSACTION") and commits[0] < busy:
            commits[0] += 1
            filled.execute(f"INSERT INTO d VALUES ({commits[0]})")

    monkeypatch.setattr(Session, "execute", busy_server)
    monkeypatch.setattr(consistent_view, "_SAME_VIEW_WAIT_S", 0)
    properties = {"snapshot.max.threads": "2", "snapshot.locking.mode": "none"}
    outputs = list(snapshot(configured(filled, properties)).outputs())
    assert len([row for table, row, _ in markers(outputs) if table == "a"]) == _ROWS
    refused = [text for text in caplog.messages if text.startswith("one connection reads all rows")]
    assert len(refused) == (busy > 1)
