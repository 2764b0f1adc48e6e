"""The versions of rows in a batch, for tables that keep all of them (SCD type 2).

A version begins with a record of its key and ends with the next one, or with the TRUNCATE before that. The order is
that of the offsets: all records of a key are in one partition. A version of an earlier batch that has not ended is in
the table; its row there gets the end, and the others are new rows.

The following records are not versions: those that a connector writes again after a crash, with the content and place of
an earlier one, and those of snapshots that read an unchanged row again.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from rowtide.spark_consumers.columns.metadata import FILE_NUMBER
from rowtide.spark_consumers.columns.spark_types import literal, quote
from rowtide.spark_consumers.messages.records import RecordGroup
from rowtide.spark_consumers.messages.versions import ValueVersion
from rowtide.spark_consumers.rows.changes import PLACE, BatchSchemas, keyed_images
from rowtide.spark_consumers.rows.computed import with_computed
from rowtide.spark_consumers.rows.evolution import Columns
from rowtide.spark_consumers.rows.multiset import CONTENT, RECORD_HASH
from rowtide.spark_consumers.rows.row_filter import MATCHES, with_match
from rowtide.spark_consumers.settings import CURRENT, END_COLUMNS, VERSION_COLUMNS

ENDS = "_rowtide_ends"
"""The column that marks rows with the end of a key's version in the table. Besides, only their key has values."""

KNOWN = "_rowtide_known"
"""The column with the number of the newest structure at the time of an end."""

_OWN = {name for name, _ in VERSION_COLUMNS}
_ROW_OPERATIONS = "op IN ('r', 'c', 'u')"
_OF_KEY = "(PARTITION BY key ORDER BY offset)"


@dataclass(frozen=True, slots=True)
class Ends:
    """The changes that ends of versions make to their rows in the table ``t``: SQL by column.

    Attributes:
        of_keys: of versions with an end in the rows ``s``.
        of_others: of all other current versions; empty if they do not end.
    """

    of_keys: Mapping[str, str]
    of_others: Mapping[str, str]


def ends_of(schemas: BatchSchemas, groups: Sequence[RecordGroup], emptied: Sequence["Emptying"]) -> Ends:
    """Return the changes that ends of versions make.

    All current versions have got the defaults of columns that the batch adds. Those that ended before that lose them.
    These columns follow from the structures, since a batch that is repeated after a crash finds them in the table.

    Args:
        schemas: of the batch.
        groups: of the batch.
        emptied: the TRUNCATEs among the records.
    """
    before = {name.lower() for name in schemas.last_known or ()}
    since: dict[str, tuple[str, int]] = {}
    for name, kind in schemas.evolution.after:
        index = next((index for index, one in enumerate(schemas.values) if name.lower() in one.names), 0)
        if index and name.lower() not in before:
            since[name] = kind, index
    of_keys = {name: f"s.{name}" for name, _ in END_COLUMNS}
    of_keys |= {name: f"IF(s.{KNOWN} < {index}, NULL, t.{quote(name)})" for name, (_, index) in since.items()}
    if not emptied:
        return Ends(of_keys, {})
    known = StructureOffsets.of(schemas.values, groups).known(emptied[0].offset)
    early = {name: f"CAST(NULL AS {kind})" for name, (kind, index) in since.items() if known < index}
    return Ends(of_keys, emptied[0].end | early)


@dataclass(frozen=True, slots=True)
class Emptying:
    """A TRUNCATE, or another event that empties a table.

    Attributes:
        offset: of its record.
        ts_ms: its time in the source.
        file: number of the binlog file.
        pos: position in the file.
        row: number in the event.
    """

    offset: int
    ts_ms: int | None
    file: int | None
    pos: int | None
    row: int | None

    @property
    def place(self) -> str:
        """SQL of the fields of a struct with its time and place."""
        kinds = {"ts_ms": "bigint", "file": "bigint", "pos": "bigint", "row": "int"}
        values = {name: getattr(self, name) for name in kinds}
        return ", ".join(
            f"'{name}', CAST({'NULL' if values[name] is None else values[name]} AS {kind})"
            for name, kind in kinds.items()
        )

    @property
    def end(self) -> dict[str, str]:
        """SQL of the columns of a version that it ends."""
        return {**_place(f"named_struct({self.place})", begin=False), CURRENT: "false"}


