"""How long a server keeps the binlog file that a position needs."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any, cast

import pymysql
import pytest
from pymysql.constants import ER

from rowtide.connector.config import Problem, from_properties
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.source import binlog_end, binlog_runway
from rowtide.connector.source.binlog_end import BinlogEnd
from rowtide.connector.source.binlog_runway import (
    BinlogRetention,
    Limit,
    RetentionUnknown,
    Runway,
    RunwayQuery,
    kept_age,
    retention,
    runway,
)
from rowtide.connector.source.connection import DatabaseUnreachableError
from rowtide.connector.source.position.rules import PositionCheck
from tests.support.configurations import PROPERTIES

FILES = [("b.1", 1000), ("b.2", 500), ("b.3", 200)]
STARTED = {"b.1": 0.0, "b.2": 100.0, "b.3": 700.0}
NOW = 900.0
AGE, SIZE = Limit(3600, "age=3600"), Limit(2000, "size=2000")


def computed(file: str, given: BinlogRetention) -> Runway | None:
    return runway(FILES, file, given, STARTED.__getitem__, NOW)


@pytest.mark.parametrize(("file", "seconds"), [("b.1", 2800), ("b.2", 3400), ("b.3", 3600)])
def test_age_counts_from_the_end_of_a_file(file: str, seconds: float) -> None:
    assert computed(file, BinlogRetention(AGE)) == Runway(file, seconds, 3600, "age=3600")


@pytest.mark.parametrize(
    ("file", "seconds", "full"),
    [("b.1", 300 / (1700 / 900), 2000 / (1700 / 900)), ("b.2", 1300 / (700 / 800), 2000 / (700 / 800))],
)
def test_size_counts_at_the_rate_since_the_file_began(file: str, seconds: float, full: float) -> None:
    found = computed(file, BinlogRetention(None, SIZE))
    assert found == Runway(file, pytest.approx(seconds), pytest.approx(full), "size=2000")


def test_the_nearer_limit_counts() -> None:
    found = computed("b.1", BinlogRetention(AGE, SIZE))
    assert found is not None
    assert found.reason == "size=2000"


def test_without_a_limit_the_server_deletes_nothing() -> None:
    found = computed("b.1", BinlogRetention())
    assert found == Runway("b.1")
    assert not found.short
    assert found.text == "the server does not delete binlog files automatically"


def test_a_file_that_is_due_has_no_runway() -> None:
    found = runway(FILES, "b.1", BinlogRetention(Limit(500, "age=500")), STARTED.__getitem__, NOW)
    assert found == Runway("b.1", 0.0, 500, "age=500")
    assert found.short
    assert found.text == "the server may delete b.1 at any moment, or has done so (age=500)"


def test_a_file_that_the_server_does_not_have() -> None:
    assert computed("b.0", BinlogRetention(AGE)) is None


@pytest.mark.parametrize(
    ("seconds", "full", "short"),
    [
        (90_000, 864_000, False),
        (86_000, 864_000, True),
        (9_000, 10_800, False),  # a server that keeps three hours is no alarm by itself
        (5_000, 10_800, True),
        (0, None, True),
        (None, None, False),
    ],
)
def test_short_is_less_than_a_day_and_than_half_of_the_retention(
    seconds: float | None, full: float | None, short: bool
) -> None:
    assert Runway("b.1", seconds, full).short is short


class Server:
    """A server with these variables, binlog files and answers."""

    def __init__(self, variables: dict[str, str], *, rds: Any = (), files: Any = FILES) -> None:
        self.variables, self.rds, self.files = variables, rds, files

    def fetch(self, statement: str) -> list[tuple[Any, ...]]:
        if "rds_configuration" in statement:
            if isinstance(self.rds, Exception):
                raise self.rds
            return list(self.rds)
        if statement.startswith("SHOW GLOBAL"):
            return [(name, text) for name, text in self.variables.items() if f"'{name}'" in statement]
        return self.files if statement == "SHOW BINARY LOGS" else [(NOW,)]


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        (
            {"binlog_expire_logs_seconds": "2592000", "expire_logs_days": "0"},
            BinlogRetention(Limit(2592000, "binlog_expire_logs_seconds=2592000")),
        ),
        ({"binlog_expire_logs_seconds": "2592000", "binlog_expire_logs_auto_purge": "OFF"}, BinlogRetention()),
        (
            {"expire_logs_days": "1.500000"},
            BinlogRetention(Limit(129_600, "expire_logs_days=1.500000")),
        ),  # MariaDB 10.5
        (
            {"expire_logs_days": "0.000000", "binlog_expire_logs_seconds": "0", "max_binlog_total_size": "5000"},
            BinlogRetention(None, Limit(5000, "max_binlog_total_size=5000")),  # MariaDB 11.4
        ),
        (
            {"binlog_space_limit": "7000"},
            BinlogRetention(None, Limit(7000, "binlog_space_limit=7000")),
        ),  # Percona Server
        ({"basedir": "/usr/"}, BinlogRetention()),
    ],
)
def test_settings_of_servers(variables: dict[str, str], expected: BinlogRetention) -> None:
    assert retention(cast("Any", Server(variables))) == expected


RDS = {"basedir": "/rdsdbbin/mysql-8.0.40/", "binlog_expire_logs_seconds": "2592000"}


def test_amazon_rds_has_its_own_setting() -> None:
    assert retention(cast("Any", Server(RDS, rds=[("24",)]))).age == Limit(86_400, "binlog retention hours=24")
    assert retention(cast("Any", Server(RDS, rds=[(None,)]))).age == Limit(0, "binlog retention hours=NULL")


def test_a_setting_of_amazon_rds_that_the_account_may_not_see() -> None:
    denied = pymysql.err.OperationalError(ER.TABLEACCESS_DENIED_ERROR, "SELECT command denied")
    with pytest.raises(RetentionUnknown, match=r"Grant the user SELECT on mysql\.rds_configuration"):
        retention(cast("Any", Server(RDS, rds=denied)))


def test_the_day_of_the_check_is_the_same_setting() -> None:
    assert kept_age({"BINLOG_EXPIRE_LOGS_AUTO_PURGE": "OFF"}.get) is None
    assert kept_age({"expire_logs_days": "2"}.get) == Limit(172_800, "expire_logs_days=2")


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files whose first events were read, which began 500 s ago."""
    asked: list[str] = []

    class Files:
        def __init__(self, *_given: object, **_more: object) -> None: ...

        def events(self, file: str) -> Any:
            asked.append(file)
            yield int(NOW - 500).to_bytes(4, "little") + bytes(15)

    monkeypatch.setattr(binlog_runway, "ServerFiles", Files)
    return asked


