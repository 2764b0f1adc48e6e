"""Progress of ``rowtide tables``: the offsets of each topic that are in its table.

Each batch is a numbered pair of small files in the topic's directory. ``00000012.plan.json`` is written before the
batch and holds its offset ranges, ``00000012.done.json`` is written after it. The commit of the table carries the
number of the batch and the id of its plan (:class:`Commit`). After a crash between the two files, the next run reads
the planned ranges again under the same number, and a table that already has the commit ignores it: no row is lost and
none is applied twice.

Two runs must not work on one table at the same time. A lock prevents that where the file system has one
(:meth:`Files.lock`). Elsewhere a plan file is created only if it does not exist, and a table that holds a batch under
the id of another plan is refused.
"""

import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import astuple, dataclass, field, replace
from typing import Any, Protocol

from rowtide.spark_consumers.errors import OverlappingRunsError, StateError
from rowtide.spark_consumers.kafka.naming import join
from rowtide.spark_consumers.kafka.offsets import LastRecord, Ranges, advanced

_KEPT_BATCHES = 5
STEPS_OF_A_BATCH = 1000
RENAMES, STRUCTURE = -1, 0
"""The steps of a batch before those that write rows: renamed columns, and all other changes of the columns."""


class Files(Protocol):
    """The file system operations that the state needs."""

    def names(self, directory: str) -> list[str]:
        """Return the names in a directory, none if it does not exist."""

    def read(self, path: str) -> str:
        """Return a file's text."""

    def create(self, path: str, text: str) -> None:
        """Write a file; a reader sees it complete or not at all. An existing file is replaced."""

    def create_new(self, path: str, text: str) -> None:
        """Write a file like :meth:`create`, but never replace one.

        Raises:
            FileExistsError: the file exists. An object store may miss a file that is written at the same time.
        """

    def delete(self, path: str) -> None:
        """Remove a file or a directory with its content, if it exists."""

    def lock(self, path: str) -> AbstractContextManager[None]:
        """Hold a lock while the context is open. File systems without locks do nothing.

        Raises:
            BlockingIOError: another process or thread holds it; the text says which one.
        """


@dataclass(frozen=True, slots=True)
class Commit:
    """The identity of one step of a batch, which the table stores with the rows of that step.

    Attributes:
        app_id: identifies the state that the batch belongs to.
        version: grows with every step of every batch.
        plan_id: identifies the plan of the batch; ``None`` in state written by older releases.
    """

    app_id: str
    version: int
    plan_id: str | None = None

    @property
    def batch(self) -> int:
        """The number of the batch."""
        return (self.version - RENAMES) // STEPS_OF_A_BATCH

    def to_json(self) -> str:
        """Return the text that a table stores."""
        return json.dumps({"app_id": self.app_id, "version": self.version, "plan": self.plan_id})

    @classmethod
    def from_json(cls, text: str) -> "Commit | None":
        """Read :meth:`to_json`; ``None`` for any other text."""
        try:
            content = json.loads(text)
            return cls(content["app_id"], content["version"], content.get("plan"))
        except (ValueError, KeyError, TypeError, AttributeError):
            return None

    def is_applied(self, newest: "Commit | None") -> bool:
        """Return whether a table contains this step.

        Args:
            newest: the newest commit of this state in the table, ``None`` if it has none.

        Raises:
            OverlappingRunsError: the table contains the batch, or a later one, under another plan.
        """
        if newest is None or newest.app_id != self.app_id or newest.version < self.version:
            return False
        if newest.plan_id != self.plan_id:
            raise OverlappingRunsError(self.batch)
        return True


@dataclass(frozen=True, slots=True, order=True)
class Truncation:
    """The newest TRUNCATE read. Records before it in the binlog, in other partitions, are ignored.

    Attributes:
        file: number of the binlog file.
        pos: position in the file.
    """

    file: int
    pos: int


