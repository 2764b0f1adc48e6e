"""Upkeep of tables by their format: merges small files, and removes files and versions that are no longer needed.

Every step is safe alongside a stream that writes the table. Delta Lake and Iceberg refuse the later of two commits that
change the same files: the stream repeats its write, and upkeep gives up its own.
"""

import math
import re
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from py4j.java_gateway import JavaPackage
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Row, SparkSession

from rowtide.spark_consumers.errors import ConflictError, UnsafeRetentionError
from rowtide.spark_consumers.formats.delta import CONFLICT, LOG, DeltaFormat, LogCommit, log_commits, table_sql
from rowtide.spark_consumers.formats.iceberg import IcebergFormat
from rowtide.spark_consumers.jvm.driver import java_class, java_session, text_with_causes
from rowtide.spark_consumers.jvm.files import HadoopFiles
from rowtide.spark_consumers.jvm.session import configured
from rowtide.spark_consumers.kafka.naming import TableName, join
from rowtide.spark_consumers.settings import Settings

_DELTA_CONFLICT = re.compile(f"{CONFLICT.pattern}|DELTA_(METADATA|PROTOCOL)_CHANGED")
"""The errors of a merge of files if a batch has committed first, also one that adds, renames or widens columns."""
_ICEBERG_CONFLICT = re.compile(r"ValidationException|CommitFailedException|Cannot commit")
_WITH_POSITION_DELETES = 2
_COMMIT = "{:020}.json"


@dataclass(frozen=True, slots=True)
class Merged:
    """Files that were merged.

    Attributes:
        before: the files of the table's newest version that were replaced, with those that list deleted rows.
        after: the files that replace them.
        written: bytes of these.
    """

    before: int
    after: int
    written: int


@dataclass(frozen=True, slots=True)
class Removed:
    """Files and versions that were removed.

    Attributes:
        files: that were deleted.
        bytes: of these. For Iceberg, it is by how much the table's directory became smaller.
        versions: that are no longer readable: commits of Delta's log, snapshots of Iceberg.
    """

    files: int = 0
    bytes: int = 0
    versions: int = 0

    def __add__(self, other: "Removed") -> "Removed":
        return Removed(self.files + other.files, self.bytes + other.bytes, self.versions + other.versions)


class KeptFormat(Protocol):
    """A format whose tables need upkeep. Each step raises :class:`ConflictError` if it was given up."""

    def path(self, name: TableName) -> str:
        """Return the path of a table."""

    def exists(self, path: str) -> bool:
        """Return whether a table exists."""

    def optimize(self, path: str) -> Merged:
        """Merge small files, and files with many deleted rows."""

    def vacuum(self, path: str, age: timedelta) -> Removed:
        """Delete files that no version needs and that are older than ``age``."""

    def expire(self, path: str, app_ids: Collection[str], age: timedelta) -> Removed:
        """Expire versions older than ``age``, except those that name the newest batches of some states."""


