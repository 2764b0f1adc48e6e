"""The result of a batch of changes to a table without keys: the number of copies of each row."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import chain

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from rowtide.spark_consumers.columns.spark_types import literal, quote
from rowtide.spark_consumers.rows.evolution import Columns

CONTENT = "content"
REPETITION_WINDOW = 5_000
"""The number of the last records of each partition whose repetition is recognized in later batches."""

RECORD_HASH = (
    f"xxhash64(op, {', '.join(f'get_json_object(value, {name!r})' for name in ('$.source', '$.before', '$.after'))})"
)
"""SQL of a hash of a record's operation, place in the source and images."""


@dataclass(frozen=True, slots=True)
class RowChanges:
    """The changes of a table without keys.

    Attributes:
        removed: distinct rows whose copies are all removed; ``None`` for none.
        added: rows to add, one for each copy; they include the remaining copies of removed rows.
        inserted: number of added copies.
        deleted: number of removed copies.
        unmatched: number of old images that matched no row.
        cached: a frame to unpersist after use.
    """

    removed: DataFrame | None
    added: DataFrame
    inserted: int
    deleted: int
    unmatched: int
    cached: DataFrame


def without_repetitions(changes: DataFrame) -> DataFrame:
    """Remove changes that a connector wrote twice after a crash: those of the same row of the same event.

    Snapshot records have no position of their own: equal ones are different rows with the same content.
    """
    streamed = changes.where("op <> 'r'").dropDuplicates(["server_id", "gtid", "ts_ms", "at", "op", "before", "after"])
    return changes.where("op = 'r'").unionAll(streamed)


def without_earlier(records: DataFrame, seen: Mapping[int, Collection[int]], *, log: bool) -> DataFrame:
    """Remove streamed records that an earlier batch contained.

    Args:
        records: from :func:`rowtide.spark_consumers.messages.records.split_messages`.
        seen: from :func:`record_hashes`.
        log: whether TRUNCATEs and records with a key are meant, too.
    """
    if not seen:
        return records
    return records.where(F.expr(f"NOT ({_streamed(log)})") | ~F.expr(RECORD_HASH).isin(*chain(*seen.values())))


def record_hashes(records: DataFrame, ends: Mapping[int, int], *, log: bool) -> Mapping[int, tuple[int, ...]]:
    """Return hashes of the last streamed records of each partition, oldest first; see :func:`without_earlier`.

    After a crash, a connector with at-least-once delivery writes the records that were not acknowledged again. They
    have the same content, and there are no more of them than its producer buffers. Without transactions there are no
    markers, so as many offsets have them.

    Args:
        records: of the batch.
        ends: the offset after the last record of each partition.
        log: see :func:`without_earlier`.
    """
    last = " OR ".join(
        f"(partition = {number} AND offset >= {end - REPETITION_WINDOW})" for number, end in sorted(ends.items())
    )
    rows = records.where(f"{_streamed(log)} AND ({last})").selectExpr("partition", "offset", f"{RECORD_HASH} AS found")
    found: dict[int, list[int]] = {}
    for row in sorted(rows.collect(), key=lambda row: int(row["offset"])):
        found.setdefault(row["partition"], []).append(row["found"])
    return {number: tuple(hashes) for number, hashes in found.items()}


def _streamed(log: bool) -> str:
    return "value IS NOT NULL AND " + ("op <> 'r'" if log else "key IS NULL AND op NOT IN ('r', 't')")


