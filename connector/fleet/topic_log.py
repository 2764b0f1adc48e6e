"""Reads the fleet's topics from their first record, follows them, and writes to them."""

import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition

from rowtide.schema_history.store.client_limits import CLIENT_LIMITS
from rowtide.schema_history.store.topic_reader import TopicReader
from rowtide.schema_history.store.topic_writer import TopicWriter

log = logging.getLogger(__name__)

_CONSUMER: dict[str, Any] = {
    "enable.auto.commit": False,
    "allow.auto.create.topics": False,
    "auto.offset.reset": "earliest",
    "isolation.level": "read_committed",
    "queued.max.messages.kbytes": 16384,
    "fetch.wait.max.ms": 100,
    "log_level": 2,  # errors only
}
_PRODUCER = {"partitioner": "murmur2_random"}
"""As Kafka Connect's: otherwise the newest record of a key could be in a different partition from those before it."""
_TICK_S = 0.5
_WRITE_TIMEOUT_S = 30.0

OnRecord = Callable[[str, bytes | None, bytes | None, int], None]
"""Receives topic, key, value and offset of a record."""


class TopicLog:
    """Topics whose records a worker needs from the first to the newest.

    Args:
        topics: the topics, which exist.
        producer: librdkafka's settings of producers, including those of the connection.
        consumer: the same of consumers.
        admin: the same of admin clients.
        on_record: called for each record in the log's thread; those of a partition come in their order.
        on_caught_up: called once in the log's thread, after the records that were there at the start.
        on_failure: called in the log's thread if reading has failed permanently.
    """

    def __init__(
        self,
        topics: Sequence[str],
        *,
        producer: Mapping[str, Any],
        consumer: Mapping[str, Any],
        admin: Mapping[str, Any],
        on_record: OnRecord,
        on_caught_up: Callable[[], None],
        on_failure: Callable[[BaseException], None],
    ) -> None:
        self._topics = topics
        plain = {name: value for name, value in producer.items() if not name.startswith("transaction")}
        self._writer = TopicWriter({**plain, **_PRODUCER}, _WRITE_TIMEOUT_S)
        self._consumer = {"group.id": "rowtide", **CLIENT_LIMITS, **consumer, **_CONSUMER}
        self._admin = admin
        self._reader = TopicReader(consumer, admin, _WRITE_TIMEOUT_S)
        self._on_record = on_record
        self._on_caught_up = on_caught_up
        self._on_failure = on_failure
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="fleet/topics", daemon=True)

    def start(self) -> None:
        """Start reading, in a thread."""
        self._thread.start()

    def close(self) -> None:
        """Stop reading, without waiting for Kafka."""
        self._stop.set()

    def write(self, topic: str, records: Iterable[tuple[bytes, bytes | None]], partition: int = -1) -> None:
        """Write records, and wait for their acknowledgement. Only one thread at a time may call this.

        Args:
            topic: the topic.
            records: keys and values.
            partition: the partition; by default the one that follows from the key.

        Raises:
            TopicWriteError: they are not acknowledged in time.
        """
        for key, value in records:
            self._writer.send(topic, value, key, partition)
        self._writer.wait()

    def _run(self) -> None:
        try:
            self._read()
        except BaseException as error:  # noqa: BLE001 - the worker reports it
            self._on_failure(error)

    def _read(self) -> None:
        consumer = Consumer(self._consumer)
        try:
            missing: dict[tuple[str, int], int] = {}
            for topic in self._topics:
                extents = self._reader.extents(topic) or {}
                consumer.incremental_assign([TopicPartition(topic, one, extent.low) for one, extent in extents.items()])
                missing |= {(topic, one): extent.high for one, extent in extents.items() if extent.high > extent.low}
            caught_up = False
            while not self._stop.is_set():
                if not missing and not caught_up:
                    caught_up = True
                    self._on_caught_up()
                for message in consumer.consume(500, _TICK_S):
                    error = message.error()
                    if error is not None:
                        if error.fatal():
                            raise KafkaException(error)
                        log.warning("%s: %s", message.topic(), error.str())
                        continue
                    self._on_record(str(message.topic()), message.key(), message.value(), message.offset() or 0)
                for partition in consumer.position([TopicPartition(*place) for place in missing]):
                    if partition.offset >= missing[partition.topic, partition.partition]:
                        del missing[partition.topic, partition.partition]
        finally:
            consumer.close()
