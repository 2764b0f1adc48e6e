"""Waiting until a server has executed what the stream has read."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from rowtide.connector.errors import SnapshotError
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.snapshot.incremental.reading import watermarks
from rowtide.connector.snapshot.incremental.reading.watermarks import await_position

POSITION = SourceOffset("b.000001", 500, "0-1-5", server="1")


class MariaDb:
    """A session of MariaDB, whose views go up in the binlog."""

    mariadb = True

    def __init__(self, *ends: int) -> None:
        self._ends = list(ends)
        self.queries: list[str] = []
        self.client = self

    def fetch(self, _statement: str) -> list[tuple[object, ...]]:
        return [(1,)]

    def execute(self, statement: str) -> None:
        self.queries.append(statement)

    def literal(self, text: str) -> str:
        return repr(text)

    def query(self, statement: str) -> list[tuple[object, ...]]:
        self.queries.append(statement)
        if statement == "SHOW MASTER STATUS":
            return [("b.000001", 9999, "", "")]
        if statement.startswith("SHOW STATUS"):
            end = self._ends.pop(0) if len(self._ends) > 1 else self._ends[0]
            return [("binlog_snapshot_file", "b.000001"), ("binlog_snapshot_position", end)]
        if "BINLOG_GTID_POS" in statement:
            return [(f"0-1-{self._ends[0] // 100}",)]
        return [("1",)]


def test_on_the_server_of_the_stream_the_position_in_the_file_is_enough() -> None:
    session = MariaDb(400, 450, 500)
    await_position(session, POSITION, 60)  # type: ignore[arg-type]
    assert sum(query.startswith("SHOW STATUS") for query in session.queries) == 3
    assert not [query for query in session.queries if "BINLOG_GTID_POS" in query]


def test_on_another_server_gtids_are_compared() -> None:
    session = MariaDb(400, 500)
    await_position(session, replace(POSITION, server="2"), 60)  # type: ignore[arg-type]
    assert [query for query in session.queries if "BINLOG_GTID_POS" in query]


def test_it_ends_when_nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watermarks, "_POLL_S", 0)
    answers = iter((False, False, True))
    session = MariaDb(400)
    await_position(session, POSITION, 60, lambda: next(answers))  # type: ignore[arg-type]
    assert sum(query.startswith("SHOW STATUS") for query in session.queries) == 2


@pytest.mark.parametrize(("gtids", "held", "waits"), [(True, True, 0), (True, False, 1), (False, True, 1)])
def test_commits_that_wait_for_the_stream_are_not_awaited_while_it_waits(
    monkeypatch: pytest.MonkeyPatch, *, gtids: bool, held: bool, waits: int
) -> None:
    """With semi-synchronous replication, they end when the stream continues. Without GTIDs there is no other way."""
    position = replace(POSITION, gtids="70506b22-e621-11f1-b9cd-02fc00000001:1-5" if gtids else None)
    awaited: list[int] = []

    def committed(_session: object, timeout_s: int, _way_out: str, *, with_gtids: bool) -> SourceOffset:
        awaited.append(timeout_s)
        return position

    monkeypatch.setattr(watermarks, "committed_position", committed)
    monkeypatch.setattr(watermarks, "current_position", lambda _session: position)
    monkeypatch.setattr(watermarks, "server_id", lambda _session: "1")
    await_position(SimpleNamespace(mariadb=False), position, 60, held=held)  # type: ignore[arg-type]
    assert len(awaited) == waits


def test_a_server_that_stays_behind() -> None:
    with pytest.raises(SnapshotError, match=r"up to 0-1-5, for 0 s\. Let database\.hostname name one server"):
        await_position(MariaDb(400), POSITION, 0)  # type: ignore[arg-type]