class DeltaUpkeep(DeltaFormat):
    """Upkeep of Delta Lake.

    A table is identified by its transaction identifier (``txn``), which checkpoints keep, and by the text of its newest
    commit of ``rowtide tables``. :meth:`expire` keeps the file of that commit.
    """

    def optimize(self, path: str) -> Merged:
        """``OPTIMIZE``: Delta chooses the files by ``spark.databricks.delta.optimize.minFileSize``."""
        try:
            found = self.spark.sql(f"OPTIMIZE {table_sql(path)}").collect()[0]["metrics"]
        except (PySparkException, Py4JJavaError) as error:
            if _DELTA_CONFLICT.search(str(error)):
                raise ConflictError(path) from error
            raise
        return Merged(found["numFilesRemoved"], found["numFilesAdded"], int(found["filesAdded"]["totalSize"] or 0))

    def vacuum(self, path: str, age: timedelta) -> Removed:
        """``VACUUM``, with Delta's own check against the table's ``delta.deletedFileRetentionDuration``.

        Raises:
            UnsafeRetentionError: the age is less than that.
        """
        before = next((one.version for one in log_commits(self._files, path)), -1)
        settings = {
            "spark.databricks.delta.vacuum.retentionWindowIgnore.enabled": "false",  # Delta 4 ignores the age otherwise
            "spark.databricks.delta.vacuum.logging.enabled": "true",
            # Otherwise, ten thousand tasks list the directories.
            "spark.sql.sources.parallelPartitionDiscovery.parallelism": str(self.spark.sparkContext.defaultParallelism),
        }
        try:
            with configured(self.spark, settings):
                self.spark.sql(f"VACUUM {table_sql(path)} RETAIN {age / timedelta(hours=1):f} HOURS").collect()
        except PySparkException as error:
            if error.getCondition() != "DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT":
                raise
            raise UnsafeRetentionError(
                f"--vacuum {hours(age)}: table {path} keeps removed files for longer, because queries and writes that "
                "are running may need them (delta.deletedFileRetentionDuration, 7 days by default). Nothing was "
                "deleted. Give --vacuum that age or more, or, if no query and no write takes longer than a day, ALTER "
                f"TABLE {table_sql(path)} SET TBLPROPERTIES ('delta.deletedFileRetentionDuration' = 'interval 1 day')"
            ) from error
        for one in log_commits(self._files, path):
            if one.version <= before:
                break
            if one.info.get("operation") == "VACUUM START":
                metrics = one.info.get("operationMetrics") or {}
                return Removed(int(metrics.get("numFilesToDelete", 0)), int(metrics.get("sizeOfDataToDelete", 0)))
        return Removed()

    def expire(self, path: str, app_ids: Collection[str], age: timedelta) -> Removed:
        """Write a checkpoint, and delete older files of the log, as checkpoints do by ``delta.logRetentionDuration``.

        Only the log shows which versions a table has. The newest commit of each state and later ones stay.
        """
        before = self._log(path)
        newest: dict[str, LogCommit] = {}
        for one in log_commits(self._files, path):
            if one.commit is not None and one.commit.app_id in app_ids:
                newest.setdefault(one.commit.app_id, one)
            if len(newest) == len(app_ids):
                break
        own = min(newest.values(), key=lambda one: one.version, default=None)
        logs = java_class(self.spark, "org.apache.spark.sql.delta.DeltaLog")
        if isinstance(logs, JavaPackage):  # Java lacks the class
            raise UnsafeRetentionError(
                "--expire: the Delta Lake of this Spark is not the open-source one, so rowtide cannot truncate the log "
                "of "
                f"{path}. Let it do so itself: ALTER TABLE {table_sql(path)} SET TBLPROPERTIES "
                f"('delta.logRetentionDuration' = 'interval {math.ceil(age / timedelta(days=1))} days')"
            )
        log = logs.forTable(java_session(self.spark), path)
        none = java_class(self.spark, "scala.Option").empty()
        snapshot = log.update(False, none, none)
        if own is not None:
            log.createCheckpointAtVersion(own.version)  # without one, Delta needs the commits before it to read it
        log.checkpoint(snapshot, none)
        if own is not None:
            # Delta compares the time of the file, or that in it, with its own clock in whole minutes, which advances.
            times = [before[_COMMIT.format(own.version)][1], own.info.get("timestamp", math.inf)]
            written = datetime.fromtimestamp(min(times) / 1000, UTC)
            age = max(age, datetime.now(UTC) - written + timedelta(minutes=1))
        minutes = java_class(self.spark, "org.apache.spark.sql.delta.TruncationGranularity").MINUTE()
        log.cleanUpExpiredLogs(snapshot, none, self._some(age), minutes)
        after = self._log(path)
        gone = {name: size for name, (size, _) in before.items() if name not in after}
        return Removed(len(gone), sum(gone.values()), sum(name.endswith(".json") for name in gone))

    def _log(self, path: str) -> dict[str, tuple[int, int]]:
        """Return the sizes and times of the log's files by name."""
        found = self._files.sizes_and_times(join(path, LOG))
        return {name: one for name, one in found.items() if name[0].isdigit()}

    def _some(self, age: timedelta) -> Any:
        """Return Scala's ``Some`` of Java's ``Long`` with milliseconds: Py4J passes a small one as ``Integer``."""
        boxed = java_class(self.spark, "java.util.stream.LongStream").of(int(age / timedelta(milliseconds=1))).boxed()
        return java_class(self.spark, "scala.jdk.javaapi.CollectionConverters").asScala(boxed.toList()).headOption()


