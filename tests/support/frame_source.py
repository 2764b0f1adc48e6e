"""A source of table jobs: records in a DataFrame."""

import uuid
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as in all Spark code

from rowtide.spark_consumers.kafka.offsets import LastRecord, Range, Ranges
from rowtide.spark_consumers.kafka.source import Message
from rowtide.topics.java_regex import compile_java


@dataclass(frozen=True, slots=True)
class FrameSource:
    """Records in a DataFrame with the columns ``topic``, ``partition``, ``offset``, ``key``, ``value``, ``headers``.

    The last may be missing.
    """

    frame: DataFrame

    def topics(self, pattern: str) -> list[str]:
        """Return the topics that match."""
        expression = compile_java(pattern)
        names = (row.topic for row in self.frame.select("topic").distinct().collect())
        return sorted(name for name in names if expression.fullmatch(name))

    def bounds(self, topics: Collection[str]) -> Mapping[str, Ranges]:
        """Return first and end offsets."""
        grouped = self.frame.where(self.frame.topic.isin(*topics)).groupBy("topic", "partition")
        found: dict[str, dict[int, Range]] = {topic: {} for topic in topics}
        for row in grouped.agg(F.min("offset").alias("first"), F.max("offset").alias("last")).collect():
            found[row["topic"]][row["partition"]] = (row["first"], row["last"] + 1)
        return found

    def topic_ids(self, topics: Collection[str]) -> Mapping[str, str]:
        """Return no ids: a DataFrame has none."""
        return {}

    def last_records(self, topic: str, ranges: Ranges) -> Mapping[int, LastRecord]:
        """Return none: a DataFrame is not a topic that can be re-created."""
        return {}

    def read(self, spark: SparkSession, topic: str, ranges: Ranges) -> DataFrame:
        """Return the records of the ranges."""
        inside = " OR ".join(
            f"(partition = {partition} AND offset >= {first} AND offset < {end})"
            for partition, (first, end) in ranges.items()
        )
        name = f"rowtide_{uuid.uuid4().hex}"
        self.frame.createOrReplaceGlobalTempView(name)  # global views are visible in every session
        frame = spark.table(f"global_temp.{name}")
        return frame.where(frame.topic == topic).where(inside).drop("topic")

    def sample(self, topic: str, parts: Iterable[Ranges]) -> list[Message]:
        """Return all messages of the ranges."""
        frames = (self.read(self.frame.sparkSession, topic, part) for part in parts)
        return [(row["key"], row["value"]) for frame in frames for row in frame.collect()]
