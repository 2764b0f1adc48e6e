"""When a connector with ``rowtide.standby`` begins, stops and fails, whatever happens to its lock."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from rowtide.connector.check import Finding, Severity
from rowtide.connector.config import Configuration, ConfigurationError, from_properties
from rowtide.connector.delivery.errors import ProducerFenced, TakenOver
from rowtide.connector.engine.task import ConnectorTask
from rowtide.connector.errors import ConnectorError
from rowtide.connector.fleet.settings import connector_configuration, fleet_settings
from rowtide.connector.source.binlog_stream import ReplicaReplaced
from rowtide.connector.worker import group_lock, service, standby
from rowtide.connector.worker.connectors import Connectors
from rowtide.connector.worker.failures import CONTEST_S
from rowtide.connector.worker.group_lock import client_id, digest_of
from rowtide.connector.worker.service import ConnectorService
from rowtide.connector.worker.standby import Standby
from rowtide.topics.errors import TopicError
from tests.support.configurations import PROPERTIES
from tests.support.processes.made_statuses import status
from tests.support.processes.made_tasks import Connector, Task

STANDBY = {**PROPERTIES, "rowtide.standby": "true"}


class Lock:
    """A lock that others give and take."""

    def __init__(self, made: list[Lock], on_change: Any, on_failure: Any, on_problem: Any, on_wait: Any) -> None:
        made.append(self)
        self.on_change, self.on_failure, self.on_problem = on_change, on_failure, on_problem
        self.on_wait = on_wait
        self.owned = self.started = self.closed = False

    def start(self) -> None:
        self.started = True

    def close(self) -> None:
        self.closed = True
        self.give(owned=False)

    def give(self, *, owned: bool) -> None:
        """Change it, as in its thread."""
        if self.owned != owned:
            self.owned = owned
            thread = threading.Thread(target=self.on_change, args=(self, owned))
            thread.start()
            thread.join()


async def until(condition: Callable[[], object]) -> None:
    """Wait for a condition."""
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.005)


class Pair:
    """A connector and what lets it run."""

    def __init__(self) -> None:
        self.connector = Connector(from_properties(STANDBY))
        self.locks: list[Lock] = []
        self.standby = Standby(
            self.connector,
            lambda _config, *call: Lock(self.locks, *call),
            patience=0.2,  # type: ignore[arg-type]
        )
        self.ended: list[bool] = []
        self.connector.on_end = lambda: self.ended.append(self.standby.takes(self.connector.connector.failure))

    @property
    def task(self) -> Task:
        return self.connector.tasks[-1]

    async def begins(self) -> None:
        """Give it the first lock, and wait until the connector runs."""
        self.locks[0].give(owned=True)
        await until(lambda: self.task.runs)


def during(use: Callable[[Pair], Awaitable[None]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "_STOP_POLL_S", 0.01)

    async def life() -> None:
        pair = Pair()
        await pair.connector.start()
        await pair.standby.start()
        await until(lambda: pair.locks)
        assert not pair.task.started, "it waits for its lock"
        await use(pair)
        await pair.standby.stop()
        assert not pair.task.runs
        assert all(lock.closed for lock in pair.locks[-1:])

    asyncio.run(life())


def test_it_runs_while_it_has_the_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    async def use(pair: Pair) -> None:
        for _ in range(2):
            await pair.begins()
            first = pair.task
            pair.locks[0].give(owned=False)
            assert first.stopped, "it stops in the thread that loses the lock"
            await until(lambda first=first: pair.task is not first)
            assert pair.connector.stands_by
        assert (len(pair.locks), pair.ended) == (1, [])

    during(use, monkeypatch)


def test_a_process_that_has_slept_gives_the_lock_back(monkeypatch: pytest.MonkeyPatch) -> None:
    async def use(pair: Pair) -> None:
        await pair.begins()
        first = pair.task
        pair.standby._lapsed(6.5)
        assert first.stopped
        await until(lambda: len(pair.locks) == 2)
        assert pair.locks[0].closed
        assert not pair.task.runs
        pair.locks[1].give(owned=True)
        await until(lambda: pair.task.runs)
        pair.locks[0].on_change(pair.locks[0], False)
        assert pair.task.runs, "an old lock has no say"

    during(use, monkeypatch)


def test_a_connector_that_hangs_after_a_sleep_does_not_keep_the_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    async def use(pair: Pair) -> None:
        await pair.begins()
        hanging = pair.task
        hanging.stop = lambda _timeout=None: False  # type: ignore[method-assign]
        pair.standby._lapsed(6.5)
        await until(lambda: pair.locks[0].closed)
        assert len(pair.locks) == 1, "it does not compete while its thread runs"
        hanging.stopped = True
        await until(lambda: len(pair.locks) == 2)

    during(use, monkeypatch)


@pytest.mark.parametrize("kind", [ProducerFenced, TakenOver, ReplicaReplaced])
def test_one_that_was_fenced_stands_by_if_another_has_the_lock(
    monkeypatch: pytest.MonkeyPatch, kind: type[ConnectorError]
) -> None:
    """Kafka or the database server is the first to notice that another copy runs."""

    async def use(pair: Pair) -> None:
        await pair.begins()
        first = pair.task
        first.fail(kind("another one"))
        await until(lambda: pair.ended)
        assert pair.ended == [True]
        pair.locks[0].give(owned=False)
        await until(lambda: pair.task is not first and pair.standby._steps.empty())
        assert pair.connector.failure is None
        await pair.begins()

    during(use, monkeypatch)


def test_one_that_was_fenced_by_a_copy_that_has_slept_begins_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """That copy gives way when it notices: no other would run the connector."""

    async def use(pair: Pair) -> None:
        await pair.begins()
        for again in (1, 2):
            first = pair.task
            first.fail(ProducerFenced("another one"))
            await until(lambda first=first: pair.task is not first and pair.task.runs)
            assert pair.ended == [True] * again
            pair.standby._contested_at = time.monotonic() - CONTEST_S - 1
        assert len(pair.locks) == 1

    during(use, monkeypatch)


def test_one_that_was_fenced_by_a_process_without_a_lock_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    async def use(pair: Pair) -> None:
        await pair.begins()
        first = pair.task
        first.fail(ProducerFenced("another one"))
        await until(lambda: pair.task is not first and pair.task.runs)
        pair.task.fail(ProducerFenced("another one"))
        await until(lambda: pair.ended == [True, True, False])
        assert "another one. If that is a copy of this connector, set rowtide.standby=true" in str(
            pair.connector.failure
        )
        assert pair.locks[0].closed
        assert (await pair.connector.connect_state()).state == "FAILED"
        await pair.connector.rerun()
        await until(lambda: len(pair.locks) == 2)
        assert pair.connector.failure is None
        assert pair.connector.stands_by
        pair.locks[1].give(owned=True)
        await until(lambda: pair.task.runs)

    monkeypatch.setattr(service, "status_of", lambda *_: status())
    during(use, monkeypatch)


def test_one_that_has_failed_leaves_the_lock_and_gets_it_after_a_restart_only(monkeypatch: pytest.MonkeyPatch) -> None:
    async def use(pair: Pair) -> None:
        await pair.begins()
        pair.task.fail(RuntimeError("no such table"))
        await until(lambda: pair.locks[0].closed)
        assert pair.ended == [False]
        pair.standby._lapsed(7.0)
        assert not pair.connector.stands_by, "it stays failed until somebody restarts it"
        await pair.connector.rerun()
        await until(lambda: len(pair.locks) == 2)
        assert not pair.task.runs
        pair.locks[1].give(owned=True)
        await until(lambda: pair.task.runs)

    during(use, monkeypatch)


def test_one_that_has_failed_and_is_held_needs_its_lock_to_be_resumed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As when its position is changed: stop, PATCH offsets, resume."""

    async def use(pair: Pair) -> None:
        await pair.begins()
        pair.task.fail(RuntimeError("no such position"))
        await until(lambda: pair.locks[0].closed)
        await pair.connector.hold("STOPPED")
        await pair.connector.resume()
        await until(lambda: len(pair.locks) == 2)
        assert not pair.task.started
        pair.locks[1].give(owned=True)
        await until(lambda: pair.task.runs)

    during(use, monkeypatch)


