"""Where Kafka's records come from."""

import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, Self

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from rowtide.spark_consumers.errors import KafkaUnreachableError
from rowtide.spark_consumers.jvm.driver import driver
from rowtide.spark_consumers.kafka.offsets import Ranges, assignment, count, ending_offsets, starting_offsets

ANSWER_TIMEOUT_MS = 20_000
OFFSETS_OF_A_TASK = 20_000


class RecordSource(Protocol):
    """Topics that can be read by ranges of offsets."""

    def topics(self, pattern: str) -> list[str]:
        """Names that match the whole regular expression, sorted."""

    def bounds(self, topic: str) -> Ranges:
        """First offset that is there, and the end that readers may see, of each partition."""

    def read(self, spark: SparkSession, topic: str, ranges: Ranges) -> DataFrame:
        """Columns ``partition`` int, ``offset`` bigint, ``key`` and ``value`` binary."""


@dataclass(frozen=True, slots=True)
class KafkaSource:
    """A Kafka cluster, asked with Kafka's own Java client inside Spark's driver.

    Attributes:
        spark: gives the driver.
        properties: of the client, in Java's spelling: ``bootstrap.servers``, ``security.protocol``, ...
    """

    spark: SparkSession
    properties: Mapping[str, str]

    def topics(self, pattern: str) -> list[str]:
        """Names that match."""
        with _Consumer(self) as consumer:
            names = [str(name) for name in consumer.ask("listTopics").keySet()]
        expression = re.compile(pattern)
        return sorted(name for name in names if expression.fullmatch(name))

    def bounds(self, topic: str) -> Ranges:
        """First and end offsets; with ``read_committed`` the end is that of the finished transactions."""
        with _Consumer(self) as consumer:
            partitions = consumer.partitions(topic)
            first = consumer.ask("beginningOffsets", partitions)
            end = consumer.ask("endOffsets", partitions)
            return {found.partition(): (int(first[found]), int(end[found])) for found in partitions}

    def read(self, spark: SparkSession, topic: str, ranges: Ranges) -> DataFrame:
        """The records of the ranges."""
        reader = spark.read.format("kafka")
        for name, value in self.client_properties().items():
            reader = reader.option(f"kafka.{name}", value)
        return (
            reader.option("assign", assignment(topic, ranges))
            .option("startingOffsets", starting_offsets(topic, ranges))
            .option("endingOffsets", ending_offsets(topic, ranges))
            .option("minPartitions", self._tasks(ranges))
            .load()
            .select("partition", "offset", "key", "value")
        )

    def _tasks(self, ranges: Ranges) -> int:
        """How many readers: a topic of one partition is read by several cores too."""
        return max(len(ranges), min(self.spark.sparkContext.defaultParallelism, count(ranges) // OFFSETS_OF_A_TASK))

    def client_properties(self) -> dict[str, str]:
        """Properties of every client."""
        # Records of an aborted transaction never happened.
        return {"isolation.level": "read_committed", **self.properties}


class _Consumer:
    """Kafka's consumer, closed at the end."""

    def __init__(self, source: KafkaSource) -> None:
        self._servers = source.properties.get("bootstrap.servers", "")
        self._jvm = driver(source.spark)
        properties = self._jvm.java.util.Properties()
        for name, value in {"default.api.timeout.ms": str(ANSWER_TIMEOUT_MS), **source.client_properties()}.items():
            properties.put(name, value)
        self._settings = properties

    def __enter__(self) -> Self:
        kafka = self._jvm.org.apache.kafka
        bytes_deserializer = kafka.common.serialization.ByteArrayDeserializer
        try:
            self._consumer = kafka.clients.consumer.KafkaConsumer(
                self._settings, bytes_deserializer(), bytes_deserializer()
            )
        except TypeError as error:  # an unknown class is a package to py4j
            raise KafkaUnreachableError(
                "Spark has no Kafka client: start it with the package spark-sql-kafka-0-10 (--packages or --jars)"
            ) from error
        except Exception as error:
            raise self._unreachable(error) from error
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close()

    def ask(self, method: str, *arguments: Any) -> Any:
        """Call a method of the consumer."""
        try:
            return getattr(self._consumer, method)(*arguments)
        except Exception as error:
            raise self._unreachable(error) from error

    def partitions(self, topic: str) -> Any:
        """A Java list of the topic's partitions."""
        found = self._jvm.java.util.ArrayList()
        for partition in self.ask("partitionsFor", topic):
            found.add(self._jvm.org.apache.kafka.common.TopicPartition(topic, partition.partition()))
        return found

    def _unreachable(self, error: Exception) -> KafkaUnreachableError:
        java = getattr(error, "java_exception", None)
        reason = str(java.getCause() or java) if java is not None else str(error)
        return KafkaUnreachableError(f"Kafka at {self._servers} did not answer: {reason}. Check --bootstrap-servers")


@dataclass(frozen=True, slots=True)
class FrameSource:
    """Records that are at hand as a DataFrame with ``topic``, ``partition``, ``offset``, ``key`` and ``value``."""

    frame: DataFrame

    def topics(self, pattern: str) -> list[str]:
        """Names that match."""
        expression = re.compile(pattern)
        names = (row.topic for row in self.frame.select("topic").distinct().collect())
        return sorted(name for name in names if expression.fullmatch(name))

    def bounds(self, topic: str) -> Ranges:
        """First and end offsets."""
        found = self.frame.where(self.frame.topic == topic).groupBy("partition")
        rows = found.agg(F.min("offset").alias("first"), F.max("offset").alias("last")).collect()
        return {row["partition"]: (row["first"], row["last"] + 1) for row in rows}

    def read(self, spark: SparkSession, topic: str, ranges: Ranges) -> DataFrame:
        """The records of the ranges."""
        inside = " OR ".join(
            f"(partition = {partition} AND offset >= {first} AND offset < {end})"
            for partition, (first, end) in ranges.items()
        )
        name = f"rowtide_{uuid.uuid4().hex}"
        self.frame.createOrReplaceGlobalTempView(name)  # the way from one session to another
        frame = spark.table(f"global_temp.{name}")
        return frame.where(frame.topic == topic).where(inside).select("partition", "offset", "key", "value")
