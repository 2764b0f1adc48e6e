"""The order of the schemas in a batch, its segments with the same key columns, and its TRUNCATEs.

Within a partition the order is that of the offsets. Between partitions it is that of the binlog positions; reading them
takes another pass over the records and is done only where it matters.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from rowtide.spark_consumers.messages.records import KeyId, RecordGroup
from rowtide.spark_consumers.state import Truncation

_FILE = "CAST(regexp_extract(get_json_object(value, '$.source.file'), '([0-9]+)$', 1) AS bigint)"
_POS = "CAST(get_json_object(value, '$.source.pos') AS bigint)"
POSITION = f"named_struct('file', {_FILE}, 'pos', {_POS})"
"""SQL of a record's position in the binlog."""

Window = tuple[int, int, int]
"""Partition, first and last offset of some records."""


@dataclass(frozen=True, slots=True)
class Segment:
    """Records whose keys have the same columns.

    Attributes:
        key_names: the key's columns; empty for records without a key.
        windows: offsets of the records; ``None`` for the whole batch.
    """

    key_names: tuple[str, ...]
    windows: tuple[Window, ...] | None = None

    def within(self, records: DataFrame) -> DataFrame:
        """Return the segment's records."""
        if self.windows is None:
            return records
        return records.where(
            " OR ".join(f"(partition = {p} AND offset BETWEEN {first} AND {last})" for p, first, last in self.windows)
        )


def ordered_versions(groups: Sequence[RecordGroup], records: DataFrame, *, truncations: bool) -> list[int | None]:
    """Return the versions of the value schemas, oldest first; those of TRUNCATEs only if they are rows."""
    found = [group for group in groups if not group.tombstone and (truncations or group.op != "t")]
    versions = list(dict.fromkeys(group.value_version for group in found))
    if len(versions) < 2:
        return versions
    if len({group.partition for group in found}) == 1:
        return sorted(versions, key=lambda v: min(group.first for group in found if group.value_version == v))
    rows = (
        records.where("value IS NOT NULL")
        .groupBy("value_version")
        .agg(F.expr(f"min(struct({POSITION} AS at, offset))").alias("at"))
        .collect()
    )
    first = {row["value_version"]: row["at"] for row in rows}
    return sorted(versions, key=lambda v: first[v])


def segments(
    groups: Sequence[RecordGroup], records: DataFrame, names: Callable[[RecordGroup], tuple[str, ...]]
) -> list[Segment]:
    """Split a batch where the key changes (``ALTER TABLE ... DROP PRIMARY KEY, ADD PRIMARY KEY``), in order."""
    lists = {names(group) for group in groups if group.op != "t"}
    if len(lists) < 2:
        return [Segment(key_names) for key_names in lists]
    by_kind = {group.key_id: names(group) for group in groups if group.op != "t"}
    runs = _runs(records)
    found: list[Segment] = []
    for kind, window in runs:
        key_names = by_kind[kind]
        if found and found[-1].key_names == key_names:
            found[-1] = replace(found[-1], windows=(*(found[-1].windows or ()), window))
        else:
            found.append(Segment(key_names, (window,)))
    return found


def _runs(records: DataFrame) -> list[tuple[KeyId, Window]]:
    """Return the runs of consecutive records of a partition with the same key schema, by binlog position."""
    kind = "named_struct('version', key_version, 'fields', IF(key_version IS NULL, json_object_keys(key), NULL))"
    marked = records.where("op IS NULL OR op <> 't'").selectExpr(
        "partition", "offset", f"{kind} AS kind", f"{POSITION} AS at"
    )
    rows = (
        marked.selectExpr("*", "lag(kind) OVER (PARTITION BY partition ORDER BY offset) AS earlier")
        .selectExpr("*", "sum(IF(kind <=> earlier, 0, 1)) OVER (PARTITION BY partition ORDER BY offset) AS run")
        .groupBy("partition", "run", "kind")
        .agg(F.min("offset").alias("first"), F.max("offset").alias("last"), F.min("at").alias("at"))
        .orderBy("at", "partition", "first")
        .collect()
    )
    if len({row["partition"] for row in rows}) == 1:
        rows = sorted(rows, key=lambda row: row["first"])
    return [
        (
            (row["kind"]["version"], None if row["kind"]["fields"] is None else tuple(row["kind"]["fields"])),
            (row["partition"], row["first"], row["last"]),
        )
        for row in rows
    ]


@dataclass(frozen=True, slots=True)
class Truncations:
    """The TRUNCATEs of a batch.

    Attributes:
        offsets: of the last one in each partition that has one.
        newest: the one with the highest binlog position.
    """

    offsets: Mapping[int, int]
    newest: Truncation

    def records_after(self, records: DataFrame, *, alone: bool) -> DataFrame:
        """Return the records after the last TRUNCATE.

        Args:
            records: of the batch.
            alone: the topic has one partition, so that offsets are sufficient.
        """
        later = " AND ".join(f"NOT (partition = {p} AND offset <= {o})" for p, o in self.offsets.items())
        return records.where(later) if alone else after(records, self.newest).where(later)

    def records_before(self, records: DataFrame, *, alone: bool) -> DataFrame:
        """Return the records before the last TRUNCATE, and, with several partitions, the tombstones; see above."""
        earlier = " OR ".join(f"(partition = {p} AND offset <= {o})" for p, o in self.offsets.items())
        point = f"named_struct('file', {self.newest.file}L, 'pos', {self.newest.pos}L)"
        preceding = earlier if alone else f"{earlier} OR value IS NULL OR {POSITION} <= {point}"
        return records.where(f"({preceding}) AND (op IS NULL OR op <> 't')")


def after(records: DataFrame, truncation: Truncation) -> DataFrame:
    """Return the records after a TRUNCATE in the binlog.

    Tombstones, which have no position, stay, because they only delete.
    """
    point = f"named_struct('file', {truncation.file}L, 'pos', {truncation.pos}L)"
    return records.where(f"value IS NULL OR {POSITION} > {point}")


def truncations(groups: Sequence[RecordGroup], records: DataFrame) -> Truncations | None:
    """Return the TRUNCATEs of a batch, ``None`` if there are none."""
    if not any(group.op == "t" for group in groups):
        return None
    rows = records.where("op = 't'").selectExpr("partition", "offset", f"{POSITION} AS at").collect()
    offsets: dict[int, int] = {}
    for row in rows:
        offsets[row["partition"]] = max(row["offset"], offsets.get(row["partition"], -1))
    newest = max((row["at"]["file"], row["at"]["pos"]) for row in rows)
    return Truncations(offsets, Truncation(*newest))
