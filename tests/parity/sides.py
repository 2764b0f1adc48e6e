"""The two connectors of a round: Debezium in a worker that is shared by all rounds, and rowtide."""

from __future__ import annotations

import re
import sys
import time
import urllib.error
from collections.abc import Mapping
from typing import Any

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.parity.compare import Message
from tests.support.kafka.connect import KafkaConnect
from tests.support.processes.rowtide_process import RowtideProcess

__all__ = ["Debezium", "Records", "Rowtide"]


class Debezium:
    """A connector in the Kafka Connect worker."""

    def __init__(self, worker: KafkaConnect, name: str, config: Mapping[str, str]) -> None:
        self.name = name
        self._worker = worker
        self._worker.create(name, config)

    def failed(self) -> str | None:
        """The error with which it stopped, if it did."""
        try:
            status = self._worker.status(self.name)
        except urllib.error.HTTPError:
            return None  # the connector is not registered completely yet
        for state in (status["connector"], *status["tasks"]):
            if state["state"] == "FAILED":
                return str(state.get("trace", "without a trace"))
        return None

    def stop(self) -> None:
        """Stop and delete the connector."""
        self._worker.ask("DELETE", f"/connectors/{self.name}")


class Rowtide(RowtideProcess):
    """A process of ``rowtide run``."""

    def failed(self) -> str | None:
        """The error with which it stopped, if it did."""
        text = self.output()
        if not self.ended() and not re.search(r"^(Traceback|.*\bERROR\b)", text, re.MULTILINE):
            return None
        return text[-6000:]


class Records:
    """The messages of both connectors, read while they run.

    Args:
        bootstrap: the addresses of Kafka.
        names: the topic prefixes of Debezium and of rowtide, which have the same length.
    """

    def __init__(self, bootstrap: str, names: tuple[str, str]) -> None:
        self._names = names
        self._admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "parity",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "fetch.wait.max.ms": 50,
                "log_level": 0,
            }
        )
        self._places: dict[str, int] = {}
        self.of: tuple[dict[str, list[Message]], dict[str, list[Message]]] = ({}, {})

    def read(self, seconds: float) -> int:
        """Read for a number of seconds; returns the number of new messages."""
        self._assign()
        end, count = time.monotonic() + seconds, 0
        while time.monotonic() < end:
            for message in self._consumer.consume(1000, 0.1):
                if message.error() is None:
                    self._take(message)
                    count += 1
        return count

    def count(self, text: str) -> tuple[int, int]:
        """The number of messages of each connector whose value contains a text."""
        return tuple(
            sum(text in (message.value or "") for messages in topics.values() for message in messages)
            for topics in self.of
        )  # type: ignore[return-value]

    def close(self) -> None:
        """Delete the topics."""
        self._consumer.close()
        for future in self._admin.delete_topics(self._topics(everything=True)).values():
            try:
                future.result(20)
            except Exception as error:  # noqa: BLE001 - it is only to save room
                print(f"a topic stays: {error}", file=sys.stderr)

    def _topics(self, *, everything: bool = False) -> list[str]:
        known = self._admin.list_topics(timeout=10).topics
        return [
            topic
            for topic in known
            if any(name in topic for name in self._names) and (everything or not topic.endswith("-offsets"))
        ]

    def _assign(self) -> None:
        topics = self._topics()
        if set(topics) != self._places.keys():
            self._places = {topic: self._places.get(topic, 0) for topic in topics}
            self._consumer.assign([TopicPartition(topic, 0, place) for topic, place in self._places.items()])

    def _take(self, message: Any) -> None:
        topic = message.topic()
        self._places[topic] = message.offset() + 1
        side = int(self._names[1] in topic)
        headers = tuple((name, self._text(text)) for name, text in message.headers() or ())
        found = Message(
            str(self._text(topic.encode())), self._text(message.key()), self._text(message.value()), headers
        )
        self.of[side].setdefault(found.topic, []).append(found)

    def _text(self, found: bytes | None) -> str | None:
        return None if found is None else found.decode(errors="surrogateescape").replace(self._names[1], self._names[0])
