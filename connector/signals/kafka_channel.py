"""Signals in a Kafka topic (``signal.kafka.topic``): partition 0, records whose key is ``topic.prefix``."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from confluent_kafka import OFFSET_STORED, Consumer, KafkaError, KafkaException, TopicPartition

from rowtide.connector.errors import SignalError
from rowtide.connector.signals.channel import ChannelFailed
from rowtide.connector.signals.inbox import ReceivedSignal
from rowtide.connector.signals.signal import from_message

_SETTINGS = {
    "enable.auto.commit": False,
    "allow.auto.create.topics": False,
    "log_level": 2,  # errors only
}
_DEFAULTS = {"auto.offset.reset": "earliest"}
_MOST = 500
_SHORTEST_POLL_S = 0.1


class KafkaChannel:
    """Reads the topic from the position that is stored with the connector's offset.

    Without one, it begins after the position that the consumer group has committed, as Debezium does, otherwise at the
    topic's beginning. Signals that are carried out are committed to the group, too.

    Args:
        settings: the settings of the consumer, with the group.
        topic: the topic.
        key: ``topic.prefix``.
        start: the stored position.
        timeout_s: how long a poll waits for records.
        new_id: makes ids for signals without one.
    """

    name = "kafka"

    def __init__(
        self,
        settings: Mapping[str, Any],
        topic: str,
        key: str,
        start: object,
        timeout_s: float,
        new_id: Callable[[], str],
    ) -> None:
        self._settings = {**_DEFAULTS, **settings, **_SETTINGS}
        self._topic = topic
        self._key = key.encode()
        self._start = start if isinstance(start, int) else OFFSET_STORED
        self._committed = start
        self._timeout = max(timeout_s, _SHORTEST_POLL_S)
        self._new_id = new_id
        self._consumer: Consumer | None = None

    def poll(self) -> Iterator[ReceivedSignal]:
        """Yield the signals for this connector; records for others are skipped."""
        if self._consumer is None:
            self._consumer = Consumer(self._settings)
            self._consumer.assign([TopicPartition(self._topic, 0, self._start)])
        while messages := self._consumer.consume(_MOST, self._timeout):
            for message in messages:
                if (error := message.error()) is not None:
                    raise ChannelFailed(self._explained(error))
                value, offset = message.value(), message.offset()
                if message.key() != self._key or value is None or offset is None:
                    continue
                try:
                    yield ReceivedSignal(from_message(value, self.name, self._new_id), self.name, offset + 1)
                except SignalError as problem:
                    yield ReceivedSignal(problem, self.name, offset + 1)

    def stored(self, position: object) -> None:
        """Commit the position to the group."""
        if self._consumer is None or not isinstance(position, int) or position == self._committed:
            return
        try:
            self._consumer.commit(offsets=[TopicPartition(self._topic, 0, position)], asynchronous=False)
        except KafkaException as error:
            raise ChannelFailed(f"the position in topic {self._topic} cannot be committed: {error}") from error
        self._committed = position

    def close(self) -> None:
        """Close the consumer."""
        if self._consumer is not None:
            self._consumer.close()

    def _explained(self, error: KafkaError) -> str:
        if error.code() in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION):  # noqa: SLF001
            return f"the topic {self._topic} (signal.kafka.topic) does not exist; create it with one partition"
        if error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED or "Group authorization" in error.str():
            group = self._settings["group.id"]
            return f"the account may not read as the consumer group {group} (signal.kafka.groupId): grant it READ"
        return f"the topic {self._topic} (signal.kafka.topic): {error.str()}"
