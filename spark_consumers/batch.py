"""One batch of one table: from Kafka's records to the table's rows."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from rowtide.spark_consumers.columns.conversion import ConverterSettings
from rowtide.spark_consumers.columns.spark_types import quote
from rowtide.spark_consumers.errors import NotAnEnvelopeError
from rowtide.spark_consumers.formats.base import Effect, TableFormat
from rowtide.spark_consumers.messages.records import Group, KeyId, KnownSchemas, cut, known_schemas, survey
from rowtide.spark_consumers.messages.schemaless import key_without_schema, value_without_schema
from rowtide.spark_consumers.messages.segments import Segment, after, ordered_versions, segments, truncations
from rowtide.spark_consumers.messages.versions import KeyVersion, key_version, parse_schema, value_version
from rowtide.spark_consumers.outcome import Outcome
from rowtide.spark_consumers.rows.changes import Reading, keyed_changes, keyless_changes
from rowtide.spark_consumers.rows.evolution import Evolution, evolve
from rowtide.spark_consumers.rows.fold import (
    CONTENT,
    REMEMBERED,
    exchange,
    identities,
    latest,
    loose_content,
    unseen,
    without_repetitions,
)
from rowtide.spark_consumers.settings import CHANGE_COLUMNS, Keyless, Settings
from rowtide.spark_consumers.state import Batch, Commit

_OPERATIONS = {"r", "c", "u", "d", "t"}


@dataclass(frozen=True, slots=True)
class TableBatch:
    """Applies one batch to one table.

    Attributes:
        spark: a session of its own.
        table: the table's format.
        path: its directory.
        settings: of the run.
        outcome: is filled on the way.
        partitions: of the topic.
    """

    spark: SparkSession
    table: TableFormat
    path: str
    settings: Settings
    outcome: Outcome
    partitions: int

    def apply(self, raw: DataFrame, batch: Batch, sample: DataFrame | None = None) -> Batch:
        """Bring the table up to date.

        Args:
            raw: Kafka's records: ``partition``, ``offset``, ``key``, ``value``.
            batch: its numbers, and what earlier batches left.
            sample: some of the records, whose schemas most of the others have too: it makes large batches quick.

        Returns:
            The batch with what later ones must know.
        """
        known = known_schemas(sample) if sample is not None else KnownSchemas()
        records = cut(raw, known).persist()
        try:
            groups = survey(records, known)
            self._count(groups)
            return self._apply(records, groups, batch) if groups else batch
        finally:
            records.unpersist()

    def _count(self, groups: Sequence[Group]) -> None:
        for group in groups:
            operation = "tombstone" if group.tombstone else str(group.op)
            self.outcome.read[operation] += group.count
            if not group.tombstone and group.op not in _OPERATIONS:
                raise NotAnEnvelopeError(
                    f"topic {self.outcome.name.topic}, partition {group.partition}, offset {group.first}: "
                    + ("the record has no op: it is not a change event of a table" if group.op is None
                       else f"unknown operation {group.op!r}")
                    + ". Leave the topic out with --topics"
                )  # fmt: skip

    def _apply(self, records: DataFrame, groups: Sequence[Group], batch: Batch) -> Batch:
        truncated = None if self._is_log(groups) else truncations(groups, records)
        if truncated is not None:
            records = truncated.survivors(records, alone=self.partitions == 1)
        elif batch.truncation is not None and self.partitions > 1:
            records = after(records, batch.truncation)
        seen: tuple[int, ...] = ()
        if any(group.key_id == (None, None) and group.op in {"c", "u", "d"} for group in groups):
            seen = identities(records)
            records = unseen(records, batch.seen)
        reading = self._reading(records, groups, batch)
        if not reading.evolution.after:  # nothing but truncations, or tombstones of rows that were never seen
            return batch
        self.table.evolve(self.path, reading.evolution, batch.commit(0))
        self._note(reading.evolution)
        parts = segments(groups, records, lambda group: reading.keys[group.key_id].names) or [Segment(())]
        for step, segment in enumerate(parts, start=1):
            first = step == 1
            change = _Step(self, segment, reading, batch.commit(step), first, first and truncated is not None)
            self.outcome.effect += change.apply(segment.within(records), groups)
        known = None
        if reading.values and all(version.id is not None for version in reading.values):
            known = tuple(column.name for column in reading.values[-1].columns)
        return replace(
            batch,
            columns=known or batch.columns,
            truncation=truncated.newest if truncated else None,
            seen=(*batch.seen, *seen)[-REMEMBERED:],
        )

    def _is_log(self, groups: Sequence[Group]) -> bool:
        """Whether changes are appended, TRUNCATE among them."""
        keyed = any(group.key_schema or group.key_fields for group in groups)
        return self.settings.keyless is Keyless.APPEND and not keyed

    def _reading(self, records: DataFrame, groups: Sequence[Group], batch: Batch) -> Reading:
        """The schemas of the batch, and the table's columns after it."""
        topic, form = self.outcome.name.topic, ConverterSettings(self.settings.numeric_decimals)
        given = self.settings.schemas.get(topic, {})
        keys: dict[KeyId, KeyVersion] = {}
        for group in groups:
            if group.op == "t" or group.key_id in keys:
                continue
            if group.key_schema is not None:
                keys[group.key_id] = key_version(group.key_version, parse_schema(group.key_schema, topic), form)
            else:
                keys[group.key_id] = key_without_schema(records, group.key_fields, given.get("key"), form)
        texts = {group.value_version: group.value_schema for group in groups}
        values = []
        for version in ordered_versions(groups, records):
            text = texts[version]
            if text is not None:
                values.append(value_version(version, parse_schema(text, topic), form, topic))
            else:
                values.append(value_without_schema(records, given.get("value"), form, topic))
        without_key = any(not key.columns for key in keys.values())
        extra = CHANGE_COLUMNS if without_key and self.settings.keyless is Keyless.APPEND else ()
        before = self.table.columns(self.path)
        return Reading(
            evolve(str(self.outcome.name), before, list(keys.values()), values, batch.columns, extra), keys, values
        )

    def _note(self, evolution: Evolution) -> None:
        self.outcome.added += evolution.added
        self.outcome.widened += evolution.widened
        self.outcome.notes.extend(evolution.notes)


