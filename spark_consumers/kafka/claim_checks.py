"""Values that are too large for Kafka: read from the folder of claim checks (``rowtide.large.records=claim-check``).

Spark reads the files itself, so that executors need nothing but access to the folder.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from rowtide.envelope.claim_check import OPENING, ClaimCheck, InvalidClaimCheck
from rowtide.spark_consumers.errors import ClaimCheckError
from rowtide.spark_consumers.kafka.offsets import LastRecord, Ranges
from rowtide.spark_consumers.kafka.source import Message, RecordSource

_IS_CLAIM_CHECK = f"coalesce(startswith(value, X'{OPENING.hex()}'), false)"
_SHA256 = f"CAST(substring(value, {len(OPENING) + 1}, 64) AS string)"
_DAMAGED = "concat('the file of claim check ', sha256, ' is missing, or was changed or damaged')"


@dataclass(frozen=True, slots=True)
class ClaimCheckSource:
    """Records of another source, with the values to which their claim checks point.

    Attributes:
        records: the other source.
        folder: the folder of the values: a path, or a URL of one of Hadoop's file systems.
    """

    records: RecordSource
    folder: str

    def topics(self, pattern: str) -> list[str]:
        """Return the topics that match."""
        return self.records.topics(pattern)

    def bounds(self, topics: Collection[str]) -> Mapping[str, Ranges]:
        """Return first and end offsets."""
        return self.records.bounds(topics)

    def topic_ids(self, topics: Collection[str]) -> Mapping[str, str]:
        """Return the ids of topics."""
        return self.records.topic_ids(topics)

    def last_records(self, topic: str, ranges: Ranges) -> Mapping[int, LastRecord]:
        """Return the last record of each range, as it is in the topic."""
        return self.records.last_records(topic, ranges)

    def read(self, spark: SparkSession, topic: str, ranges: Ranges) -> DataFrame:
        """Return the records of the ranges. A value that differs from its hash ends the query.

        Raises:
            ClaimCheckError: a claim check is damaged, or its file is missing.
        """
        raw = self.records.read(spark, topic, ranges)
        found = raw.where(_IS_CLAIM_CHECK).select("value").distinct().collect()
        if not found:
            return raw
        try:
            checks = [ClaimCheck.parse(bytes(row["value"])) for row in found]
            paths = {check.sha256: f"{self.folder.rstrip('/')}/{check.name}" for check in checks}
            files = spark.read.format("binaryFile").load(sorted(paths.values()))
        except (InvalidClaimCheck, PySparkException, Py4JJavaError) as error:
            raise ClaimCheckError(f"topic {topic}: a claim check cannot be read from {self.folder}: {error}") from error
        stored = files.selectExpr("regexp_extract(path, '[0-9a-f]{64}$', 0) AS sha256", "content")
        pointers = raw.where(_IS_CLAIM_CHECK).withColumn("sha256", F.expr(_SHA256))
        content = F.expr(f"IF(sha2(content, 256) = sha256, content, CAST(raise_error({_DAMAGED}) AS binary))")
        claimed = pointers.join(stored, "sha256", "left").withColumn("value", content).select(*raw.columns)
        return raw.where(f"NOT {_IS_CLAIM_CHECK}").unionAll(claimed)

    def sample(self, topic: str, parts: Iterable[Ranges]) -> Iterable[Message]:
        """Return messages of small ranges; their claim checks stay."""
        return self.records.sample(topic, parts)
