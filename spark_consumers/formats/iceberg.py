"""Apache Iceberg: every step becomes visible in one commit of the table's metadata, which stores its identity.

Iceberg accepts two appends of the same rows, one after the other, from two runs: unlike Delta Lake, it has no identity
of a writer that excludes the second one. A step therefore has two parts:

1. Spark writes a *staged* snapshot (``spark.wap.id``). It is in the metadata, but in no branch, so no reader sees it.
2. One commit of the metadata makes it the table's snapshot, changes the columns if need be, and sets the property
   ``rowtide.commit``. It replaces exactly the metadata that was examined, in which the property shows that the step is
   not in the table yet, and snapshot and columns are those from which the staged one was made. If they are not, both
   parts are repeated.

After a crash before the second part, the step is repeated, and ``expire_snapshots`` removes the staged snapshot and
its files. After a later crash, the property shows that the step is done. Expiring snapshots does not remove the
property. The snapshot's summary has the same text, to show which snapshot belongs to which batch.
"""

import hashlib
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from rowtide.spark_consumers.columns.spark_types import cast, decimal_parts, literal, quote
from rowtide.spark_consumers.errors import ChangedTableError, OverlappingRunsError, SettingsError
from rowtide.spark_consumers.formats.base import RowCounts, no_rows
from rowtide.spark_consumers.formats.merge import (
    LARGE_TABLE,
    SOURCE,
    key_ranges,
    others_are_deleted,
    replacement,
    upsert,
    versions,
)
from rowtide.spark_consumers.jvm.driver import java_class, java_session
from rowtide.spark_consumers.jvm.files import HadoopFiles
from rowtide.spark_consumers.jvm.session import configured
from rowtide.spark_consumers.kafka.naming import TableName, join
from rowtide.spark_consumers.partitioning import require_columns
from rowtide.spark_consumers.rows.evolution import Columns, Evolution
from rowtide.spark_consumers.rows.history import ENDS, Ends
from rowtide.spark_consumers.rows.renames import Renames
from rowtide.spark_consumers.settings import Settings
from rowtide.spark_consumers.state import Commit

_COMMIT = "rowtide.commit"
"""The property of a table, and of a snapshot's summary, with the identity of a step."""
_STAGING = "write.wap.enabled"
_STAGE = "spark.wap.id"
_SNAPSHOT_PROPERTY = f"spark.sql.iceberg.snapshot-property.{_COMMIT}"
_DEFAULTS = {
    "format-version": "3",  # has deletion vectors, one for each file
    "write.delete.mode": "merge-on-read",
    "write.update.mode": "merge-on-read",
    "write.merge.mode": "merge-on-read",
    "write.delete.granularity": "file",  # of version 2
    "write.metadata.delete-after-commit.enabled": "true",  # of 100 versions; a batch makes two
    _STAGING: "true",
}
"""The properties of new tables."""
_NEW = "_rowtide_new_"
"""The prefix of a column's name until its values are visible."""
_ATTEMPTS = 5
_MERGED = "spark.merge-into.num-target-rows-"
_PROMOTIONS = {("int", "bigint"), ("float", "double")}


@dataclass(frozen=True, slots=True)
class IcebergRows:
    """The current rows of a table. Later commits do not change them.

    Attributes:
        commit: the last step of the state in the table; ``None`` if there is none.
        snapshot: the id of the snapshot; ``None`` for a table that never had a row.
        others: the snapshots since that step in which other writers changed rows.
        frame: the rows, with the names and types that the columns have now.
    """

    commit: Commit | None
    snapshot: int | None
    others: tuple[str, ...]
    frame: DataFrame


