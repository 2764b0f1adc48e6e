"""Which changes of topics end a run, and how."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest

from rowtide.connector.delivery.errors import TopicReplaced
from rowtide.connector.engine import topic_guard
from rowtide.connector.engine.topic_guard import TopicGuard
from rowtide.schema_history.store.history_store import UnusableHistory
from rowtide.topics.errors import KafkaUnreachable
from rowtide.topics.watch import TopicIdentity, TopicWatch

SOON = 120.0


class Broker:
    """A broker with the topics ``o``, ``h`` and those of records."""

    def __init__(self, data: int = 3) -> None:
        self.data = [f"t{number:04}" for number in range(data)]
        self.topics = {name: TopicIdentity("1", 1) for name in ("o", "h", *self.data)}
        self.away = False
        self.failures: list[BaseException] = []
        self.failed = threading.Event()

    def identify(self, names: Sequence[str]) -> dict[str, TopicIdentity]:
        if self.away:
            raise KafkaUnreachable("no answer")
        return {name: self.topics[name] for name in names if name in self.topics}

    def guard(self) -> TopicGuard:
        watches = TopicWatch(self.identify), TopicWatch(self.identify)
        return TopicGuard(watches[0], "o", lambda: [*self.data, "o"], watches[1], "h", self.fail)

    def fail(self, failure: BaseException) -> None:
        self.failures.append(failure)
        self.failed.set()


def looked(broker: Broker, name: str, now: TopicIdentity | None, looks: int = 2) -> BaseException | None:
    """The failure after a topic has changed."""
    guard = broker.guard()
    guard.look()
    if now is None:
        del broker.topics[name]
    else:
        broker.topics[name] = now
    for _ in range(looks):
        guard.look()
    return guard.failure


@pytest.mark.parametrize("now", [None, TopicIdentity("2", 1)])
@pytest.mark.parametrize(("name", "kind"), [("o", TopicReplaced), ("t0001", TopicReplaced), ("h", UnusableHistory)])
def test_a_topic_that_is_gone_ends_the_run(name: str, kind: type[Exception], now: TopicIdentity | None) -> None:
    failure = looked(Broker(), name, now)
    assert isinstance(failure, kind)
    assert f"{name!r} was deleted" in str(failure)
    assert ("and created again" in str(failure)) is (now is not None)


def test_more_partitions_are_fine_for_all_but_the_history(caplog: pytest.LogCaptureFixture) -> None:
    for name in ("o", "t0001"):
        assert looked(Broker(), name, TopicIdentity("1", 3)) is None
        assert f"topic {name} now has 3 partitions instead of 1" in caplog.text
    failure = looked(Broker(), "h", TopicIdentity("1", 3))
    assert isinstance(failure, UnusableHistory)
    assert "now has 3 partitions instead of 1" in str(failure)


def test_every_one_of_many_topics_is_looked_at() -> None:
    for name in ("t0000", "t0499", "t0500", "t1201"):
        broker = Broker(1202)
        guard = broker.guard()
        for _ in range(3):
            guard.look()
        broker.topics[name] = TopicIdentity("2", 1)
        for _ in range(3):
            guard.look()
        assert isinstance(guard.failure, TopicReplaced)


def test_a_failure_is_reported_once_also_after_kafka_was_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_guard, "_EVERY_S", 0.01)
    broker = Broker()
    guard = broker.guard()
    guard.start()
    broker.away = True
    assert not broker.failed.wait(0.1)
    broker.topics["o"] = TopicIdentity("2", 1)
    broker.away = False
    assert broker.failed.wait(SOON)
    assert broker.failures == [guard.failure]
    guard.stop()


def test_a_failure_of_delivery_is_explained_by_a_deleted_topic(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = Broker()
    guard = broker.guard()
    guard.look()
    assert guard.explain() is None
    broker.away = True
    assert guard.explain() is None
    broker.away = False
    monkeypatch.setattr(topic_guard, "_AGAIN_S", 0.0)
    del broker.topics["t0002"]
    assert isinstance(guard.explain(), TopicReplaced)


@pytest.mark.parametrize("looks", [0, 1])
def test_a_broker_that_has_just_started_explains_nothing(looks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """It lists no topics for a moment, which must not end the connector for good."""
    broker = Broker()
    guard = broker.guard()
    guard.look()
    there = dict(broker.topics)
    broker.topics.clear()
    monkeypatch.setattr(topic_guard.time, "sleep", lambda _seconds: broker.topics.update(there))
    for _ in range(looks):
        guard.look()
    assert guard.explain() is None
