"""Compares a Spark table with its topic, up to the offsets that are stored with the table.

::

    topic:   ──────────────┤ stored offset ├──────┤ end ├
    table:   the version that has it        behind by these offsets

Up to the stored offsets, the table must equal the result of applying the records one by one: every difference
is a fault of the job, or a change by another writer. Together with the comparison of source and topic this proves the
table. Records that the job has not read yet are never a difference, whatever the load.
"""

import datetime as dt
import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, Protocol

from rowtide.connector.records.canonical import NULL, UNKNOWN, value_text
from rowtide.connector.records.change import Change
from rowtide.verify.errors import Undecided
from rowtide.verify.fold import CountedFold, KeyedFold, Record, Row
from rowtide.verify.positions import RecordPlace
from rowtide.verify.table_values import is_same_value, is_wrong_type, spark_text
from rowtide.verify.texts import Key, Texts
from rowtide.verify.topic import Topic, TopicRecord
from rowtide.verify.verification import Outcome, VerifyOptions

TableKind = Literal["lost", "stale", "not applied", "extra", "doubled", "column"]
Columns = Sequence[tuple[str, str]]

_ROWS = 2_000
_REPETITIONS = 100_000
"""The last changes of a table without a key by which repeated ones are recognized."""
_CHANGE_COLUMNS = ("__op", "__source_ts_ms", "__source_file", "__source_pos", "__source_row")
_METADATA = (
    *_CHANGE_COLUMNS, "__source_ts", "__source_gtid", "__source_server_id", "__source_db", "__source_table",
    "__kafka_partition", "__kafka_offset",
)  # fmt: skip
"""The metadata columns that are compared."""
_DELETED = "__deleted"
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


class StoredTable(Protocol):
    """A table as the job left it: :class:`rowtide.spark_consumers.stored_tables.StoredTable`."""

    @property
    def path(self) -> str:
        """Its directory."""

    @property
    def version(self) -> int | None:
        """The version that is read."""

    @property
    def others(self) -> Sequence[str]:
        """Later commits of other writers in it."""

    @property
    def batch(self) -> Any:
        """The last finished batch: ``offsets``, ``topic_id``, ``metadata`` and ``layout``."""

    def columns(self) -> Columns:
        """Return the names and types of the columns."""

    def rows(self, columns: Any) -> Iterator[tuple[Any, ...]]:
        """Yield the values of columns; if the table has all versions, those of the current ones."""

    def is_replaced(self) -> bool:
        """Return whether it was rewritten since it was opened."""


@dataclass(frozen=True, slots=True)
class TableDifference:
    """A key that differs, a row of a table without a key, or a column.

    Attributes:
        kind: ``lost`` if the table lacks the row; ``stale`` if it has other values; ``not applied`` if it has an
            earlier state of the row; ``extra`` if the topic does not have the row; ``doubled`` if the table has the key
            more than once; ``column`` if the table lacks a column, or it has another type.
        key: the texts of the key by column; without a key, those of all columns.
        topic: the row of the topic; for a column, its type.
        table: the row of the table; for a column, its type.
        columns: the columns that differ.
        places: the last records of the key, the newest last.
        copies: how many more copies of the row one side has.
        applied: the last record whose change the table has, for ``not applied``.
    """

    kind: TableKind
    key: Row
    topic: Row | None
    table: Row | None
    columns: tuple[str, ...] = ()
    places: tuple[RecordPlace, ...] = ()
    copies: int = 1
    applied: RecordPlace | None = None


@dataclass(slots=True)
class TableResult:
    """The result for one Spark table.

    Attributes:
        topic: its topic.
        path: its directory.
        outcome: equal, different, or not decided.
        reason: the reason why it could not be decided.
        version: the version of the table.
        others: other writers' commits after the last commit of the job.
        offsets: the offsets at which the table is compared, by partition.
        behind: the offsets that the topic has after them.
        last: the last change before the offset of each partition.
        table_rows: rows of the table.
        topic_rows: rows of the topic at the offsets.
        differences: the differences.
        more: whether there may be further differences.
        not_compared: the number of rows whose last record lacks the value of a column, by column.
    """

    topic: str
    path: str = ""
    outcome: Outcome = "undecided"
    reason: str = ""
    version: int | None = None
    others: Sequence[str] = ()
    offsets: Mapping[int, int] = field(default_factory=dict)
    behind: int = 0
    last: dict[int, RecordPlace] = field(default_factory=dict)
    table_rows: int = 0
    topic_rows: int = 0
    differences: list[TableDifference] = field(default_factory=list)
    more: bool = False
    not_compared: dict[str, int] = field(default_factory=dict)


