"""Messages split into schema and payload, and a summary of the groups of records in a batch.

A message with schemas is mostly schema: 8 kB around a row of 400 bytes, with the same text every time. The schema is
cut off without parsing and replaced by the number of its version; only the list of versions keeps the text. Finding
the end of a schema takes longer than all other processing of a message, so the schemas of a sample are determined
first (:func:`known_schemas`), and the other messages are compared with them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from rowtide.envelope.claim_check import OPENING
from rowtide.spark_consumers.columns.spark_types import literal
from rowtide.spark_consumers.columns.unavailable import may_contain
from rowtide.spark_consumers.jvm.driver import text_with_causes

_HEAD, _SPLIT = '{"schema":', ',"payload":'
_COLUMNS = ("key", "value")
# The end of an envelope that JsonConverter wrote. No text in a value can look like it: its quotes would be escaped.
_TAIL = r',"op":"([a-z])"(?:,"(?:ts_[mun]s|transaction)":(?:[0-9]+|null))*\}$'
_TAIL_BYTES = 120
CLAIM_CHECK = "claim check"
"""The operation of a record that points to its value."""
_OPERATION = (
    f"coalesce(nullif(regexp_extract(CAST(substring(CAST(value AS binary), -{_TAIL_BYTES}) AS string), "
    f"{literal(_TAIL)}), ''), get_json_object(value, '$.op'), "
    f"IF(startswith(value, {literal(OPENING.decode())}), '{CLAIM_CHECK}', NULL))"
)
"""SQL of the operation of an envelope. Parsing the envelope for it takes as long as reading the row."""

_UNEXPECTED = "rowtide: a message differs from the sample"
UNEXPECTED = f"raise_error({literal(_UNEXPECTED)})"
"""SQL that ends a query which supports only messages like those of a sample."""


@dataclass(frozen=True, slots=True)
class KnownSchemas:
    """The schemas of a sample of the messages: text by version, for keys and for values."""

    key: Mapping[int, str] = field(default_factory=dict)
    value: Mapping[int, str] = field(default_factory=dict)

    def of(self, column: str) -> Mapping[int, str]:
        """Return the schemas of ``key`` or ``value``."""
        return self.key if column == "key" else self.value

    @property
    def is_single(self) -> bool:
        """Whether all messages have the same two schemas."""
        return len(self.key) == len(self.value) == 1


def known_schemas(messages: Iterable[tuple[bytes | None, bytes | None]]) -> KnownSchemas:
    """Return the schemas of some messages, each a key and a value, if ``JsonConverter`` wrote them."""
    keys: dict[str, int] = {}
    values: dict[str, int] = {}
    for message in messages:
        for part, found in zip(message, (keys, values), strict=True):
            head, split, _ = (part or b"").partition(_SPLIT.encode())
            if split and head.startswith(f"{_HEAD}{{".encode()):
                found.setdefault(head[len(_HEAD) :].decode(errors="replace"), len(found))
    return KnownSchemas(*({number: text for text, number in found.items()} for found in (keys, values)))


def split_messages(raw: DataFrame, known: KnownSchemas | None = None) -> DataFrame:
    """Return columns ``partition``, ``offset``, ``key``, ``key_schema``, ``key_version``, ``value``, ... and ``op``.

    ``key`` and ``value`` are the text of the payloads; ``value`` and ``op`` are null for a tombstone. A version is the
    number of a known schema, whose text is omitted, a hash of the text of another one, and null without a schema.
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
        f"{_OPERATION} AS op",
    )  # fmt: skip


def uniform_messages(raw: DataFrame, known: KnownSchemas) -> DataFrame:
    """Return ``partition``, ``offset``, and the payloads ``key`` and ``value`` of messages with the same schemas.

    A message that has another schema or none ends the query with :data:`UNEXPECTED`. A tombstone has no value.

    Args:
        raw: Kafka's records.
        known: one schema of keys and one of values.
    """
    payloads = []
    for column, null in (("key", ""), ("value", "WHEN value IS NULL THEN NULL ")):
        [schema] = known.of(column).values()
        prefix = _prefix(schema)
        matched = f"WHEN startswith({column}, X'{prefix.hex()}') THEN {_payload(column, str(len(prefix)))}"
        payloads.append(f"CASE {null}{matched} ELSE CAST({UNEXPECTED} AS string) END AS {column}")
    return raw.selectExpr("partition", "offset", *payloads)


def _prefix(schema: str) -> bytes:
    return f"{_HEAD}{schema}{_SPLIT}".encode()


