"""Replays dead letters: sends their records to the topics where they belong. An edge: Kafka."""

import hashlib
from collections.abc import Callable, Collection, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from types import TracebackType
from typing import Self

from confluent_kafka import Consumer, KafkaException, TopicPartition

from rowtide.connector.config import Configuration
from rowtide.connector.config.choices import LargeRecords
from rowtide.connector.config.kafka.producer_settings import transactional_settings
from rowtide.connector.config.model import DeadLettersConfig
from rowtide.connector.delivery.errors import DeliveryError
from rowtide.connector.delivery.kafka.producers import new_producer
from rowtide.connector.delivery.stored_dead_letters import Letter, whole
from rowtide.connector.engine.pipeline_settings import pipeline_settings, run_id
from rowtide.connector.engine.wiring import Fitting, TopicAdmins, fitting_records, missing_topics
from rowtide.connector.records.batch import Batch
from rowtide.connector.records.dead_letters import REPLAYED_HEADER
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.records.transforms import Transformer, untransformed
from rowtide.schema_history.store.topic_reader import Extent, TopicReader
from rowtide.topics.errors import TopicError

_OPEN_S = 60.0
_ABORT_S = 10.0
_NOWHERE = SourceOffset("", 0)
"""Stands in for the position of a replayed record, which is not stored."""


class NewerRecord(Exception):
    """The topic has a record with the same key that was sent at the same time as the dead letter, or later."""


class DeadLetterReplay:
    """Sends the records of dead letters to their topics, each in one transaction with the note that it was replayed.

    A record that a transform or a converter rejected passes through those of the configuration. Use it with ``with``.

    Args:
        config: the configuration of the connector.
        dead_letters: its topic of dead letters.
        reader: reads topics.

    Raises:
        DeliveryError: Kafka refuses the producer.
    """

    def __init__(self, config: Configuration, dead_letters: DeadLettersConfig, reader: TopicReader) -> None:
        self._config, self._topic, self._reader = config, dead_letters.topic, reader
        self._transforms = transforms = pipeline_settings(config, run_id()).transforms
        self._transformer = None if transforms is None else Transformer(replace(transforms, tolerant=False))
        admins = TopicAdmins(config)
        ensure: Callable[[Collection[str]], None] = missing_topics(config, admins)
        fitting: Fitting | None = None
        if config.delivery.large_records.mode is not LargeRecords.DEAD_LETTER:  # of which another dead letter is made
            ensure, fitting = fitting_records(config, admins, ensure)
        self._ensure, self._fitting = ensure, fitting
        given = {name: text for name, text in config.kafka.producer.items() if name != "transactional.id"}
        self._producer = new_producer(
            config.delivery.producer,
            transactional_settings(given, f"rowtide-deadletters-{self._topic}"),
            quiet=nullcontext,
            show_keys=config.failure.show_values,
        )
        self._sent_at: dict[str, dict[bytes, int]] = {}  # of the newest record of each key, by topic
        self._producer.init_transactions(_OPEN_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._producer.close()
        if self._transforms is not None:
            self._transforms.close()

    def replay(self, letter: Letter, *, overwrite: bool = False) -> list[str]:
        """Send the record of a dead letter, and return its topics; none if the transforms drop it.

        Replay dead letters in the order in which they are in their topic.

        Args:
            letter: the dead letter.
            overwrite: send it also if its topic has a newer record with the same key, which it then replaces.

        Raises:
            NewerRecord: there is such a record, and ``overwrite`` is not set.
            ValueError: the dead letter is damaged or not complete.
            ConnectorError: a transform or converter rejects the record still, or Kafka does not take it.
            TopicError, TopicReadError: a topic cannot be created or read.
        """
        extents = {0: Extent(letter.first, letter.last + 1)}
        message = whole(self._reader.read(self._topic, extents), letter.id)
        if letter.stage == "TASK_POLL":
            raise ValueError(
                f"dead letter {letter.id} is an event of the binlog, whose rows are not known. Read its table "
                "again, after an update of rowtide if it could not decode the event: rowtide signal execute-snapshot"
            )
        if letter.stage == "KAFKA_PRODUCE":
            made = Batch(letter.topic, letter.partition, [message], _NOWHERE, 0, 0)
        elif self._transformer is None:
            raise ValueError(
                f"dead letter {letter.id} is a record before its transforms and converters, of which the configuration "
                "has none: give the configuration of the connector that wrote it"
            )
        else:
            made = self._transformer.batch(untransformed(letter.topic, letter.partition, message, _NOWHERE))
        batches: Sequence[Batch] = [piece for piece in made.destinations() if piece.messages]
        if not overwrite:
            self._compare(batches, letter)
        topics = list(dict.fromkeys(piece.topic for piece in batches))
        if batches:
            self._ensure(topics)
        self._send(batches if self._fitting is None else self._fitting(batches), letter)
        return topics

    def _send(self, batches: Sequence[Batch], letter: Letter) -> None:
        note = Batch(self._topic, 0, [(None, None, [(REPLAYED_HEADER, letter.id.encode())])], _NOWHERE, 0, 0)
        self._producer.begin_transaction()
        try:
            self._producer.send([*batches, note])
            self._producer.commit_transaction()
        except DeliveryError:
            with suppress(DeliveryError):
                self._producer.abort_transaction(_ABORT_S)
            self._producer.forget()
            raise

    def _compare(self, batches: Sequence[Batch], letter: Letter) -> None:
        for batch in batches:
            if batch.topic not in self._sent_at:
                since = self._since(batch.topic, letter.timestamp)
                found = self._reader.read(batch.topic, since)
                self._sent_at[batch.topic] = {_digest(one.key): one.timestamp for one in found if one.key is not None}
            for key, _, _ in batch.messages:
                if key is not None and self._sent_at[batch.topic].get(_digest(key), -1) >= letter.timestamp:
                    raise NewerRecord(f"topic {batch.topic} has a record with the same key that is as new or newer")

    def _since(self, topic: str, timestamp: int) -> dict[int, Extent]:
        """The offsets of a topic since a time; none if it does not exist."""
        extents = self._reader.extents(topic)
        if not extents:
            return {}
        consumer = Consumer({"group.id": "rowtide", **self._config.kafka.consumer})
        try:
            places = [TopicPartition(topic, number, timestamp) for number in extents]
            found = {place.partition: place.offset for place in consumer.offsets_for_times(places, _OPEN_S)}
        except KafkaException as error:
            raise TopicError(f"topic {topic!r} cannot be read: {error.args[0].str()}") from error
        finally:
            consumer.close()
        return {
            number: Extent(found[number] if found[number] >= 0 else extent.high, extent.high)
            for number, extent in extents.items()
        }


def _digest(key: bytes) -> bytes:
    return hashlib.blake2b(key, digest_size=16).digest()
