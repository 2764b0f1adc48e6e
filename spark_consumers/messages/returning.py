"""Columns that come back within a batch: tables that are altered from A to B, and to A again.

The versions of a batch are then a list in which A occurs twice, each time with the offsets of its records. This needs
the order of the offsets, so the topic must have one partition.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from rowtide.spark_consumers.messages.records import RecordGroup
from rowtide.spark_consumers.messages.segments import POSITION
from rowtide.spark_consumers.messages.versions import ValueVersion

Names = frozenset[str]
Place = tuple[int, int]
"""File and position in the binlog."""


@dataclass(slots=True)
class _Time:
    """The records from one ALTER TABLE to the next.

    Attributes:
        names: of the columns.
        offsets: windows of the records.
        last: the highest position, by server.
    """

    names: Names
    offsets: list[tuple[int, int]]
    last: dict[str | None, Place]


def with_returning_columns(
    versions: Sequence[ValueVersion], groups: Sequence[RecordGroup], records: DataFrame
) -> list[ValueVersion]:
    """Return the versions in their order, with a version as often as its columns came back.

    Args:
        versions: of a topic with one partition, each once, oldest first.
        groups: of the batch.
        records: of the batch.
    """
    extents = _extents(versions, groups)
    if not any(earlier[1] > later[0] for i, earlier in enumerate(extents) for later in extents[i + 1 :]):
        return list(versions)
    times = _times(_runs(records, versions))
    if len(times) == len({time.names for time in times}):
        return list(versions)
    return [
        replace(version, offsets=tuple(time.offsets))
        for time in times
        for version in versions
        if version.names == time.names
    ]


def _extents(versions: Sequence[ValueVersion], groups: Sequence[RecordGroup]) -> list[tuple[int, int]]:
    """Return the first and the last offset with each set of columns, by the first one."""
    names = {version.id: version.names for version in versions}
    found: dict[Names, tuple[int, int]] = {}
    for group in groups:
        if not group.tombstone and group.value_version in names:
            columns = names[group.value_version]
            first, last = found.get(columns, (group.first, group.last))
            found[columns] = (min(first, group.first), max(last, group.last))
    return sorted(found.values())


def _runs(records: DataFrame, versions: Sequence[ValueVersion]) -> list[tuple[Names, Row]]:
    """Return the runs of records of one server with the same columns and growing positions, by offset."""
    kinds = list(dict.fromkeys(version.names for version in versions))
    server = "get_json_object(value, '$.source.server_id')"
    cases = (f"WHEN value_version <=> {_number(version.id)} THEN {kinds.index(version.names)}" for version in versions)
    marked = records.where("value IS NOT NULL").selectExpr(
        "offset", f"{POSITION} AS at",
        f"named_struct('kind', CASE {' '.join(cases)} END, 'server', {server}) AS s",
    )  # fmt: skip
    rows = (
        marked.where("s.kind IS NOT NULL")
        .selectExpr("*", "lag(s) OVER (ORDER BY offset) AS earlier", "lag(at) OVER (ORDER BY offset) AS before")
        .selectExpr("*", "sum(IF(s <=> earlier AND at >= before, 0, 1)) OVER (ORDER BY offset) AS run")
        .groupBy("run", "s")
        .agg(F.min("offset").alias("first"), F.max("offset").alias("last"), F.min("at").alias("low"),
             F.max("at").alias("high"))
        .orderBy("first")
        .collect()
    )  # fmt: skip
    return [(kinds[row["s"]["kind"]], row) for row in rows]


def _times(runs: Sequence[tuple[Names, Row]]) -> list[_Time]:
    """Join the runs between two ALTER TABLEs.

    After a crash a connector writes its last records again. Their positions are those of an earlier time, to which they
    belong. Positions are compared on the same server only.
    """
    times: list[_Time] = []
    for names, row in runs:
        server, low, high = row["s"]["server"], _place(row["low"]), _place(row["high"])
        again = (time for time in times if time.names == names and low <= time.last.get(server, (-1, -1)))
        current = times[-1] if times and times[-1].names == names else None
        time = next(again, current)
        if time is None:
            times.append(time := _Time(names, [], {}))
        time.offsets.append((row["first"], row["last"]))
        time.last[server] = max(high, time.last.get(server, high))
    return times


def _place(at: Row) -> Place:
    return at["file"] or 0, at["pos"] or 0


def _number(version: int | None) -> str:
    return "NULL" if version is None else f"{version}L"
