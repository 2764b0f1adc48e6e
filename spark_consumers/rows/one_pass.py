"""The rows after a batch in one pass over its messages.

The schemas must be known before the messages are read; those of a sample are used. The first message that does not
match ends the query before anything is written to the table. The batch then takes several passes, which first determine
its contents.
"""

from collections import Counter

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from rowtide.spark_consumers.columns.spark_types import quote
from rowtide.spark_consumers.jvm.driver import observe
from rowtide.spark_consumers.messages.records import UNEXPECTED, KnownSchemas, uniform_messages
from rowtide.spark_consumers.messages.versions import KeyVersion
from rowtide.spark_consumers.rows.changes import DELETED, BatchSchemas, changed_rows

_COUNTS = {
    **{operation: f"count_if(op = '{operation}')" for operation in ("r", "c", "u", "d")},
    "tombstone": "count_if(op IS NULL)",
}
"""SQL of the number of records by operation."""


class OnePass:
    """The rows after a batch whose messages have the same schemas, and belong to keys.

    Args:
        raw: Kafka's records.
        known: one schema of keys and one of values.
        schemas: these schemas.
        partitions: number of partitions of the topic.
        placeholder: of values that the binlog did not have.

    Attributes:
        rows: the table's columns and :data:`rowtide.spark_consumers.rows.changes.DELETED`, one row for each key. A
            query of them fails if there are other messages; ``is_unexpected`` of ``messages.records`` is true then.
    """

    def __init__(
        self, raw: DataFrame, known: KnownSchemas, schemas: BatchSchemas, partitions: int, placeholder: bytes
    ) -> None:
        [key] = schemas.keys.values()
        self._changes = changed_rows(uniform_messages(raw, known), schemas, key, placeholder)
        self._counts = [F.expr(sql).alias(name) for name, sql in _COUNTS.items()]
        counted, self._observed = observe(self._changes, *self._counts)
        self.rows = _last(counted, key, partitions).select("row.*", DELETED)

    def counts(self) -> Counter[str]:
        """Return the number of records by operation, and of tombstones, after a query of all rows."""
        found = self._observed() or self._changes.agg(*self._counts).collect()[0].asDict()
        return +Counter({name: int(number) for name, number in found.items()})


def _last(changes: DataFrame, key: KeyVersion, partitions: int) -> DataFrame:
    """Return the last change of each key.

    All records of a key are in one partition, so offsets are sufficient. If partitions were added to the topic, a key
    can have records in two of them, which is unexpected here.
    """
    window = f"(PARTITION BY {', '.join(f'row.{quote(name)}' for name in key.names)} ORDER BY offset DESC)"
    last = f"row_number() OVER {window}"
    if partitions == 1:
        return changes.withColumn("number", F.expr(last)).where("number = 1")
    moved = f"first_value(partition) OVER {window} <> partition"
    return changes.withColumn("last", F.expr(f"IF({moved}, CAST({UNEXPECTED} AS boolean), {last} = 1)")).where("last")
