"""The task around runs: when a new one is made, and how it ends."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from rowtide.connector.check import CheckFailedError, Finding, Severity
from rowtide.connector.config import from_properties
from rowtide.connector.config.errors import Problem
from rowtide.connector.delivery.errors import (
    OffsetStoreError,
    OffsetStoreUnavailable,
    ProducerFailed,
    ProducerFenced,
    TransactionExpired,
)
from rowtide.connector.engine import task as task_module
from rowtide.connector.engine.run import Checks, ConnectorRun
from rowtide.connector.engine.start.included_tables import CapturedTablesChanged
from rowtide.connector.engine.task import ConnectorTask
from rowtide.connector.errors import UnknownTable
from rowtide.connector.source.binlog_stream import StreamBroken
from rowtide.connector.source.connection import AnswerUnreadableError, DatabaseUnreachableError
from rowtide.connector.worker.failures import describe
from rowtide.schema_history.store.history_store import HistoryStoreError, TrimmedHistory, UnusableHistory
from rowtide.topics.errors import KafkaUnreachable
from tests.support.configurations import PROPERTIES

SOON = 120.0

AWAY = Finding(Severity.ERROR, "database.hostname", "cannot be reached", retriable=True)
LOST = DatabaseUnreachableError(Problem("database.hostname", "cannot be reached"), retriable=True)
WRONG = CheckFailedError([Finding(Severity.ERROR, "binlog_format", "is STATEMENT")])


class FakeRun:
    """A run that ends as the test says: with a state and a failure, or when it is told to stop."""

    def __init__(self, stop: threading.Event, state: str, failure: BaseException | None, *, lasts: bool) -> None:
        self.state = state
        self.reader = "reader" if state == "RUNNING" else None
        self.last_stored = self.delivery = self.components = self.included = None
        self.left_behind = False
        self.works = False
        self.begun = threading.Event()
        self._stop = stop
        self._failure = failure
        self._lasts = lasts

    def run(self) -> BaseException | None:
        self.begun.set()
        if self._lasts:
            assert self._stop.wait(SOON)
        return self._failure

    def stop(self) -> None:
        assert self._stop.is_set()


Made = Callable[..., tuple[ConnectorTask, list[bool], list[BaseException | None]]]


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Made:
    """Make a task with the given runs; gives it, whether each run checks first, and what it told at its end."""
    monkeypatch.setattr(task_module, "_FIRST_WAIT_S", 0.0)

    def make(*runs: tuple[str, BaseException | None], **more: str) -> Any:
        left = list(runs)
        checks: list[bool] = []
        ends: list[BaseException | None] = []

        def new_run(self: ConnectorTask, checks_: Checks) -> FakeRun:
            checks.append(checks_ is Checks.ALL)
            state, failure = left.pop(0) if left else ("RUNNING", None)
            return FakeRun(self._stop, state, failure, lasts=failure is None)

        monkeypatch.setattr(ConnectorTask, "_new_run", new_run)
        config = from_properties(PROPERTIES | {name.replace("_", "."): value for name, value in more.items()})
        return ConnectorTask(config, on_end=ends.append), checks, ends

    return make


def begun(task: ConnectorTask, restarts: int) -> None:
    """Wait for a run."""
    for _ in range(2000):
        if task.restarts == restarts and task.current.begun.wait(0.01):  # type: ignore[attr-defined]
            return
        threading.Event().wait(0.005)
    pytest.fail("no such run")


@pytest.mark.parametrize("failure", [ProducerFailed("x"), KafkaUnreachable("x"), HistoryStoreError("x"), LOST])
def test_a_failure_that_may_pass_is_followed_by_a_new_run(made: Made, failure: BaseException) -> None:
    task, checks, ends = made(("RUNNING", failure), ("STARTING", failure))
    assert task.state == "RUNNING"
    task.start()
    begun(task, 2)
    assert checks == [True, False, False], "only the first one checks everything"
    assert task.error == str(failure), "the third run has begun, which says nothing yet"
    task.current.works = True  # type: ignore[misc]
    assert task.error is None
    task.current.works = False  # type: ignore[misc]
    assert task.error is None, "it has worked"
    assert ends == []
    assert task.stop(SOON)
    assert (task.failure, task.state, ends) == (None, "STOPPED", [None])


@pytest.mark.parametrize(
    ("state", "failure"),
    [
        ("STARTING", ProducerFailed("x")),
        ("STARTING", KafkaUnreachable("x")),
        ("STARTING", LOST),
        ("STARTING", OffsetStoreUnavailable("x")),
        ("RUNNING", TransactionExpired("x")),
        ("SNAPSHOT", LOST),
        ("SNAPSHOT", StreamBroken("x")),
    ],
)
def test_a_start_is_tried_again_while_a_server_is_away(made: Made, state: str, failure: BaseException) -> None:
    task, checks, _ = made((state, failure), (state, failure))
    task.start()
    begun(task, 2)
    assert checks == [True, False, False]
    assert task.stop(SOON)


def test_a_task_that_was_not_started_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ConnectorRun, "stop", lambda _: pytest.fail("there is no run to stop"))
    task = ConnectorTask(from_properties(PROPERTIES))
    assert task.stop()
    assert not task.left_behind
    task.start()
    assert task.wait(SOON)
    assert (task.failure, task.state) == (None, "STOPPED"), "no server is asked for anything"


def test_the_check_at_the_start_is_repeated_until_it_passes(made: Made) -> None:
    away = CheckFailedError([AWAY, Finding(Severity.WARNING, "binlog_row_image", "is MINIMAL")])
    task, checks, _ = made(("STARTING", away), ("STARTING", away), ("STARTING", KafkaUnreachable("x")))
    task.start()
    begun(task, 3)
    assert checks == [True, True, True, False]
    assert task.stop(SOON)
    assert str(away) == "database.hostname: cannot be reached"


@pytest.mark.parametrize(
    ("state", "failure"),
    [
        ("RUNNING", UnknownTable("x")),
        ("RUNNING", TrimmedHistory("x")),
        ("RUNNING", UnusableHistory("x")),
        ("RUNNING", ZeroDivisionError("x")),
        ("RUNNING", ProducerFenced("x")),
        ("STARTING", ProducerFenced("x")),
        ("STARTING", OffsetStoreError("x")),
        ("STARTING", WRONG),
        ("STARTING", CheckFailedError([AWAY, Finding(Severity.ERROR, "database.password", "is wrong")])),
        ("RUNNING", DatabaseUnreachableError(Problem("database.password", "is wrong"))),
        ("RUNNING", StreamBroken("x")),  # the reader has used up its attempts
    ],
)
def test_other_failures_end_it(made: Made, state: str, failure: BaseException) -> None:
    task, checks, ends = made((state, failure))
    task.start()
    assert task.wait(SOON)
    assert (task.failure, task.state, ends, checks) == (failure, "FAILED", [failure], [True])


def test_an_answer_that_stays_unreadable_is_not_requested_for_ever(made: Made) -> None:
    same, other = (
        AnswerUnreadableError(Problem("database.hostname", f"cannot be read: {text}"), retriable=True)
        for text in ("label", "name")
    )
    task, checks, ends = made(*[("SNAPSHOT", one) for one in (same, same, other, same, same, same, same)])
    task.start()
    assert task.wait(SOON)
    assert (task.failure, len(checks), ends) == (same, 6, [same])


def test_retries_may_be_limited(made: Made) -> None:
    failures = [ProducerFailed(str(number)) for number in range(5)]
    task, checks, _ = made(*(("RUNNING", failure) for failure in failures), errors_max_retries="2")
    task.start()
    assert task.wait(SOON)
    assert task.failure is failures[2]
    assert len(checks) == 3


@pytest.mark.parametrize("delivered", [True, False])
def test_a_stop_while_a_run_is_waited_for(made: Made, monkeypatch: pytest.MonkeyPatch, *, delivered: bool) -> None:
    """It is not a failure, unless changes were not delivered."""
    failure = ProducerFailed("away")
    task, _, ends = made(("RUNNING", failure))
    monkeypatch.setattr(task_module, "_FIRST_WAIT_S", 10 * SOON)
    task.current.delivery = cast("Any", SimpleNamespace(failure=None if delivered else failure))
    left = None if delivered else failure
    task.start()
    for _ in range(2000):
        if task.state == "RESTARTING":
            break
        threading.Event().wait(0.005)
    assert task.state == "RESTARTING"
    assert task.stop(SOON) == delivered
    assert (task.failure, ends) == (left, [left])
    assert task.state == ("STOPPED" if delivered else "FAILED")


def test_a_failure_during_a_stop_is_told(made: Made, caplog: pytest.LogCaptureFixture) -> None:
    task, _, ends = made(("STARTING", HistoryStoreError("the history cannot be read")))
    task._stop.set()
    task.start()
    assert task.wait(SOON)
    assert (task.failure, task.state, task.restarts, ends) == (None, "STOPPED", 0, [None])
    assert "the history cannot be read; the connector stops" in caplog.text


def test_a_task_that_was_never_started_can_be_stopped(made: Made) -> None:
    task, _, _ = made()
    assert task.stop(SOON)


def test_only_what_nobody_expected_is_told_with_a_traceback() -> None:
    assert describe(UnknownTable("table a.b")) == "table a.b"
    assert "web server cannot listen" in describe(OSError(98, "Address already in use"))
    try:
        1 / 0  # noqa: B018 - it raises
    except ZeroDivisionError as error:
        text = describe(error)
    assert "please report this traceback" in text
    assert "Traceback" in text


def test_a_signal_that_changes_the_captured_tables_begins_a_new_run_at_once(made: Made) -> None:
    first = CapturedTablesChanged()
    task, checks, ends = made(("RUNNING", first))
    task.start()
    for _ in range(2000):
        if len(checks) == 2 and task.current.begun.wait(0.01):  # type: ignore[attr-defined]
            break
        threading.Event().wait(0.005)
    assert checks == [True, False]
    assert task.stop(SOON)
    assert (task.state, task.restarts, task.error, ends) == ("STOPPED", 0, None, [None])