def row_changes(changes: DataFrame, existing: DataFrame | None, normalized: str) -> RowChanges:
    """Apply changes to a multiset of rows: each old image removes one copy, each new image adds one.

    The order of the changes does not matter, and so neither do partitions.

    Args:
        changes: with ``before`` and ``after``.
        existing: the table's rows in a struct ``content``; ``None`` if there are none, or all are removed anyway.
        normalized: SQL of ``content`` without what may differ, see :func:`normalized_content`. It is compared if no row
            equals an old image exactly.
    """
    counts = _counts(changes, existing, normalized).withColumn("matched", F.expr("least(removed, added + existing)"))
    if normalized != CONTENT:
        counts = _match_normalized(counts)
    result = (
        counts.withColumn("final", F.expr("added + existing - matched"))
        .where("final <> existing OR removed > 0 OR matched > 0")
        .persist()
    )
    totals = result.selectExpr(
        "sum(greatest(final - existing, 0)) AS inserted", "sum(greatest(existing - final, 0)) AS deleted",
        "sum(removed) - sum(matched) AS unmatched", "count_if(final < existing) AS removals",
    ).collect()[0]  # fmt: skip
    copies = "IF(final < existing, final, final - existing)"
    added = result.where(f"{copies} > 0").select(CONTENT, F.expr(f"explode(sequence(1L, {copies}))").alias("copy"))
    return RowChanges(
        removed=result.where("final < existing").select("content.*") if totals["removals"] else None,
        added=added.select("content.*"),
        inserted=totals["inserted"] or 0,
        deleted=totals["deleted"] or 0,
        unmatched=totals["unmatched"] or 0,
        cached=result,
    )


def _counts(changes: DataFrame, existing: DataFrame | None, normalized: str) -> DataFrame:
    """Return the number of ``added``, ``removed`` and ``existing`` copies of each row."""
    new = changes.where("after IS NOT NULL").selectExpr(
        "after AS content", "1L AS added", "0L AS removed", "0L AS existing"
    )
    old = changes.where("before IS NOT NULL").selectExpr(
        "before AS content", "0L AS added", "1L AS removed", "0L AS existing"
    )
    images = new.unionAll(old).withColumn("normalized", F.expr(normalized))
    if existing is not None:
        targets = images.where("removed > 0").select(F.col("normalized").alias("target")).distinct()
        rows = existing.selectExpr(CONTENT, "0L AS added", "0L AS removed", "1L AS existing").withColumn(
            "normalized", F.expr(normalized)
        )
        images = images.unionAll(rows.join(targets, F.col("normalized").eqNullSafe(F.col("target")), "left_semi"))
    return images.groupBy(CONTENT, "normalized").agg(
        *(F.sum(name).alias(name) for name in ("added", "removed", "existing"))
    )


def _match_normalized(counts: DataFrame) -> DataFrame:
    """Match the remaining old images with rows that equal them when they are normalized: those of the table first."""
    same = Window.partitionBy("normalized")
    before = same.orderBy(F.desc("existing"), CONTENT).rowsBetween(Window.unboundedPreceding, -1)
    free = F.expr("added + existing - matched")
    open_images = F.sum(F.expr("removed - matched")).over(same)
    share = F.greatest(F.lit(0), F.least(free, open_images - F.coalesce(F.sum(free).over(before), F.lit(0))))
    return counts.withColumn("matched", F.col("matched") + share)


def normalized_content(columns: Columns, inexact: Collection[str], dropped: Collection[str] = ()) -> str:
    """Return SQL of a row's content without parts that may differ between a row and its old image.

    A snapshot has FLOAT with six digits and JSON as the server prints it; the stream has all digits, and JSON without
    whitespace. An old image lacks a column that was dropped, while rows that are older than that keep its values.

    Args:
        columns: of the table.
        inexact: names of the FLOAT and JSON columns, in lower case.
        dropped: names of the columns that images lack, in lower case.
    """
    if not inexact and not dropped:
        return CONTENT
    parts = []
    for name, kind in columns:
        value = f"content.{quote(name)}"
        if name.lower() in dropped:
            continue
        if name.lower() in inexact and kind in {"float", "double"}:
            value = f"format_string('%.5e', CAST({value} AS double))"
        elif name.lower() in inexact:
            value = f"coalesce(to_json(try_parse_json({value})), {value})"
        parts.append(f"{literal(name)}, {value}")
    return f"named_struct({', '.join(parts)})"
