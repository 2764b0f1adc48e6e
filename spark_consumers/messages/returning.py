"""Columns that come back within a batch: tables that are altered from A to B, and to A again.

The versions of a batch are then a list in which A occurs twice, each time with the offsets of its records. This needs
the order of the offsets, so the topic must have one partition.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby

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
        versions: numbers of the versions of the records, in their order. Only types and defaults differ.
        offsets: windows of the records.
        last: the highest position, by server.
    """

    names: Names
    versions: dict[int, None]
    offsets: list[tuple[int, int]]
    last: dict[str | None, Place]


def with_returning_columns(
    versions: Sequence[ValueVersion], groups: Sequence[RecordGroup], records: DataFrame
) -> list[ValueVersion]:
    """Return the versions in their order, with each version as often as its columns occurred.

    Args:
        versions: of a topic with one partition, each once, oldest first.
        groups: of the batch.
        records: of the batch.
    """
    extents = _extents(versions, groups)
    if not any(earlier[1] > later[0] for i, earlier in enumerate(extents) for later in extents[i + 1 :]):
        return list(versions)
    times = _times(_runs(records, versions), versions)
    if len(times) == len({time.names for time in times}):
        return list(versions)
    return [replace(versions[number], offsets=tuple(time.offsets)) for time in times for number in time.versions]


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


@dataclass(frozen=True, slots=True)
class _Run:
    """Records of one server with the same columns and growing positions.

    Attributes:
        server: its id.
        versions: numbers of the versions, in the order of their first records.
        offsets: the first and the last one.
        low: the lowest position.
        high: the highest position.
    """

    server: str | None
    versions: tuple[int, ...]
    offsets: tuple[int, int]
    low: Place
    high: Place


def _runs(records: DataFrame, versions: Sequence[ValueVersion]) -> list[_Run]:
    """Return the runs, by offset."""
    kinds = list(dict.fromkeys(version.names for version in versions))
    server = "get_json_object(value, '$.source.server_id')"
    cases = [f"WHEN value_version <=> {_number(version.id)} THEN" for version in versions]
    kind = " ".join(f"{case} {kinds.index(found.names)}" for case, found in zip(cases, versions, strict=True))
    number = " ".join(f"{case} {number}" for number, case in enumerate(cases))
    marked = records.where("value IS NOT NULL").selectExpr(
        "offset", f"{POSITION} AS at", f"CASE {number} END AS version",
        f"named_struct('kind', CASE {kind} END, 'server', {server}) AS s",
    )  # fmt: skip
    rows = (
        marked.where("s.kind IS NOT NULL")
        .selectExpr("*", "lag(s) OVER (ORDER BY offset) AS earlier", "lag(at) OVER (ORDER BY offset) AS before")
        .selectExpr("*", "sum(IF(s <=> earlier AND at >= before, 0, 1)) OVER (ORDER BY offset) AS run")
        .groupBy("run", "version")
        .agg(F.min("offset").alias("first"), F.max("offset").alias("last"), F.min("at").alias("low"),
             F.max("at").alias("high"), F.first("s.server").alias("server"))
        .orderBy("run", "first")
        .collect()
    )  # fmt: skip
    return [_run(list(parts)) for _, parts in groupby(rows, lambda row: row["run"])]


def _run(parts: Sequence[Row]) -> _Run:
    """Return a run from its records of each version."""
    return _Run(
        server=parts[0]["server"],
        versions=tuple(row["version"] for row in parts),
        offsets=(parts[0]["first"], max(row["last"] for row in parts)),
        low=min(_place(row["low"]) for row in parts),
        high=max(_place(row["high"]) for row in parts),
    )


def _times(runs: Sequence[_Run], versions: Sequence[ValueVersion]) -> list[_Time]:
    """Join the runs between two ALTER TABLEs.

    After a crash, a connector writes its last records again. Their positions are those of an earlier period, to which
    they belong. Positions are compared on the same server only.
    """
    times: list[_Time] = []
    for run in runs:
        names = versions[run.versions[0]].names
        again = (time for time in times if time.names == names and run.low <= time.last.get(run.server, (-1, -1)))
        current = times[-1] if times and times[-1].names == names else None
        time = next(again, current)
        if time is None:
            times.append(time := _Time(names, {}, [], {}))
        time.versions.update(dict.fromkeys(run.versions))
        time.offsets.append(run.offsets)
        time.last[run.server] = max(run.high, time.last.get(run.server, run.high))
    return times


def _place(at: Row) -> Place:
    return at["file"] or 0, at["pos"] or 0


def _number(version: int | None) -> str:
    return "NULL" if version is None else f"{version}L"
