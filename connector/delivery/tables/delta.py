"""Tables of Delta Lake in a directory, without Java. Needs deltalake and pyarrow.

Each table has its own log, so a transaction over several tables is undone, not prepared: ``_rowtide/state.json`` names
the version of each table at the stored position, and versions written after it, before a crash, are undone by Delta's
restore. Directories are renamed and deleted only after the position is stored; the state lists what is left to do.
"""

import fcntl
import json
import re
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from decimal import Context, Decimal
from pathlib import Path
from typing import IO, Any, NamedTuple

from rowtide.connector.delivery.errors import DeliveryError, OffsetStoreError
from rowtide.connector.delivery.tables.offsets import TableOffsets
from rowtide.connector.delivery.tables.pending import Image
from rowtide.connector.delivery.tables.sink import shown
from rowtide.connector.delivery.tables.store import OURS
from rowtide.connector.delivery.tables.type_changes import Decimals, Fitting
from rowtide.connector.records.offset import SourceOffset
from rowtide.errors import needs_package
from rowtide.schema_history.model import Column, TableId
from rowtide.synced_files import replace_file, sync_folder

try:
    import deltalake
    import pyarrow as pa
    import pyarrow.compute as pc
    from deltalake.exceptions import CommitFailedError, DeltaError
    from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

    from rowtide.connector.delivery.tables.arrow_rows import arrow_rows
    from rowtide.connector.records.arrow_values import arrow_type, fitting
except ModuleNotFoundError as missing:
    raise DeliveryError(f"the sink delta {needs_package(missing, 'delta')}") from missing

OWN = "_rowtide"
"""The directory of the sink's own files."""
_MARK = "rowtideOffset"
_NEW = "new"
"""The prefix of the directories of tables that are created in a transaction, which renames them at its end."""
_COMPACTED_EACH = 100
"""The number of versions after which the small files of a table are merged, and old ones deleted."""
_MEASURES = {"values": None, "characters": pc.utf8_length, "bytes": pc.binary_length}
_EXACT = Context(prec=100)
_LATER = deltalake.PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)
"""Before the position is stored, nothing is deleted that an undo needs."""
_PROPERTIES = {"delta.deletedFileRetentionDuration": "interval 1 days"}


class Step(NamedTuple):
    """A table whose directory must be deleted or renamed."""

    table: TableId
    new: TableId | None


class DeltaState(NamedTuple):
    """The state stored with a position.

    Attributes:
        offset: the position as JSON; ``None`` before the first one.
        history_bytes: the length of the schema history.
        versions: those of the tables.
        steps: the remaining steps for directories.
        number: that of the transaction, which each of its versions has as Delta's ``txn``.
    """

    offset: str | None = None
    history_bytes: int | None = None
    versions: Mapping[TableId, int] = {}
    steps: Sequence[Step] = ()
    number: int = 0