@dataclass(frozen=True, slots=True)
class ColumnNames:
    """The names in the table of the columns of some structures.

    Attributes:
        of: for each structure, the names in the table by those in messages, in lower case. It lacks a column that was
            dropped and whose name another column now has.
        newest: index of the newest structure.
    """

    of: Sequence[Mapping[str, str]]
    newest: int

    def names_now(self, columns: Sequence[str]) -> dict[str, str]:
        """Return the names in the table of columns of the first structure, by their names in lower case."""
        return {name.lower(): self.of[0][name.lower()] for name in columns if name.lower() in self.of[0]}


@dataclass(frozen=True, slots=True)
class RowFilter:
    """The condition of the rows that a table has.

    Attributes:
        sql: the condition in Spark SQL.
        names: the names that columns have in the table, by those in lower case that the condition has for them, if
            they differ.
    """

    sql: str
    names: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Computed:
    """The columns that a table has in addition to those of MySQL.

    Attributes:
        expressions: Spark SQL by the name of the column.
        names: the names that MySQL's columns have in the table, by those in lower case that expressions have for them,
            if they differ.
    """

    expressions: Mapping[str, str]
    names: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Projection:
    """The columns of MySQL's table that a table has.

    Attributes:
        given: their names when the table was built.
        current: the names that they have in the table; ``None`` for a dropped one whose name another column now has.
    """

    given: Sequence[str]
    current: Sequence[str | None]

    def has(self, name: str) -> bool:
        """Return whether a column with this name in the table is one of them."""
        return any(one is not None and one.lower() == name.lower() for one in self.current)


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch of records of one topic, and the state of the topic after it.

    Attributes:
        app_id: identifies this state in the commits of the table.
        number: of the batch, from 1; 0 if no batch was planned yet.
        offsets: the next offset to read of each partition after this batch.
        ranges: the offsets that this batch reads.
        columns: the columns of the newest row schema, ``None`` before the first.
        types: the types of these columns; ``None`` before the first, and in the state of older releases.
        truncation: the newest TRUNCATE.
        seen: hashes of the last changes of each partition that are not applied by a key, to recognize repetitions.
        plan_id: a new id for every plan.
        topic_id: Kafka's id of the topic; ``None`` if it is not known.
        last: the last record that was read of each partition, if no id is known.
        names: the names that the schema history proves for the structures of ``columns`` and of this batch. It is
            stored before a column is renamed, so that a repetition of the batch does the same, whatever the history
            contains then.
        metadata: the columns of the table that hold metadata of records (``--metadata``).
        layout: the layout of the table's rows, :class:`rowtide.spark_consumers.settings.Layout`; ``None`` before the
            first row, and in the state of older releases.
        table: path of the table in the output; ``None`` if it is that of the topic's name.
        where: which rows the table has; ``None`` for all.
        shards: columns of the key that rows lack, as those by which ByLogicalTableRouter tells apart the tables whose
            records are in one topic.
        projection: which columns the table has; ``None`` for all.
        computed: the columns that the table has in addition; ``None`` if there are none.
        shard_column: the column that tells apart the rows of this topic from those of others in the table; ``None`` if
            it has the rows of one topic.
    """

    app_id: str
    number: int = 0
    offsets: Mapping[int, int] = field(default_factory=dict)
    ranges: Ranges = field(default_factory=dict)
    columns: tuple[str, ...] | None = None
    types: tuple[str, ...] | None = None
    truncation: Truncation | None = None
    seen: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    plan_id: str | None = None
    topic_id: str | None = None
    last: Mapping[int, LastRecord] = field(default_factory=dict)
    names: ColumnNames | None = None
    metadata: tuple[str, ...] = ()
    layout: str | None = None
    table: str | None = None
    where: RowFilter | None = None
    shards: tuple[str, ...] = ()
    projection: Projection | None = None
    computed: Computed | None = None
    shard_column: str | None = None

    def next(self, ranges: Ranges) -> "Batch":
        """Return the batch that follows and reads these ranges."""
        return replace(
            self,
            number=self.number + 1,
            ranges=ranges,
            offsets=advanced(self.offsets, ranges),
            plan_id=uuid.uuid4().hex,
            names=None,
        )

    def commit(self, step: int) -> Commit:
        """Return the identity of a step of this batch."""
        if not RENAMES <= step < STEPS_OF_A_BATCH + RENAMES:
            raise StateError(f"a batch has at most {STEPS_OF_A_BATCH} steps; read smaller batches (--max-records)")
        return Commit(self.app_id, self.number * STEPS_OF_A_BATCH + step, self.plan_id)

    def to_json(self) -> str:
        """Return the text of the batch's file."""
        content: dict[str, Any] = {
            # Older releases would mix other rows into the table, or create another one.
            "version": self._version,
            "app_id": self.app_id,
            "batch": self.number,
            "offsets": {str(partition): offset for partition, offset in sorted(self.offsets.items())},
            "ranges": {str(partition): list(found) for partition, found in sorted(self.ranges.items())},
        }
        if self.columns is not None:
            content["columns"] = list(self.columns)
        if self.types is not None:
            content["types"] = list(self.types)
        if self.truncation is not None:
            content["truncation"] = {"file": self.truncation.file, "pos": self.truncation.pos}
        if self.seen:
            content["seen"] = {str(partition): list(found) for partition, found in sorted(self.seen.items())}
            if self.seen.keys() == {0}:  # as older releases know it
                content["seen"] = list(self.seen[0])
        if self.plan_id is not None:
            content["plan"] = self.plan_id
        if self.topic_id is not None:
            content["topic_id"] = self.topic_id
        if self.last:
            content["last"] = {str(partition): astuple(record) for partition, record in sorted(self.last.items())}
        if self.names is not None:
            content["names"] = {"of": [dict(found) for found in self.names.of], "newest": self.names.newest}
        if self.layout is not None:
            content["layout"] = self.layout
        if self.table is not None:
            content["table"] = self.table
        if self.where is not None:
            content["where"] = {"sql": self.where.sql, "names": dict(self.where.names)}
        if self.projection is not None:
            content["projection"] = {"given": [*self.projection.given], "current": [*self.projection.current]}
        if self.computed is not None:
            content["computed"] = {"sql": dict(self.computed.expressions), "names": dict(self.computed.names)}
        if self.shard_column is not None:
            content["shard_column"] = self.shard_column
        if self.metadata:
            content["metadata"] = list(self.metadata)
        if self.shards:
            content["shards"] = list(self.shards)
        return json.dumps(content, ensure_ascii=False)

    @property
    def _version(self) -> int:
        if self.computed is not None or self.shard_column is not None:
            return 5
        if self.projection is not None:
            return 4
        return 3 if self.where else 1 if self.layout in (None, "rows") and self.table is None else 2

    @classmethod
    def from_json(cls, text: str) -> "Batch":
        """Read :meth:`to_json`.

        Raises:
            ValueError, KeyError, TypeError: the text is not that of a batch.
        """
        content = json.loads(text)
        if content["version"] not in (1, 2, 3, 4, 5):
            raise ValueError(f"version {content['version']} was written by a newer rowtide")
        truncation = content.get("truncation")
        columns, types, names = content.get("columns"), content.get("types"), content.get("names")
        where, projection, computed = (content.get(name) for name in ("where", "projection", "computed"))
        seen = content.get("seen", {})
        seen = {0: seen} if isinstance(seen, list) else seen
        return cls(
            app_id=content["app_id"],
            number=int(content["batch"]),
            offsets={int(partition): int(offset) for partition, offset in dict(content["offsets"]).items()},
            ranges={int(p): (int(first), int(end)) for p, (first, end) in dict(content["ranges"]).items()},
            columns=None if columns is None else tuple(columns),
            types=None if types is None else tuple(types),
            truncation=truncation and Truncation(truncation["file"], truncation["pos"]),
            seen={int(partition): tuple(hashes) for partition, hashes in seen.items()},
            plan_id=content.get("plan"),
            topic_id=content.get("topic_id"),
            last={int(partition): LastRecord(*record) for partition, record in content.get("last", {}).items()},
            names=names and ColumnNames([dict(found) for found in names["of"]], int(names["newest"])),
            metadata=tuple(content.get("metadata", ())),
            layout=content.get("layout"),
            table=content.get("table"),
            where=where and RowFilter(where["sql"], dict(where["names"])),
            shards=tuple(content.get("shards", ())),
            projection=projection and Projection(tuple(projection["given"]), tuple(projection["current"])),
            computed=computed and Computed(dict(computed["sql"]), dict(computed["names"])),
            shard_column=content.get("shard_column"),
        )