class IcebergUpkeep(IcebergFormat):
    """Upkeep of Iceberg, by its procedures for Spark.

    A table is identified by the property ``rowtide.commit``, which no procedure changes. If a staged snapshot expires
    while a stream writes it, the write is repeated.
    """

    def optimize(self, path: str) -> Merged:
        """``rewrite_data_files``, and in format version 2 ``rewrite_position_delete_files``, with Iceberg's defaults.

        Version 3 has one deletion vector for each file, which is removed with the file.
        """
        strategy = "binpack" if self._load(path).sortOrder().isUnsorted() else "sort"
        options = (f"strategy => '{strategy}'", "options => map('remove-dangling-deletes', 'true')")
        found = self._call("rewrite_data_files", path, *options)[0]
        before, after = found["rewritten_data_files_count"], found["added_data_files_count"]
        before += found["removed_delete_files_count"]
        snapshot = self._metadata(path).currentSnapshot()
        written = int(dict(snapshot.summary()).get("added-files-size", 0)) if after else 0
        if self._metadata(path).formatVersion() == _WITH_POSITION_DELETES:
            found = self._call("rewrite_position_delete_files", path)[0]
            before += found["rewritten_delete_files_count"]
            after += found["added_delete_files_count"]
            written += found["added_bytes_count"]
        return Merged(before, after, written)

    def vacuum(self, path: str, age: timedelta) -> Removed:
        """``remove_orphan_files``."""
        return self._removed(path, lambda: Removed(len(self._call("remove_orphan_files", path, _older_than(age)))))

    def expire(self, path: str, app_ids: Collection[str], age: timedelta) -> Removed:
        """``expire_snapshots``. The table's own snapshot and the property with its batch stay."""

        def expire() -> Removed:
            before = self._snapshots(path)
            found = self._call("expire_snapshots", path, _older_than(age)).pop().asDict()
            return Removed(sum(found.values()), versions=len(before - self._snapshots(path)))

        return self._removed(path, expire)

    def _removed(self, path: str, step: Callable[[], Removed]) -> Removed:
        location = self._metadata(path).location()
        before = self._size(location)
        return step() + Removed(bytes=max(before - self._size(location), 0))

    def _size(self, location: str) -> int:
        with suppress(OSError):  # Iceberg may have its own access to an object store, which Hadoop lacks
            return HadoopFiles(self.spark).size(location)
        return 0

    def _snapshots(self, path: str) -> set[int]:
        snapshots = self._metadata(path).snapshots()
        return {snapshots.get(number).snapshotId() for number in range(snapshots.size())}

    def _call(self, procedure: str, path: str, *arguments: str) -> list[Row]:
        catalog, _, table = self._sql(path).partition("`.`")
        given = ", ".join((f"table => '`{table}'", *arguments))
        try:
            return self.spark.sql(f"CALL {catalog}`.system.{procedure}({given})").collect()
        except (PySparkException, Py4JJavaError) as error:
            if _ICEBERG_CONFLICT.search(text_with_causes(error)):
                raise ConflictError(path) from error
            raise


def _older_than(age: timedelta) -> str:
    return f"older_than => TIMESTAMP '{datetime.now(UTC) - age:%Y-%m-%d %H:%M:%S.%f}'"  # the session's time zone is UTC


def hours(age: timedelta) -> str:
    """Return an age as text."""
    return f"{age / timedelta(hours=1):g}h"


UPKEEP: Mapping[str, Callable[[SparkSession, Settings], KeptFormat]] = {
    "delta": DeltaUpkeep,
    "iceberg": IcebergUpkeep,
}
"""By the name that ``--format`` takes. A batch rewrites Parquet tables, and deletes the old files."""