class DeltaOffsets(TableOffsets):
    """The position of one connector in a directory of tables."""

    anew = (
        "delete the directory of the tables and the schema history file: the next start takes a new snapshot of "
        "everything"
    )

    @property
    def _file(self) -> Path:
        return self.path / OWN / "state.json"

    def save(self, offset: SourceOffset | None) -> None:
        """Store an offset without rows; ``None`` deletes the stored one.

        Raises:
            OffsetStoreError: it cannot be written.
        """
        try:
            self.write(self.state(), offset)
        except OSError as error:
            raise OffsetStoreError(f"{self._file} cannot be written: {error.strerror}") from error

    def state(self) -> DeltaState:
        """Return the stored state.

        Raises:
            OffsetStoreError: it cannot be read, or belongs to another connector.
        """
        try:
            stored = json.loads(self._file.read_text())
            connector = stored["name"], stored["prefix"]
            tables = {TableId(database, table): version for database, table, version in stored["versions"]}
            steps = [Step(TableId(*old), None if new is None else TableId(*new)) for old, new in stored["steps"]]
            state = DeltaState(stored["offset"], stored["history_bytes"], tables, steps, stored["number"])
        except (FileNotFoundError, NotADirectoryError):
            return DeltaState()
        except OSError as error:
            raise OffsetStoreError(f"{self._file} cannot be read: {error.strerror}") from error
        except (ValueError, KeyError, TypeError) as error:
            raise OffsetStoreError(
                f"{self._file} is damaged: {error!r}. Restore the directory, or {self.anew}"
            ) from error
        if connector != self.connector:
            raise OffsetStoreError(
                f"the tables in {self.path} belong to the connector {connector[0]} with topic.prefix={connector[1]}: "
                "choose another directory"
            )
        return state

    def write(self, state: DeltaState, offset: SourceOffset | None) -> DeltaState:
        """Store a state with a new offset.

        Raises:
            OSError: it cannot be written.
        """
        state = state._replace(offset=None if offset is None else offset.to_json(), history_bytes=self.history_bytes())
        self.replace(state)
        return state

    def replace(self, state: DeltaState) -> None:
        """Store a state.

        Raises:
            OSError: it cannot be written.
        """
        name, prefix = self.connector
        stored = state._asdict() | {
            "name": name,
            "prefix": prefix,
            "versions": [[table.database, table.table, version] for table, version in state.versions.items()],
            "steps": [
                [None if one is None else [one.database, one.table] for one in (step.table, step.new)]
                for step in state.steps
            ],
        }
        self._file.parent.mkdir(parents=True, exist_ok=True)
        replace_file(self._file, json.dumps(stored).encode())
        sync_folder(self._file.parent)

    def _stored(self) -> tuple[str, int | None] | None:
        state = self.state()
        return None if state.offset is None else (state.offset, state.history_bytes)


