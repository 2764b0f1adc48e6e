"""The SQL of merges into a table, for formats that Spark can merge into."""

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from rowtide.spark_consumers.columns.spark_types import quote
from rowtide.spark_consumers.rows.changes import DELETED, OUT, written
from rowtide.spark_consumers.rows.history import ENDS, KNOWN, Ends
from rowtide.spark_consumers.settings import CURRENT, DELETION, Shard

LARGE_TABLE = 64 << 20
"""Bytes of a table. In a smaller one, skipping files takes longer than it saves."""
SOURCE = "_rowtide_rows"
"""The view that a merge reads."""


def others_are_deleted(shard: Shard | None) -> str:
    """Return the end of a merge that removes all other rows, or those of a shard."""
    return f" WHEN {' AND '.join(['NOT MATCHED BY SOURCE', *_of(shard)])} THEN DELETE"


_REMOVED = "_rowtide_removed"
_INTEGER_LITERALS = {"tinyint": "Y", "smallint": "S", "int": "", "bigint": "L"}
"""Suffixes of SQL literals. A column is compared with its files' ranges only if it needs no cast."""


def upsert(
    table: str, rows: DataFrame, keys: Sequence[str], ranges: Sequence[str], shard: Shard | None, *, soft: bool
) -> str:
    """Return the merge of rows with :data:`DELETED`, and maybe :data:`OUT`, by key.

    Args:
        table: SQL of the table.
        rows: of :data:`SOURCE`.
        keys: the key's columns. They may be null if they come from ``message.key.columns``.
        ranges: from :func:`key_ranges`.
        shard: whose rows are merged; ``None`` for the whole table.
        soft: whether deleted rows stay, and are marked.
    """
    deletion = f"UPDATE SET t.{DELETION[0]} = true" if soft else "DELETE"
    out = f"WHEN MATCHED AND s.{OUT} THEN DELETE " if OUT in rows.columns else ""
    names = [quote(name) for name in rows.columns if name not in (DELETED, OUT)]
    same_key = " AND ".join(f"t.{quote(name)} <=> s.{quote(name)}" for name in keys)
    return (
        f"MERGE INTO {table} t USING {SOURCE} s ON {' AND '.join([*_of(shard), same_key, *ranges])} "
        f"{out}WHEN MATCHED AND s.{DELETED} THEN {deletion} "
        f"WHEN MATCHED THEN UPDATE SET {', '.join(f't.{name} = s.{name}' for name in names)} "
        f"WHEN NOT MATCHED AND {written(rows)} {_insert(names)}"
    )


def versions(
    table: str, rows: DataFrame, keys: Sequence[str], ranges: Sequence[str], ends: Ends, shard: Shard | None
) -> str:
    """Return the merge that adds versions of rows, and ends current ones.

    Args:
        table: SQL of the table.
        rows: of :data:`SOURCE`, with :data:`ENDS` and ``KNOWN``.
        keys: the key's columns; none if there are no rows.
        ranges: from :func:`key_ranges`.
        ends: the changes that ends of versions make to their rows.
        shard: whose rows are merged; ``None`` for the whole table.
    """
    names = [quote(name) for name in rows.columns if name not in (ENDS, KNOWN)]
    same_key = [f"t.{quote(name)} <=> s.{quote(name)}" for name in keys]
    ended, others = _assignments(ends.of_keys), _assignments(ends.of_others)
    condition, current = [f"s.{ENDS}", f"t.{CURRENT}", *_of(shard), *same_key, *ranges], [f"t.{CURRENT}", *_of(shard)]
    return (
        f"MERGE INTO {table} t USING {SOURCE} s ON {' AND '.join(condition)} "
        f"WHEN MATCHED THEN UPDATE SET {ended} WHEN NOT MATCHED AND NOT s.{ENDS} {_insert(names)}"
        + (f" WHEN NOT MATCHED BY SOURCE AND {' AND '.join(current)} THEN UPDATE SET {others}" if others else "")
    )


def replacement(table: str, removed: DataFrame | None, added: DataFrame, shard: Shard | None) -> tuple[str, DataFrame]:
    """Return the merge that removes the rows that equal one of ``removed``, and adds rows; and its :data:`SOURCE`."""
    names = [quote(name) for name in added.columns]
    rows = added.withColumn(_REMOVED, F.lit(False))
    if removed is not None:
        rows = rows.unionByName(removed.withColumn(_REMOVED, F.lit(True)))
    same = " AND ".join([*_of(shard), *(f"t.{name} <=> s.{name}" for name in names)])
    return (
        f"MERGE INTO {table} t USING {SOURCE} s ON s.{_REMOVED} AND {same} WHEN MATCHED THEN DELETE "
        f"WHEN NOT MATCHED AND NOT s.{_REMOVED} {_insert(names)}"
    ), rows


def key_ranges(rows: DataFrame, keys: Sequence[str]) -> list[str]:
    """Return SQL of the range of the rows' keys: of key columns that are integers without nulls.

    Every match is within the range. Files that end before it or begin after it are not read.
    """
    types = {field.name.lower(): field.dataType.simpleString() for field in rows.schema.fields}
    suffixes = {quote(name): _INTEGER_LITERALS.get(types[name.lower()]) for name in keys}
    columns = [column for column, suffix in suffixes.items() if suffix is not None]
    if not columns:
        return []
    found = rows.agg(
        *(F.struct(F.min(c).alias("low"), F.max(c).alias("high"), F.expr(f"bool_or({c} IS NULL)").alias("gap"))
          for c in columns)
    ).collect()[0]  # fmt: skip
    return [
        f"t.{column} >= {low}{suffixes[column]} AND t.{column} <= {high}{suffixes[column]}"
        for column, (low, high, gap) in zip(columns, found, strict=True)
        if low is not None and not gap
    ]


def _of(shard: Shard | None) -> list[str]:
    return [] if shard is None else [shard.rows("t")]


def _assignments(values: Mapping[str, str]) -> str:
    return ", ".join(f"t.{quote(name)} = {value}" for name, value in values.items())


def _insert(names: Sequence[str]) -> str:
    return f"THEN INSERT ({', '.join(names)}) VALUES ({', '.join(f's.{name}' for name in names)})"