class TableComparison:
    """Compares one table.

    Args:
        result: with the topic; filled as far as the comparison gets.
        stored: the table.
        topic: reads the topic.
        texts: make the texts of records; with all digits of FLOAT if the table has a key.
        options: what to compare.
        ambiguous: reads from the schema history which column names were reused, or are former names.
        cleanup_policy: reads the ``cleanup.policy`` of the topic; empty if the account may not read it.
        exact: whether the texts of FLOAT have all digits.
    """

    def __init__(
        self,
        result: TableResult,
        stored: StoredTable,
        topic: Topic,
        texts: Texts,
        options: VerifyOptions,
        ambiguous: Callable[[], Collection[str]],
        cleanup_policy: Callable[[], str],
        *,
        exact: bool,
    ) -> None:
        self._stored, self._topic, self._texts, self._options = stored, topic, texts, options
        self._exact, self.result = exact, result
        self._read_ambiguous, self._cleanup_policy = ambiguous, cleanup_policy
        self._types: dict[str, set[str]] = {}
        self._structures: dict[int, object] = {}
        self._required: set[str] = set()
        self._truncated = False
        self._names: dict[int, tuple[str, ...]] = {}
        self._returned: dict[tuple[int, str], int] = {}
        self._tags: dict[int, set[str]] = {}
        self._key_names: tuple[str, ...] = ()

    @cached_property
    def _ambiguous(self) -> Collection[str]:
        """Return the names whose meaning has changed.

        The job may have renamed columns, which older records have under other names.
        """
        return self._read_ambiguous()

    def run(self, folder: Path, chosen: Iterable[Key] | None = None) -> None:
        """Compare the table.

        Args:
            folder: the folder for files of rows.
            chosen: the keys to compare; ``None`` for all.

        Raises:
            Undecided: the result cannot be decided.
            ConnectorError, TopicReadError: the topic cannot be read.
        """
        result, stored = self.result, self._stored
        result.path, result.version, result.others = stored.path, stored.version, stored.others
        result.offsets = stored.batch.offsets
        lacking = self._refuse_offsets()
        with TemporaryDirectory(dir=folder) as made:
            if self._stored.batch.layout not in (None, "rows", "append", "soft-delete", "history"):
                raise Undecided(f"tables of layout {self._stored.batch.layout} cannot be compared")
            if self._stored.batch.where is not None:
                raise Undecided(f"the table has only the rows with {self._stored.batch.where.sql} (tables --where)")
            if self._texts.key_names and self._stored.batch.layout != "append":
                self._keyed(Path(made), chosen)
            elif chosen is None:
                self._counted(Path(made))
            else:
                raise Undecided(
                    "a table without a key, or of changes, can only be compared as a whole: omit --where and --sample"
                )
        if stored.is_replaced():
            raise Undecided(f"{stored.path} was rewritten while it was read: run the command again")
        if lacking and any(one.kind == "extra" for one in result.differences):
            result.differences = [one for one in result.differences if one.kind != "extra"]
            if not result.differences:
                raise Undecided(f"{lacking}: rows that only the table has may be of these records")
        result.outcome = "different" if result.differences else "equal"

    def _refuse_offsets(self) -> str:
        """Refuse offsets of another topic, and return the records that Kafka no longer has.

        Compaction keeps the last record of each key, which is all that a table of the latest rows needs.
        """
        topic, batch = self.result.topic, self._stored.batch
        found, extents = self._topic.topic_id(topic), self._topic.extents(topic)
        if None not in (found, batch.topic_id) and found != batch.topic_id:
            raise Undecided(
                f"topic {topic} was deleted and re-created: its id is {found}, and the table has the offsets of "
                f"{batch.topic_id}. Build it from the new topic (rowtide tables --restart)"
            )
        for partition, offset in batch.offsets.items():
            extent = extents.get(partition)
            if extent is None or extent.high < offset:
                raise Undecided(
                    f"topic {topic} does not have offset {offset} of partition {partition}, which is stored with the "
                    "table: it was re-created, or the table belongs to another cluster"
                )
        self.result.behind = sum(one.high - batch.offsets.get(p, one.low) for p, one in extents.items())
        cut = next(((p, one.low) for p, one in extents.items() if p in batch.offsets and one.low), None)
        if cut is not None:
            return f"Kafka has deleted the records of partition {cut[0]} before offset {cut[1]}"
        policy = self._cleanup_policy() if batch.layout in ("append", "soft-delete") else "delete"
        if not policy:
            return f"Kafka does not report whether topic {topic} is compacted (cleanup.policy)"
        return f"Kafka deletes earlier records of a key (cleanup.policy={policy})" if "compact" in policy else ""

    def _records(self) -> Iterator[TopicRecord]:
        """Yield the records before the stored offsets, and note their structures."""
        partitions = len(self._stored.batch.offsets)
        for found in self._topic.records_before(self.result.topic, self._stored.batch.offsets):
            change = found.change
            if change is not None:
                self._texts.refuse_others(found, change)
                self.result.last[found.place.partition] = found.place
                if change.op == "t" and partitions > 1:
                    raise Undecided(
                        f"topic {found.topic} has a record of TRUNCATE and several partitions, whose records have no "
                        "common order"
                    )
                self._note_structure(change, found.place)
            yield found

    def _note_structure(self, change: Change, place: RecordPlace) -> None:
        if change.op == "t":
            self._required.clear()  # the job may not have made the columns of rows that it has not written
            self._truncated = True
            return
        structure = change.schema
        if id(structure) not in self._structures:
            self._structures[id(structure)] = structure  # keeps its id
            for column in structure.columns:
                if not column.column_type:
                    raise Undecided(
                        f"the records of topic {self.result.topic} have no schemas, so the types of their values are "
                        "not known: only --topics can compare them"
                    )
                self._types.setdefault(column.name, set()).add(column.data_type)
        before, names = self._names.get(place.partition), change.columns
        if before is not names or not self._required:
            self._required.update(names)
        if before is not names:
            if before is not None:
                # The column was added, perhaps again: older rows have its default in the table. Or it was renamed: they
                # have the value of another column.
                for name in {*names} - {*before} | {*self._ambiguous}:
                    self._returned[place.partition, name] = place.offset
            self._names[place.partition] = names

    def _compared_columns(self, metadata: Collection[str]) -> list[tuple[str, str, str]]:
        """Return the columns of the table to read.

        For each, return its name in the table, its type, and its name in the records or the metadata.
        """
        known = {name.lower(): name for name in self._types}
        found = []
        for name, kind in self._stored.columns():
            own = name if name in metadata else known.pop(name.lower(), None)
            if own is None:
                continue
            if self._texts.compares(own):
                found.append((name, kind, own))
                if is_wrong_type(kind, types := self._types.get(own, set())):
                    self._differ_in_column(own, kind, types)
        for own in filter(self._is_chosen, known.values()):
            if own in self._required and self._texts.compares(own) and not self._is_former(own):
                self._differ_in_column(own, None, self._types[own])
        order = {name: number for names in self._names.values() for number, name in enumerate(names)}
        return sorted(found, key=lambda one: order.get(one[2], len(order)))  # equal rows have equal texts

    def _is_chosen(self, name: str) -> bool:
        """Return whether the table can have a column of the records (``rowtide tables --columns``)."""
        found = self._stored.batch.projection
        return bool(found is None or found.has(name))

    def _is_former(self, name: str) -> bool:
        """Return whether a column of older records has another name now."""
        return name not in self._texts.kinds and name in self._ambiguous

    def _differ_in_column(self, name: str, kind: str | None, types: Iterable[str]) -> None:
        table = None if kind is None else {name: f"s{kind}"}
        topic = {name: f"s{' or '.join(sorted(types))}"}
        self.result.differences.append(TableDifference("column", {}, topic, table, (name,)))

    def _table_rows(self, columns: Sequence[tuple[str, str, str]]) -> Iterator[Row]:
        forms = [spark_text(self._texts.kinds.get(own, ""), kind, exact=self._exact) for _, kind, own in columns]
        names = [own for _, _, own in columns]
        for values in self._stored.rows(tuple((name, kind) for name, kind, _ in columns)):
            yield {name: form(value) for name, form, value in zip(names, forms, values, strict=True)}

    # --- tables with a key -----------------------------------------------------------------------------------------

    def _keyed(self, folder: Path, chosen: Iterable[Key] | None) -> None:
        result, fold = self.result, KeyedFold(folder / "rows.sqlite")
        try:
            for found in self._records():
                self._add(fold, found)
            columns = self._compared_columns([*self._metadata, *([_DELETED] if self._is_soft else [])])
            missing = [name for name in self._key_names if name not in {own for _, _, own in columns}]
            if missing:
                result.differences = result.differences or [
                    TableDifference("column", {}, {name: "s"}, None, (name,)) for name in missing
                ]
                return
            if self._key_names:
                rows = ((self._table_key(row), row) for row in self._table_rows(columns))
                while part := list(itertools.islice(rows, _ROWS)):
                    result.table_rows += fold.add_source(part)
            elif next(self._stored.rows(tuple(self._stored.columns())), None) is not None:
                raise Undecided(f"topic {result.topic} has no rows before the stored offsets, but the table has some")
            if chosen is not None:
                fold.choose(chosen)
            _, result.topic_rows = fold.counts()
            types = {own: kind for _, kind, own in columns}
            self._find(fold, types, folder, chosen=chosen is not None)
            self._note_metadata(self._metadata)
        finally:
            fold.close()

    def _add(self, fold: KeyedFold, found: TopicRecord) -> None:
        record, change = found.record, found.change
        if change is None:
            if record.key is not None and not self._is_soft:
                fold.add(Record(None, record.key, None, found.place))
            elif record.key is not None and fold.is_live(record.key, _DELETED):
                raise Undecided(
                    f"topic {found.topic} has a tombstone without a deletion at partition {found.place.partition}, "
                    f"offset {found.place.offset}: which values the deleted row has is not known"
                )
            return
        if change.op == "t" and self._is_soft:
            raise Undecided(f"topic {found.topic} has a record of TRUNCATE, which marks rows without a record of each")
        if change.op == "t":
            fold.truncate(found.place)
            return
        key, names = self._texts.record_key(change), tuple(change.key or ())
        if self._key_names and names != self._key_names and not self._truncated:
            raise Undecided(
                f"the key of topic {found.topic} changed from ({', '.join(self._key_names)}) to ({', '.join(names)}) "
                f"at partition {found.place.partition}, offset {found.place.offset}: their rows cannot be compared"
            )
        self._key_names, self._truncated = names, False
        for number, text in enumerate(key):
            self._tags.setdefault(number, set()).add(text[0])
        fold.add(Record(key, record.key or b"", self._row(found, change), found.place))

    def _row(self, found: TopicRecord, change: Change) -> Row | None:
        """Return the row of the table after a change."""
        is_deletion = self._is_soft and change.op == "d"
        row = self._texts.row(change, change.before if is_deletion else change.after)
        if row is None and is_deletion:
            raise Undecided(f"a record of topic {change.topic} does not have the row before its deletion")
        if row is None:
            return row
        row = {name: text for name, text in row.items() if self._is_chosen(name)}
        texts = _metadata_texts(change, found.place)
        own = {name: texts[name] for name in self._metadata}
        return {**row, **own, **({_DELETED: value_text(is_deletion)} if self._is_soft else {})}

    @property
    def _is_soft(self) -> bool:
        """Return whether the table keeps deleted rows."""
        return bool(self._stored.batch.layout == "soft-delete")

    @cached_property
    def _metadata(self) -> Sequence[str]:
        """Return the table's columns with metadata of a row's last record that are in the decoded record.

        A table of all versions has the metadata of the record with which the current version began.
        """
        if self._stored.batch.layout == "history":
            return []
        return [name for name in self._stored.batch.metadata if name in _METADATA and self._texts.compares(name)]

    def _table_key(self, row: Row) -> Key:
        """Return the key of a row of the table, with the types that the records have."""
        key = []
        for number, name in enumerate(self._key_names):
            text, tags = row[name], self._tags.get(number, set()) - {"-"}
            if text[0] not in tags and text[0] != "-" and tags:
                if len(tags) > 1:
                    raise Undecided(f"the type of column {name} of the key changed: the rows cannot be matched")
                text = next(iter(tags)) + text[1:]
            key.append(text)
        return tuple(key)

    def _find(self, fold: KeyedFold, types: Mapping[str, str], folder: Path, *, chosen: bool) -> None:
        result, most = self.result, self._options.most
        unlike: dict[Key, TableDifference] = {}
        for key, row, copies in itertools.islice(fold.doubled(chosen=chosen), self._options.most):
            result.differences.append(
                TableDifference(
                    "doubled", self._named(key), fold.state(key).row, row, (), fold.state(key).places, copies
                )
            )
        for key, table, topic in fold.unlike(chosen=chosen):
            state = fold.state(key)
            columns = self._different(topic, table, types, state.places)
            if topic is None or table is None:
                kind: TableKind = "extra" if topic is None else "lost"
            elif columns:
                kind = "stale"
            else:
                continue
            if len(unlike) + len(result.differences) >= most:
                result.more = True
                break
            unlike[key] = TableDifference(kind, self._named(key), topic, table, columns, state.places)
        if unlike:
            applied = self._earlier(unlike, types, folder)
            for key, one in unlike.items():
                place = applied.get(key)
                if place is None or one.table is None:
                    result.differences.append(one)
                else:
                    result.differences.append(
                        TableDifference(
                            "not applied", one.key, one.topic, one.table, one.columns, one.places, applied=place
                        )
                    )

    def _named(self, key: Key) -> Row:
        return dict(zip(self._key_names, key, strict=False))

    def _different(
        self,
        topic: Row | None,
        table: Row | None,
        types: Mapping[str, str],
        places: Sequence[RecordPlace],
        *,
        note: bool = True,
    ) -> tuple[str, ...]:
        """Return the columns that differ. The value of a column that was added after the last record is not known."""
        if topic is None or table is None:
            return ()
        last = places[-1] if places else None
        found = []
        for name, text in table.items():
            other = topic.get(name)
            if name in self._metadata and text == NULL != other:  # written before --metadata named the column
                if note:
                    self.result.not_compared[name] = self.result.not_compared.get(name, 0) + 1
                continue
            is_older = last is not None and last.offset < self._returned.get((last.partition, name), 0)
            if other is None or other == UNKNOWN or is_older:
                if note and name in self._texts.kinds:
                    self.result.not_compared[name] = self.result.not_compared.get(name, 0) + 1
            elif not is_same_value(
                other, text, self._texts.kinds.get(name, ""), types[name], self._types.get(name, ())
            ):
                found.append(name)
        return tuple(found)

    def _earlier(
        self, unlike: Mapping[Key, TableDifference], types: Mapping[str, str], folder: Path
    ) -> dict[Key, RecordPlace]:
        """Read the topic again to find, for each key, the last record after which it had the table's row."""
        found: dict[Key, RecordPlace] = {}
        fold = KeyedFold(folder / "states.sqlite")
        try:
            for one in self._topic.records_before(self.result.topic, self._stored.batch.offsets):
                change = one.change
                if change is None or change.op == "t":
                    continue
                key = self._texts.record_key(change)
                difference = unlike.get(key)
                if difference is None:
                    continue
                fold.add(Record(key, one.record.key or b"", self._row(one, change), one.place))
                row = fold.state(key).row
                if row is None or difference.table is None:
                    continue
                if not self._different(row, difference.table, types, (one.place,), note=False):
                    found[key] = one.place
        finally:
            fold.close()
        return found

    # --- tables without a key --------------------------------------------------------------------------------------

    def _counted(self, folder: Path) -> None:
        """Compare the copies of each row, in the columns that all records have."""
        log = self._stored.batch.layout == "append"
        if self._stored.batch.layout is None:  # the state of an older release
            log = {name for name, _ in self._stored.columns()} >= {*_CHANGE_COLUMNS}
        names, fold = self._common_names(), CountedFold(folder / "rows.sqlite")
        try:
            self._count(fold, names, log=log)
            self._add_table(fold, names, log=log)
            rows = fold.unlike()
            self.result.differences += [_of_copies(*one) for one in itertools.islice(rows, self._options.most)]
            self.result.more = next(rows, None) is not None
        finally:
            fold.close()

    def _common_names(self) -> set[str]:
        """Return the columns that all records and the table have."""
        lists = {
            found.change.columns for found in self._records() if found.change is not None and found.change.op != "t"
        }
        known = {name.lower() for name, _ in self._stored.columns()}
        names = set.intersection(*map(set, lists)) if lists else set()
        if len(lists) > 1:
            names -= {*self._ambiguous}
        return {name for name in names if name.lower() in known and self._texts.compares(name)}

    def _count(self, fold: CountedFold, names: set[str], *, log: bool) -> None:
        result, recent = self.result, dict[int, None]()
        for found in self._records():
            change = found.change
            if change is None:
                continue
            if change.op == "t" and not log:
                fold.clear()
                result.topic_rows = 0
                continue
            if change.key is not None and not log:
                raise Undecided(f"records of topic {found.topic} have a key, but the table has none")
            if change.op != "r" and _is_repeated(change, recent):
                continue
            for row, copies in self._log_row(change, names) if log else self._steps(change):
                fold.add({name: row[name] for name in sorted(row) if log or name in names}, -copies)
                result.topic_rows += copies

    def _steps(self, change: Change) -> list[tuple[Row, int]]:
        if change.op in "ud" and change.before is None:
            raise Undecided(f"the records of topic {change.topic} do not have the row before a change")
        before = self._texts.row(change, change.before) if change.op in "ud" else None
        after = self._texts.row(change, change.after) if change.op != "d" else None
        return [(row, copies) for row, copies in ((before, -1), (after, 1)) if row is not None]

    def _log_row(self, change: Change, names: set[str]) -> list[tuple[Row, int]]:
        """Return the row of a table of changes (``--keyless append``)."""
        image = self._texts.row(change, change.after if change.after is not None else change.before) or {}
        own = _metadata_texts(change, None)
        return [({name: image.get(name, NULL) for name in names} | {name: own[name] for name in _CHANGE_COLUMNS}, 1)]

    def _add_table(self, fold: CountedFold, names: set[str], *, log: bool) -> None:
        metadata = _CHANGE_COLUMNS if log else ()
        columns = [one for one in self._compared_columns(metadata) if one[2] in names or one[2] in metadata]
        for name in self._types:
            if name not in names and self._is_chosen(name) and self._texts.compares(name):
                self.result.not_compared[name] = self.result.topic_rows
        for row in self._table_rows(columns):
            fold.add({name: row[name] for name in sorted(row)}, 1)
            self.result.table_rows += 1
        self._note_metadata(metadata)

    def _note_metadata(self, compared: Collection[str]) -> None:
        for name in self._stored.batch.metadata:
            if name not in compared and self.result.table_rows:
                self.result.not_compared[name] = self.result.table_rows


