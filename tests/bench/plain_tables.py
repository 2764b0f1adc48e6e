"""The Spark job that one would write by hand, with which ``rowtide tables`` is compared.

It parses each message with the complete schema of its envelope, keeps the last row of each key by a window, and writes
Delta tables. It does not convert types, and it handles neither new columns, nor TRUNCATE, nor a crash.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

__all__ = ["build_table", "merge_changes"]

_TYPES = {
    "int8": "TINYINT", "int16": "SMALLINT", "int32": "INT", "int64": "BIGINT", "string": "STRING", "bytes": "BINARY",
    "boolean": "BOOLEAN", "float": "FLOAT", "double": "DOUBLE",
}  # fmt: skip


def build_table(spark: SparkSession, bootstrap: str, topic: str, path: str) -> None:
    """Read a topic from its start, and write its table anew."""
    raw = (
        spark.read.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .load()
    )
    rows = _last_changes(raw).where("op <> 'd'").select("after.*")
    rows.write.format("delta").mode("overwrite").save(path)


def merge_changes(spark: SparkSession, raw: DataFrame, path: str, key: str) -> None:
    """Apply new records to a table."""
    _last_changes(raw).createOrReplaceTempView("changes")
    columns = spark.read.format("delta").load(path).columns
    spark.sql(
        f"MERGE INTO delta.`{path}` t USING changes s ON t.{key} = s.key.{key} WHEN MATCHED AND s.op = 'd' THEN DELETE "
        f"WHEN MATCHED THEN UPDATE SET {', '.join(f't.{name} = s.after.{name}' for name in columns)} "
        f"WHEN NOT MATCHED AND s.op <> 'd' THEN INSERT ({', '.join(columns)}) "
        f"VALUES ({', '.join(f's.after.{name}' for name in columns)})"
    )


def _last_changes(raw: DataFrame) -> DataFrame:
    """Return ``key``, ``after`` and ``op`` of the last record of each key. A tombstone follows a deletion."""
    first = raw.where("value IS NOT NULL").limit(1).collect()[0]
    key, value = (_ddl(json.loads(first[name])["schema"]) for name in ("key", "value"))
    return (
        raw.where("value IS NOT NULL")
        .selectExpr(
            "offset",
            f"from_json(CAST(key AS string), 'payload {key}').payload AS key",
            f"from_json(CAST(value AS string), 'payload {value}').payload AS value",
        )
        .selectExpr("*", "row_number() OVER (PARTITION BY key ORDER BY offset DESC) AS number")
        .where("number = 1")
        .selectExpr("key", "value.after AS after", "value.op AS op")
    )


def _ddl(schema: Mapping[str, Any]) -> str:
    kind = schema["type"]
    if kind == "struct":
        fields = (f"`{field['field']}`: {_ddl(field)}" for field in schema["fields"])
        return f"STRUCT<{', '.join(fields)}>"
    return f"MAP<STRING, {_ddl(schema['values'])}>" if kind == "map" else _TYPES.get(kind, "STRING")