class DeltaStore:
    """Tables of Delta Lake, each in ``DIRECTORY/DATABASE/TABLE``.

    Args:
        offsets: the position in the directory.
        compacted_each: after how many versions the small files of a table are merged.
    """

    errors: tuple[type[Exception], ...] = (OSError, DeltaError, pa.ArrowException)

    def __init__(self, offsets: DeltaOffsets, compacted_each: int = _COMPACTED_EACH) -> None:
        self.path = offsets.path
        self.offsets = offsets
        self._compacted_each = compacted_each
        self._lock: IO[str] | None = None
        self._state = DeltaState()
        self._clean = False
        self._offset: SourceOffset | None = None
        self._versions: dict[TableId, int] = {}
        self._steps: list[Step] = []
        self._made = 0  # directories of new tables in this transaction
        self._opened: dict[TableId, deltalake.DeltaTable] = {}

    def may_pass(self, error: Exception) -> bool:
        """Return whether it is an error of the disk, or another program has written to a table at the same time."""
        return isinstance(error, OSError | CommitFailedError) or "os error" in str(error)

    def open(self) -> None:
        """Lock the directory, which is created if missing, and undo changes written after the stored position.

        Raises:
            DeliveryError: another process writes to it, or it cannot be written.
        """
        folder = self.path / OWN
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = (folder / "lock").open("a")
        except OSError as error:
            raise DeliveryError(
                f"the tables in {self.path} cannot be opened: {error.strerror}. Name a directory that this user can "
                "write to"
            ) from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self.close()
            raise DeliveryError(
                f"another process writes the tables in {self.path}: stop it, or choose another directory"
            ) from None
        self._clean = False

    def close(self) -> None:
        """Release the lock."""
        self._opened.clear()
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def begin(self, offset: SourceOffset) -> None:
        """Begin a transaction, with the position after it."""
        if not self._clean:
            self._recover()
        self._offset, self._steps, self._made, self._versions = offset, [], 0, dict(self._state.versions)

    def commit(self) -> None:
        """Store the transaction and its position."""
        self._clean = False
        former, each = self._state, self._compacted_each
        state = former._replace(versions=self._versions, steps=self._steps, number=former.number + 1)
        self._state = self.offsets.write(state, self._offset)
        self._finish()
        self._steps = []
        for table, version in self._versions.items():
            if version // each != former.versions.get(table, version) // each:
                self._compact(table)
        self._offset, self._clean = None, True

    def rollback(self) -> None:
        """Let the next transaction undo this one first, if there is one."""
        if self._offset is not None:
            self._offset, self._clean = None, False
        self._opened.clear()

    def interrupt(self) -> None:
        """Do nothing: a transaction ends on its own."""

    # --- rows -------------------------------------------------------------------------------------------------------

    def is_empty(self, table: TableId) -> bool:
        """Return whether a table has no rows."""
        return bool(self._rows(table).head(1).num_rows == 0)

    def has(self, table: TableId, column: str, value: int | None) -> bool:
        """Return whether a row has a value in a column."""
        batches = (batch.column(0) for batch in self._rows(table).to_batches(columns=[column]))
        return any(one.null_count if value is None else value in one.to_pylist() for one in batches)

    def all_fit(self, table: TableId, column: str, fitting: Fitting) -> bool:
        """Return whether all values of a column except NULL are in a range."""
        return all(_fit(batch.column(0), fitting) for batch in self._rows(table).to_batches(columns=[column]))

    def truncate(self, table: TableId) -> None:
        """Delete all rows."""
        self._table(table).delete(**self._commit())
        self._written(table)

    def insert(self, table: TableId, columns: Sequence[Column], rows: Sequence[Image]) -> None:
        """Add rows."""
        given = arrow_rows(table, columns, rows, _stored_values)
        deltalake.write_deltalake(self._table(table), given, mode="append", **self._commit())
        self._written(table)

    def replace(
        self, table: TableId, columns: Sequence[Column], keys: Sequence[Column], rows: dict[Image, Image | None]
    ) -> None:
        """Set the row of each key, or delete it."""
        new = [row for row in rows.values() if row is not None]
        if self.is_empty(table):
            if new:
                self.insert(table, columns, new)
            return
        gone = [self._only_key(columns, keys, key) for key, row in rows.items() if row is None]
        given = arrow_rows(table, columns, new + gone, _stored_values)
        mark = "gone"
        while mark in {name.lower() for name in given.column_names}:
            mark += "_"
        given = given.append_column(mark, pa.array([False] * len(new) + [True] * len(gone)))
        names = {_name(column.name): f"s.{_name(column.name)}" for column in columns}
        merger = self._merge(table, keys, given)
        merger.when_matched_delete(f"s.{mark}").when_matched_update(names)
        merger.when_not_matched_insert(names, f"NOT s.{mark}").execute()
        self._written(table)

    def update(self, table: TableId, columns: Sequence[Column], keys: Sequence[Column], rows: Sequence[Image]) -> int:
        """Set the given columns in existing rows, and return the number of these rows."""
        given = arrow_rows(table, columns, rows, _stored_values)
        names = {_name(column.name): f"s.{_name(column.name)}" for column in columns}
        found = self._merge(table, keys, given).when_matched_update(names).execute()
        self._written(table)
        return int(found["num_target_rows_updated"])

    def delete(self, table: TableId, columns: Sequence[Column], images: Sequence[Image], counts: Sequence[int]) -> int:
        """Delete as many rows of each image as counted, and return the number of deleted rows."""
        gone = arrow_rows(table, columns, images, _stored_values)
        wanted = Counter(dict(zip(_frozen(gone), counts, strict=True)))
        dataset = self._rows(table)
        names = gone.column_names

        def kept() -> Iterator[pa.RecordBatch]:
            for batch in dataset.to_batches():
                chosen = _like(batch, gone)
                keep = [True] * batch.num_rows
                if chosen:
                    rows = _frozen(batch.select(names).take(pa.array(chosen)))
                    for place, row in zip(chosen, rows, strict=True):
                        if wanted[row] > 0:
                            wanted[row] -= 1
                            keep[place] = False
                yield batch.filter(pa.array(keep, pa.bool_()))

        rest = pa.RecordBatchReader.from_batches(dataset.schema, kept())
        deltalake.write_deltalake(self._table(table), rest, mode="overwrite", **self._commit())
        self._written(table)
        return sum(counts) - wanted.total()

    def _only_key(self, columns: Sequence[Column], keys: Sequence[Column], key: Image) -> Image:
        values = {column.name: value for column, value in zip(keys, key, strict=True)}
        return tuple(values.get(column.name) for column in columns)

    def _merge(self, table: TableId, keys: Sequence[Column], given: pa.Table) -> Any:
        return self._table(table).merge(
            given,
            " AND ".join(f"t.{_name(key.name)} = s.{_name(key.name)}" for key in keys),
            source_alias="s",
            target_alias="t",
            **self._commit(),
        )

    # --- structures -------------------------------------------------------------------------------------------------

    def made(self) -> list[TableId]:
        """Return the tables that the sink has created."""
        return list(self._versions)

    def exists(self, table: TableId) -> bool:
        """Return whether a table exists."""
        return table in self._versions

    def columns(self, table: TableId) -> dict[str, str]:
        """Return the names and types of a table's columns."""
        schema = pa.schema(self._table(table).schema())
        return {field.name: str(field.type) for field in schema}

    def type_of(self, column: Column) -> str:
        """Return the Arrow name of a column's type."""
        return str(_stored_type(arrow_type(column)))

    def create(self, table: TableId, columns: Sequence[Column]) -> None:
        """Create a table.

        Raises:
            DeliveryError: the directory has something else of this name, or it is that of the sink.
        """
        _require_other(table)
        schema = pa.schema([pa.field(column.name, _stored_type(arrow_type(column))) for column in columns])
        last = next((step for step in reversed(self._steps) if step.table == table), None)
        folder = self._place(table)
        if last is not None and last.new is None:  # dropped in the same transaction: it gets another version
            del self._steps[len(self._steps) - 1 - self._steps[::-1].index(last)]
        elif last is not None or not folder.exists() or not any(folder.iterdir()):
            self._made += 1
            self._steps.append(Step(TableId(OWN, f"{_NEW}{self._made}"), table))
        elif not _is_ours(folder):
            raise DeliveryError(
                f"{folder} is not a table of Delta Lake that this sink has created (its description is not {OURS!r}): "
                "it "
                "is not replaced. Rename it, or use another directory"
            )
        self._new_version(table, schema, _PROPERTIES)

    def drop(self, table: TableId) -> None:
        """Delete a table, if it exists, at the end of the transaction."""
        if self._versions.pop(table, None) is not None:
            self._opened.pop(table, None)
            self._steps.append(Step(table, None))

    def rename(self, former: TableId, table: TableId) -> None:
        """Rename the directory of a table at the end of the transaction.

        Raises:
            DeliveryError: there is something else of this name, or it is that of the sink.
        """
        _require_other(table)
        place = self._place(table)
        if place.exists() and not any(step.table == table for step in self._steps):
            raise DeliveryError(
                f"table {former} was renamed to {table}, and {place} was not created by this sink: it "
                "is not replaced. Rename it"
            )
        self._opened.pop(former, None)
        self._steps.append(Step(former, table))
        self._versions[table] = self._versions.pop(former)

    def alter(self, table: TableId, pairs: Sequence[tuple[Column | None, Column]], values: dict[str, Any]) -> None:
        """Change the columns of a table, which rewrites its rows."""
        fields = [pa.field(new.name, _stored_type(arrow_type(new))) for _, new in pairs]
        added = [new for old, new in pairs if old is None]
        constants = arrow_rows(table, added, [tuple(values[new.name] for new in added)], _stored_values)
        properties, dataset = self._table(table).metadata().configuration, self._rows(table)

        def written() -> Iterator[pa.RecordBatch]:
            for batch in dataset.to_batches():
                arrays = []
                for (old, new), field in zip(pairs, fields, strict=True):
                    if old is None:
                        value = constants.column(new.name)[0]
                        arrays.append(pa.repeat(value, batch.num_rows))
                    else:
                        arrays.append(_cast(batch.column(old.name), new, field.type))
                yield pa.RecordBatch.from_arrays(arrays, schema=schema)

        schema = pa.schema(fields)
        self._new_version(table, schema, properties)  # an overwrite would keep the order of columns
        rows = pa.RecordBatchReader.from_batches(schema, written())
        deltalake.write_deltalake(self._table(table), rows, mode="append", **self._commit())
        self._written(table)

    def _new_version(self, table: TableId, schema: pa.Schema, properties: Mapping[str, str]) -> None:
        """Write a version without rows."""
        self._opened[table] = deltalake.DeltaTable.create(
            self._folder(table),
            schema,
            mode="overwrite",
            description=OURS,
            configuration=properties,
            **self._commit(),
        )
        self._written(table)

    def _rows(self, table: TableId) -> Any:
        """Return the rows of a table, which can be read while another version is written."""
        # deltalake's own file system cannot be used within one of its writers.
        files = SubTreeFileSystem(str(self._folder(table)), LocalFileSystem())
        return self._table(table).to_pyarrow_dataset(filesystem=files)

    # --- versions ---------------------------------------------------------------------------------------------------

    def _folder(self, table: TableId) -> Path:
        """Return the folder of a table until the steps of this transaction are done."""
        for step in reversed(self._steps):
            if step.new == table:
                table = step.table
        return self._place(table)

    def _place(self, table: TableId) -> Path:
        return self.path / directory_name(table.database) / directory_name(table.table)

    def _table(self, table: TableId) -> "deltalake.DeltaTable":
        if table not in self._opened:
            self._opened[table] = deltalake.DeltaTable(self._folder(table))
        return self._opened[table]

    def _commit(self) -> dict[str, Any]:
        """Return the properties that all versions of this transaction have."""
        assert self._offset is not None, "no transaction"
        transaction = deltalake.Transaction(OWN, self._state.number + 1)
        properties = deltalake.CommitProperties({_MARK: self._offset.to_json()}, app_transactions=[transaction])
        return {"commit_properties": properties, "post_commithook_properties": _LATER}

    def _written(self, table: TableId) -> None:
        opened = self._opened[table]
        opened.update_incremental()
        self._versions[table] = opened.version()

    def _compact(self, table: TableId) -> None:
        """Merge small files and delete old ones. Such versions, like those of other programs, are not undone."""
        opened = self._table(table)
        opened.optimize.compact(post_commithook_properties=_LATER)
        opened.vacuum(dry_run=False, post_commithook_properties=_LATER)
        opened.update_incremental()
        opened.create_checkpoint()
        opened.cleanup_metadata()

    def _finish(self) -> None:
        """Rename and delete directories; after a crash, the next start does the rest."""
        steps, emptied = list(self._state.steps), set[TableId]()
        for number, step in enumerate(steps):
            if step.new in emptied:  # the step that emptied it would do so again after a crash
                self._leave(steps[number:])
                emptied.clear()
            folder = self._place(step.table)
            if folder.exists():
                if step.new is None:
                    shutil.rmtree(folder)
                else:
                    place = self._place(step.new)
                    place.parent.mkdir(parents=True, exist_ok=True)
                    folder.rename(place)
                    sync_folder(place.parent)
            emptied.add(step.table)
        if steps:
            self._leave(())
            self._opened.clear()  # they have the former directories

    def _leave(self, steps: Sequence[Step]) -> None:
        """Store the remaining steps."""
        self._state = self._state._replace(steps=steps)
        self.offsets.replace(self._state)

    def _recover(self) -> None:
        """Finish the last transaction that was stored, and undo the one after it."""
        self._opened.clear()
        self._state = self.offsets.state()
        self._steps = []
        self._finish()
        versions = {table: self._restore(table, version) for table, version in self._state.versions.items()}
        if versions != self._state.versions:  # or each start would undo the later changes of others
            self._state = self._state._replace(versions=versions, number=self._state.number + 1)
            self.offsets.replace(self._state)
        for folder in (self.path / OWN).glob(f"{_NEW}*"):
            shutil.rmtree(folder)
        self._clean = True

    def _restore(self, table: TableId, version: int) -> int:
        """Undo the changes that this sink wrote after a version. Versions of others, such as OPTIMIZE, keep the rows.

        Returns the version that now has the rows.
        """
        folder = self._place(table)
        try:
            opened = deltalake.DeltaTable(folder)
        except DeltaError as error:
            raise DeliveryError(f"table {table}: {folder} is missing or damaged: {shown(error)}. {_WAY_OUT}") from error
        newer = opened.version() - version
        if newer < 0:
            raise DeliveryError(
                f"table {table}: {folder} has version {opened.version()}, and version {version} was stored: it is from "
                f"an older backup. {_WAY_OUT}"
            )
        if (opened.transaction_version(OWN) or 0) <= self._state.number:
            return version
        entries = opened.history(newer)
        if len(entries) < newer:
            raise DeliveryError(
                f"table {table}: the log in {folder} was truncated after version {version}, so what was written before "
                "a "
                f"crash cannot be undone. {_WAY_OUT}"
            )
        opened.restore(
            min(entry["version"] for entry in entries if _MARK in entry) - 1, post_commithook_properties=_LATER
        )
        return int(opened.version())


