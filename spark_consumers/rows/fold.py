"""From changes to their outcome: the last row of each key, or how often each row is there in a table without keys.

Which change of a key is the last one? All records of a key are in one partition, written in the order of commits, so
the offset decides; the position in the binlog would not survive a fail-over to another server. Only if a topic got
more partitions may a key be in two of them. Then offsets say nothing and the position in the source decides.
"""

from collections.abc import Collection
from dataclasses import dataclass

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from rowtide.spark_consumers.columns.spark_types import literal, quote
from rowtide.spark_consumers.rows.evolution import Columns

DELETED = "_rowtide_deleted"
CONTENT = "content"
REMEMBERED = 5_000
"""Records without key whose repetition is noticed in a later batch."""

_STREAMED = "key IS NULL AND value IS NOT NULL AND op NOT IN ('r', 't')"
_IDENTITY = (
    f"xxhash64(op, {', '.join(f'get_json_object(value, {name!r})' for name in ('$.source', '$.before', '$.after'))})"
)


@dataclass(frozen=True, slots=True)
class Latest:
    """The last change of each key.

    Attributes:
        rows: the table's columns and :data:`DELETED`.
        cached: to be unpersisted after use.
    """

    rows: DataFrame
    cached: DataFrame


def latest(changes: DataFrame) -> Latest:
    """The last change of each key."""
    folded = _folded(changes, "offset")
    if folded.selectExpr("bool_or(moved) AS moved").collect()[0]["moved"]:
        folded.unpersist()
        # A tombstone has no position: null is smallest, so it counts only where nothing else is known of the key.
        folded = _folded(changes, "struct(at, offset)")
    return Latest(folded.select("last.row.*", F.col("last.deleted").alias(DELETED)), folded)


def _folded(changes: DataFrame, order: str) -> DataFrame:
    last = F.expr(f"max_by(struct(row, deleted), {order})").alias("last")
    return changes.groupBy("key").agg(last, F.expr("min(partition) <> max(partition)").alias("moved")).persist()


@dataclass(frozen=True, slots=True)
class Exchange:
    """What to do to a table without keys.

    Attributes:
        removed: distinct rows of which every copy goes; ``None`` for none.
        added: rows that come, as often as they stand here; copies that stay of what is removed are among them.
        inserted: rows more than before, by content.
        deleted: rows less than before, by content.
        unmatched: deletions and old images of updates that no row had.
        cached: to be unpersisted after use.
    """

    removed: DataFrame | None
    added: DataFrame
    inserted: int
    deleted: int
    unmatched: int
    cached: DataFrame


def without_repetitions(changes: DataFrame) -> DataFrame:
    """Leave out what a connector wrote twice after a crash: the same row of the same event.

    The rows of a snapshot have no position of their own; equal ones are equal rows.
    """
    streamed = changes.where("op <> 'r'").dropDuplicates(["server_id", "gtid", "ts_ms", "at", "op", "before", "after"])
    return changes.where("op = 'r'").unionAll(streamed)


def unseen(records: DataFrame, seen: Collection[int]) -> DataFrame:
    """Leave out streamed records without key that an earlier batch had.

    Args:
        records: of :func:`rowtide.spark_consumers.messages.records.cut`.
        seen: of :func:`identities`.
    """
    if not seen:
        return records
    return records.where(F.expr(f"NOT ({_STREAMED})") | ~F.expr(_IDENTITY).isin(*seen))


def identities(records: DataFrame) -> tuple[int, ...]:
    """What tells the last records without key from others, oldest first.

    After a crash a connector that delivers at least once writes again what was not acknowledged: the same changes of
    the same place in the source, and no more of them than its producer holds back.
    """
    last = records.where(_STREAMED).orderBy(F.desc("offset")).limit(REMEMBERED).selectExpr(f"{_IDENTITY} AS found")
    return tuple(row["found"] for row in reversed(last.collect()))