def test_one_that_has_ended_needs_its_lock_to_be_restarted(monkeypatch: pytest.MonkeyPatch) -> None:
    """With snapshot.mode=initial_only a connector ends without a failure."""

    async def use(pair: Pair) -> None:
        await pair.begins()
        pair.task.stopped = True
        pair.task._on_end()
        await until(lambda: pair.locks[0].closed)
        await pair.connector.rerun()
        await until(lambda: len(pair.locks) == 2)
        assert not pair.task.started

    during(use, monkeypatch)


def test_one_that_is_restarted_before_its_failure_is_noticed_keeps_its_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    async def use(pair: Pair) -> None:
        await pair.begins()
        first = pair.task
        first.failure = RuntimeError("gone")
        await pair.connector.rerun()
        await until(lambda: pair.task is not first and pair.task.runs)
        await pair.connector.hold("PAUSED")
        await pair.connector.resume()
        await until(lambda: pair.task.runs)
        assert len(pair.locks) == 1

    during(use, monkeypatch)


def test_one_may_be_paused_before_it_has_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ConnectorTask, "start", lambda task: setattr(task, "begun", True))

    async def life() -> None:
        connector = ConnectorService(from_properties(PROPERTIES))
        await connector.hold("PAUSED")
        await connector.start()
        assert not hasattr(connector.connector, "begun")
        await connector.resume()
        assert hasattr(connector.connector, "begun")
        await connector.stop()

    asyncio.run(life())


def test_a_lock_that_is_refused_is_a_failure_and_a_broker_that_is_away_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    async def use(pair: Pair) -> None:
        pair.locks[0].on_problem(pair.locks[0], "no broker")
        assert pair.connector.obstacle == "no broker"
        pair.locks[0].on_problem(pair.locks[0], None)
        assert pair.connector.obstacle is None
        pair.locks[0].on_failure(pair.locks[0], TopicError("not authorised"))
        await until(lambda: pair.ended)
        assert str(pair.connector.failure) == "not authorised"

    during(use, monkeypatch)