@dataclass(frozen=True, slots=True)
class _Step:
    """A part of a batch with one key, which becomes one commit of the table."""

    batch: TableBatch
    segment: Segment
    reading: Reading
    commit: Commit
    first: bool
    replaces: bool

    def apply(self, records: DataFrame, groups: Sequence[Group]) -> Effect:
        if self.segment.key_names:
            return self._by_key(records)
        if self.batch.settings.keyless is Keyless.APPEND:
            return self._append(records)
        return self._bag(records, takes=any(group.op in {"u", "d"} for group in groups))

    def _by_key(self, records: DataFrame) -> Effect:
        folded = latest(keyed_changes(records, self.reading, self.segment.key_names))
        try:
            return self.batch.table.upsert(
                self.batch.path,
                folded.rows,
                self.segment.key_names,
                fresh=self.reading.evolution.before is None and self.first,
                replace=self.replaces,
                commit=self.commit,
            )
        finally:
            folded.cached.unpersist()

    def _append(self, records: DataFrame) -> Effect:
        names = {name for name, _ in CHANGE_COLUMNS}
        image = "coalesce(after, before)"
        columns = [
            f"{image}.{quote(name)} AS {quote(name)}" for name, _ in self.reading.evolution.after if name not in names
        ]
        changes = keyless_changes(records, self.reading, truncations=True).selectExpr(
            *columns, "op AS __op", "ts_ms AS __source_ts_ms", "at.file AS __source_file", "at.pos AS __source_pos",
            "at.row AS __source_row",
        )  # fmt: skip
        return self._exchange(None, changes.select(*(quote(name) for name, _ in self.reading.evolution.after)))

    def _bag(self, records: DataFrame, *, takes: bool) -> Effect:
        changes = without_repetitions(keyless_changes(records, self.reading)).persist()
        try:
            if not takes:
                return self._exchange(None, changes.select("after.*"))
            found = exchange(changes, None if self.replaces else self._content(), self._loose())
            try:
                self.batch.outcome.unmatched += found.unmatched
                self._exchange(found.removed, found.added)
                return Effect(found.inserted, 0, found.deleted)
            finally:
                found.cached.unpersist()
        finally:
            changes.unpersist()

    def _exchange(self, removed: DataFrame | None, added: DataFrame) -> Effect:
        return self.batch.table.exchange(self.batch.path, removed, added, replace=self.replaces, commit=self.commit)

    def _content(self) -> DataFrame:
        names = [F.col(quote(name)) for name, _ in self.reading.evolution.after]
        return self.batch.table.read(self.batch.path).select(F.struct(*names).alias(CONTENT))

    def _loose(self) -> str:
        inexact = {c.name.lower() for version in self.reading.values for c in version.columns if c.inexact}
        return loose_content(self.reading.evolution.after, inexact)