@dataclass(frozen=True, slots=True)
class IcebergFormat:
    """Tables of Iceberg: in directories of the output, which are a Hadoop catalog, or in another catalog of Spark.

    Attributes:
        spark: a session for this table alone, since the identity of a step is one of its settings.
        settings: of the run.

    Raises:
        SettingsError: Spark does not have the catalog.
    """

    spark: SparkSession
    settings: Settings

    def __post_init__(self) -> None:
        prefix = f"spark.sql.catalog.{self._catalog}"
        if self.settings.catalog is None:
            self.spark.conf.set(prefix, "org.apache.iceberg.spark.SparkCatalog")
            self.spark.conf.set(f"{prefix}.type", "hadoop")
            self.spark.conf.set(f"{prefix}.warehouse", self._output)
            self.spark.conf.set(f"{prefix}.cache-enabled", "false")  # another session may have changed a table
        elif self.spark.conf.get(prefix, None) is None:
            raise SettingsError(
                f"--catalog {self._catalog}: Spark has no such catalog. Set {prefix}="
                f"org.apache.iceberg.spark.SparkCatalog and the catalog's other properties with --spark-conf"
            )

    def path(self, name: TableName) -> str:
        """Return the table's directory, or its name in the catalog as SQL."""
        if self.settings.catalog is None:
            return join(self._output, name.path)
        database, table = name.place
        if not database:
            raise SettingsError(
                f"table {name} of topic {name.topic} has no database, which --catalog needs: give --topic-prefix"
            )
        return ".".join(quote(part) for part in (self._catalog, database, table))

    def exists(self, path: str) -> bool:
        """Return whether the catalog has the table."""
        return self.spark.catalog.tableExists(self._sql(path))

    def has_files(self, path: str) -> bool:
        """Return whether the directory has files; in a catalog other than that of the output, it does not matter."""
        return self.settings.catalog is None and bool(HadoopFiles(self.spark).names(path))

    def size(self, path: str) -> int:
        """Return the size of the files in the table's snapshot."""
        snapshot = self._metadata(path).currentSnapshot() if self.exists(path) else None
        return 0 if snapshot is None else int(dict(snapshot.summary()).get("total-files-size", 0))

    def delete(self, path: str) -> None:
        """Drop the table with its files."""
        self.spark.sql(f"DROP TABLE IF EXISTS {self._sql(path)} PURGE")
        if self.settings.catalog is None:
            HadoopFiles(self.spark).delete(path)

    def columns(self, path: str) -> Columns | None:
        """Return the table's columns."""
        if not self.exists(path):
            return None
        return tuple((field.name, field.dataType.simpleString()) for field in self.read(path).schema.fields)

    def placing_columns(self, path: str) -> Collection[str]:
        """Return the columns by which the table is, or was, partitioned, and those by which it is sorted."""
        metadata = self._metadata(path)
        fields = [*metadata.sortOrder().fields(), *(one for spec in metadata.specs() for one in spec.fields())]
        names = [metadata.schema().findColumnName(one.sourceId()) for one in fields]
        return [name for name in names if name is not None]

    def read(self, path: str) -> DataFrame:
        """Return the table's rows."""
        frame = self.spark.table(self._sql(path))
        return frame.drop(*_unfinished(frame.columns))

    def current_rows(self, path: str, app_id: str) -> IcebergRows:
        """Return the current rows of the table, with the last step of a state.

        Raises:
            ChangedTableError: its columns change at the same time.
        """
        metadata = self._metadata(path)
        newest = snapshot = metadata.currentSnapshot()
        others = []
        while snapshot is not None and _COMMIT not in dict(snapshot.summary()):
            if snapshot.operation() != "replace":  # which merges files
                others.append(f"snapshot {snapshot.snapshotId()} ({snapshot.operation()})")
            parent = snapshot.parentId()
            snapshot = None if parent is None else metadata.snapshot(parent)
        frame = self._of_snapshot(path, metadata, newest)
        return IcebergRows(_commit(metadata, app_id), _snapshot_id(newest), tuple(reversed(others)), frame)

    def _of_snapshot(self, path: str, metadata: Any, snapshot: Any) -> DataFrame:
        """Return the rows of a snapshot. A column that was renamed or added since then is found by its id."""
        now = self.read(path)
        if snapshot is None:
            return now.limit(0)
        rows = self.spark.read.option("versionAsOf", _snapshot_id(snapshot)).table(self._sql(path))
        names = {one.fieldId(): one.name() for one in metadata.schemasById().get(snapshot.schemaId()).columns()}
        old = {one.name(): names.get(one.fieldId(), "") for one in metadata.schema().columns()}
        if not {*now.columns} <= old.keys():
            raise ChangedTableError(path, 1)
        values = {new: F.col(quote(name)) if name else F.lit(None) for new, name in old.items()}
        return rows.select(*(values[one.name].cast(one.dataType).alias(one.name) for one in now.schema))

    def newest_commit(self, path: str, app_id: str) -> Commit | None:
        """Return the commit of the table, if it is of this state."""
        return _commit(self._metadata(path), app_id) if self.exists(path) else None

    def rename(self, path: str, renames: Renames, commit: Commit) -> str:
        """Rename fields in one commit of the metadata."""
        for _ in range(_ATTEMPTS):
            table = self._load(path)
            base = table.operations().current()
            if commit.is_applied(_commit(base, commit.app_id)):
                return ""
            update = table.updateSchema()
            for name in renames.dropped:
                update = update.deleteColumn(name)
            for old, new in renames.names.items():
                update = update.renameColumn(old, new)
            if self._commit_metadata(table, base, commit, update.apply()):
                return ""
        raise ChangedTableError(path, _ATTEMPTS)

    def evolve(self, path: str, evolution: Evolution, commit: Commit) -> None:
        """Create or alter the table."""
        if evolution.before is None:
            self.create(path, evolution.after, no_rows(self.spark, evolution.after), commit)
            return
        for name in _unfinished(self.spark.table(self._sql(path)).columns):  # of a run that was ended
            self.spark.sql(f"ALTER TABLE {self._sql(path)} DROP COLUMN {quote(name)}")
        rewritten = [(name, new) for name, old, new in evolution.widened if not _is_promoted(old, new)]
        for name, old, new in evolution.widened:
            if _is_promoted(old, new):
                self.spark.sql(f"ALTER TABLE {self._sql(path)} ALTER COLUMN {quote(name)} TYPE {new}")
        rewritten += [column for column in evolution.added if column[0] in evolution.fills]
        plain = [column for column in evolution.added if column not in rewritten]
        self._add(path, plain)
        if rewritten or evolution.fills:
            self._rewrite(path, evolution, dict(rewritten), commit)

    def create(self, path: str, columns: Columns, rows: DataFrame, commit: Commit) -> RowCounts:
        """Create the table with its first snapshot, in one commit of the catalog."""
        if self.exists(path):
            if commit.is_applied(_commit(self._metadata(path), commit.app_id)):
                return RowCounts()
            raise OverlappingRunsError(commit.batch)
        if self.settings.catalog is not None:
            self.spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {path.rpartition('.`')[0]}")
        properties = {**_DEFAULTS, **self.settings.table_properties, self._property(commit): commit.to_json()}
        given = ", ".join(f"{literal(name)} = {literal(value)}" for name, value in properties.items())
        parts = ", ".join(map(str, self.settings.partition_by))
        rows.createOrReplaceTempView(SOURCE)
        with configured(self.spark, {_SNAPSHOT_PROPERTY: commit.to_json()}):
            try:
                self.spark.sql(
                    f"CREATE TABLE {self._sql(path)} USING iceberg {f'PARTITIONED BY ({parts})' if parts else ''} "
                    f"TBLPROPERTIES ({given}) AS SELECT * FROM {SOURCE}"
                )
            except PySparkException as error:
                if error.getCondition() == "TABLE_OR_VIEW_ALREADY_EXISTS":
                    raise OverlappingRunsError(commit.batch) from error
                raise
        return _added(dict(self._metadata(path).currentSnapshot().summary()))

    def upsert(self, path: str, rows: DataFrame, keys: Sequence[str], *, replace: bool, commit: Commit) -> RowCounts:
        """Merge by key."""
        cached = rows.persist()
        try:
            ranges = key_ranges(cached, keys) if not replace and self.size(path) >= LARGE_TABLE else []
            shard = self.settings.shard
            statement = upsert(self._sql(path), cached, keys, ranges, shard, soft=self.settings.keeps_deleted)
            statement += others_are_deleted(shard) if replace else ""
            return self._merge(path, statement, cached, commit)
        finally:
            cached.unpersist()

    def add_versions(self, path: str, rows: DataFrame, keys: Sequence[str], ends: Ends, commit: Commit) -> RowCounts:
        """Merge by key."""
        cached = rows.persist()
        try:
            large = not ends.of_others and self.size(path) >= LARGE_TABLE
            ranges = key_ranges(cached.where(ENDS), keys) if large else []
            statement = versions(self._sql(path), cached, keys, ranges, ends, self.settings.shard)
            return self._merge(path, statement, cached, commit)
        finally:
            cached.unpersist()

    def replace_rows(
        self, path: str, removed: DataFrame | None, added: DataFrame, *, replace: bool, commit: Commit
    ) -> RowCounts:
        """Append rows, replace all rows, or merge."""
        table, shard = self._sql(path), self.settings.shard
        if replace and shard is None:
            return _added(self._write(path, commit, lambda: added.writeTo(table).overwrite(F.lit(True))))
        if removed is None and not replace:
            return _added(self._write(path, commit, lambda: added.writeTo(table).append()))
        statement, rows = replacement(table, None if replace else removed, added, shard)
        return self._merge(path, statement + (others_are_deleted(shard) if replace else ""), rows, commit)

    def delete_rows(self, path: str, condition: str) -> None:
        """Delete rows."""
        self.spark.sql(f"DELETE FROM {self._sql(path)} WHERE {condition}")

    def _merge(self, path: str, statement: str, rows: DataFrame, commit: Commit) -> RowCounts:
        rows.createOrReplaceTempView(SOURCE)
        found = self._write(path, commit, lambda: self.spark.sql(statement))
        return RowCounts(*(int(found.get(_MERGED + kind, 0)) for kind in ("inserted", "updated", "deleted")))

    def _add(self, path: str, columns: Sequence[tuple[str, str]]) -> None:
        if columns:
            added = ", ".join(f"{quote(name)} {kind}" for name, kind in columns)
            self.spark.sql(f"ALTER TABLE {self._sql(path)} ADD COLUMNS ({added})")

    def _rewrite(self, path: str, evolution: Evolution, changed: Mapping[str, str], commit: Commit) -> None:
        """Write all rows with new values.

        Columns that are new, or get another type, are first added under another name. They get their name in the commit
        that makes the values visible: a crash leaves neither rows without the default of a column, nor without values.
        """
        if commit.is_applied(self.newest_commit(path, commit.app_id)):
            return
        old = {name.lower(): (name, kind) for name, kind in evolution.before or ()}
        places = {name: f" AFTER {quote(name)}" if name.lower() in old else "" for name in changed}
        self._add(path, [(_NEW + name, kind + places[name]) for name, kind in changed.items()])
        values = {
            name: f"{evolution.fills.get(name) or cast(quote(old[name.lower()][0]), old[name.lower()][1], kind)}"
            for name, kind in changed.items()
        }

        def write() -> None:
            rows = self.read(path)  # as it is at each attempt
            columns = {name: quote(name) if name in changed else evolution.fills.get(name, quote(name))
                       for name in rows.columns} | {_NEW + name: value for name, value in values.items()}  # fmt: skip
            projection = [f"{value} AS {quote(name)}" for name, value in columns.items()]
            rows.selectExpr(*projection).writeTo(self._sql(path)).overwrite(F.lit(True))

        self._write(path, commit, write, changed)

    def _write(
        self, path: str, commit: Commit, write: Callable[[], object], renamed: Collection[str] = ()
    ) -> Mapping[str, str]:
        """Write a staged snapshot, and publish it.

        Args:
            path: of the table.
            commit: identity of this step.
            write: writes to the table, in this session.
            renamed: the columns that replace those of the same name, or are new.

        Returns:
            The summary of the snapshot; empty if the table has the step.

        Raises:
            ChangedTableError: other writers changed the table during each attempt.
            OverlappingRunsError: the table has the commit from another plan.
        """
        for _ in range(_ATTEMPTS):
            self._set_order(path)
            base = self._metadata(path)
            if commit.is_applied(_commit(base, commit.app_id)):
                return {}
            if dict(base.properties()).get(_STAGING) != "true":
                self.spark.sql(f"ALTER TABLE {self._sql(path)} SET TBLPROPERTIES ('{_STAGING}' = 'true')")
            stage = uuid.uuid4().hex
            try:
                with configured(self.spark, {_STAGE: stage, _SNAPSHOT_PROPERTY: commit.to_json()}):
                    write()
            except (PySparkException, Py4JJavaError):
                if _snapshot_id(self._metadata(path).currentSnapshot()) == _snapshot_id(base.currentSnapshot()):
                    raise
                continue  # for example, the files with rows to delete have been merged
            summary = self._publish(path, base, stage, commit, renamed)
            if summary is not None:
                return summary
        raise ChangedTableError(path, _ATTEMPTS)

    def _set_order(self, path: str) -> None:
        """Set the sort order of the settings on a table without one. It applies to rows written from then on."""
        table = self._load(path) if self.settings.cluster_by else None
        if table is None or not table.sortOrder().isUnsorted():
            return
        require_columns(path, self.settings.cluster_by, [one.name() for one in table.schema().columns()])
        terms = java_class(self.spark, "org.apache.iceberg.expressions.Expressions")
        order = table.replaceSortOrder().caseSensitive(False)
        nulls_first = java_class(self.spark, "org.apache.iceberg.NullOrder").NULLS_FIRST
        for one in self.settings.cluster_by:
            arguments = (one.column,) if one.number is None else (one.column, one.number)
            order = order.asc(getattr(terms, (one.transform or "ref").removesuffix("s"))(*arguments), nulls_first)
        order.commit()

    def _publish(
        self, path: str, before: Any, stage: str, commit: Commit, renamed: Collection[str]
    ) -> Mapping[str, str] | None:
        """Make a staged snapshot the table's, and return its summary; ``None`` if the table has changed since.

        ``before`` is the metadata from before the snapshot was written.
        """
        table = self._load(path)
        operations = table.operations()
        base = operations.current()
        if commit.is_applied(_commit(base, commit.app_id)):
            return {}
        staged = _staged(base, stage)  # another program may have expired it
        if staged is None or not _snapshot_id(base.currentSnapshot()) == staged.parentId() == _snapshot_id(
            before.currentSnapshot()
        ):
            return None
        if base.currentSchemaId() != before.currentSchemaId():  # another run may have begun to write the same columns
            return None
        schema = _with_renamed(table, renamed) if renamed else None
        is_done = self._commit_metadata(table, base, commit, schema, staged.snapshotId())
        return dict(staged.summary()) if is_done else None

    def _commit_metadata(
        self, table: Any, base: Any, commit: Commit, schema: Any = None, snapshot: int | None = None
    ) -> bool:
        """Replace the examined metadata with one that has the identity of a step.

        Return false if it was replaced already.
        """
        builder = java_class(self.spark, "org.apache.iceberg.TableMetadata").buildFrom(base)
        if snapshot is not None:
            builder.setBranchSnapshot(snapshot, "main")
        if schema is not None:
            builder.setCurrentSchema(schema, base.lastColumnId())
        builder.setProperties({self._property(commit): commit.to_json()})
        try:
            table.operations().commit(base, builder.build())
        except Py4JJavaError as error:
            if "CommitFailedException" in error.java_exception.getClass().getName():
                return False
            raise
        return True

    def _property(self, commit: Commit) -> str:
        """Return the property of the table with the identity of a step. A shared table has one for each topic."""
        return _COMMIT if self.settings.shard is None else f"{_COMMIT}.{commit.app_id}"

    @property
    def _output(self) -> str:
        return HadoopFiles(self.spark).absolute(self.settings.output).rstrip("/")

    @property
    def _catalog(self) -> str:
        """The name of the catalog. That of an output is its own: a session cannot change a catalog that it has used."""
        if self.settings.catalog is not None:
            return self.settings.catalog
        return f"rowtide_{hashlib.sha256(self._output.encode()).hexdigest()[:16]}"

    def _sql(self, path: str) -> str:
        """Return SQL of a table."""
        if self.settings.catalog is not None:
            return path
        parts = path.removeprefix(self._output + "/").split("/")
        return ".".join(quote(part) for part in (self._catalog, *parts))

    def _load(self, path: str) -> Any:
        """Return Iceberg's table in its current state."""
        table = java_class(self.spark, "org.apache.iceberg.spark.Spark3Util").loadIcebergTable(
            java_session(self.spark), self._sql(path)
        )
        table.refresh()
        return table

    def _metadata(self, path: str) -> Any:
        return self._load(path).operations().current()