_WAY_OUT = f"Restore the whole directory, or {DeltaOffsets.anew}"


def directory_name(name: str) -> str:
    """Return the directory of a database or table.

    Characters with a meaning in URLs and paths become ``~`` and a number.

    The number has two digits, or four after ``u``: MySQL's names have no others.
    """
    return re.sub(r"[^\w $-]", lambda found: ("~%02x" if found[0] < "\u0100" else "~u%04x") % ord(found[0]), name)


def _require_other(table: TableId) -> None:
    if table.database == OWN:
        raise DeliveryError(f"table {table}: the sink keeps its own files in {OWN}. Exclude it (table.exclude.list)")


def _is_ours(folder: Path) -> bool:
    if not deltalake.DeltaTable.is_deltatable(str(folder)):
        return False
    return deltalake.DeltaTable(folder).metadata().description == OURS


def _name(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _stored_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of Delta Lake for an Arrow type, as in Spark tables."""
    if kind == pa.uint64():
        return pa.decimal128(20, 0)
    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", kind.value_type))
    return pa.int64() if pa.types.is_duration(kind) else kind


def _stored_values(values: list[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_duration(kind):
        values = [None if value is None else value // timedelta(microseconds=1) for value in values]
    return pa.array(values, _stored_type(kind))


def _fit(values: pa.Array, fitting: Fitting) -> bool:
    """Return whether all values except NULL are in a range."""
    if isinstance(fitting, Decimals):
        numbers = [Decimal(value) for value in values.to_pylist() if value is not None]
        end = 10**fitting.digits
        return all((fitting.negative or number >= 0) and abs(number) < end for number in numbers)
    measure = _MEASURES[fitting.of]
    found = pc.min_max(values if measure is None else measure(values)).as_py()
    return found["min"] is None or (found["min"] >= fitting.low and found["max"] <= fitting.high)


def _cast(values: pa.Array, column: Column, kind: pa.DataType) -> pa.Array:
    """Return the values of another column in the type of this one.

    Raises:
        pa.ArrowException: a value does not fit.
    """
    if column.data_type == "decimal" and pa.string() in (kind, values.type):  # more than 38 digits
        digits = Decimal(1).scaleb(-(column.scale or 0))  # of its type, as new rows have them
        given = (None if value is None else Decimal(value) for value in values.to_pylist())
        numbers = [None if one is None else one.quantize(digits, context=_EXACT) for one in given]
        return pa.array(fitting(numbers, kind), kind)
    if pa.types.is_decimal(kind) and not pa.types.is_decimal(
        values.type
    ):  # Arrow demands space for the longest integer
        values = values.cast(pa.int64()).cast(pa.decimal128(38, kind.scale))
    return values.cast(kind)


def _frozen(rows: pa.Table | pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
    """Yield the rows as tuples that can be counted."""
    for row in zip(*(column.to_pylist() for column in rows.columns), strict=True):
        yield tuple(_hashable(value) for value in row)


def _hashable(value: Any) -> Any:
    if isinstance(value, dict):
        return tuple(value.values())
    return tuple(value) if isinstance(value, list) else value


def _like(batch: pa.RecordBatch, gone: pa.Table) -> list[int]:
    """Return the places of rows that may be among others, by their values of simple types."""
    chosen = pa.array([True] * batch.num_rows)
    for name in gone.column_names:
        if not pa.types.is_nested(batch.schema.field(name).type):
            chosen = pc.and_(chosen, pc.is_in(batch.column(name), value_set=gone.column(name).combine_chunks()))
    places: list[int] = pc.indices_nonzero(chosen).to_pylist()
    return places