def test_a_copy_that_could_not_take_over_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    found: list[Finding] = [
        Finding(Severity.ERROR, "database.user", "access denied"),
        Finding(Severity.WARNING, "x", "y"),
    ]
    monkeypatch.setattr(standby, "check_database", lambda *_, **__: (list(found), None))
    monkeypatch.setattr(standby, "_EXAMINE_S", 0.01)

    def shown(pair: Pair) -> tuple[str | None, bool]:
        return pair.connector.obstacle, pair.connector.undecided

    async def use(pair: Pair) -> None:
        lock = pair.locks[0]
        assert shown(pair) == (None, True)
        lock.on_wait(lock)
        await until(lambda: shown(pair) == ("it could not take over: database.user: access denied", False))
        await asyncio.sleep(0.1)
        assert caplog.text.count("it could not take over") == 1
        lock.on_problem(lock, "no broker")
        await until(lambda: pair.connector.obstacle == "no broker")
        lock.on_problem(lock, None)
        found.pop(0)
        await until(lambda: shown(pair) == (None, False))
        lock.give(owned=True)
        await until(lambda: pair.task.runs)
        lock.give(owned=False)
        assert shown(pair) == (None, True), "whether another copy runs is not known yet"
        found.append(Finding(Severity.ERROR, "database.port", "refused"))
        lock.on_wait(lock)
        await until(lambda: shown(pair) == ("it could not take over: database.port: refused", False))
        lock.give(owned=True)
        await until(lambda: pair.task.runs)
        assert shown(pair) == (None, True), "a restart does not show what was wrong before"

    during(use, monkeypatch)


def test_a_step_that_fails_is_a_failure_of_the_connector(monkeypatch: pytest.MonkeyPatch) -> None:
    async def use(pair: Pair) -> None:
        def start() -> None:
            raise RuntimeError("can't start new thread")

        pair.task.start = start  # type: ignore[method-assign]
        pair.locks[0].give(owned=True)
        await until(lambda: pair.connector.failure)
        assert "can't start new thread" in str(pair.connector.failure)
        assert pair.locks[0].closed

    during(use, monkeypatch)


def test_what_it_needs() -> None:
    config = from_properties(STANDBY)
    assert config.delivery.standby
    assert config.delivery.exactly_once, "Kafka fences a copy that was replaced"
    assert Connectors([config]).services[config.name].stands_by
    plain = from_properties(PROPERTIES)
    assert not plain.delivery.standby
    assert not Connectors([plain]).services[plain.name].stands_by


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"rowtide.sink": "stdout"}, "needs records, position and schema history in Kafka"),
        ({"offset.storage.file.filename": "/tmp/x"}, "needs records, position and schema history in Kafka"),
        (
            {"schema.history.internal.file.filename": "/tmp/x", "schema.history.internal.kafka.topic": ""},
            "needs records, position and schema history in Kafka",
        ),
        ({"exactly.once.source.support": "disabled"}, "needs exactly.once.source.support=enabled, not disabled"),
    ],
)
def test_what_two_processes_cannot_share_is_refused(more: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message) as error:
        from_properties({**STANDBY, **more})
    assert [problem.property for problem in error.value.problems] == ["rowtide.standby"]


def test_a_fleet_needs_no_standby(tmp_path: Any) -> None:
    file = tmp_path / "fleet.properties"
    names = ("group.id", "config.storage.topic", "status.storage.topic", "offset.storage.topic")
    file.write_text("bootstrap.servers=127.0.0.1:9092\n" + "".join(f"{name}=x{n}\n" for n, name in enumerate(names)))
    assert not connector_configuration(fleet_settings(str(file)), "shop", STANDBY).delivery.standby


def test_members_recognise_another_configuration_and_no_secret() -> None:
    def of(**more: str) -> Configuration:
        return from_properties({**STANDBY, **more})

    assert client_id(of()).endswith(digest_of(of()))
    assert digest_of(of()) != digest_of(of(**{"max.batch.size": "7"}))
    assert digest_of(of()) == digest_of(of(**{"database.password": "another"}))


def test_a_refused_lock_is_reported_while_other_connectors_continue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ConnectorTask, "start", lambda _task: None)
    monkeypatch.setattr(ConnectorTask, "stop", lambda *_: True)
    monkeypatch.setattr(group_lock.GroupLock, "start", lambda _lock: None)
    other = {"name": "other", "topic.prefix": "other", "database.server.id": "5401"}

    async def life() -> None:
        connectors = Connectors([from_properties(STANDBY), from_properties({**PROPERTIES, **other})])
        reported: list[tuple[str, BaseException]] = []
        connectors.on_failure = reported.append
        connectors.on_end = lambda: pytest.fail("the other connector runs")
        await connectors.start()
        refused = TopicError("not authorised")
        await connectors._standbys["inventory"]._fail(refused)
        await until(lambda: reported)
        assert reported == [("inventory", refused)]
        assert (await connectors.services["inventory"].status_at_once()).state == "FAILED"
        await connectors.stop()

    asyncio.run(life())