def test_the_beginning_of_a_file_is_read_once(started: list[str]) -> None:
    query, server = RunwayQuery(from_properties(PROPERTIES)), Server({"binlog_expire_logs_seconds": "3600"})
    for _ in range(2):
        assert query.ask(cast("Any", server), SourceOffset("b.1", 4)).seconds == 3100
    assert started == ["b.2"]
    assert query.ask(cast("Any", server), SourceOffset("b.3", 4)).seconds == 3600
    assert started == ["b.2"], "the file that is being written needs no event"


@pytest.mark.parametrize("gone", [True, False])
def test_a_position_whose_file_is_gone(gone: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    check = PositionCheck(available=not gone, reason="b.0 was purged" if gone else "")
    monkeypatch.setattr(binlog_runway, "check_position", lambda *_given, **_more: check)
    query, server = RunwayQuery(from_properties(PROPERTIES)), cast("Any", Server({}))
    if gone:
        found = query.ask(server, SourceOffset("b.0", 4))
        assert (found.seconds, found.reason, found.short) == (0, "b.0 was purged", True)
    else:  # a fail-over by GTIDs
        with pytest.raises(RetentionUnknown, match="the position belongs to another server"):
            query.ask(server, SourceOffset("b.0", 4, "0-1-1"))


class Connections:
    """Makes sessions with a server.

    Attributes:
        failure: why no session is made.
        made: the number of attempts.
        open: the number of sessions that are open.
    """

    def __init__(self, server: Server) -> None:
        self.server = server
        self.failure: DatabaseUnreachableError | None = None
        self.made = self.open = 0

    def __call__(self, *_given: object, **_more: object) -> Any:
        self.made += 1
        if self.failure is not None:
            raise self.failure
        self.open += 1
        return SimpleNamespace(client=self.server, close=self._close)

    def _close(self) -> None:
        self.open -= 1


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> Connections:
    found = Connections(Server({"binlog_expire_logs_seconds": "3600"}))
    monkeypatch.setattr(binlog_end, "Session", found)
    return found


@pytest.fixture
def clock() -> list[float]:
    return [0.0]


@pytest.fixture
def end(connections: Connections, clock: list[float]) -> BinlogEnd:
    """The end of the binlog of that server."""
    return BinlogEnd(from_properties(PROPERTIES), lambda: clock[0])


NEWEST = SourceOffset("b.3", 4)


def test_the_lag_is_known_also_if_the_runway_is_not(
    end: BinlogEnd, connections: Connections, clock: list[float]
) -> None:
    connections.server.variables = RDS
    connections.server.rds = pymysql.err.OperationalError(ER.TABLEACCESS_DENIED_ERROR, "denied")
    assert end.look(("b.2", 100), NEWEST, 10) == (600, None)
    connections.server.variables = {"binlog_expire_logs_seconds": "3600"}
    clock[0] += 6
    expected = Runway("b.3", 3600, 3600, "binlog_expire_logs_seconds=3600")
    assert end.look(("b.2", 100), NEWEST, 10) == (600, expected)
    assert end.look(("b.2", 100), SourceOffset("b.4", 4), 10) == (600, None), "the answer is about another file"
    assert (connections.made, connections.open) == (1, 1)


@pytest.mark.parametrize(("read", "behind"), [(None, None), (("b.2", 100), 600)])
def test_a_connector_that_does_not_read_keeps_no_connection(
    end: BinlogEnd,
    connections: Connections,
    clock: list[float],
    read: tuple[str, int] | None,
    behind: int | None,
) -> None:
    """Also one that has read before it was paused."""
    for made in (1, 2):
        for _ in range(5):
            lag, found = end.look(read, NEWEST, 10, reads=False)
            assert lag == behind
            assert found is not None
            clock[0] += 13
        assert (connections.made, connections.open) == (made, 0)


def test_a_query_that_ends_later_leaves_no_connection(
    end: BinlogEnd, connections: Connections, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as that of a connector which has moved to another worker."""
    answers = threading.Event()

    def session(*given: object, **more: object) -> Any:
        answers.wait()
        return connections(*given, **more)

    monkeypatch.setattr(binlog_end, "Session", session)
    assert end.look(("b.2", 100), NEWEST, 0) == (None, None)
    end.close()
    answers.set()
    assert end.look(("b.2", 100), NEWEST, 10)[0] == 600
    assert (connections.made, connections.open) == (1, 0)


@pytest.mark.parametrize("retriable", [True, False])
def test_a_refused_log_in_is_not_repeated_while_nothing_is_read(
    end: BinlogEnd, connections: Connections, clock: list[float], retriable: bool
) -> None:
    connections.failure = DatabaseUnreachableError(Problem("database.password", "denied"), retriable=retriable)
    for _ in range(4):
        assert end.look(("b.2", 100), NEWEST, 10, reads=False) == (None, None)
        clock[0] += 61
    assert connections.made == (4 if retriable else 1)
    connections.failure = None
    assert end.look(("b.2", 100), NEWEST, 10)[0] == 600, "the connector has logged in"
