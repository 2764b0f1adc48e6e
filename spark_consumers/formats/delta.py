"""Delta Lake: every step is one commit of the table's log, which stores the identity of the step."""

import json
import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

from py4j.java_gateway import JavaPackage
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, DataFrameWriter, Row
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention
from pyspark.sql.types import StringType

from rowtide.spark_consumers.columns.spark_types import quote
from rowtide.spark_consumers.errors import (
    ChangedTableError,
    DependentColumnError,
    OverlappingRunsError,
    UnsupportedRenameError,
)
from rowtide.spark_consumers.formats.base import DirectoryFormat, RowCounts, no_rows
from rowtide.spark_consumers.formats.merge import (
    LARGE_TABLE,
    SOURCE,
    key_ranges,
    others_are_deleted,
    replacement,
    upsert,
    versions,
)
from rowtide.spark_consumers.jvm.driver import activate, java_class, java_session, scala_sequence
from rowtide.spark_consumers.jvm.files import HadoopFiles
from rowtide.spark_consumers.jvm.session import configured
from rowtide.spark_consumers.kafka.naming import join
from rowtide.spark_consumers.partitioning import require_columns, without_empty_text
from rowtide.spark_consumers.rows.evolution import Columns, Evolution
from rowtide.spark_consumers.rows.history import ENDS, Ends
from rowtide.spark_consumers.rows.renames import Renames
from rowtide.spark_consumers.state import Commit

_Result = TypeVar("_Result")
_NOT_IN_PARQUET_NAMES = set(" ,;{}()\n\t=")
_CACHED_SOURCE = {
    "spark.databricks.delta.merge.materializeSource": "none",
    "spark.databricks.delta.merge.failSourceCachedAfterMaterialization": "false",
}
"""Settings of a merge whose rows are cached, and are made of Kafka's records alone.

Delta would copy its source, and refuse one that is cached: a cached table may be read again at another version. Records
are the same when they are read again, and so is the last one of each key.
"""
_MODE = "delta.columnMapping.mode"
_NAMED_FEATURES = {"delta.feature.timestampNtz": "supported"}
"""A feature that raises the reader version to 3. Such a table names the features that its readers must know.

With column mapping alone, Delta Lake gives a table version 2. From such a table, deltalake's ``to_pyarrow_table()``
returns nulls or values of another column without an error, and DuckDB refuses it.
"""
_COLUMN_MAPPING = {_MODE: "name", **_NAMED_FEATURES}
_UPGRADED = f"{_MODE}=name"
_CONSTRAINTS, _GENERATED = "delta.constraints.", "delta.generationExpression"
LOG = "_delta_log"
"""The directory of a table's log, in its own."""
CONFLICT = re.compile("DELTA_CONCURRENT_(APPEND|DELETE|WRITE)")
"""The errors of Delta if another writer has committed first."""
_ATTEMPTS = 5
_COMMIT_FILE = re.compile(r"[0-9]{20}\.json")
SEARCHED_COMMITS = 1000
"""How many commits are searched for the newest one of rowtide: it is mostly the last."""


