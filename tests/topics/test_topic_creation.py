"""Creating many topics by few requests."""

from __future__ import annotations

from collections.abc import Collection
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicCollection

from rowtide.topics.admin.topic_admin import MissingTopics, TopicAdmin
from rowtide.topics.errors import KafkaUnreachable, TopicError
from rowtide.topics.settings import TopicCreation, TopicSettings

WANTED = {f"t{number}": TopicSettings(1, 1) for number in range(250)}


class Broker:
    """Answers the requests of an admin client.

    Attributes:
        topics: those that exist.
        delay: looks after which a topic is listed that was created.
        refused: the errors of topics.
        limit: the most topics of a request.
        created: the topics of each request to create some.
        looks: the topics of each request for topics.
        asked: the topics that were asked for alone, so that the broker may create them.
    """

    def __init__(self, topics: Collection[str] = (), delay: int = 0, limit: int = 1000) -> None:
        self.topics = set(topics)
        self.delay = delay
        self.limit = limit
        self.refused: dict[str, int] = {}
        self.created: list[list[str]] = []
        self.looks: list[list[str]] = []
        self.asked: list[str] = []
        self._listed = set(topics)

    def describe_topics(self, topics: TopicCollection, **_: object) -> dict[str, Future[Any]]:
        names = [str(name) for name in topics.topic_names]
        self.looks.append(names)
        if len(self.looks) > self.delay:
            self._listed = set(self.topics)
        return {name: _future(None if name in self._listed else KafkaError.UNKNOWN_TOPIC_OR_PART) for name in names}

    def list_topics(self, topic: str, **_: object) -> None:
        self.asked.append(topic)

    def create_topics(self, new: list[Any], **_: object) -> dict[str, Future[Any]]:
        names = [str(topic.topic) for topic in new]
        self.created.append(names)
        if len(names) > self.limit:
            return {name: _future(KafkaError.POLICY_VIOLATION) for name in names}
        answers = {name: self._create(name) for name in names}
        return {name: _future(code) for name, code in answers.items()}

    def _create(self, name: str) -> int | None:
        if name in self.topics:
            return int(KafkaError.TOPIC_ALREADY_EXISTS)
        if name not in self.refused:
            self.topics.add(name)
        return self.refused.get(name)


def _future(code: int | None) -> Future[Any]:
    future: Future[Any] = Future()
    if code is None:
        future.set_result(SimpleNamespace(topic_id="id", partitions=[0]))
    else:
        future.set_exception(KafkaException(KafkaError(code)))
    return future


def admin_of(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> TopicAdmin:
    admin = TopicAdmin({"bootstrap.servers": "127.0.0.1:1", "log_level": 0}, timeout=0.5)
    monkeypatch.setattr(admin, "_admin", broker)
    return admin


def test_a_request_creates_a_hundred_topics(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = Broker()
    assert admin_of(broker, monkeypatch).ensure_all(WANTED) == set(WANTED)
    assert [len(names) for names in broker.created] == [100, 100, 50]
    assert broker.topics == set(WANTED)


def test_only_topics_that_are_missing_are_created(monkeypatch: pytest.MonkeyPatch) -> None:
    there = [topic for number, topic in enumerate(WANTED) if number % 2]
    broker = Broker(there)
    assert admin_of(broker, monkeypatch).ensure_all(WANTED) == set(WANTED) - set(there)
    assert sorted(name for names in broker.created for name in names) == sorted(set(WANTED) - set(there))


def test_topics_that_exist_take_one_look_and_no_request_to_create_them(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = Broker(WANTED)
    assert admin_of(broker, monkeypatch).ensure_all(WANTED) == set()
    assert (len(broker.looks), broker.created) == (3, [])


def test_a_topic_that_somebody_else_creates_meanwhile_is_not_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = Broker(["t1"], delay=1)
    broker._listed = set()
    assert admin_of(broker, monkeypatch).ensure_all({"t1": TopicSettings(), "t2": TopicSettings()}) == {"t2"}


def test_topics_that_appear_late_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = Broker(delay=4)
    admin_of(broker, monkeypatch).ensure_all({"t1": TopicSettings(), "t2": TopicSettings()})
    assert broker.looks == [["t1", "t2"]] * 5


def test_a_topic_that_never_appears_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TopicError, match="topic 't1' was created, but does not appear"):
        admin_of(Broker(delay=1000), monkeypatch).ensure_all({"t1": TopicSettings()})


def test_the_topic_that_is_refused_is_named_and_the_others_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = Broker()
    broker.refused["t7"] = KafkaError.TOPIC_AUTHORIZATION_FAILED
    with pytest.raises(
        TopicError,
        match=r"cannot create topic 't7': .* kafka-acls.sh .* --operation Create --topic t7, or create",
    ):
        admin_of(broker, monkeypatch).ensure_all(WANTED)
    assert broker.topics == {f"t{number}" for number in range(100)} - {"t7"}


def test_topics_that_are_too_many_for_a_request_are_created_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the broker's default is hundreds of partitions."""
    broker = Broker(limit=1)
    assert admin_of(broker, monkeypatch).ensure_all(WANTED) == set(WANTED)
    assert broker.topics == set(WANTED)


def test_brokers_that_are_away_are_not_tried_topic_by_topic(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = Broker()
    broker.refused = dict.fromkeys(WANTED, KafkaError.REQUEST_TIMED_OUT)
    with pytest.raises(KafkaUnreachable):
        admin_of(broker, monkeypatch).ensure_all(WANTED)
    assert len(broker.created) == 1


def test_topics_of_records_have_the_settings_of_their_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    broker, made = Broker(), dict[str, int]()
    create = broker.create_topics

    def seen(new: list[Any], **more: object) -> dict[str, Future[Any]]:
        made.update((topic.topic, topic.num_partitions) for topic in new)
        return create(new, **more)

    monkeypatch.setattr(broker, "create_topics", seen)
    rules = TopicCreation(default=TopicSettings(2, 1))
    MissingTopics(admin_of(broker, monkeypatch), rules)(["a", "b"])
    assert made == {"a": 2, "b": 2}


def test_topics_that_the_broker_may_create_are_looked_up_together(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = Broker(WANTED.keys() - {"t7", "t107"})
    MissingTopics(admin_of(broker, monkeypatch), TopicCreation(enabled=False))(WANTED)
    assert [len(names) for names in broker.looks] == [100, 100, 50]
    assert broker.asked == ["t7", "t107"]
    assert broker.created == []


def test_a_look_up_without_an_answer_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = Broker()
    monkeypatch.setattr(broker, "describe_topics", lambda _topics, **_: {"t": _future(KafkaError._TIMED_OUT)})
    with pytest.raises(KafkaUnreachable, match="cannot look up topic 't'"):
        MissingTopics(admin_of(broker, monkeypatch), TopicCreation(enabled=False))(["t"])
