"""Kafka's bytes cut into schema and payload, and a first look at what there is.

A message with schemas is mostly schema: 8 kB around a row of 400 bytes, and the same text every time. It is cut off
without parsing, and kept as a version's number; the text itself survives in the list of versions only. To find where
a schema ends takes longer than everything else that is done to a message. So the schemas of a few messages are found
first (:func:`known_schemas`), and the others are compared with them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

_HEAD, _SPLIT = '{"schema":', ',"payload":'
_COLUMNS = ("key", "value")


@dataclass(frozen=True, slots=True)
class KnownSchemas:
    """Schemas that are expected: text by version, of keys and of values."""

    key: Mapping[int, str] = field(default_factory=dict)
    value: Mapping[int, str] = field(default_factory=dict)

    def of(self, column: str) -> Mapping[int, str]:
        """Those of ``key`` or ``value``."""
        return self.key if column == "key" else self.value


def known_schemas(sample: DataFrame) -> KnownSchemas:
    """The schemas of some of Kafka's records."""
    records = cut(sample)
    found = [
        {
            row["version"]: row["text"]
            for row in records.where(f"{column}_version IS NOT NULL")
            .groupBy(F.col(f"{column}_version").alias("version"))
            .agg(F.expr(f"any_value({column}_schema)").alias("text"))
            .collect()
        }
        for column in _COLUMNS
    ]
    return KnownSchemas(*found)


def cut(raw: DataFrame, known: KnownSchemas | None = None) -> DataFrame:
    """Columns ``partition``, ``offset``, ``key``, ``key_schema``, ``key_version``, ``value``, ... and ``op``.

    ``key`` and ``value`` are the payloads' text; ``value`` is null for a tombstone, and so is ``op``. A version is a
    hash of its schema's text, null if there is none. The text of a known schema is left out.
    """
    known = known or KnownSchemas()
    matched = raw.selectExpr("*", *(f"{_known(column, known.of(column))} AS {column}_known" for column in _COLUMNS))
    split = matched.selectExpr(
        "partition", "offset", "key_known", "value_known",
        *(sql for column in _COLUMNS for sql in _schema_and_payload(column, known.of(column))),
    )  # fmt: skip
    versions = (
        f"coalesce({column}_known, IF({column}_schema IS NULL, NULL, xxhash64({column}_schema))) AS {column}_version"
        for column in _COLUMNS
    )
    return split.selectExpr(
        "partition", "offset", "key", "key_schema", "value", "value_schema", *versions,
        "get_json_object(value, '$.op') AS op",
    )  # fmt: skip


def _prefix(schema: str) -> bytes:
    return f"{_HEAD}{schema}{_SPLIT}".encode()


def _known(column: str, known: Mapping[int, str]) -> str:
    """SQL of the known version that a message begins with, null for none."""
    cases = (f"WHEN startswith({column}, X'{_prefix(text).hex()}') THEN {number}L" for number, text in known.items())
    return f"CASE {' '.join(cases)} END" if known else "CAST(NULL AS bigint)"


def _schema_and_payload(column: str, known: Mapping[int, str]) -> tuple[str, str]:
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
    matched = " ".join(
        f"WHEN {column}_known = {number}L THEN {_payload(column, str(len(_prefix(schema))))}"
        for number, schema in known.items()
    )
    schema = (
        f"CASE WHEN {column}_known IS NOT NULL THEN NULL WHEN {fast} THEN substring({prefix}, {len(_HEAD) + 1}) "
        f"WHEN {slow} THEN get_json_object({text}, '$.schema') END"
    )
    payload = (
        f"CASE {matched} WHEN {fast} THEN {_payload(column, f'{length} + {len(_SPLIT)}')} "
        f"WHEN {slow} THEN get_json_object({text}, '$.payload') ELSE {text} END"
    )
    return f"{schema} AS {column}_schema", f"{payload} AS {column}"


def _payload(column: str, start: str) -> str:
    """SQL of what stands behind ``start`` bytes, without the closing brace."""
    return f"CAST(substring({column}, {start} + 1, octet_length({column}) - ({start}) - 1) AS string)"


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


def survey(records: DataFrame, known: KnownSchemas | None = None) -> list[Group]:
    """All groups of a batch: few rows, whatever the batch's size.

    Args:
        records: of :func:`cut`.
        known: the schemas that it knew.
    """
    known = known or KnownSchemas()
    grouped = records.groupBy(
        "partition", "key_version",
        F.expr("IF(key_version IS NULL, json_object_keys(key), NULL)").alias("key_fields"),
        "value_version", "op", F.expr("value IS NULL").alias("tombstone"),
    )  # fmt: skip
    counted = grouped.agg(
        # A record with a known schema lacks its text.
        F.expr("any_value(key_schema, true)").alias("key_schema"),
        F.expr("any_value(value_schema, true)").alias("value_schema"),
        F.min("offset").alias("first"),
        F.max("offset").alias("last"),
        F.count("*").alias("records"),
    )
    return [
        Group(
            partition=row["partition"],
            key_version=row["key_version"],
            key_schema=known.key.get(row["key_version"], row["key_schema"]),
            key_fields=None if row["key_fields"] is None else tuple(row["key_fields"]),
            value_version=row["value_version"],
            value_schema=known.value.get(row["value_version"], row["value_schema"]),
            op=row["op"],
            tombstone=row["tombstone"],
            first=row["first"],
            last=row["last"],
            count=row["records"],
        )
        for row in counted.collect()
    ]
