"""Sources of records: a Kafka cluster, or a DataFrame."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol, Self

from pyspark.sql import DataFrame, SparkSession

from rowtide.spark_consumers.errors import KafkaUnreachableError
from rowtide.spark_consumers.jvm.driver import java_class
from rowtide.spark_consumers.kafka.offsets import (
    LastRecord,
    Range,
    Ranges,
    assignment,
    count,
    ending_offsets,
    starting_offsets,
)
from rowtide.topics.java_regex import compile_java

ANSWER_TIMEOUT_MS = 20_000
OFFSETS_OF_A_TASK = 20_000
_POLL_MS = 100
_NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"
"""What a broker without topic ids says."""

_SEARCHED = (1, 100, 10_000)
"""How many offsets before the end of a range are searched for its last record, if they are only markers."""

Message = tuple[bytes | None, bytes | None]
"""The key and the value of a record."""


class RecordSource(Protocol):
    """Topics that can be read by ranges of offsets."""

    def topics(self, pattern: str) -> list[str]:
        """Return the topics whose whole name matches a regular expression, sorted."""

    def bounds(self, topics: Collection[str]) -> Mapping[str, Ranges]:
        """Return the first available offset and the readable end of each partition, by topic."""

    def topic_ids(self, topics: Collection[str]) -> Mapping[str, str]:
        """Return the ids of topics, which differ when a topic is deleted and re-created; not all sources have them."""

    def last_records(self, topic: str, ranges: Ranges) -> Mapping[int, LastRecord]:
        """Return the last record of each range that has one. Sources whose topics cannot be re-created have none."""

    def read(self, spark: SparkSession, topic: str, ranges: Ranges) -> DataFrame:
        """Return the columns ``partition`` int, ``offset`` bigint, ``key`` and ``value`` binary."""

    def sample(self, topic: str, parts: Iterable[Ranges]) -> Iterable[Message]:
        """Return messages of small ranges, at least one of each that has a record; not all if they are large."""


@dataclass(frozen=True, slots=True)
class KafkaSource:
    """A Kafka cluster, accessed with Kafka's Java client in Spark's driver.

    Attributes:
        spark: the session with the driver.
        properties: of the Java client: ``bootstrap.servers``, ``security.protocol``, ...
        headers: whether records are read with their headers, in a further column.
    """

    spark: SparkSession
    properties: Mapping[str, str]
    headers: bool = False

    def topics(self, pattern: str) -> list[str]:
        """Return the topics that match."""
        with _Consumer(self) as consumer:
            names = [str(name) for name in consumer.call("listTopics").keySet()]
        expression = compile_java(pattern)
        return sorted(name for name in names if expression.fullmatch(name))

    def bounds(self, topics: Collection[str]) -> Mapping[str, Ranges]:
        """Return first and end offsets; with ``read_committed`` the end is the last stable offset."""
        with _Consumer(self) as consumer:
            partitions = consumer.partitions(topics)
            first = consumer.call("beginningOffsets", partitions)
            end = consumer.call("endOffsets", partitions)
            found: dict[str, dict[int, Range]] = {topic: {} for topic in topics}
            for partition in partitions:
                found[partition.topic()][partition.partition()] = (int(first[partition]), int(end[partition]))
            return found

    def topic_ids(self, topics: Collection[str]) -> Mapping[str, str]:
        """Return the ids of topics; brokers have them since Kafka 2.8."""
        names = java_class(self.spark, "java.util.ArrayList")()
        for topic in topics:
            names.add(topic)
        # An admin client does not accept a longer time for one request than for all attempts.
        limit = self.properties.get("default.api.timeout.ms", str(ANSWER_TIMEOUT_MS))
        with _Consumer(self, {"request.timeout.ms": limit}) as consumer:
            return consumer.topic_ids(names)

    def last_records(self, topic: str, ranges: Ranges) -> Mapping[int, LastRecord]:
        """Return the last record of each range. It ends after 20 seconds, even if ranges remain."""
        polls = iter(range(ANSWER_TIMEOUT_MS // _POLL_MS))
        with _Consumer(self) as consumer:
            found = {
                partition: consumer.last_record(topic, partition, *range_, polls)
                for partition, range_ in ranges.items()
            }
        return {partition: record for partition, record in found.items() if record is not None}

    def read(self, spark: SparkSession, topic: str, ranges: Ranges) -> DataFrame:
        """Return the records of the ranges."""
        reader = spark.read.format("kafka")
        for name, value in self.client_properties().items():
            reader = reader.option(f"kafka.{name}", value)
        return (
            reader.option("assign", assignment(topic, ranges))
            .option("startingOffsets", starting_offsets(topic, ranges))
            .option("endingOffsets", ending_offsets(topic, ranges))
            .option("minPartitions", self._tasks(ranges))
            .option("includeHeaders", str(self.headers).lower())
            .load()
            .select("partition", "offset", "key", "value", *(["headers"] if self.headers else []))
        )

    def stream(self, pattern: str, starts: Mapping[str, Mapping[int, int]], most: int) -> DataFrame:
        """Return the stream of the records of all matching topics, including those created later.

        Args:
            pattern: regular expression of whole topic names.
            starts: the first offset of each partition of the topics that exist; -2 is the first that Kafka has.
            most: the most offsets of all partitions in a micro-batch.
        """
        reader = self.spark.readStream.format("kafka")
        for name, value in self.client_properties().items():
            reader = reader.option(f"kafka.{name}", value)
        return (
            reader.option("subscribePattern", pattern)
            .option("startingOffsets", json.dumps(starts) if starts else "earliest")
            .option("maxOffsetsPerTrigger", most)
            .option("failOnDataLoss", "false")  # each table checks its own offsets
            .load()
        )

    def sample(self, topic: str, parts: Iterable[Ranges]) -> list[Message]:
        """Return the messages in Kafka's first answer for each range. A query would take a third of a second.

        It ends after 20 seconds, even if ranges remain.
        """
        ranges = [(partition, *offsets) for part in parts for partition, offsets in part.items()]
        most = max((end - first for _, first, end in ranges), default=1)
        polls = iter(range(ANSWER_TIMEOUT_MS // _POLL_MS))
        with _Consumer(self, {"max.poll.records": str(most)}) as consumer:
            return [message for range_ in ranges for message in consumer.messages(topic, *range_, polls)]

    def _tasks(self, ranges: Ranges) -> int:
        """Return the number of reading tasks; several cores share a large partition."""
        return max(len(ranges), min(self.spark.sparkContext.defaultParallelism, count(ranges) // OFFSETS_OF_A_TASK))

    def client_properties(self) -> dict[str, str]:
        """Return the properties of every client.

        Records of aborted transactions are skipped. All records that are read exist, so no request has to wait for new
        ones: a consumer requests what follows, and the next task that uses it would wait for that answer, too.
        """
        return {"isolation.level": "read_committed", "fetch.max.wait.ms": "10", **self.properties}


class _Consumer:
    """Kafka's consumer, closed when the context ends."""

    def __init__(self, source: KafkaSource, more: Mapping[str, str] = MappingProxyType({})) -> None:
        self._servers = source.properties.get("bootstrap.servers", "")
        self._spark = source.spark
        properties = java_class(self._spark, "java.util.Properties")()
        defaults = {"default.api.timeout.ms": str(ANSWER_TIMEOUT_MS)}
        for name, value in {**defaults, **source.client_properties(), **more}.items():
            properties.put(name, value)
        # A group.id, which access control may require, can be that of another program, whose offsets must stay.
        properties.put("enable.auto.commit", "false")
        self._settings = properties

    def __enter__(self) -> Self:
        consumer = java_class(self._spark, "org.apache.kafka.clients.consumer.KafkaConsumer")
        bytes_deserializer = java_class(self._spark, "org.apache.kafka.common.serialization.ByteArrayDeserializer")
        try:
            self._consumer = consumer(self._settings, bytes_deserializer(), bytes_deserializer())
        except TypeError as error:  # py4j takes an unknown class for a package
            raise KafkaUnreachableError(
                "Spark has no Kafka client: start it with the package spark-sql-kafka-0-10 (--packages or --jars)"
            ) from error
        except Exception as error:
            raise self._unreachable(error) from error
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close()

    def call(self, method: str, *arguments: Any) -> Any:
        """Call a method of the Java consumer."""
        try:
            return getattr(self._consumer, method)(*arguments)
        except Exception as error:
            raise self._unreachable(error) from error

    def partitions(self, topics: Collection[str]) -> Any:
        """Return a Java list of the topics' partitions."""
        found = java_class(self._spark, "java.util.ArrayList")()
        topic_partition = java_class(self._spark, "org.apache.kafka.common.TopicPartition")
        for topic in topics:
            for partition in self.call("partitionsFor", topic) or ():  # it may have been deleted
                found.add(topic_partition(topic, partition.partition()))
        return found

    def topic_ids(self, names: Any) -> dict[str, str]:
        """Return the ids of topics in a Java list, by name."""
        try:
            admin = java_class(self._spark, "org.apache.kafka.clients.admin.Admin").create(self._settings)
            try:
                ids = {
                    name: str(future.get().topicId())
                    for name, future in admin.describeTopics(names).topicNameValues().items()
                }
            finally:
                admin.close()
        except Exception as error:
            raise self._unreachable(error) from error
        return {name: topic_id for name, topic_id in ids.items() if topic_id != _NO_ID}

    def messages(self, topic: str, partition: int, first: int, end: int, polls: Iterator[int]) -> Iterator[Message]:
        """Read the first messages of a range; none if there are only transaction markers, or if Kafka is too slow.

        Each attempt takes one of ``polls``, which several ranges may share.
        """
        found = next(self._records(topic, partition, first, end, polls), [])
        return ((record.key(), record.value()) for record in found)

    def last_record(self, topic: str, partition: int, first: int, end: int, polls: Iterator[int]) -> LastRecord | None:
        """Return the last record of a range; ``None`` if it has none, or if Kafka is too slow."""
        starts = dict.fromkeys(max(first, end - offsets) for offsets in _SEARCHED)
        for start in starts:
            last = [record for records in self._records(topic, partition, start, end, polls) for record in records[-1:]]
            if last:
                return LastRecord.of(last[-1].offset(), last[-1].timestamp(), last[-1].key(), last[-1].value())
        return None

    def _records(self, topic: str, partition: int, first: int, end: int, polls: Iterator[int]) -> Iterator[list[Any]]:
        """Yield the Java records of a range, in the order of Kafka's answers."""
        place = java_class(self._spark, "org.apache.kafka.common.TopicPartition")(topic, partition)
        places = java_class(self._spark, "java.util.ArrayList")()
        places.add(place)
        self.call("assign", places)
        self.call("seek", place, first)
        wait = java_class(self._spark, "java.time.Duration").ofMillis(_POLL_MS)
        for _ in polls:
            if self.call("position", place) >= end:
                break
            found = [record for record in self.call("poll", wait).records(place) if record.offset() < end]
            if found:
                yield found

    def _unreachable(self, error: Exception) -> KafkaUnreachableError:
        java = getattr(error, "java_exception", None)
        reason = str(java.getCause() or java) if java is not None else str(error)
        return KafkaUnreachableError(f"Kafka at {self._servers} did not answer: {reason}. Check --bootstrap-servers")