@dataclass(frozen=True, slots=True)
class StoredState:
    """The last finished batch, and a planned one that may not be in the table yet."""

    done: Batch
    planned: Batch | None = None

    @property
    def is_new(self) -> bool:
        """Whether no batch is finished."""
        return self.done.number == 0


def stored_topics(files: Files, state: str) -> list[str]:
    """Return the topics with offsets in the directory of the state, which also has locks: no topic has a ``~``."""
    return [name for name in files.names(state) if "~" not in name]


@dataclass(frozen=True, slots=True)
class StateStore:
    """The batches of one topic.

    Attributes:
        files: the file system.
        directory: the directory of this topic.
    """

    files: Files
    directory: str

    def load(self) -> StoredState:
        """Read the stored state.

        Raises:
            StateError: a file cannot be read.
        """
        names = self.files.names(self.directory)
        done = max((name for name in names if name.endswith(".done.json")), default=None)
        planned = max((name for name in names if name.endswith(".plan.json")), default=None)
        last = self._read(done) if done else None
        plan = self._read(planned) if planned else None
        if plan is not None and (last is None or plan.number > last.number):
            return StoredState(last or Batch(plan.app_id), plan)
        # Runs that build a table at the same time share the identity, so that the table accepts only one of them.
        return StoredState(last or Batch(f"rowtide-{self.directory.rpartition('/')[2]}"))

    def plan(self, batch: Batch) -> None:
        """Store a batch that is about to be applied.

        Raises:
            StateError: another run stored a plan under this number.
        """
        path = self._path(batch, "plan")
        try:
            self.files.create_new(path, batch.to_json())
        except FileExistsError as error:
            raise StateError(
                f"{path} exists: another run of rowtide tables planned the same batch. This run wrote nothing. "
                f"Run it again when the other one has ended"
            ) from error

    def amend(self, planned: Batch) -> None:
        """Store additional data of a planned batch."""
        self.files.create(self._path(planned, "plan"), planned.to_json())

    def finish(self, batch: Batch) -> None:
        """Store that a batch is in the table, and delete the files of old batches."""
        self.files.create(self._path(batch, "done"), batch.to_json())
        for name in self.files.names(self.directory):
            if name < _file_name(batch.number - _KEPT_BATCHES, ""):
                self.files.delete(join(self.directory, name))

    def forget(self, planned: Batch) -> None:
        """Delete the plan of a batch that is not in the table at all: the next run plans it again."""
        self.files.delete(self._path(planned, "plan"))

    def reset(self) -> None:
        """Delete the state: the next run reads the topic from its first offset."""
        self.files.delete(self.directory)

    def begin_again(self) -> None:
        """Store that no batch is in the table, under a new identity: it has batches of the one before."""
        self.finish(Batch(f"{self.load().done.app_id}-{uuid.uuid4().hex[:8]}"))

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the lock of the topic while the context is open; see :meth:`Files.lock`.

        Raises:
            StateError: another run holds it.
        """
        with ExitStack() as stack:
            try:
                # Next to the directory, which reset() deletes. No topic has a ~ in its name.
                stack.enter_context(self.files.lock(f"{self.directory}~lock"))
            except BlockingIOError as error:
                raise StateError(
                    f"another run of rowtide tables is updating this table ({error}; its offsets are in "
                    f"{self.directory}): run it again when the other one has ended"
                ) from error
            yield

    def _path(self, batch: Batch, kind: str) -> str:
        return join(self.directory, _file_name(batch.number, f".{kind}.json"))

    def _read(self, name: str) -> Batch:
        path = join(self.directory, name)
        try:
            return Batch.from_json(self.files.read(path))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StateError(
                f"the stored offsets in {path} cannot be read ({error}); build the table again with --restart"
            ) from error


def _file_name(number: int, suffix: str) -> str:
    return f"{max(number, 0):08d}{suffix}"
