"""Applies one batch of records to one table."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import count, pairwise
from math import inf

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from rowtide.spark_consumers.columns.conversion import Column, ConverterSettings
from rowtide.spark_consumers.columns.metadata import CHANGE_FIELDS, MetadataField, metadata_fields, taken
from rowtide.spark_consumers.columns.spark_types import quote
from rowtide.spark_consumers.errors import (
    HistoryError,
    KeylessError,
    KeyWithoutValuesError,
    LayoutError,
    NotAnEnvelopeError,
    PlacingColumnError,
    SettingsError,
    SharedTopicError,
    UnorderedError,
)
from rowtide.spark_consumers.formats.base import RowCounts, TableFormat, no_rows, own_rows
from rowtide.spark_consumers.jvm.session import uncompiled
from rowtide.spark_consumers.kafka.offsets import Ranges
from rowtide.spark_consumers.kafka.source import Message
from rowtide.spark_consumers.messages.earlier import Earlier
from rowtide.spark_consumers.messages.records import (
    CLAIM_CHECK,
    KeyId,
    KnownSchemas,
    RecordGroup,
    is_unexpected,
    known_schemas,
    remaining_groups,
    split_messages,
    summarize,
)
from rowtide.spark_consumers.messages.returning import with_returning_columns
from rowtide.spark_consumers.messages.schemaless import key_without_schema, value_without_schema
from rowtide.spark_consumers.messages.segments import Segment, after, ordered_versions, segments, truncations
from rowtide.spark_consumers.messages.versions import KeyVersion, ValueVersion, key_version, parse_schema, value_version
from rowtide.spark_consumers.outcome import Outcome
from rowtide.spark_consumers.partitioning import require_columns
from rowtide.spark_consumers.rows.alterations import key_without_values, possibly_renamed
from rowtide.spark_consumers.rows.changes import (
    DELETED,
    OUT,
    BatchSchemas,
    keyed_changes,
    keyed_rows,
    keyless_changes,
    with_metadata,
    written,
)
from rowtide.spark_consumers.rows.computed import (
    require_same_computed,
    used_columns,
    with_computed,
    with_computed_columns,
)
from rowtide.spark_consumers.rows.evolution import Columns, Evolution, evolve, with_fills_where
from rowtide.spark_consumers.rows.history import (
    ENDS,
    KNOWN,
    Emptying,
    Unordered,
    Versions,
    emptyings,
    ends_of,
    without_expected_tombstones,
)
from rowtide.spark_consumers.rows.last import LastChanges
from rowtide.spark_consumers.rows.multiset import (
    CONTENT,
    REPETITION_WINDOW,
    normalized_content,
    record_hashes,
    row_changes,
    without_earlier,
    without_repetitions,
)
from rowtide.spark_consumers.rows.one_pass import OnePass
from rowtide.spark_consumers.rows.policy import changes_of, dropped, required, without_ignored
from rowtide.spark_consumers.rows.projection import after_renames as projection_after_renames
from rowtide.spark_consumers.rows.projection import chosen, of_new_table, require_key, require_same_columns
from rowtide.spark_consumers.rows.renames import NO_RENAMES, Renames, proven_names, renamed, table_renames
from rowtide.spark_consumers.rows.row_filter import (
    MATCHES,
    after_renames,
    former_names,
    matching_changes,
    matching_images,
    require_filter,
    require_same_filter,
    with_match,
)
from rowtide.spark_consumers.settings import (
    CHANGE_COLUMNS,
    CURRENT,
    DELETION,
    VERSION_COLUMNS,
    ChangeKind,
    Keyless,
    Layout,
    SchemaChange,
    Settings,
)
from rowtide.spark_consumers.state import (
    RENAMES,
    STRUCTURE,
    Batch,
    ColumnNames,
    Commit,
    Computed,
    Projection,
    RowFilter,
    Truncation,
)

_OPERATIONS = {"r", "c", "u", "d", "t"}


@dataclass(frozen=True, slots=True)
class TableBatch:
    """Applies one batch to one table.

    Attributes:
        spark: a session for this table alone.
        table: the table's format.
        path: the table's directory.
        settings: of the run.
        outcome: counters and notes are added to it.
        amend: stores additional data of the planned batch.
        partitions: number of partitions of the topic.
        built: whether earlier runs have applied records to the table.
        truncation: the newest TRUNCATE that earlier runs have read.
        layout: the layout of the table's rows after earlier runs, see :class:`Batch`.
    """

    spark: SparkSession
    table: TableFormat
    path: str
    settings: Settings
    outcome: Outcome
    amend: Callable[[Batch], None]
    partitions: int
    built: bool = False
    truncation: Truncation | None = None
    layout: str | None = None

    def apply(self, raw: DataFrame, batch: Batch, earlier: Earlier, sample: Iterable[Message] | None = None) -> Batch:
        """Apply the records of a batch.

        Args:
            raw: Kafka's records: ``partition``, ``offset``, ``key``, ``value``.
            batch: the planned batch.
            earlier: the records of earlier batches.
            sample: some of the messages. Large batches are faster if it contains the schemas of most records.

        Returns:
            The batch with the state after it.
        """
        known, history = known_schemas(sample or ()), self.settings.layout is Layout.HISTORY
        with uncompiled(self.spark) if sample is not None else nullcontext():
            again = earlier.following(batch.ranges) if self.partitions > 1 else {}
        in_one_pass = known.is_single and not again and self.settings.layout is Layout.ROWS
        if in_one_pass and (applied := self._apply_in_one_pass(raw, known, batch)) is not None:
            return applied
        split = split_messages(raw, known).persist()
        try:
            found = summarize(split, known, self.settings.unavailable_placeholder)
            self._count(found)
            records, groups = self._without_ignored(split, found)
            if history and self.partitions > 1 and not self._is_log(groups):
                self._require_order(records, groups, earlier.read(again) if again else None, known)
                again = {}
            if groups and earlier.ranges and self._begins_log(groups):
                split.unpersist()
                split = split_messages(raw.unionAll(earlier.read(earlier.ranges)), known).persist()
                groups = summarize(split, known, self.settings.unavailable_placeholder)
                return self._apply(split, groups, batch)
            if groups and again:
                return self._apply_with_earlier(records, groups, earlier, again, known, batch)
            return self._apply(records, groups, batch) if groups else batch
        finally:
            split.unpersist()

    def _require_order(
        self, records: DataFrame, groups: Sequence[RecordGroup], later: DataFrame | None, known: KnownSchemas
    ) -> None:
        """Require that the order of a key's records is known if there are several partitions.

        Args:
            records: of the batch.
            groups: of the batch.
            later: records of earlier batches that follow some of these in the binlog.
            known: some schemas.

        Raises:
            UnorderedError: it is not known.
        """
        table = str(self.outcome.name)
        if any(group.op == "t" for group in groups):
            raise UnorderedError(
                table,
                f"its topic has {self.partitions} partitions and a TRUNCATE, DROP TABLE or rename, and the records "
                "do not show its order relative to the changes in other partitions",
                "write the table to a topic with one partition and take a new snapshot, or ignore these changes with "
                "--exclude-changes truncate.table, so that rows stay current",
            )
        with_key = "key IS NOT NULL"
        keys = records.where(with_key).select("key", "partition")
        if later is not None:
            keys = keys.unionAll(split_messages(later, known).where(with_key).select("key", "partition"))
        moved = keys.groupBy("key").agg(F.expr("min(partition) <> max(partition) AS moved")).where("moved")
        if not moved.isEmpty():
            raise _moved(table)

    def _without_ignored(
        self, records: DataFrame, groups: Sequence[RecordGroup]
    ) -> tuple[DataFrame, Sequence[RecordGroup]]:
        """Return the records and groups without TRUNCATEs that are ignored.

        Raises:
            SchemaChangeError: a TRUNCATE exists, and it stops the table.
        """
        if not any(group.op == "t" for group in groups) or self._is_log(groups):
            return records, groups
        policy, what = self.settings.changes, "TRUNCATE, DROP TABLE, or a new name"
        required(str(self.outcome.name), policy, [(ChangeKind.TRUNCATE_TABLE, what)])
        if policy.applies(ChangeKind.TRUNCATE_TABLE):
            return records, groups
        return records.where("op IS NULL OR op <> 't'"), [group for group in groups if group.op != "t"]

    def _apply_in_one_pass(self, raw: DataFrame, known: KnownSchemas, batch: Batch) -> Batch | None:
        """Apply a batch whose messages all have the same two schemas, and return ``None`` for another one."""
        converter = ConverterSettings(self.settings.numeric_decimals)
        keys: dict[KeyId, KeyVersion] = {
            (number, None): self._key_version(number, text, converter) for number, text in known.key.items()
        }
        values = [self._value_version(number, text, converter) for number, text in known.value.items()]
        if _differ([*_known_structures(batch), *_structures(values)]):
            return None
        schemas = self._evolve(keys, values, {}, batch)
        evolution = schemas.evolution
        creates = evolution.before is None
        changes_table = not creates and (evolution.added or evolution.widened or evolution.fills)
        names = [name for key in schemas.keys.values() for name in key.names]
        if not names or changes_table or (batch.truncation is not None and self.partitions > 1):
            return None
        batch = self._with_layout(Layout.ROWS, schemas, batch)
        step = _Step(self, Segment(tuple(names)), schemas, batch.commit(1), creates=creates, replaces=False)
        one_pass = OnePass(raw, known, schemas, self.partitions, self.settings.unavailable_placeholder)
        try:
            if not creates:
                one_pass.rows.persist().count()  # a merge reads its source several times
            rows = step.write(one_pass.rows)
        except (PySparkException, Py4JJavaError) as error:  # not all of Java's errors are converted
            if is_unexpected(error):
                return None
            raise
        finally:
            one_pass.rows.unpersist()
        self.outcome.read += one_pass.counts()
        self.outcome.rows += rows
        self._note(evolution)
        return replace(self._with_structure(batch, schemas), truncation=None)

    def _key_version(self, number: int | None, schema: str, converter: ConverterSettings) -> KeyVersion:
        topic = self.outcome.name.topic
        return key_version(number, parse_schema(schema, topic), converter, topic)

    def _value_version(self, number: int | None, schema: str, converter: ConverterSettings) -> ValueVersion:
        topic = self.outcome.name.topic
        return value_version(number, parse_schema(schema, topic), converter, topic)

    def _count(self, groups: Sequence[RecordGroup]) -> None:
        for group in groups:
            operation = "tombstone" if group.tombstone else str(group.op)
            self.outcome.read[operation] += group.count
            if not group.tombstone and group.op not in _OPERATIONS:
                raise NotAnEnvelopeError(
                    f"topic {self.outcome.name.topic}, partition {group.partition}, offset {group.first}: "
                    + ("the value of the record is not in Kafka, but in a folder of claim checks "
                       "(rowtide.large.records=claim-check): name it with --claim-checks"
                       if group.op == CLAIM_CHECK
                       else "the record has no op: it is not a change event of a table" if group.op is None
                       else f"unknown operation {group.op!r}")
                    + ". Exclude the topic with --topics, remove the transform that unwraps the envelope "
                    "(ExtractNewRecordState), or name the schema registry of Avro and Protobuf with --registry or "
                    "--config"
                )  # fmt: skip

    def _apply_with_earlier(
        self,
        records: DataFrame,
        groups: Sequence[RecordGroup],
        earlier: Earlier,
        again: Ranges,
        known: KnownSchemas,
        batch: Batch,
    ) -> Batch:
        """Apply the records together with those of earlier batches that follow some of them in the binlog.

        The last change of a key has the same result when it is applied again. A change without a key does not, unless
        a TRUNCATE precedes all such changes.
        """
        more = split_messages(earlier.read(again), known).persist()
        try:
            placeholder = self.settings.unavailable_placeholder
            both, found = self._without_ignored(records.unionAll(more), [*groups, *summarize(more, known, placeholder)])
            is_log = self._is_log(found)
            newest = None if is_log else truncations(found, both)
            if newest is not None and (batch.truncation is None or newest.newest > batch.truncation):
                earlier.require(again, newest.newest)
            elif is_log or any(group.key_id == (None, None) and group.op != "t" for group in found):
                return self._apply(records, groups, batch)
            return self._apply(both, found, batch)
        finally:
            more.unpersist()

    def _apply(self, records: DataFrame, groups: Sequence[RecordGroup], batch: Batch) -> Batch:
        is_log, is_soft = self._is_log(groups), self.settings.keeps_deleted
        is_history = self.settings.layout is Layout.HISTORY and not is_log
        keeps_all = is_log or is_history
        truncated = None if keeps_all else truncations(groups, records)
        known = batch.truncation if self.partitions > 1 and not keeps_all else None
        preceding: DataFrame | None = None
        if truncated is not None and (known is None or truncated.newest > known):
            if is_soft:
                preceding = truncated.records_before(records, alone=self.partitions == 1)
            records = truncated.records_after(records, alone=self.partitions == 1)
        elif known is not None:
            truncated, records = None, after(records, known)
        elif is_history:
            records, groups = without_expected_tombstones(records, groups)
        if self.built and truncated is None and self.settings.keyless is Keyless.APPLY:
            keyless = (group for group in groups if group.op == "r" and group.key_id == (None, None))
            self.outcome.reread += sum(group.count for group in keyless)
        seen: Mapping[int, tuple[int, ...]] = {}
        structured = records if preceding is None else preceding.unionAll(records)
        schemas = self._schemas(structured, groups, batch, is_log=is_log)
        batch = self._with_layout(Layout.APPEND if is_log else self.settings.layout, schemas, batch)
        streamed = {"c", "u", "d", "t"} if keeps_all else {"c", "u", "d"}
        if any((keeps_all or group.key_id == (None, None)) and group.op in streamed for group in groups):
            seen = record_hashes(records, batch.offsets, log=keeps_all)
            if truncated is None:  # it has removed the rows of earlier records, so they count when they are repeated
                records = without_earlier(records, batch.seen, log=keeps_all)
                if batch.seen and schemas.differ_from(batch.columns):
                    # Repeated records from before an ALTER TABLE would add its columns again and reset their values.
                    groups = remaining_groups(groups, records, self.settings.unavailable_placeholder)
                    schemas = self._schemas(records, groups, batch, is_log=is_log)
        empties = not is_log and any(group.op == "t" for group in groups)
        if empties and (shards := _shards(schemas, batch)):
            raise SharedTopicError(str(self.outcome.name), ", ".join(shards))
        done = replace(batch, truncation=truncated.newest if truncated else self._truncation_after(batch))
        if not schemas.evolution.after:  # only truncations, or tombstones of unknown rows
            return done
        if truncated is None:
            self._require_keys(schemas, groups, batch)
        creates = schemas.evolution.before is None and truncated is None
        if schemas.names is not None and batch.names is None:
            self.amend(replace(batch, names=schemas.names))
        renames = schemas.evolution.renames
        if renames and (note := self.table.rename(self.path, renames, batch.commit(RENAMES))):
            self.outcome.notes.append(note)
        if not creates:
            self.table.evolve(self.path, schemas.evolution, batch.commit(STRUCTURE))
        self._note(schemas.evolution)
        steps = count(1)

        def apply(records: DataFrame, *, replaces: bool) -> None:
            nonlocal creates
            parts = [Segment(())]
            if not is_log:
                parts = segments(groups, records, lambda group: schemas.keys[group.key_id].names) or parts
            emptied = emptyings(records) if is_history and any(group.op == "t" for group in groups) else []
            for segment, ends in zip(parts, _emptied(parts, emptied), strict=True):
                change = _Step(
                    self, segment, schemas, batch.commit(next(steps)), creates=creates, replaces=replaces,
                    is_log=is_log, emptied=ends,
                )  # fmt: skip
                creates = replaces = False
                self.outcome.rows += change.apply(segment.within(records), groups)

        if preceding is not None:
            apply(preceding, replaces=False)
            self.outcome.rows += self._mark_all(schemas, batch.commit(next(steps)))
        apply(records, replaces=truncated is not None and preceding is None)
        done = self._with_structure(done, schemas, is_log=is_log)
        recent = {number: (*batch.seen.get(number, ()), *found)[-REPETITION_WINDOW:] for number, found in seen.items()}
        return replace(done, seen={**batch.seen, **recent})

    def _mark_all(self, schemas: BatchSchemas, commit: Commit) -> RowCounts:
        """Mark all rows as deleted, in one step."""
        marked = self.rows().withColumn(DELETION[0], F.lit(True))
        columns = [quote(name) for name, _ in schemas.evolution.after]
        counts = self.table.replace_rows(self.path, None, marked.select(*columns), replace=True, commit=commit)
        return RowCounts(deleted=counts.inserted)

    def _with_layout(self, wanted: Layout, schemas: BatchSchemas, batch: Batch) -> Batch:
        """Require that the rows of an existing table have the layout that this run would write.

        Returns:
            The batch with the layout of a new table. It is stored before the table has any rows: after a crash, another
            run may demand a different one.

        Raises:
            LayoutError: they have another layout.
        """
        evolution = schemas.evolution
        if self._is_first(evolution.before, batch):
            if evolution.after:
                batch = replace(
                    batch, layout=wanted, where=schemas.where, projection=schemas.projection, computed=schemas.computed
                )
                self.amend(batch)
            return batch
        is_log = batch.layout is None and set(CHANGE_COLUMNS) <= set(evolution.before or ())
        stored = batch.layout or (Layout.APPEND if is_log else Layout.ROWS)
        if stored != wanted:
            raise LayoutError(str(self.outcome.name), stored, wanted)
        return batch

    def _is_first(self, before: Columns | None, batch: Batch) -> bool:
        """Return whether the table, which may have the rows of other topics, has none of this one.

        Args:
            before: the table's columns; ``None`` if it does not exist.
            batch: the planned batch.
        """
        return before is None or (self.settings.shard is not None and batch.layout is None)

    def rows(self) -> DataFrame:
        """Return the rows of this topic in the table."""
        return own_rows(self.table.read(self.path), self.settings.shard)

    def _require_keys(self, schemas: BatchSchemas, groups: Sequence[RecordGroup], batch: Batch) -> None:
        """Require that existing rows have values in the columns of the key."""
        keys, values = schemas.keys.values(), schemas.values
        found = key_without_values(keys, values, schemas.last_known)
        if found and schemas.evolution.before is not None and self.rows().isEmpty():
            found = key_without_values(keys, values, None)  # only rows of this batch can be older
        if found is None:
            return
        version, column = found
        first = min((g.partition, g.first) for g in groups if g.value_version == version.id and not g.tombstone)
        name = self.outcome.name
        raise KeyWithoutValuesError(str(name), name.topic, column.name, f"partition {first[0]}, offset {first[1]}")

    def _truncation_after(self, batch: Batch) -> Truncation | None:
        """Return the TRUNCATE that also applies to later batches, if this one has none.

        All partitions have passed it at the end of the run after the one that has read it. It is not kept forever:
        binlog positions are not comparable after a failover to another server.
        """
        limit = self.settings.max_records
        is_cut = limit is not None and any(end - first >= limit for first, end in batch.ranges.values())
        return None if batch.truncation == self.truncation and not is_cut else batch.truncation

    def _is_log(self, groups: Sequence[RecordGroup]) -> bool:
        """Return whether all changes are appended as rows, including TRUNCATE.

        TRUNCATEs have no key, whether the table has one or not. If there are no other records, only the columns of the
        table show it.
        """
        if self.settings.layout is Layout.APPEND:
            return True
        keyed = any(group.key_schema or group.key_fields for group in groups)
        if self.settings.keyless is not Keyless.APPEND or keyed:
            return False
        if any(group.op != "t" for group in groups):
            return True
        columns = self.table.columns(self.path)
        if self.layout is not None:
            return self.layout == Layout.APPEND and columns is not None
        return columns is not None and set(CHANGE_COLUMNS) <= set(columns)

    def _begins_log(self, groups: Sequence[RecordGroup]) -> bool:
        """Return whether the first rows are appended.

        Earlier batches had only TRUNCATEs, which are now known to be rows, too.
        """
        return self._is_log(groups) and not self.table.exists(self.path)

    def _schemas(
        self, records: DataFrame, groups: Sequence[RecordGroup], batch: Batch, *, is_log: bool
    ) -> BatchSchemas:
        """Return the schemas of the batch and the table's columns after it."""
        topic = self.outcome.name.topic
        some_without = any(
            (group.key_fields is not None) or (group.value_schema is None and not group.tombstone) for group in groups
        )
        lacking = self.settings.unavailable_placeholder if any(group.lacking for group in groups) else None
        converter = ConverterSettings(self.settings.numeric_decimals, lacking)
        supplied = self.settings.schemas.get(topic, {}) if some_without else {}
        keys: dict[KeyId, KeyVersion] = {}
        for group in groups:
            if group.op == "t" or group.key_id in keys:
                continue
            if group.key_schema is not None:
                keys[group.key_id] = self._key_version(group.key_version, group.key_schema, converter)
            else:
                keys[group.key_id] = key_without_schema(group.key_fields, supplied.get("key"), converter, topic)
        texts = {group.value_version: group.value_schema for group in groups}
        values = []
        for version in ordered_versions(groups, records, truncations=is_log):
            text = texts[version]
            if text is not None:
                values.append(self._value_version(version, text, converter))
            else:
                supplied_value = supplied.get("value")
                values.append(value_without_schema(records, supplied_value, converter, topic, truncations=is_log))
        if self.partitions == 1:
            values = with_returning_columns(values, groups, records)
        rows: dict[KeyId, set[int | None]] = {}
        for group in groups:
            if not group.tombstone and group.op != "t":
                rows.setdefault(group.key_id, set()).add(group.value_version)
        return self._evolve(keys, values, rows, batch, is_log=is_log)

    def _evolve(
        self,
        keys: Mapping[KeyId, KeyVersion],
        values: Sequence[ValueVersion],
        rows: Mapping[KeyId, Collection[int | None]],
        batch: Batch,
        *,
        is_log: bool = False,
    ) -> BatchSchemas:
        """Return the schemas with the names of the table, and with the table's columns after the batch.

        Args:
            keys: the schemas of keys.
            values: the schemas of rows, oldest first.
            rows: the versions of the rows of each key's schema; a key of tombstones alone has none.
            batch: the planned batch.
            is_log: whether all changes are appended.
        """
        is_soft = self.settings.keeps_deleted and not is_log
        is_history = self.settings.layout is Layout.HISTORY and not is_log
        if any(not key.columns for key in keys.values()) and not is_log:
            if is_history:
                raise KeylessError(
                    str(self.outcome.name), "it has no key, by which --history finds the versions of a row"
                )
            if is_soft:
                raise KeylessError(
                    str(self.outcome.name), "it has no key, which --soft-delete needs to find a deleted row"
                )
            if self.settings.keyless is Keyless.APPEND:
                raise KeylessError(str(self.outcome.name), "only a part of its records has a key (--keyless append)")
        changes = metadata_fields(CHANGE_FIELDS) if is_log else ()
        shard = self.settings.shard
        metadata = metadata_fields(field.name for field in (*changes, *self.settings.metadata))
        metadata = metadata if shard is None else (*metadata, shard.field)
        self._refuse_taken(metadata, keys.values(), values)
        before, name = self.table.columns(self.path), str(self.outcome.name)
        is_first = self._is_first(before, batch)
        is_known = before is not None or bool(keys or values)
        extra = tuple((field.column, field.type) for field in metadata) if is_known else ()
        extra = (DELETION, *extra) if is_known and is_soft else extra
        extra = (*VERSION_COLUMNS, *extra) if is_known and is_history else extra
        names, unproven = self._names(values, batch)
        last, types, renames = batch.columns, batch.types, NO_RENAMES
        newest = values[-1].columns if values else None
        if names is not None:
            first = 0 if last is None else 1
            keys = {
                number: replace(key, columns=_key_columns(key, values, rows.get(number, ()), names, first))
                for number, key in keys.items()
            }
            values = [replace(one, columns=renamed(one.columns, names.of[i])) for i, one in enumerate(values, first)]
            newest = values[names.newest - first].columns if names.newest >= first else None
            if last is not None:
                kept = [(i, new) for i, column in enumerate(last) if (new := names.of[0].get(column.lower()))]
                last, types = tuple(new for _, new in kept), types and tuple(types[i] for i, _ in kept)
                renames = table_renames([column for column, _ in before or ()], names.of[0])
        computed = self._computed(values, names, batch, is_new=is_first)
        projection, hidden = self._projection(keys.values(), values, names, batch, is_new=is_first), set[str]()
        if projection is not None:
            used = {} if computed is None else used_columns(self.spark, name, computed)
            hidden = {column for found in used.values() for column in found if not projection.has(column)}
            read = replace(projection, current=(*projection.current, *hidden))
            values = [replace(version, columns=chosen(version.columns, read)) for version in values]
            if last is not None:
                kept = [(i, column) for i, column in enumerate(last) if read.has(column)]
                last, types = tuple(column for _, column in kept), types and tuple(types[i] for i, _ in kept)
        policy, newest_names = self.settings.changes, last or () if newest is None else [one.name for one in newest]
        structures = [last or (), *([column.name for column in version.columns] for version in values)]
        key_names = {column.name.lower() for key in keys.values() for column in key.columns}
        gone = dropped(structures, newest_names, key_names) if names is not None or self.partitions == 1 else set()
        layout = [*self.settings.partition_by, *self.settings.cluster_by]
        going = gone if names is not None and policy.applies(ChangeKind.DROP_COLUMN) else set()
        going = going - {one.column.lower() for one in layout}  # which a table cannot lose
        is_renamed = bool(renames or going) and batch.commit(RENAMES).is_applied(
            self.table.newest_commit(self.path, batch.app_id)
        )
        renames = NO_RENAMES if is_renamed else renames
        if before is not None and (going or renames.dropped):
            going = self._without_placing(going, renames)
        if not is_renamed:
            renames = renames.without([column for column, _ in before or ()], going)
        evolution = evolve(
            name,
            before,
            list(keys.values()),
            values,
            last,
            extra,
            last_types=types,
            uneven=self.partitions > 1,
            renames=renames,
            unproven=unproven,
            fixed_types=policy.ignores(ChangeKind.ALTER_COLUMN_TYPE),
            tolerant=policy.behavior is SchemaChange.TRY_EVOLVE,
        ).with_hidden(hidden)
        own = {column for column, _ in extra}
        required(name, policy, changes_of(evolution, gone, own))
        evolution = without_ignored(name, evolution, policy, key_names, going, own)
        found = BatchSchemas(
            evolution, keys, values, last, newest, names, metadata, soft=is_soft, history=is_history,
            projection=projection, computed=computed,
        )  # fmt: skip
        if computed is not None and found.has_rows:
            kinds, sources = dict(evolution.images), found.source_columns
            columns = tuple((column, kinds[column]) for column in sources)
            evolution = with_computed_columns(
                self.spark, name, evolution, computed, columns, found.structures, is_new=last is None
            )
        if before is None and evolution.after:
            require_columns(name, layout, [column for column, _ in evolution.after])
        changed = [CURRENT] if is_history else []  # what has ended is not changed any more
        changed += [] if shard is None else [shard.rows()]
        if changed:
            evolution = with_fills_where(evolution, " AND ".join(changed))
        if projection is not None and (gone := {*gone} - going):
            note = (
                f"{name}: {', '.join(sorted(gone))} of --columns was dropped, or has a new name that the schema "
                f"history does not prove: null in rows that are written from now on"
            )
            evolution = replace(evolution, notes=(*evolution.notes, note))
        found = replace(found, evolution=evolution)
        return replace(found, where=self._row_filter(found, batch))

    def _computed(
        self, values: Sequence[ValueVersion], names: ColumnNames | None, batch: Batch, *, is_new: bool
    ) -> Computed | None:
        """Return the computed columns, with the names of MySQL's columns after the batch; ``None`` if there are none.

        Raises:
            ComputedColumnsError: the table has others than those of this run.
        """
        found, wanted = batch.computed, self.settings.computed
        if not is_new:
            require_same_computed(str(self.outcome.name), found, wanted)
        elif wanted:
            columns = {column.name for version in values for column in version.columns}
            found = Computed(wanted, former_names(columns, values))
        if found is None or names is None or batch.columns is None:
            return found
        return after_renames(found, names.names_now(batch.columns))

    def _projection(
        self,
        keys: Collection[KeyVersion],
        values: Sequence[ValueVersion],
        names: ColumnNames | None,
        batch: Batch,
        *,
        is_new: bool,
    ) -> Projection | None:
        """Return which columns the table has, with their names after the batch; ``None`` for all.

        Raises:
            ProjectionError: it has others than those of this run.
            SettingsError: records lack a column, or a column of the key is not chosen.
        """
        name, found, wanted = str(self.outcome.name), batch.projection, self.settings.columns
        if is_new:
            found = of_new_table(name, wanted, keys, values) if wanted and (keys or values) else None
        else:
            require_same_columns(name, found, wanted)
        if found is None:
            return None
        if names is not None and batch.columns is not None:
            found = projection_after_renames(found, names)
        require_key(name, found, keys)
        return found

    def _row_filter(self, schemas: BatchSchemas, batch: Batch) -> RowFilter | None:
        """Return which rows the table has, with the names of its columns after the batch.

        Raises:
            RowFilterError: its rows are those of another filter.
            SettingsError: the filter cannot be used.
        """
        name, evolution, wanted = str(self.outcome.name), schemas.evolution, self.settings.where
        found = batch.where
        is_first = self._is_first(evolution.before, batch)
        if not is_first:
            require_same_filter(name, found, wanted)
        if wanted is None or not evolution.after:
            return found
        own = {*schemas.row_columns}
        columns = tuple(column for column in evolution.after if column[0] in own)
        if is_first or found is None:
            found = RowFilter(wanted, former_names([column for column, _ in columns], schemas.values))
        if schemas.names is not None and batch.columns is not None:
            found = after_renames(found, schemas.names.names_now(batch.columns))
        require_filter(self.spark, name, found, columns, schemas.structures, is_new=schemas.last_known is None)
        return found

    def _without_placing(self, going: Collection[str], renames: Renames) -> set[str]:
        """Return the columns to drop, in lower case, without those by which the table is partitioned or clustered.

        Raises:
            PlacingColumnError: another column now has the name of one of them.
        """
        placing = self.table.placing_columns(self.path)
        if lost := {*placing} & {*renames.dropped}:
            raise PlacingColumnError(str(self.outcome.name), min(lost))
        return {*going} - {(renames.new_name(name) or name).lower() for name in placing}

    def _refuse_taken(
        self, metadata: Sequence[MetadataField], keys: Iterable[KeyVersion], values: Iterable[ValueVersion]
    ) -> None:
        """Refuse metadata whose column also exists in MySQL's table."""
        names = {column.field for key in keys for column in key.columns}
        names |= {column.field for version in values for column in version.columns}
        for field in taken(metadata, names):
            way_out = (
                "which a log of changes needs (--append, --keyless append): use neither"
                if field.name in CHANGE_FIELDS and field not in self.settings.metadata
                else "which is also the metadata column: remove it from --metadata"
                if field in self.settings.metadata
                else "which is also the shard-column of --job: choose another one"
            )
            raise SettingsError(f"table {self.outcome.name} has a column {field.column} in MySQL, {way_out}")
        if self.settings.keeps_deleted and DELETION[0] in {name.lower() for name in names}:
            raise SettingsError(
                f"table {self.outcome.name} has a column {DELETION[0]} in MySQL, which --soft-delete needs: "
                f"exclude the topic with --topics"
            )
        own = [name for name, _ in VERSION_COLUMNS if name in {other.lower() for other in names}]
        if own and self.settings.layout is Layout.HISTORY:
            raise SettingsError(
                f"table {self.outcome.name} has a column {own[0]} in MySQL, which --history needs: exclude the topic "
                f"with --topics"
            )
        computed = self.settings.computed
        own = [*computed, *(field.column for field in metadata), DELETION[0], *(name for name, _ in VERSION_COLUMNS)]
        known = {name.lower() for name in names}
        found = Counter(map(str.lower, own))
        if both := [name for name in own if found[name.lower()] > 1 or (name in computed and name.lower() in known)]:
            raise SettingsError(
                f"table {self.outcome.name} has another column {both[0]}: choose another name in --compute, or another "
                f"shard-column in --job, and use --restart {self.outcome.name} if the table exists"
            )

    def _names(self, values: Sequence[ValueVersion], batch: Batch) -> tuple[ColumnNames | None, str | None]:
        """Return the names that the schema history proves, or the reason why it proves none.

        Raises:
            HistoryError: a column may have been renamed, and the history cannot currently be read.
        """
        structures = [*_known_structures(batch), *_structures(values)]
        if not _differ(structures):
            return None, ""
        if batch.names is not None and _belong(batch.names, structures):
            return batch.names, None
        if any(version.id is None for version in values):
            return None, ""
        policy = self.settings.changes
        if policy.ignores(ChangeKind.RENAME_COLUMN):
            return None, f"; the table does not follow them (--schema-change {policy.behavior}, --exclude-changes)"
        if self.settings.structures is None:
            return None, "; with --config, the schema history does"
        try:
            names = proven_names(structures, self.settings.structures(self.outcome.name.topic))
        except SettingsError as error:
            return None, f", and there is no schema history ({error})"
        except HistoryError:
            untyped = [[(name, None) for name in structure] for structure in structures]
            if any(possibly_renamed(old, new) for old, new in pairwise(untyped)):
                raise
            return None, ""
        return names, ", and neither does the schema history" if names is None else None

    def _with_structure(self, batch: Batch, schemas: BatchSchemas, *, is_log: bool = False) -> Batch:
        """Return the batch with the columns of the table, and the structure of its newest row, if it has one."""
        if batch.metadata and (left := {*batch.metadata} - {field.column for field in schemas.metadata}):
            self.outcome.notes.append(
                f"{self.outcome.name}: --metadata does not name {', '.join(sorted(left))} any more: these columns are "
                "null in rows that are written from now on"
            )
        metadata = tuple(dict.fromkeys((*batch.metadata, *(field.column for field in schemas.metadata))))
        layout = Layout.APPEND if is_log else self.settings.layout
        batch = replace(
            batch, metadata=metadata, layout=layout, where=schemas.where, projection=schemas.projection,
            computed=schemas.computed,
        )  # fmt: skip
        if not (columns := schemas.newest):
            return batch
        names = tuple(c.name for c in columns)
        shards = _shards(schemas, batch)
        return replace(batch, columns=names, types=tuple(c.type for c in columns), shards=shards)

    def _note(self, evolution: Evolution) -> None:
        self.outcome.renamed += tuple(evolution.renames.names.items())
        self.outcome.dropped += evolution.renames.dropped
        self.outcome.added += evolution.added
        self.outcome.widened += evolution.widened
        self.outcome.notes.extend(evolution.notes)