def emptyings(records: DataFrame) -> list[Emptying]:
    """Return the TRUNCATEs of a batch, oldest first, each once."""
    source = "from_json(get_json_object(value, '$.source'), 'ts_ms bigint, file string, pos bigint, row int') AS s"
    rows = (
        records.where("op = 't'")
        .selectExpr("offset", f"{RECORD_HASH} AS hash", source)
        .selectExpr("offset", "hash", "s.ts_ms", f"{FILE_NUMBER.replace('{source}', 's')} AS file", "s.pos", "s.row")
        .collect()
    )
    found: dict[int, Emptying] = {}
    for row in sorted(rows, key=lambda row: int(row["offset"])):
        found.setdefault(row["hash"], Emptying(row["offset"], row["ts_ms"], row["file"], row["pos"], row["row"]))
    return list(found.values())


def without_expected_tombstones(
    records: DataFrame, groups: Sequence[RecordGroup]
) -> tuple[DataFrame, Sequence[RecordGroup]]:
    """Remove tombstones that follow the deletion of their key, before repeated deletions are removed.

    One at the start of the batch follows a deletion that an earlier batch has read.

    Returns:
        The records, and their groups.
    """
    if not any(group.tombstone for group in groups):
        return records, groups
    firsts = _first_offsets(groups).items()
    is_first = " OR ".join(f"(partition = {partition} AND offset = {offset})" for partition, offset in firsts)
    of_key = "(PARTITION BY partition, key ORDER BY offset)"
    follows = f"lag(offset) OVER {of_key} IS NOT NULL AND coalesce(lag(op) OVER {of_key}, 'd') = 'd'"
    lone = (
        records.where("key IS NOT NULL")
        .selectExpr("partition", "offset", "value IS NULL AS is_tombstone", f"{is_first} OR ({follows}) AS is_expected")
        .where("is_tombstone AND NOT is_expected")
        .select("partition", "offset")
    )
    others = records.where("value IS NOT NULL")
    if lone.isEmpty():
        return others, [group for group in groups if not group.tombstone]
    tombstones = records.where("value IS NULL").join(lone, ["partition", "offset"], "left_semi")
    return others.unionAll(tombstones.select(*records.columns)), groups


@dataclass(frozen=True, slots=True)
class StructureOffsets:
    """The offsets at which the structures of a batch are first seen: a column has its default only in earlier versions.

    Attributes:
        first: the first offset of each structure's records by partition, oldest structure first.
    """

    first: Sequence[Mapping[int, int]]

    @classmethod
    def of(cls, values: Sequence[ValueVersion], groups: Sequence[RecordGroup]) -> Self:
        """Find the structures in the groups of a batch."""
        found = []
        for version in values:
            first = _first_offsets(
                group
                for group in groups
                if group.value_version == version.id and not group.tombstone and group.op != "t"
            )
            if version.offsets is not None:  # of a topic with one partition
                first = dict.fromkeys(first, min(low for low, _ in version.offsets))
            found.append(first)
        return cls(found)

    def known(self, offset: int) -> int:
        """Return the number of the newest structure at an offset of a topic with one partition."""
        return max((index for index, first in enumerate(self.first) if min(first.values()) <= offset), default=0)

    @property
    def sql(self) -> str:
        """SQL of the number of the newest structure at a record."""
        later = [
            f"IF(partition = {partition} AND offset >= {offset}, {index}, 0)"
            for index, first in enumerate(self.first[1:], 1)
            for partition, offset in first.items()
        ]
        return f"greatest(0, {', '.join(later)})" if later else "0"


@dataclass(frozen=True, slots=True)
class Unordered:
    """Records whose order is not known.

    Attributes:
        moved: whether a key has records in several partitions.
        tombstone: partition and offset of a tombstone of an existing row without the record of its deletion.
    """

    moved: bool
    tombstone: tuple[int, int] | None


