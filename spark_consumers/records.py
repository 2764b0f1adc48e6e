"""Kafka's bytes cut into schema and payload, and a first look at what there is.

A message with schemas is mostly schema: 8 kB around a row of 400 bytes, and the same text every time. It is cut off by
searching for the payload's beginning, without parsing, and kept as a version's number; the text itself survives in the
list of versions only.
"""

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

_HEAD, _SPLIT = '{"schema":', ',"payload":'


def _cut(column: str) -> tuple[str, str]:
    """SQL of schema and payload of a message.

    ``JsonConverter`` writes the schema first and no blanks. A default value in the schema may hold the text that is
    searched for, but with its quotes escaped. Anything else is parsed; without schemas it is all payload.
    """
    text = f"CAST({column} AS string)"
    prefix = f"substring_index({text}, '{_SPLIT}', 1)"
    length = f"octet_length({prefix})"
    fast = f"startswith({text}, '{_HEAD}{{') AND {length} < octet_length({column})"
    slow = (
        f"startswith({text}, '{{') AND NOT startswith({text}, '{{\"before\":') "
        f"AND get_json_object({text}, '$.schema.type') IS NOT NULL"
    )
    payload = (
        f"CAST(substring({column}, {length} + {len(_SPLIT) + 1}, "
        f"octet_length({column}) - {length} - {len(_SPLIT) + 1}) AS string)"
    )
    schema = f"substring({prefix}, {len(_HEAD) + 1})"
    return (
        f"CASE WHEN {fast} THEN {schema} WHEN {slow} THEN get_json_object({text}, '$.schema') END",
        f"CASE WHEN {fast} THEN {payload} WHEN {slow} THEN get_json_object({text}, '$.payload') ELSE {text} END",
    )


def cut(raw: DataFrame) -> DataFrame:
    """Columns ``partition``, ``offset``, ``key``, ``key_schema``, ``key_version``, ``value``, ... and ``op``.

    ``key`` and ``value`` are the payloads' text; ``value`` is null for a tombstone, and so is ``op``. A version is a
    hash of its schema's text, null if there is none.
    """
    key_schema, key = _cut("key")
    value_schema, value = _cut("value")
    return (
        raw.selectExpr(
            "partition", "offset", f"{key_schema} AS key_schema", f"{key} AS key",
            f"{value_schema} AS value_schema", f"{value} AS value",
        )
        .withColumn("key_version", F.expr("IF(key_schema IS NULL, NULL, xxhash64(key_schema))"))
        .withColumn("value_version", F.expr("IF(value_schema IS NULL, NULL, xxhash64(value_schema))"))
        .withColumn("op", F.expr("get_json_object(value, '$.op')"))
    )  # fmt: skip


KeyId = tuple[int | None, tuple[str, ...] | None]
"""Number of a key's schema and, without schema, the names of its fields; both ``None`` without key."""


@dataclass(frozen=True, slots=True)
class Group:
    """Records of one partition that share their schemas and their operation.

    Attributes:
        partition: of the topic.
        key_version: number of the key's schema; ``None`` without schema.
        key_schema: its text.
        key_fields: names in a key without schema; ``None`` if there is no key.
        value_version: number of the value's schema; ``None`` without schema, and for tombstones.
        value_schema: its text.
        op: the operation, ``None`` for a tombstone.
        tombstone: whether the value is null.
        first: smallest offset.
        last: largest offset.
        count: records.
    """

    partition: int
    key_version: int | None
    key_schema: str | None
    key_fields: tuple[str, ...] | None
    value_version: int | None
    value_schema: str | None
    op: str | None
    tombstone: bool
    first: int
    last: int
    count: int

    @property
    def key_id(self) -> KeyId:
        """What tells the key's schema from others."""
        return self.key_version, self.key_fields


def survey(records: DataFrame) -> list[Group]:
    """All groups of a batch: few rows, whatever the batch's size."""
    grouped = records.groupBy(
        "partition", "key_version", "key_schema",
        F.expr("IF(key_version IS NULL, json_object_keys(key), NULL)").alias("key_fields"),
        "value_version", "value_schema", "op", F.expr("value IS NULL").alias("tombstone"),
    )  # fmt: skip
    counted = grouped.agg(F.min("offset").alias("first"), F.max("offset").alias("last"), F.count("*").alias("records"))
    return [
        Group(
            row["partition"], row["key_version"], row["key_schema"],
            None if row["key_fields"] is None else tuple(row["key_fields"]),
            row["value_version"], row["value_schema"], row["op"], row["tombstone"], row["first"], row["last"],
            row["records"],
        )
        for row in counted.collect()
    ]  # fmt: skip
