"""Plain Parquet files: without transactions, a changed table is written next to the old one and then renamed.

The directory contains ``_rowtide.json`` with the identity of the last step; readers skip names that begin with ``_``.
Between the two renames of :meth:`ParquetFormat._replace` the table is missing for a moment; after a crash there, the
next run completes the replacement. Object stores cannot rename a directory: use Delta Lake there.
"""

from collections.abc import Collection, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from rowtide.spark_consumers.columns.spark_types import quote
from rowtide.spark_consumers.errors import StateError
from rowtide.spark_consumers.formats.base import DirectoryFormat, RowCounts, no_rows
from rowtide.spark_consumers.kafka.naming import join
from rowtide.spark_consumers.rows.changes import DELETED, OUT, written
from rowtide.spark_consumers.rows.evolution import Columns, Evolution
from rowtide.spark_consumers.rows.history import ENDS, Ends
from rowtide.spark_consumers.rows.renames import Renames
from rowtide.spark_consumers.settings import CURRENT, DELETION
from rowtide.spark_consumers.state import Commit

COMMIT_FILE = "_rowtide.json"


class ParquetFormat(DirectoryFormat):
    """Tables as directories of Parquet files."""

    def exists(self, path: str) -> bool:
        """Return whether there is a table, after completing an interrupted replacement."""
        self._repair(path)
        return self._files.exists(path)

    def columns(self, path: str) -> Columns | None:
        """Return the table's columns."""
        if not self.exists(path):
            return None
        return tuple((field.name, field.dataType.simpleString()) for field in self.read(path).schema.fields)

    def placing_columns(self, path: str) -> Collection[str]:
        """Return none: Parquet tables have no partitions."""
        return ()

    def read(self, path: str) -> DataFrame:
        """Return the table's rows."""
        return self.spark.read.parquet(path)

    def rename(self, path: str, renames: Renames, commit: Commit) -> str:
        """Rewrite the table."""
        rows = self.read(path)
        names = {name: new for name in rows.columns if (new := renames.new_name(name)) is not None}
        self._replace(path, rows.selectExpr(*(f"{quote(old)} AS {quote(new)}" for old, new in names.items())), commit)
        return ""

    def evolve(self, path: str, evolution: Evolution, commit: Commit) -> None:
        """Create or rewrite the table."""
        if evolution.before is None:
            self._replace(path, no_rows(self.spark, evolution.after), commit)
        elif evolution.added or evolution.widened or evolution.fills:
            self._replace(path, self.read(path).selectExpr(*evolution.projection()), commit)

    def create(self, path: str, columns: Columns, rows: DataFrame, commit: Commit) -> RowCounts:
        """Write the first rows."""
        self._replace(path, rows, commit)
        return RowCounts(inserted=self.read(path).count())

    def upsert(self, path: str, rows: DataFrame, keys: Sequence[str], *, replace: bool, commit: Commit) -> RowCounts:
        """Join by key and write the result."""
        if self._is_applied(path, commit):
            return RowCounts()
        cached = rows.persist()
        try:
            return self._upsert(path, cached, keys, replace=replace, commit=commit)
        finally:
            cached.unpersist()

    def _upsert(self, path: str, rows: DataFrame, keys: Sequence[str], *, replace: bool, commit: Commit) -> RowCounts:
        old = self.read(path)
        names = [quote(name) for name in old.columns]
        same_key = F.expr(" AND ".join(f"t.{quote(name)} <=> s.{quote(name)}" for name in keys))
        met = old.alias("t").join(rows.alias("s"), same_key, "left_semi").count()
        known = rows.alias("s").join(old.alias("t"), same_key, "left_semi")
        gone = OUT if OUT in rows.columns else "false" if self.settings.keeps_deleted else DELETED
        deleted = known.where(gone).count()
        new = rows.where(written(rows))
        if self.settings.keeps_deleted:
            marked = old.alias("t").join(rows.where(DELETED).alias("s"), same_key, "left_semi").select(*names)
            new = new.select(*names).unionAll(marked.withColumn(DELETION[0], F.lit(True)))
        others = old.alias("t").join(rows.alias("s"), same_key, "left_anti").select(*names)
        inserted = new.count() - (met - deleted)
        removed = others.count() if replace else 0
        self._replace(path, new.select(*names) if replace else others.unionAll(new.select(*names)), commit)
        return RowCounts(inserted, met - deleted, deleted + removed)

    def delete_rows(self, path: str, condition: str) -> None:
        """Refuse: the tables of this format have the rows of one topic, which are deleted with the table."""
        raise NotImplementedError(path)

    def add_versions(self, path: str, rows: DataFrame, keys: Sequence[str], ends: Ends, commit: Commit) -> RowCounts:
        """Write the table with the ends and the new versions."""
        if self._is_applied(path, commit):
            return RowCounts()
        cached, old = rows.persist(), self.read(path)
        try:
            same = " AND ".join([f"t.{CURRENT}", *(f"t.{quote(name)} <=> s.{quote(name)}" for name in keys)])
            found = old.alias("t").join(cached.where(ENDS).alias("s"), F.expr(same), "left")
            others = f"t.{CURRENT}" if ends.of_others else "false"
            updated = found.where(f"s.{ENDS} OR {others}").count()
            values = {}
            for name in {**ends.of_keys, **ends.of_others}:
                column = f"t.{quote(name)}"
                ended, other = ends.of_keys.get(name, column), ends.of_others.get(name, column)
                value = f"CASE WHEN s.{ENDS} THEN {ended} WHEN {others} THEN {other} ELSE {column} END"
                values[name] = f"{value} AS {quote(name)}"
            kept = found.selectExpr(*(values.get(name, f"t.{quote(name)}") for name in old.columns))
            new = cached.where(f"NOT {ENDS}").select(*map(quote, old.columns))
            effect = RowCounts(inserted=new.count(), updated=updated)
            self._replace(path, kept.unionAll(new), commit)
            return effect
        finally:
            cached.unpersist()

    def replace_rows(
        self, path: str, removed: DataFrame | None, added: DataFrame, *, replace: bool, commit: Commit
    ) -> RowCounts:
        """Write the rows that stay and the new ones."""
        if self._is_applied(path, commit):
            return RowCounts()
        old = self.read(path)
        names = [quote(name) for name in old.columns]
        stays = old.limit(0) if replace else old
        if removed is not None and not replace:
            same = F.expr(" AND ".join(f"t.{name} <=> s.{name}" for name in names))
            stays = old.alias("t").join(removed.alias("s"), same, "left_anti").select(*names)
        effect = RowCounts(inserted=added.count(), deleted=old.count() - stays.count())
        self._replace(path, stays.unionAll(added.select(*names)), commit)
        return effect

    def newest_commit(self, path: str, app_id: str) -> Commit | None:
        """Return the commit of the table, if it is of this state."""
        newest = self._commit(path)
        return newest if newest is not None and newest.app_id == app_id else None

    def _commit(self, path: str) -> Commit | None:
        file = join(path, COMMIT_FILE)
        if not self._files.exists(file):
            return None
        commit = Commit.from_json(self._files.read(file))
        if commit is None:
            raise StateError(f"{file} is damaged: build the table again with --restart")
        return commit

    def _is_applied(self, path: str, commit: Commit) -> bool:
        return commit.is_applied(self._commit(path))

    def _replace(self, path: str, rows: DataFrame, commit: Commit) -> None:
        if self._is_applied(path, commit):
            return
        new, old = _scratch(path, "new"), _scratch(path, "old")
        rows.write.mode("overwrite").parquet(new)
        self._files.create(join(new, COMMIT_FILE), commit.to_json())
        self._files.delete(old)
        if self._files.exists(path):
            self._files.rename(path, old)
        self._files.rename(new, path)
        self._files.delete(old)
        self.spark.catalog.refreshByPath(path)

    def _repair(self, path: str) -> None:
        """Complete or undo an interrupted replacement."""
        new, old = _scratch(path, "new"), _scratch(path, "old")
        if not self._files.exists(path):
            if self._files.exists(join(new, COMMIT_FILE)):  # written last: the directory is complete
                self._files.rename(new, path)
            elif self._files.exists(old):
                self._files.rename(old, path)
        self._files.delete(new)
        self._files.delete(old)


def _scratch(path: str, purpose: str) -> str:
    """Return a directory next to the table that no other table can have: topic names contain no ``~``."""
    parent, _, name = path.rpartition("/")
    return f"{parent}/_{name}~{purpose}"