def exchange(changes: DataFrame, existing: DataFrame | None, loose: str) -> Exchange:
    """Apply changes to a table that is a bag of rows: each old image takes one copy away, each new one adds one.

    The order does not matter, so neither do partitions.

    Args:
        changes: with ``before`` and ``after``.
        existing: the table's rows in a struct ``content``; ``None`` if there are none, or none to be taken away.
        loose: SQL of ``content`` without what snapshot and stream spell differently, see :func:`loose_content`. A row
            that is not there as it stands is looked for by this.
    """
    counts = _counts(changes, existing, loose).withColumn("taken", F.expr("least(minus, plus + old)"))
    if loose != CONTENT:
        counts = _loosely_taken(counts)
    result = counts.withColumn("final", F.expr("plus + old - taken")).where("final <> old OR minus > 0").persist()
    totals = result.selectExpr(
        "sum(greatest(final - old, 0)) AS inserted", "sum(greatest(old - final, 0)) AS deleted",
        "sum(minus) - sum(taken) AS unmatched", "count_if(final < old) AS removals",
    ).collect()[0]  # fmt: skip
    copies = "IF(final < old, final, final - old)"
    added = result.where(f"{copies} > 0").select(CONTENT, F.expr(f"explode(sequence(1L, {copies}))").alias("copy"))
    return Exchange(
        removed=result.where("final < old").select("content.*") if totals["removals"] else None,
        added=added.select("content.*"),
        inserted=totals["inserted"] or 0,
        deleted=totals["deleted"] or 0,
        unmatched=totals["unmatched"] or 0,
        cached=result,
    )


def _counts(changes: DataFrame, existing: DataFrame | None, loose: str) -> DataFrame:
    """Columns ``content``, ``loose``, ``plus``, ``minus`` and ``old``: how often each row comes, goes and was there."""
    plus = changes.where("after IS NOT NULL").selectExpr("after AS content", "1L AS plus", "0L AS minus", "0L AS old")
    minus = changes.where("before IS NOT NULL").selectExpr(
        "before AS content", "0L AS plus", "1L AS minus", "0L AS old"
    )
    images = plus.unionAll(minus).withColumn("loose", F.expr(loose))
    if existing is not None:
        gone = images.where("minus > 0").select(F.col("loose").alias("gone")).distinct()
        rows = existing.selectExpr(CONTENT, "0L AS plus", "0L AS minus", "1L AS old").withColumn("loose", F.expr(loose))
        images = images.unionAll(rows.join(gone, F.col("loose").eqNullSafe(F.col("gone")), "left_semi"))
    return images.groupBy(CONTENT, "loose").agg(*(F.sum(name).alias(name) for name in ("plus", "minus", "old")))


def _loosely_taken(counts: DataFrame) -> DataFrame:
    """Let what was not found take rows that differ in spelling only, one after the other."""
    same = Window.partitionBy("loose")
    before = same.orderBy(CONTENT).rowsBetween(Window.unboundedPreceding, -1)
    free = F.expr("plus + old - taken")
    wanted = F.sum(F.expr("minus - taken")).over(same)
    share = F.greatest(F.lit(0), F.least(free, wanted - F.coalesce(F.sum(free).over(before), F.lit(0))))
    return counts.withColumn("taken", F.col("taken") + share)


def loose_content(columns: Columns, inexact: Collection[str]) -> str:
    """SQL of a row's content in which FLOAT and JSON columns do not depend on who wrote them.

    A snapshot has FLOAT with six digits and JSON as the server prints it; the stream has all digits, and JSON without
    blanks.

    Args:
        columns: of the table.
        inexact: names of those columns, in lower case.
    """
    if not inexact:
        return CONTENT
    parts = []
    for name, kind in columns:
        value = f"content.{quote(name)}"
        if name.lower() in inexact and kind in {"float", "double"}:
            value = f"format_string('%.5e', CAST({value} AS double))"
        elif name.lower() in inexact:
            value = f"coalesce(to_json(try_parse_json({value})), {value})"
        parts.append(f"{literal(name)}, {value}")
    return f"named_struct({', '.join(parts)})"