class DeltaFormat(DirectoryFormat):
    """Tables of Delta Lake by path. The identity of a commit is a setting of the session."""

    def exists(self, path: str) -> bool:
        """Return whether a table exists."""
        delta_table = java_class(self.spark, "io.delta.tables.DeltaTable")  # spares the user Delta's Python package
        return bool(delta_table.isDeltaTable(java_session(self.spark), path))

    def columns(self, path: str) -> Columns | None:
        """Return the table's columns."""
        if not self.exists(path):
            return None
        return tuple((field.name, field.dataType.simpleString()) for field in self.read(path).schema.fields)

    def placing_columns(self, path: str) -> Collection[str]:
        """Return the columns by which the table is partitioned or clustered."""
        detail = self._detail(path)
        return [*detail["partitionColumns"], *detail["clusteringColumns"]]

    def read(self, path: str) -> DataFrame:
        """Return the table's rows."""
        return self.spark.read.format("delta").load(path)

    def rename(self, path: str, renames: Renames, commit: Commit) -> str:
        """Rename columns by column mapping, in one commit of the log.

        ``ALTER TABLE`` renames one column in a commit. After a crash between two of them, it would be unknown which
        were renamed, because names can be exchanged.

        Raises:
            DependentColumnError: an expression of the table may use an old name.
            UnsupportedRenameError: Spark has a Delta Lake other than the open-source one.
        """
        logs = java_class(self.spark, "org.apache.spark.sql.delta.DeltaLog")
        if isinstance(logs, JavaPackage):  # Java lacks the class
            raise UnsupportedRenameError(path, dict(renames.names), renames.dropped)
        is_new = self._set_missing(path, _COLUMN_MAPPING)
        note = f"{path} has column mapping now ({_UPGRADED}): readers must know it" if is_new else ""
        activate(self.spark)
        with self._identity(path, commit):
            transaction = logs.forTable(java_session(self.spark), path).startTransaction()
            if transaction.txnVersion(commit.app_id) >= commit.version:
                return note
            metadata = transaction.metadata()
            schema, settings = metadata.schemaString(), metadata.configuration()
            if _GENERATED in schema or _CONSTRAINTS in settings.toString():
                raise DependentColumnError(path, ", ".join(renames.names))
            transaction.updateMetadata(
                metadata.copy(
                    metadata.id(), metadata.name(), metadata.description(), metadata.format(),
                    _renamed_schema(schema, renames),
                    scala_sequence(self.spark, map(renames.new_name, self._partitions(metadata))), settings,
                    metadata.createdTime(),
                ),
                False,
            )  # fmt: skip
            now = java_class(self.spark, "scala.Option").apply(int(time.time() * 1000))
            transaction.updateSetTransaction(commit.app_id, commit.version, now)
            names = ([", ".join(part)] for part in (renames.names.keys(), renames.names.values()))
            operation = java_class(self.spark, "org.apache.spark.sql.delta.DeltaOperations$RenameColumn")
            transaction.commit(
                scala_sequence(self.spark, ()), operation(*(scala_sequence(self.spark, part) for part in names))
            )
        return note

    def _partitions(self, metadata: Any) -> list[str]:
        converters = java_class(self.spark, "scala.jdk.javaapi.CollectionConverters")
        return list(converters.asJava(metadata.partitionColumns()))

    def evolve(self, path: str, evolution: Evolution, commit: Commit) -> None:
        """Create or alter the table."""
        if evolution.before is None:
            # CREATE TABLE refuses a directory with files, which a failed query may have left.
            self.create(path, evolution.after, no_rows(self.spark, evolution.after), commit)
            return
        if evolution.added or evolution.widened:
            self._set_missing(path, _features(evolution.after))
        if evolution.widened or (evolution.added and evolution.fills):
            self._rewrite(path, evolution, commit)
        elif evolution.added:
            added = ", ".join(f"{quote(name)} {kind}" for name, kind in evolution.added)
            self.spark.sql(f"ALTER TABLE {table_sql(path)} ADD COLUMNS ({added})")
        elif evolution.fills:
            new_values = ", ".join(f"{quote(name)} = {value}" for name, value in evolution.fills.items())
            self._repeated(path, commit, lambda: self.spark.sql(f"UPDATE {table_sql(path)} SET {new_values}"))

    def create(self, path: str, columns: Columns, rows: DataFrame, commit: Commit) -> RowCounts:
        """Create the table by its first commit, so that Delta has no earlier log to read."""
        partitions = [one.column for one in self.settings.partition_by]
        written = _without_empty_texts(rows, partitions).write
        properties = self.settings.table_properties
        features = _features(columns) | (_NAMED_FEATURES if _MODE in properties else {})
        writer = written.options(**{**features, **properties})
        found = self._append(path, writer.partitionBy(*partitions), commit)
        self._cluster(path)
        return found

    def upsert(self, path: str, rows: DataFrame, keys: Sequence[str], *, replace: bool, commit: Commit) -> RowCounts:
        """Merge by key."""
        cached = self._checked(path, rows).persist()  # a merge reads its source twice
        try:
            ranges = key_ranges(cached, keys) if not replace and self.size(path) >= LARGE_TABLE else []
            with configured(self.spark, _CACHED_SOURCE):
                statement = upsert(
                    table_sql(path), cached, keys, ranges, self.settings.shard, soft=self.settings.keeps_deleted
                )
                return self._merge(path, statement, cached, replace, commit)
        finally:
            cached.unpersist()

    def delete_rows(self, path: str, condition: str) -> None:
        """Delete rows."""
        self.spark.sql(f"DELETE FROM {table_sql(path)} WHERE {condition}")

    def add_versions(self, path: str, rows: DataFrame, keys: Sequence[str], ends: Ends, commit: Commit) -> RowCounts:
        """Merge by key. The rows come from the table, too, so Delta copies them before it merges."""
        rows = self._checked(path, rows)
        large = not ends.of_others and self.size(path) >= LARGE_TABLE
        ranges = key_ranges(rows.where(ENDS), keys) if large else []
        return self._merge(
            path, versions(table_sql(path), rows, keys, ranges, ends, self.settings.shard), rows, False, commit
        )

    def replace_rows(
        self, path: str, removed: DataFrame | None, added: DataFrame, *, replace: bool, commit: Commit
    ) -> RowCounts:
        """Remove and add rows in one commit.

        The rows may come from the table itself, so Delta copies them before it merges.
        """
        added = self._checked(path, added)
        if removed is None and not replace:
            return self._append(path, added.write, commit)
        statement, rows = replacement(table_sql(path), None if replace else removed, added, self.settings.shard)
        return self._merge(path, statement, rows, replace, commit)

    def _checked(self, path: str, rows: DataFrame) -> DataFrame:
        """Return rows for an existing table that end their query if a partition column has an empty text."""
        logs = java_class(self.spark, "org.apache.spark.sql.delta.DeltaLog")
        if isinstance(logs, JavaPackage):  # of a vendor
            return _without_empty_texts(rows, self._detail(path)["partitionColumns"])
        table = logs.forTable(java_session(self.spark), path).unsafeVolatileSnapshot()
        return _without_empty_texts(rows, self._partitions(table.metadata()))

    def _merge(self, path: str, statement: str, rows: DataFrame, replace: bool, commit: Commit) -> RowCounts:
        if replace:
            statement += others_are_deleted(self.settings.shard)
        rows.createOrReplaceTempView(SOURCE)
        metrics = self._repeated(path, commit, lambda: self.spark.sql(statement).collect())
        if not metrics:  # the table has this commit
            return RowCounts()
        found = metrics[0].asDict()
        return RowCounts(found["num_inserted_rows"], found["num_updated_rows"], found["num_deleted_rows"])

    def _append(self, path: str, rows: DataFrameWriter, commit: Commit) -> RowCounts:
        """Append rows."""
        with self._identity(path, commit) as metrics:
            rows.format("delta").mode("append").save(path)
        return RowCounts(inserted=int(metrics.get("numOutputRows", 0)))

    def _set_missing(self, path: str, needed: Mapping[str, str]) -> bool:
        """Set properties that the table lacks, and return whether any were missing."""
        detail = self._detail(path)
        present = {*(detail["tableFeatures"] or ()), *(detail["properties"] or {})}
        missing = {name: value for name, value in needed.items() if name.removeprefix("delta.feature.") not in present}
        if missing:
            properties = ", ".join(f"'{name}' = '{value}'" for name, value in missing.items())
            self.spark.sql(f"ALTER TABLE {table_sql(path)} SET TBLPROPERTIES ({properties})")
        return bool(missing)

    def _detail(self, path: str) -> Row:
        return self.spark.sql(f"DESCRIBE DETAIL {table_sql(path)}").collect()[0]

    def _cluster(self, path: str) -> None:
        """Restore the partitions and clusters of the settings, which a table loses when it is overwritten."""
        if not self.settings.cluster_by:
            return
        detail = self._detail(path)
        if not detail["partitionColumns"] and not detail["clusteringColumns"]:
            require_columns(path, self.settings.cluster_by, self.read(path).columns)
            columns = ", ".join(map(str, self.settings.cluster_by))
            self.spark.sql(f"ALTER TABLE {table_sql(path)} CLUSTER BY ({columns})")

    def _rewrite(self, path: str, evolution: Evolution, commit: Commit) -> None:
        """Rewrite the table with all changes of its columns in one commit.

        A crash between the commit that adds a column and one that fills it would leave rows without the default.
        Delta ignores it if another run has committed the batch since the rows were read; they would be lost otherwise.
        """
        schema = "overwriteSchema" if evolution.widened else "mergeSchema"  # which keeps partitions and comments
        partitions = self._detail(path)["partitionColumns"]

        def write() -> None:
            rows = self.read(path).selectExpr(*evolution.projection())  # as it is at each attempt
            writer = rows.write.format("delta").mode("overwrite").option(schema, "true")
            writer.partitionBy(*partitions).save(path)

        self._repeated(path, commit, write)

    def _repeated(self, path: str, commit: Commit, write: Callable[[], _Result]) -> _Result:
        """Write with an identity, and repeat this if another program has merged the files that the write replaces.

        If the other program has also changed rows, the rows to write may be based on older ones.

        Raises:
            ChangedTableError: files were merged during each attempt.
        """
        self._cluster(path)
        for _ in range(_ATTEMPTS):
            try:
                with self._identity(path, commit):
                    return write()
            except (PySparkException, Py4JJavaError) as error:
                if not CONFLICT.search(str(error)) or not self._has_rows_of(path, commit.app_id):
                    raise
        raise ChangedTableError(path, _ATTEMPTS)

    def _has_rows_of(self, path: str, app_id: str) -> bool:
        """Return whether no other writer has changed rows since the newest commit of this state, or of another shard.

        Runs that write shards take turns.
        """
        for one in log_commits(self._files, path):
            if one.commit is not None and (one.commit.app_id == app_id or self.settings.shard is not None):
                return True
            if '"dataChange":true' in one.actions:
                return False
        return False

    @contextmanager
    def _identity(self, path: str, commit: Commit) -> Iterator[dict[str, str]]:
        """Give the commit made in the context an identity. Delta silently ignores one that the table has.

        Yields:
            An empty dictionary, which has the metrics of the commit when the context has ended.

        Raises:
            OverlappingRunsError: the table has the commit from another plan, or receives it at the same time.
        """
        settings = {
            "spark.databricks.delta.write.txnAppId": commit.app_id,
            "spark.databricks.delta.write.txnVersion": str(commit.version),
            "spark.databricks.delta.commitInfo.userMetadata": commit.to_json(),
        }
        metrics: dict[str, str] = {}
        try:
            with configured(self.spark, settings):
                yield metrics
        except (PySparkException, Py4JJavaError) as error:
            if "DELTA_CONCURRENT_TRANSACTION" in str(error):
                raise OverlappingRunsError(commit.batch) from error
            raise
        newest, found = self._newest_commit(path, commit.app_id)
        commit.is_applied(newest)
        if newest == commit:
            metrics.update(found)

    def newest_commit(self, path: str, app_id: str) -> Commit | None:
        """Return the newest commit of this state."""
        return self._newest_commit(path, app_id)[0]

    def _newest_commit(self, path: str, app_id: str) -> tuple[Commit | None, dict[str, str]]:
        """Return the newest commit of this state in the table's log, and its metrics.

        Other writers may have continued the log. Its files are read here: ``DESCRIBE HISTORY`` runs a job for that.
        """
        for one in log_commits(self._files, path):
            if one.commit is not None and one.commit.app_id == app_id:
                return one.commit, one.info.get("operationMetrics") or {}
        return None, {}


