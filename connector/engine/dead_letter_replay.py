"""Replays dead letters: sends their records to their topics in Kafka."""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from types import TracebackType
from typing import Literal, NamedTuple, Self

from confluent_kafka import Consumer, KafkaException, TopicPartition

from rowtide.connector.config import Configuration
from rowtide.connector.config.choices import LargeRecordsMode
from rowtide.connector.config.kafka.producer_settings import transactional_settings
from rowtide.connector.config.model import DeadLettersConfig
from rowtide.connector.delivery.errors import DeliveryError
from rowtide.connector.delivery.kafka.producers import new_producer
from rowtide.connector.delivery.stored_dead_letters import Letter, whole
from rowtide.connector.engine.event_replay import RecordedStructures, event_batches
from rowtide.connector.engine.newer_records import Compared, Seen
from rowtide.connector.engine.pipeline_settings import pipeline_settings, run_id
from rowtide.connector.engine.wiring import Fitting, TopicAdmins, fitting_records, missing_topics
from rowtide.connector.records.batch import Batch
from rowtide.connector.records.dead_letters import REPLAYED_HEADER
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.records.transforms import Transformer, untransformed
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.store.topic_reader import Extent, TopicReader
from rowtide.topics.errors import TopicError

Newer = Literal["stay", "overwrite", "omit"]
"""The treatment of records with a newer one in their topic: the dead letter stays, or they are sent or omitted."""

_OPEN_S = 60.0
_ABORT_S = 10.0
_TOPIC_SETTINGS = "cleanup.policy", "delete.retention.ms", "message.timestamp.type"
_NOWHERE = SourceOffset("", 0)
"""Stands in for the position of a replayed record, which is not stored."""


class NewerRecord(Exception):
    """The topic has a record with the same key that is as new as the dead letter, or had one that Kafka has removed."""


class Replayed(NamedTuple):
    """The records that were sent from a dead letter.

    Attributes:
        topics: their topics; none if the filters or transforms drop the records, or newer ones replace all of them.
        records: their number.
        omitted: the number of records that were not sent because there is a newer one.
    """

    topics: Sequence[str]
    records: int
    omitted: int