class Versions:
    """The versions of rows of some keys, cached until the context ends.

    Args:
        records: of the batch, without repetitions of earlier batches.
        schemas: of the batch.
        key_names: the columns of the key.
        groups: of the batch.
        emptied: the TRUNCATEs among the records.
        existing: the table's rows; ``None`` if it does not exist.
        compared: the columns by which a row of a snapshot is the same as the one before.
        normalized: SQL of their :data:`CONTENT`, see ``normalized_content``. A column that the row of the snapshot does
            not have is not compared.
    """

    def __init__(
        self,
        records: DataFrame,
        schemas: BatchSchemas,
        key_names: Sequence[str],
        groups: Sequence[RecordGroup],
        emptied: Sequence[Emptying],
        existing: DataFrame | None,
        compared: Columns,
        normalized: str,
    ) -> None:
        self._schemas, self._key_names, self._emptied, self._existing = schemas, key_names, emptied, existing
        self._compared = [name for name, _ in compared]
        self._has_snapshot = any(group.op == "r" for group in groups)
        self._normalized = normalized if self._has_snapshot else "CAST(NULL AS string)"
        structures = StructureOffsets.of(schemas.values, groups)
        self._last = max(len(schemas.values) - 1, 0)
        ends = [f"named_struct({one.place}, 'known', {structures.known(one.offset)})" for one in emptied]
        self._ends = f"array({', '.join(ends)})" if ends else f"CAST(NULL AS array<{PLACE}>)"
        tombstones = any(group.tombstone for group in groups)
        images = keyed_images(records, schemas, key_names, structures.sql, tombstones=tombstones)
        once = images.withColumn("copy", F.expr("row_number() OVER (PARTITION BY key, hash ORDER BY offset)"))
        once = once.where("copy = 1 OR op IS NULL OR op = 'r'").drop("copy")
        self._changes = self._with_predecessors(self._with_ends_of_matches(once)).persist()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._changes.unpersist()

    def unordered(self) -> Unordered:
        """Return the records without an order."""
        lone = "IF(op IS NULL AND is_open, named_struct('partition', partition, 'offset', offset), NULL)"
        found = self._changes.selectExpr("coalesce(bool_or(is_moved), false) AS moved", f"min({lone}) AS lone")
        moved, tombstone = found.collect()[0]
        return Unordered(moved, None if tombstone is None else (tombstone[0], tombstone[1]))

    def rows(self) -> DataFrame:
        """Return the new versions, and the ends of versions: the table's columns, :data:`ENDS` and :data:`KNOWN`."""
        changes = self._changes.where(f"op IS NOT NULL AND NOT ({self._is_same})").selectExpr(
            "*",
            f"row_number() OVER {_OF_KEY} AS number",
            f"IF(lead(epoch) OVER {_OF_KEY} <=> epoch, lead(place) OVER {_OF_KEY}, get({self._ends}, epoch)) AS next",
        )
        row = f"get(rows, IF(next IS NULL, {self._last}, greatest(next.known, index)) - index)"
        versions = changes.where(_ROW_OPERATIONS).selectExpr("place", "next", f"{row} AS row")
        versions = with_computed(versions, self._schemas, "row")
        values = {**_place("place", begin=True), **_place("next", begin=False)}
        new = versions.selectExpr(
            *(f"{values[name] if name in _OWN else f'row.{quote(name)}'} AS {quote(name)}" for name in self._names),
            f"false AS {ENDS}",
            f"CAST(NULL AS int) AS {KNOWN}",
        )
        if self._existing is None:
            return new
        first = changes.where("number = 1 AND was_open").selectExpr(
            "key", f"IF(epoch = 0, place, get({self._ends}, 0)) AS next"
        )
        keys = {name.lower(): f"key.{quote(name)}" for name in self._key_names}
        values = {**_place("next", begin=False), **{n: keys[n.lower()] for n in self._names if n.lower() in keys}}
        ended = first.selectExpr(
            *(f"{values.get(name, f'CAST(NULL AS {kind})')} AS {quote(name)}"
              for name, kind in self._schemas.evolution.after),
            f"true AS {ENDS}", f"next.known AS {KNOWN}",
        )  # fmt: skip
        return new.unionAll(ended)

    @property
    def _is_same(self) -> str:
        """Return SQL of whether a record of a snapshot has the row unchanged."""
        if not self._has_snapshot:
            return "false"
        same = ["op = 'r' AND is_open"]
        for name in self._compared:
            lacking = [str(i) for i, one in enumerate(self._schemas.values) if name.lower() not in one.names]
            unless = f" OR index IN ({', '.join(lacking)})" if lacking else ""
            same.append(f"(before.{quote(name)} <=> {CONTENT}.{quote(name)}{unless})")
        return " AND ".join(same)

    @property
    def _names(self) -> list[str]:
        return [name for name, _ in self._schemas.evolution.after]

    def _with_ends_of_matches(self, changes: DataFrame) -> DataFrame:
        """Turn changes after which a row does not match ``--where`` into deletions, which only end versions."""
        if (where := self._schemas.where) is None:
            return changes
        latest = changes.withColumn("latest", F.expr(f"get(rows, {self._last} - index)"))
        matched = with_match(latest, where, self._schemas.row_columns, "latest")
        return matched.withColumn("op", F.expr(f"IF(op IS NULL OR {MATCHES}, op, 'd')")).drop("latest", MATCHES)

    def _with_predecessors(self, changes: DataFrame) -> DataFrame:
        """Add the state before each change.

        ``epoch`` is the number of TRUNCATEs before it, ``is_open`` whether the row existed, and ``before`` its content.
        ``was_open`` is whether it existed before the batch, and ``is_moved`` whether its key is in several partitions.
        """
        offsets = ", ".join(f"{one.offset}L" for one in self._emptied)
        latest = ", ".join(f"{literal(name)}, latest.{quote(name)}" for name in self._compared)
        changes = (
            changes.withColumn(
                "epoch", F.expr(f"size(filter(array({offsets}), one -> one < offset))" if offsets else "0")
            )
            .withColumn("latest", F.expr(f"get(rows, {self._last} - index)"))
            .withColumn(CONTENT, F.expr(f"named_struct({latest})"))
            .drop("latest")
            .withColumn(CONTENT, F.expr(self._normalized))
        )
        if self._existing is None:
            found = changes.selectExpr("*", "false AS was_open", f"IF(false, {CONTENT}, NULL) AS earlier")
        else:
            current = (
                self._existing.where(CURRENT)
                .selectExpr(f"{_struct(self._key_names)} AS current_key", f"{_struct(self._compared)} AS {CONTENT}")
                .selectExpr("current_key", f"{self._normalized} AS earlier", "true AS was_found")
            )
            found = changes.join(current, F.expr("key <=> current_key"), "left").selectExpr(
                *changes.columns, "coalesce(was_found, false) AS was_open", "earlier"
            )
        return found.selectExpr(
            "*",
            f"IF({_lag('offset')} IS NULL, was_open AND epoch = 0, "
            f"coalesce({_lag('op')} IN ('r', 'c', 'u'), false) AND {_lag('epoch')} = epoch) AS is_open",
            f"IF({_lag('offset')} IS NULL, earlier, {_lag(CONTENT)}) AS before",
            "min(partition) OVER (PARTITION BY key) <> max(partition) OVER (PARTITION BY key) AS is_moved",
        )


def _first_offsets(groups: Iterable[RecordGroup]) -> dict[int, int]:
    """Return the first offset of groups in each partition."""
    first: dict[int, int] = {}
    for group in groups:
        first[group.partition] = min(group.first, first.get(group.partition, group.first))
    return first


def _place(struct: str, *, begin: bool) -> dict[str, str]:
    """Return SQL of the columns of a version's begin or end, from a struct of :data:`PLACE`."""
    parts = {
        "": f"timestamp_millis({struct}.ts_ms)",
        **{f"_{name}": f"{struct}.{name}" for name in ("file", "pos", "row")},
    }
    if begin:
        return {f"__valid_from{name}": value for name, value in parts.items()}
    return {**{f"__valid_to{name}": value for name, value in parts.items()}, CURRENT: f"{struct} IS NULL"}


def _struct(names: Sequence[str]) -> str:
    return f"named_struct({', '.join(f'{literal(name)}, {quote(name)}' for name in names)})"


def _lag(column: str) -> str:
    return f"lag({column}) OVER {_OF_KEY}"
