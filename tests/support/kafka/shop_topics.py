"""Topics of a small shop, which are written while programs read them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

from tests.support.kafka.change_topics import Topic

__all__ = ["ID", "TEXT", "Shop"]

ID = {"type": "int32", "optional": False, "field": "id"}
TEXT = {"type": "string", "optional": True, "field": "text"}


class Shop:
    """Topics that are written while tables follow them."""

    def __init__(self, kafka: Any, prefix: str, tables: int) -> None:
        from confluent_kafka import Producer
        from confluent_kafka.admin import AdminClient

        self.prefix = prefix
        self._admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
        self._producer = Producer({"bootstrap.servers": kafka.bootstrap})
        self._numbers = random.Random(7)
        self._sent: Counter[str] = Counter()
        self.topics: list[Topic] = []
        for number in range(tables):
            self.add(f"t{number}")

    def add(self, table: str, key: Sequence[str] = ("id",)) -> Topic:
        """Create the topic of a table, with its first rows if it has a key."""
        from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]

        topic = Topic(f"{self.prefix}.d.{table}", [ID, TEXT], key)
        self._admin.create_topics([NewTopic(topic.name, 1, 1)])[topic.name].result()
        self.topics.append(topic)
        if key:
            self.change(topic, 30)
        return topic

    def change(self, topic: Topic, changes: int) -> None:
        """Write random changes of a few rows."""
        for _ in range(changes):
            position = len(topic.records)
            row = {"id": self._numbers.randrange(20), "text": f"n{position}"}
            if self._numbers.random() < 0.2:
                topic.change("d", row, None, position)
            else:
                topic.change("u", row, row, position)
        self.send(topic)

    def append(self, topic: Topic, changes: int) -> None:
        """Write new rows of a table without a key, in which a change that is applied twice is a row more."""
        for _ in range(changes):
            position = len(topic.records)
            topic.change("c", None, {"id": position, "text": "x"}, position)
        self.send(topic)

    def send(self, topic: Topic) -> None:
        """Write the records that are not in Kafka yet."""
        for record in topic.records[self._sent[topic.name] :]:
            self._producer.produce(topic.name, record.value, record.key, partition=0)
        assert self._producer.flush(30) == 0
        self._sent[topic.name] = len(topic.records)