def _is_promoted(old: str, new: str) -> bool:
    """Return whether Iceberg can read values of one type as another type."""
    small, large = decimal_parts(old), decimal_parts(new)
    if small is not None and large is not None:
        return small[1] == large[1]
    return (old, new) in _PROMOTIONS


def _unfinished(columns: Sequence[str]) -> list[str]:
    return [name for name in columns if name.startswith(_NEW)]


def _commit(metadata: Any, app_id: str) -> Commit | None:
    """Return the newest step of a state."""
    properties = dict(metadata.properties())
    found = Commit.from_json(properties.get(f"{_COMMIT}.{app_id}") or properties.get(_COMMIT) or "")
    return found if found is not None and found.app_id == app_id else None


def _snapshot_id(snapshot: Any) -> int | None:
    return None if snapshot is None else int(snapshot.snapshotId())


def _staged(metadata: Any, stage: str) -> Any:
    """Return the staged snapshot, ``None`` if there is none. It is one of the last."""
    snapshots = metadata.snapshots()
    for number in range(snapshots.size() - 1, -1, -1):
        if dict(snapshots.get(number).summary()).get("wap.id") == stage:
            return snapshots.get(number)
    return None


def _with_renamed(table: Any, names: Collection[str]) -> Any:
    """Return the table's columns after the new ones have replaced those of the same name."""
    update = table.updateSchema().caseSensitive(False)
    schema = table.schema()
    for name in names:
        if schema.caseInsensitiveFindField(name) is not None:
            update = update.deleteColumn(name)
        update = update.renameColumn(_NEW + name, name)
    return update.apply()


def _added(summary: Mapping[str, str]) -> RowCounts:
    """Return the counts of a snapshot that adds rows, and may remove all others."""
    removed = int(summary.get("deleted-records", 0)) - int(summary.get("removed-position-deletes", 0))
    return RowCounts(inserted=int(summary.get("added-records", 0)), deleted=removed)