def _moved(table: str) -> UnorderedError:
    return UnorderedError(
        table,
        "records of the same key are in several partitions of its topic, as after their number was raised",
        f"take a new snapshot into a topic that keeps its number of partitions, and use --restart {table}",
    )


def _emptied(parts: Sequence[Segment], emptied: Sequence[Emptying]) -> list[list[Emptying]]:
    """Return the TRUNCATEs of each segment of a topic with one partition: those until the next one."""
    starts = [min(first for _, first, _ in part.windows or [(0, 0, 0)]) for part in parts]
    limits: list[float] = [-inf, *starts[1:], inf]
    return [[one for one in emptied if low <= one.offset < high] for low, high in pairwise(limits)]


def _known_structures(batch: Batch) -> list[list[str]]:
    """Return the columns of the newest row of earlier batches, if there is one."""
    return [] if batch.columns is None else [list(batch.columns)]


def _structures(values: Sequence[ValueVersion]) -> list[list[str]]:
    """Return the columns of rows. Records of a delete may have none."""
    return [[column.field for column in version.columns] for version in values]


def _differ(structures: Sequence[Sequence[str]]) -> bool:
    return len({tuple(name.lower() for name in structure) for structure in structures}) > 1


def _belong(names: ColumnNames, structures: Sequence[Sequence[str]]) -> bool:
    known = [{name.lower() for name in structure} for structure in structures]
    return len(names.of) == len(known) and all(of.keys() <= found for of, found in zip(names.of, known, strict=True))