def _metadata_texts(change: Change, place: RecordPlace | None) -> Row:
    """Return the texts of the metadata columns of a change whose values are known.

    Columns that are null in the table are omitted.
    """
    at = change.position
    digits = at.file[len(at.file.rstrip("0123456789")) :]
    texts = {
        "__op": f"s{change.op}",
        "__source_ts_ms": f"i{at.ts_us // 1000}",
        "__source_ts": value_text(_EPOCH + dt.timedelta(milliseconds=at.ts_us // 1000)),
        "__source_file": f"i{int(digits)}" if digits else NULL,
        "__source_pos": f"i{at.pos}",
        "__source_row": f"i{change.row}",
        "__source_gtid": NULL if at.gtid is None else f"s{at.gtid}",
        "__source_server_id": f"i{at.server_id}",
        "__source_db": f"s{change.database}",
        "__source_table": f"s{change.table}",
    }
    if place is not None:
        texts |= {"__kafka_partition": f"i{place.partition}", "__kafka_offset": f"i{place.offset}"}
    return texts


def _is_repeated(change: Change, recent: dict[int, None]) -> bool:
    """Return whether, by place and content, a connector has written a change again after a crash."""
    at = change.position
    images = [None if row is None else repr(tuple(row.values())) for row in (change.before, change.after)]
    identity = hash((at.server_id, at.gtid, at.ts_us, at.file, at.pos, change.row, change.op, *images))
    if identity in recent:
        return True
    recent[identity] = None
    if len(recent) > _REPETITIONS:
        del recent[next(iter(recent))]
    return False


def _of_copies(row: Row, number: int) -> TableDifference:
    if number > 0:
        return TableDifference("extra", row, None, row, copies=number)
    return TableDifference("lost", row, row, None, copies=-number)