class DeadLetterReplay:
    """Sends the records of dead letters to their topics, each in one transaction with the note that it was replayed.

    A record that a transform or a converter rejected passes through those of the configuration, and an event through
    the decoder with the structure of its table at its position. Use it in a ``with`` statement.

    Args:
        config: the configuration of the connector.
        dead_letters: its topic of dead letters.
        reader: reads topics.
        tables: structures that take the place of those in the schema history.

    Raises:
        DeliveryError: Kafka refuses the producer.
    """

    def __init__(
        self, config: Configuration, dead_letters: DeadLettersConfig, reader: TopicReader, tables: Tables | None = None
    ) -> None:
        self._config, self._topic, self._reader = config, dead_letters.topic, reader
        self._settings = pipeline_settings(config, run_id())
        self._transforms = transforms = self._settings.transforms
        self._transformer = None if transforms is None else Transformer(replace(transforms, tolerant=False))
        self._structures = RecordedStructures(config, tables)
        admins = TopicAdmins(config)
        self._admin = admins.records
        ensure: Callable[[Collection[str]], None] = missing_topics(config, admins)
        fitting: Fitting | None = None
        mode = config.delivery.large_records.mode
        if mode is not LargeRecordsMode.DEAD_LETTER:  # which would make another dead letter of a record
            ensure, fitting = fitting_records(config, admins, ensure)
        self._ensure, self._fitting = ensure, fitting
        given = {name: text for name, text in config.kafka.producer.items() if name != "transactional.id"}
        self._producer = new_producer(
            config.delivery.producer,
            transactional_settings(given, f"rowtide-deadletters-{self._topic}"),
            quiet=nullcontext,
            show_keys=config.failure.show_values,
        )
        self._seen: dict[tuple[str, bool], Seen] = {}
        self._producer.init_transactions(_OPEN_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._producer.close()
        if self._transforms is not None:
            self._transforms.close()

    def replay(self, letter: Letter, newer: Newer = "stay") -> Replayed:
        """Send the records of a dead letter. Replay dead letters in the order in which they are in their topic.

        Args:
            letter: the dead letter.
            newer: what to do if a topic has a newer record with the same key as one of the dead letter.

        Returns:
            The topics of the records.

        Raises:
            NewerRecord: there is such a record, and ``newer`` is ``stay``.
            ValueError: the dead letter is damaged or not complete.
            ConnectorError, SchemaHistoryError: the record or the event is still rejected, or Kafka refuses it.
            TopicError, TopicReadError: a topic cannot be created or read.
        """
        made, omitted = self._records(letter), 0
        # A replayed record is as old as its dead letter, so that later dead letters of the key are newer.
        batches = [piece._replace(timestamp=piece.timestamp or letter.timestamp) for piece in made]
        if newer != "overwrite":
            compared = [
                self._compared(batch, letter, own_time=piece.timestamp > 0)
                for batch, piece in zip(batches, made, strict=True)
            ]
            omitted = sum(one.newer for one in compared)
            unknown, of = sum(one.unknown for one in compared), sum(len(batch.messages) for batch in batches)
            if unknown or (omitted and newer == "stay"):
                names = ", ".join(dict.fromkeys(batch.topic for batch in batches))
                share = f" ({omitted + unknown} of {of} records)" if of > 1 else ""
                doubt = ", or may have or have had one" if unknown else ""
                raise NewerRecord(f"topic {names} has a record with the same key that is as new or newer{share}{doubt}")
            batches = [one.older for one in compared if one.older.messages]
        topics = list(dict.fromkeys(piece.topic for piece in batches))
        if batches:
            self._ensure(topics)
        self._send(batches if self._fitting is None else self._fitting(batches), letter)
        return Replayed(topics, sum(len(batch.messages) for batch in batches), omitted)

    def _records(self, letter: Letter) -> Sequence[Batch]:
        """Return the records of a dead letter as they should be in its topics."""
        extents = {0: Extent(letter.first, letter.last + 1)}
        message = whole(self._reader.read(self._topic, extents), letter.id)
        if letter.stage == "KAFKA_PRODUCE":
            return [Batch(letter.topic, letter.partition, [message], _NOWHERE, 0, 0, None, letter.record_timestamp)]
        if letter.stage == "TASK_POLL":
            made = event_batches(message[1] or b"", letter.offset, self._settings, self._structures)
        elif self._transformer is None:
            raise ValueError(
                f"dead letter {letter.id} is a record before its transforms and converters, of which the configuration "
                "has none: give the configuration of the connector that wrote it"
            )
        else:
            made = [untransformed(letter.topic, letter.partition, message, _NOWHERE)]
        if self._transformer is not None:
            made = [self._transformer.batch(batch) for batch in made]
        return [piece for batch in made for piece in batch.destinations() if piece.messages]

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

    def _compared(self, batch: Batch, letter: Letter, *, own_time: bool) -> Compared:
        """Return the records of a dead letter, compared with those of their topic.

        Args:
            batch: the records.
            letter: their dead letter.
            own_time: whether a transform chose their timestamps.
        """
        place = batch.topic, own_time
        if place not in self._seen or letter.timestamp < self._seen[place].since:
            self._seen[place] = self._seen_since(batch.topic, 0 if own_time else letter.timestamp, own_time=own_time)
        return self._seen[place].compared(batch, letter, time.time() * 1000)

    def _seen_since(self, topic: str, timestamp: int, *, own_time: bool) -> Seen:
        """Return the records of a topic since a time; 0 for all of them."""
        extents = self._reader.extents(topic)
        if not extents:
            return Seen({}, timestamp)
        first = self._offsets_since(topic, extents, timestamp) if timestamp else {}
        read = {number: Extent(first.get(number, extent.low), extent.high) for number, extent in extents.items()}
        settings = {name: self._admin.topic_config(name, [topic]).get(topic, "") for name in _TOPIC_SETTINGS}
        return Seen.of(self._reader.read(topic, read), timestamp, extents, read, settings, own_time=own_time)

    def _offsets_since(self, topic: str, extents: Mapping[int, Extent], timestamp: int) -> dict[int, int]:
        """Return the offset of the first record since a time in each partition."""
        consumer = Consumer({"group.id": "rowtide", **self._config.kafka.consumer})
        try:
            places = [TopicPartition(topic, number, timestamp) for number in extents]
            found = {place.partition: place.offset for place in consumer.offsets_for_times(places, _OPEN_S)}
        except KafkaException as error:
            raise TopicError(f"topic {topic!r} cannot be read: {error.args[0].str()}") from error
        finally:
            consumer.close()
        return {number: found[number] if found[number] >= 0 else extent.high for number, extent in extents.items()}