class LogCommit(NamedTuple):
    """A commit in the log of a table.

    Attributes:
        version: the resulting version of the table.
        actions: its text, a JSON object in each line.
        info: its provenance.
        commit: its identity, if it is of ``rowtide tables``.
    """

    version: int
    actions: str
    info: Mapping[str, Any]
    commit: Commit | None


def log_commits(files: HadoopFiles, path: str) -> Iterator[LogCommit]:
    """Yield the last commits of a table, the newest first: at most :data:`SEARCHED_COMMITS`."""
    log = join(path, LOG)
    names = sorted((name for name in files.names(log) if _COMMIT_FILE.fullmatch(name)), reverse=True)
    for name in names[:SEARCHED_COMMITS]:
        actions = files.read(join(log, name))
        info = _commit_info(actions)
        yield LogCommit(int(name[:20]), actions, info, Commit.from_json(info.get("userMetadata") or ""))


def _commit_info(actions: str) -> Mapping[str, Any]:
    """Return the provenance in a commit of Delta's log, a JSON object in each line. Delta writes it first."""
    for line in actions.split("\n"):  # a text may contain other separators of lines
        if line.startswith('{"commitInfo":'):
            info: Mapping[str, Any] = json.loads(line)["commitInfo"]
            return info
    return {}


def _without_empty_texts(rows: DataFrame, partitions: Sequence[str]) -> DataFrame:
    """Return rows that end their query if a partition column has an empty text, which Delta Lake turns into null.

    The format of its log has no empty text: https://github.com/delta-io/delta/blob/master/PROTOCOL.md, "Partition Value
    Serialization".
    """
    wanted = {name.lower() for name in partitions}
    texts = [one.name for one in rows.schema.fields if one.name.lower() in wanted and one.dataType == StringType()]
    return rows.withColumns({name: F.expr(without_empty_text(name)) for name in texts}) if texts else rows


def table_sql(path: str) -> str:
    """Return SQL of a table."""
    return f"delta.{quote(path)}"


def _features(columns: Columns) -> dict[str, str]:
    """Return the table properties that some columns require; other engines must support them to read the table."""
    features = {}
    if any("timestamp_ntz" in kind for _, kind in columns):
        features["delta.feature.timestampNtz"] = "supported"
    if any(_NOT_IN_PARQUET_NAMES & set(name) for name, _ in columns):
        features |= _COLUMN_MAPPING
    return features


def _renamed_schema(schema: str, renames: Renames) -> str:
    """Return the JSON of a table's columns after renames. A column keeps its id and its name in files."""
    content = json.loads(schema)
    fields = [{**field, "name": renames.new_name(field["name"])} for field in content["fields"]]
    return json.dumps({**content, "fields": [field for field in fields if field["name"] is not None]})