def _key_columns(
    key: KeyVersion,
    values: Sequence[ValueVersion],
    rows: Collection[int | None],
    names: ColumnNames,
    first: int,
) -> tuple[Column, ...]:
    """Return the columns of a key with their names in the table.

    They are the names in its rows. A tombstone whose record was in an earlier batch has the names of that record.
    """
    index = max((index for index, one in enumerate(values, first) if one.id in rows), default=0)
    return renamed(key.columns, {column.field.lower(): column.name for column in key.columns} | dict(names.of[index]))


def _shards(schemas: BatchSchemas, batch: Batch) -> tuple[str, ...]:
    """Return the columns that keys have in addition to columns of rows, and that no row has or had.

    Args:
        schemas: of a batch.
        batch: the state before it.
    """
    own = {name.lower() for name in batch.columns or ()}.union(*(version.names for version in schemas.values))
    found = [key.names for key in schemas.keys.values() if own.intersection(map(str.lower, key.names))]
    return tuple(dict.fromkeys(name for names in found for name in names if name.lower() not in own)) or batch.shards


@dataclass(frozen=True, slots=True)
class _Step:
    """A segment of a batch with the same key columns, which becomes one commit of the table."""

    batch: TableBatch
    segment: Segment
    schemas: BatchSchemas
    commit: Commit
    creates: bool
    replaces: bool
    is_log: bool = False
    emptied: Sequence[Emptying] = ()

    def apply(self, records: DataFrame, groups: Sequence[RecordGroup]) -> RowCounts:
        if self.schemas.history:
            return self._add_versions(records, groups)
        if self.segment.key_names:
            return self._by_key(records, groups)
        if self.is_log:
            return self._append(records)
        return self._apply_to_multiset(records, removes=any(group.op in {"u", "d"} for group in groups))

    def _by_key(self, records: DataFrame, groups: Sequence[RecordGroup]) -> RowCounts:
        names = self.segment.key_names
        with LastChanges(keyed_changes(records, self.schemas, names), soft=self.schemas.soft) as last:
            return self.write(keyed_rows(last.within(records), self.schemas, names, groups))

    def write(self, rows: DataFrame) -> RowCounts:
        """Write the rows after the changes: the table's columns and :data:`DELETED`."""
        if (where := self.schemas.where) is not None:
            matched = with_match(rows, where, self.schemas.row_columns)
            if self.schemas.soft:
                rows = matched.withColumn(OUT, F.expr(f"NOT {DELETED} AND NOT {MATCHES}")).drop(MATCHES)
            else:
                rows = matched.withColumn(DELETED, F.expr(f"{DELETED} OR NOT {MATCHES}")).drop(MATCHES)
        rows = with_computed(rows, self.schemas, no_row=DELETED)
        if self.creates:
            return self._create(rows.where(written(rows)).drop(DELETED, OUT))
        names = self.segment.key_names
        return self.batch.table.upsert(self.batch.path, rows, names, replace=self.replaces, commit=self.commit)

    def _add_versions(self, records: DataFrame, groups: Sequence[RecordGroup]) -> RowCounts:
        table, path, names = self.batch.table, self.batch.path, self.segment.key_names
        # After a crash, the table may already have the versions, and its rows are not those from before the batch.
        if self.commit.is_applied(table.newest_commit(path, self.commit.app_id)):
            return RowCounts()
        ends = ends_of(self.schemas, groups, self.emptied)
        if not names and not self.emptied:  # only tombstones of rows that are gone
            return RowCounts()
        if not names:  # only TRUNCATEs
            rows = no_rows(self.batch.spark, self.schemas.evolution.after).withColumn(ENDS, F.lit(True))
            return table.add_versions(path, rows.withColumn(KNOWN, F.lit(0)), names, ends, self.commit)
        own = {*self.schemas.row_columns}
        compared = tuple(column for column in self.schemas.evolution.after if column[0] in own)
        existing = None if self.creates else self.batch.rows()
        normalized = normalized_content(compared, self._inexact)
        with Versions(records, self.schemas, names, groups, self.emptied, existing, compared, normalized) as versions:
            self._require_order(versions.unordered())
            if self.creates:
                return self._create(versions.rows().drop(ENDS, KNOWN))
            return table.add_versions(path, versions.rows(), names, ends, self.commit)

    def _require_order(self, found: Unordered) -> None:
        name = self.batch.outcome.name
        if found.moved:
            raise _moved(str(name))
        if found.tombstone is not None:
            partition, offset = found.tombstone
            raise UnorderedError(
                str(name),
                f"topic {name.topic} has a tombstone without the record of the deletion at partition {partition}, "
                f"offset {offset}, as after compaction (cleanup.policy=compact), which removes records",
                "let the topic keep all records (cleanup.policy=delete), take a new snapshot, delete the records "
                f"before that snapshot from the topic, and build the table again with --restart {name}",
            )

    def _append(self, records: DataFrame) -> RowCounts:
        changes = without_repetitions(keyless_changes(records, self.schemas, log=True))
        if (where := self.schemas.where) is not None:
            changes = matching_changes(changes, where, self.schemas.row_columns)
        rows = changes.selectExpr(*with_metadata(self.schemas, "coalesce(after, before)"))
        return self._replace_rows(None, with_computed(rows, self.schemas, no_row="__op = 't'"))

    def _apply_to_multiset(self, records: DataFrame, *, removes: bool) -> RowCounts:
        changes = without_repetitions(keyless_changes(records, self.schemas))
        if (where := self.schemas.where) is not None:
            changes = matching_images(changes, where, self.schemas.row_columns)
        if self.schemas.metadata:
            row = f"IF(after IS NULL, NULL, struct({', '.join(with_metadata(self.schemas, 'after'))}))"
            changes = changes.withColumn("after", F.expr(row))
        for image in ("before", "after"):
            changes = with_computed(changes, self.schemas, image)
        changes.persist()
        try:
            if not removes:
                return self._replace_rows(None, changes.select("after.*"))
            empty = self.creates or self.replaces
            found = row_changes(changes, None if empty else self._content(), self._normalized())
            try:
                self.batch.outcome.unmatched += found.unmatched
                self._replace_rows(found.removed, found.added)
                return RowCounts(found.inserted, 0, found.deleted)
            finally:
                found.cached.unpersist()
        finally:
            changes.unpersist()

    def _create(self, rows: DataFrame) -> RowCounts:
        columns = self.schemas.evolution.after
        typed = rows.selectExpr(*(f"CAST({quote(name)} AS {kind}) AS {quote(name)}" for name, kind in columns))
        return self.batch.table.create(self.batch.path, columns, typed, self.commit)

    def _replace_rows(self, removed: DataFrame | None, added: DataFrame) -> RowCounts:
        if self.creates:
            return self._create(added)
        return self.batch.table.replace_rows(self.batch.path, removed, added, replace=self.replaces, commit=self.commit)

    def _content(self) -> DataFrame:
        names = [F.col(quote(name)) for name, _ in self.schemas.evolution.after]
        return self.batch.rows().select(F.struct(*names).alias(CONTENT))

    def _normalized(self) -> str:
        values, columns = self.schemas.values, self.schemas.evolution.after
        dropped = {name.lower() for name, _ in columns} - values[-1].names if values else set()
        return normalized_content(columns, self._inexact, dropped)

    @property
    def _inexact(self) -> set[str]:
        return {c.name.lower() for version in self.schemas.values for c in version.columns if c.inexact}