def _known(column: str, known: Mapping[int, str]) -> str:
    """Return SQL of the known version whose schema a message starts with, null for none."""
    cases = (f"WHEN startswith({column}, X'{_prefix(text).hex()}') THEN {number}L" for number, text in known.items())
    return f"CASE {' '.join(cases)} END" if known else "CAST(NULL AS bigint)"


def _schema_and_payload(column: str, known: Mapping[int, str]) -> tuple[str, str]:
    """Return SQL of the schema and of the payload of a message.

    ``JsonConverter`` writes the schema first and no whitespace. A default value in the schema may contain the text
    that is searched for, but with escaped quotes. Messages of other writers are parsed; a message without a schema is
    all payload.
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
    """Return SQL of the text after ``start`` bytes, without the closing brace."""
    return f"CAST(substring({column}, {start} + 1, octet_length({column}) - ({start}) - 1) AS string)"


KeyId = tuple[int | None, tuple[str, ...] | None]
"""The version of a key's schema or, without a schema, the names of its fields; both ``None`` without a key."""


@dataclass(frozen=True, slots=True)
class RecordGroup:
    """Records of one partition with the same schemas and the same operation.

    Attributes:
        partition: of the topic.
        key_version: version of the key's schema; ``None`` without a schema.
        key_schema: text of the key's schema.
        key_fields: field names of a key without a schema; ``None`` without a key.
        value_version: version of the value's schema; ``None`` without a schema, and for tombstones.
        value_schema: text of the value's schema.
        op: the operation, ``None`` for a tombstone.
        tombstone: whether the value is null.
        first: smallest offset.
        last: largest offset.
        count: number of records.
        lacking: whether some records may have a value that the binlog did not have.
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
    lacking: bool

    @property
    def key_id(self) -> KeyId:
        """Identifies the schema of the key."""
        return self.key_version, self.key_fields


def summarize(records: DataFrame, known: KnownSchemas, placeholder: bytes) -> list[RecordGroup]:
    """Return the groups of a batch: few, however large the batch is.

    Args:
        records: from :func:`split_messages`.
        known: the schemas that were passed to it.
        placeholder: of values that the binlog did not have.
    """
    grouped = records.groupBy(
        "partition", "key_version",
        F.expr("IF(key_version IS NULL, json_object_keys(key), NULL)").alias("key_fields"),
        "value_version", "op", F.expr("value IS NULL").alias("tombstone"),
    )  # fmt: skip
    contained = f"{may_contain('key', placeholder)} OR {may_contain('value', placeholder)}"
    counted = grouped.agg(
        # Records with a known schema do not have its text. A set is aggregated without sorting, unlike any_value.
        F.collect_set("key_schema").alias("key_schemas"),
        F.collect_set("value_schema").alias("value_schemas"),
        F.min("offset").alias("first"),
        F.max("offset").alias("last"),
        F.count("*").alias("records"),
        F.expr(f"coalesce(bool_or({contained}), false)").alias("lacking"),
    )
    return [
        RecordGroup(
            partition=row["partition"],
            key_version=row["key_version"],
            key_schema=known.key.get(row["key_version"]) or next(iter(row["key_schemas"]), None),
            key_fields=None if row["key_fields"] is None else tuple(row["key_fields"]),
            value_version=row["value_version"],
            value_schema=known.value.get(row["value_version"]) or next(iter(row["value_schemas"]), None),
            op=row["op"],
            tombstone=row["tombstone"],
            first=row["first"],
            last=row["last"],
            count=row["records"],
            lacking=row["lacking"],
        )
        for row in counted.collect()
    ]


def remaining_groups(groups: Sequence[RecordGroup], records: DataFrame, placeholder: bytes) -> list[RecordGroup]:
    """Return the groups of a part of the records, from those of all."""
    keys = {g.key_version: g.key_schema for g in groups if g.key_version is not None and g.key_schema is not None}
    values = {
        g.value_version: g.value_schema for g in groups if g.value_version is not None and g.value_schema is not None
    }
    return summarize(records, KnownSchemas(keys, values), placeholder)


def is_unexpected(error: Exception) -> bool:
    """Return whether :data:`UNEXPECTED` ended a query."""
    return _UNEXPECTED in text_with_causes(error)


def connector_prefix(raw: DataFrame) -> str | None:
    """Return the ``topic.prefix`` in the ``source`` of one of Kafka's records, ``None`` if none has a source."""
    text = "CAST(value AS string)"
    name = f"coalesce(get_json_object({text}, '$.payload.source.name'), get_json_object({text}, '$.source.name'))"
    rows = raw.selectExpr(f"{name} AS name").where("name IS NOT NULL").limit(1).collect()
    return str(rows[0]["name"]) if rows else None
