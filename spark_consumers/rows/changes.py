"""The records of a batch as typed rows of the table, each read with the schema it was written with."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from rowtide.spark_consumers.columns.conversion import Column
from rowtide.spark_consumers.columns.spark_types import literal, quote
from rowtide.spark_consumers.messages.records import KeyId
from rowtide.spark_consumers.messages.schemaless import FIELD_NAMES
from rowtide.spark_consumers.messages.versions import KeyVersion, ValueVersion, row_schema, wire_struct
from rowtide.spark_consumers.rows.evolution import Evolution, Image, convert, row_expression

FILE_NUMBER = "CAST(regexp_extract({source}.file, '([0-9]+)$', 1) AS bigint)"
_AT = "struct<file:bigint,pos:bigint,row:int>"
_STRICT = "map('mode', 'FAILFAST')"
_IS_SNAPSHOT = "e.op = 'r'"


@dataclass(frozen=True, slots=True)
class BatchSchemas:
    """The schemas with which the records of a batch are read.

    Attributes:
        evolution: the table's columns.
        keys: schemas of keys.
        values: schemas of rows, oldest first.
    """

    evolution: Evolution
    keys: Mapping[KeyId, KeyVersion]
    values: Sequence[ValueVersion]

    def key_types(self, key: KeyVersion) -> dict[str, str]:
        """Return the types of the key's columns in the table, by their names in the key."""
        types = {name.lower(): kind for name, kind in self.evolution.after}
        return {column.name: types[column.name.lower()] for column in key.columns}


def keyed_changes(records: DataFrame, schemas: BatchSchemas, key_names: Sequence[str]) -> DataFrame:
    """Return the columns ``partition``, ``offset``, ``at`` (binlog position), ``key``, ``row`` and ``deleted``.

    The key of a record identifies its row. The row of a deletion has the key's columns only.
    """
    parts = []
    for key in schemas.keys.values():
        if not key.columns or key.names != tuple(key_names):
            continue
        mine = records.where(_is("key_version", key.id) + " AND key IS NOT NULL")
        parts.append(_tombstones(mine, schemas, key))
        parts.extend(_rows(mine, schemas, key, index) for index in range(len(schemas.values)))
    return reduce(DataFrame.unionAll, parts)


def _key_values(schemas: BatchSchemas, key: KeyVersion, snapshot: str) -> dict[str, str]:
    kinds = schemas.key_types(key)
    return {
        column.name.lower(): convert(column, f"k.{quote(column.name)}", snapshot, kinds[column.name])
        for column in key.columns
    }


def _rows(records: DataFrame, schemas: BatchSchemas, key: KeyVersion, index: int) -> DataFrame:
    version = schemas.values[index]
    keys = _key_values(schemas, key, _IS_SNAPSHOT)
    row = row_expression(schemas.evolution, schemas.values, index, Image("after", _IS_SNAPSHOT), keys)
    return (
        records.where(_is("value_version", version.id) + " AND value IS NOT NULL AND op <> 't'")
        .select("partition", "offset", _from_json("key", wire_struct(key.columns)).alias("k"),
                _from_json("value", row_schema(version.columns)).alias("e"), *_field_names(version))
        .selectExpr("partition", "offset", _at("e.source"), _key_struct(keys, key.columns), f"{row} AS row",
                    "e.op = 'd' AS deleted")
    )  # fmt: skip


def _tombstones(records: DataFrame, schemas: BatchSchemas, key: KeyVersion) -> DataFrame:
    """Return the tombstones as deletions: compaction may have removed the delete event before a tombstone."""
    keys = _key_values(schemas, key, "false")
    values = [
        f"{literal(name)}, {keys.get(name.lower()) or f'CAST(NULL AS {kind})'}"
        for name, kind in schemas.evolution.after
    ]
    return (
        records.where("value IS NULL")
        .select("partition", "offset", _from_json("key", wire_struct(key.columns)).alias("k"))
        .selectExpr("partition", "offset",
                    f"CAST(NULL AS {_AT}) AS at",
                    _key_struct(keys, key.columns), f"named_struct({', '.join(values)}) AS row", "true AS deleted")
    )  # fmt: skip


def keyless_changes(records: DataFrame, schemas: BatchSchemas, *, truncations: bool = False) -> DataFrame:
    """Return ``partition``, ``offset``, ``at``, ``op``, ``ts_ms``, ``server_id``, ``gtid``, ``before``, ``after``."""
    parts = []
    for index, version in enumerate(schemas.values):
        old, new = (
            row_expression(schemas.evolution, schemas.values, index, Image(image, _IS_SNAPSHOT), {})
            for image in ("before", "after")
        )
        parts.append(
            records.where(_is("value_version", version.id) + " AND key IS NULL AND value IS NOT NULL")
            .where("true" if truncations else "op <> 't'")
            .select("partition", "offset", _from_json("value", row_schema(version.columns)).alias("e"),
                    *_field_names(version))
            .selectExpr("partition", "offset", _at("e.source"), "e.op AS op", "e.source.ts_ms AS ts_ms",
                        "e.source.server_id AS server_id", "e.source.gtid AS gtid",
                        f"IF(e.before IS NULL, NULL, {old}) AS before", f"IF(e.after IS NULL, NULL, {new}) AS after")
        )  # fmt: skip
    return reduce(DataFrame.unionAll, parts) if parts else _no_changes(records, schemas)


def _no_changes(records: DataFrame, schemas: BatchSchemas) -> DataFrame:
    """Return an empty frame, for a batch of truncations only."""
    row = f"struct<{','.join(f'{quote(name)}:{kind}' for name, kind in schemas.evolution.after)}>"
    kinds = {"at": _AT, "op": "string", "ts_ms": "bigint", "server_id": "bigint", "gtid": "string", "before": row,
             "after": row}  # fmt: skip
    nulls = [f"CAST(NULL AS {kind}) AS {name}" for name, kind in kinds.items()]
    return records.limit(0).selectExpr("partition", "offset", *nulls)


def _at(source: str) -> str:
    number = FILE_NUMBER.replace("{source}", source)
    return f"named_struct('file', {number}, 'pos', {source}.pos, 'row', {source}.row) AS at"


def _key_struct(keys: Mapping[str, str], columns: Sequence[Column]) -> str:
    parts = (f"{literal(column.name)}, {keys[column.name.lower()]}" for column in columns)
    return f"named_struct({', '.join(parts)}) AS key"


def _from_json(column: str, ddl: str) -> SparkColumn:
    return F.expr(f"from_json({column}, {literal(ddl)}, {_STRICT})")


def _field_names(version: ValueVersion) -> list[SparkColumn]:
    """Return the columns with the names of the fields that a message without a schema has."""
    if version.id is not None:
        return []
    return [F.expr(FIELD_NAMES.replace("{image}", image)).alias(f"{image}_fields") for image in ("before", "after")]


def _is(column: str, version: int | None) -> str:
    return f"{column} IS NULL" if version is None else f"{column} = {version}L"
