"""What a watch reports of topics that change between two looks."""

from __future__ import annotations

from collections.abc import Sequence

from rowtide.topics.watch import NO_ID, TopicChange, TopicChangeKind, TopicIdentity, TopicWatch


class Broker:
    """Topics by name, as they are now."""

    def __init__(self, **topics: tuple[str, int]) -> None:
        self.topics = {name: TopicIdentity(*given) for name, given in topics.items()}

    def identify(self, names: Sequence[str]) -> dict[str, TopicIdentity]:
        return {name: self.topics[name] for name in names if name in self.topics}


def test_topics_that_stay_as_they_are_are_not_reported() -> None:
    broker = Broker(a=("1", 2), b=("2", 1))
    watch = TopicWatch(broker.identify)
    assert [watch.changes(names) for names in (["a", "b", "c"], ["a"], ["b", "c"], ["a", "b"])] == [[], [], [], []]


def test_a_topic_that_appears_is_not_a_change() -> None:
    broker = Broker()
    watch = TopicWatch(broker.identify)
    assert watch.changes(["a"]) == watch.changes(["a"]) == []
    broker.topics["a"] = TopicIdentity("1", 2)
    assert watch.changes(["a"]) == []
    broker.topics["a"] = TopicIdentity("2", 2)
    assert watch.changes(["a"]) == [TopicChange("a", TopicChangeKind.RECREATED, 2, 2)]


def test_a_topic_is_deleted_when_it_is_missing_twice_in_a_row() -> None:
    broker = Broker(a=("1", 2))
    watch = TopicWatch(broker.identify)
    watch.changes(["a"])
    for _ in range(2):  # a broker that has just started
        there = broker.topics.pop("a")
        assert watch.changes(["a"]) == []
        broker.topics["a"] = there
        assert watch.changes(["a"]) == []
    del broker.topics["a"]
    assert watch.changes(["a"]) == []
    assert watch.changes(["a"]) == [TopicChange("a", TopicChangeKind.DELETED, 2, 0)]
    assert watch.changes(["a"]) == [], "it is reported once"


def test_a_topic_that_is_created_again_between_two_looks() -> None:
    broker = Broker(a=("1", 2), b=("2", 4), old=(NO_ID, 3))
    watch = TopicWatch(broker.identify)
    watch.changes(["a", "b", "old"])
    broker.topics["a"] = TopicIdentity("3", 2)
    del broker.topics["b"]
    watch.changes(["a", "b"])
    broker.topics["b"] = TopicIdentity("4", 1)
    assert watch.changes(["a", "b"]) == [TopicChange("b", TopicChangeKind.RECREATED, 4, 1)]
    broker.topics["old"] = TopicIdentity(NO_ID, 2)  # before Kafka 2.8, which has no ids
    assert watch.changes(["old"]) == [TopicChange("old", TopicChangeKind.RECREATED, 3, 2)]


def test_more_partitions_are_another_kind_of_change() -> None:
    broker = Broker(a=("1", 2))
    watch = TopicWatch(broker.identify)
    watch.changes(["a"])
    broker.topics["a"] = TopicIdentity("1", 6)
    assert watch.changes(["a"]) == [TopicChange("a", TopicChangeKind.REPARTITIONED, 2, 6)]


def test_ids_come_and_go_while_brokers_are_upgraded() -> None:
    """Brokers before Kafka 2.8 answer without an id; existing topics get one during the upgrade."""
    broker = Broker(a=(NO_ID, 2))
    watch = TopicWatch(broker.identify)
    for topic_id in (NO_ID, "1", NO_ID, "1"):
        broker.topics["a"] = TopicIdentity(topic_id, 2)
        assert watch.changes(["a"]) == []
    broker.topics["a"] = TopicIdentity(NO_ID, 3)
    assert watch.changes(["a"]) == [TopicChange("a", TopicChangeKind.REPARTITIONED, 2, 3)]
    broker.topics["a"] = TopicIdentity("2", 3)
    assert watch.changes(["a"]) == [TopicChange("a", TopicChangeKind.RECREATED, 3, 3)]
