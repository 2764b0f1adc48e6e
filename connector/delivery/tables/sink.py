"""A sink that keeps the tables of the source: folds changes, and applies statements."""

import logging
import re
from collections.abc import Iterator, Sequence

from rowtide.connector.delivery.errors import DeliveryError, SinkUnavailable
from rowtide.connector.delivery.sink import SynchronousSink
from rowtide.connector.delivery.tables.pending import Image, Pending
from rowtide.connector.delivery.tables.store import TableStore
from rowtide.connector.delivery.tables.type_changes import computed_again, fitting_values, keeps_values
from rowtide.connector.records.batch import Batch
from rowtide.connector.records.change import Change
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.records.table_events import UNKNOWN, TableEvent, captured_columns
from rowtide.connector.records.unavailable import UNAVAILABLE
from rowtide.schema_history.model import Column, Table, TableId

log = logging.getLogger(__name__)


class TableSink(SynchronousSink):
    """Keeps tables in a store. The sink is transactional: rows appear together with the offset after them.

    Args:
        store: the store of the tables.
    """

    transactional = True
    problem: str | None = None

    def __init__(self, store: TableStore) -> None:
        self._store = store
        self._path, self._anew = store.offsets.path, store.offsets.anew
        self._batches: list[Batch] = []
        self._pending: dict[TableId, Pending] = {}
        self._structures: dict[TableId, Table] = {}
        self._reading: set[TableId] = set()  # made by the snapshot in progress, which reads each row once

    def open(self) -> None:
        """Open the store.

        Raises:
            DeliveryError: another process has it open, or it cannot be written.
        """
        self._store.open()

    def send(self, batches: Sequence[Batch]) -> None:
        """Accept batches, which :meth:`commit` writes."""
        self._batches += batches

    def commit(self, offset: SourceOffset, timeout: float | None = None) -> bool:
        """Write everything that was sent, and the offset.

        The effect of a statement on a table is committed with the offset after it, separately from rows.

        Raises:
            SinkUnavailable: the store cannot currently be written; it contains no part of the transaction.
            DeliveryError: a change cannot be applied exactly.
        """
        try:
            for batches, position in self._transactions(offset):
                self._store.begin(position)
                for batch in batches:
                    self._apply(batch)
                self._flush()
                self._store.commit()
        except self._store.errors as error:
            if self._store.may_pass(error):
                raise SinkUnavailable(f"the tables in {self._path} cannot be written: {shown(error)}") from error
            raise DeliveryError(
                f"the tables in {self._path} reject a change: {shown(error)}. {self._way_out}"
            ) from error
        finally:
            self._discard()
        return True

    def rollback(self) -> None:
        """Drop everything sent since the last commit."""
        self._discard()

    def interrupt(self) -> None:
        """End a commit that takes too long, if the store supports this; then no part of it is stored."""
        self._store.interrupt()

    def close(self) -> None:
        """Close the store."""
        self._batches.clear()
        self._store.close()

    # --- transactions -----------------------------------------------------------------------------------------------

    @property
    def _way_out(self) -> str:
        return f"Nothing is lost. To continue, {self._anew}"

    def _transactions(self, offset: SourceOffset) -> Iterator[tuple[list[Batch], SourceOffset]]:
        """Yield the batches of each transaction, with the position after it."""
        batches: list[Batch] = []
        for batch in self._batches:
            if batches and (batch.tables or batches[-1].tables) and batch.offset != batches[-1].offset:
                yield batches, batches[-1].offset
                batches = []
            batches.append(batch)
        yield batches, offset

    def _discard(self) -> None:
        self._batches.clear()
        self._pending.clear()
        self._structures.clear()
        self._store.rollback()

    def _apply(self, batch: Batch) -> None:
        for event in batch.tables:
            self._flush()
            self._structures.pop(event.id, None)
            self._table_event(event)
        for change in batch.changes:
            table = change.schema.id
            if change.op == "t":
                self._flush()
                if self._store.exists(table):
                    self._store.truncate(table)
                continue
            self._pending_of(change, table).add((change,))
        if self._reading and batch.offset.snapshot is None and not batch.offset.continues_snapshot:
            self._flush()  # the snapshot is complete: rows that are read later may be there already
            self._reading.clear()

    # --- rows -------------------------------------------------------------------------------------------------------

    def _pending_of(self, change: Change, table: TableId) -> Pending:
        known = self._structures.get(table)
        if known is not None and known is change.schema and table in self._pending:
            return self._pending[table]
        self._flush(table)
        columns = captured_columns(change.schema, change.columns)
        if not self._store.exists(table):
            self._create(table, columns)
            self._reading.add(table)
        else:
            self._require_same(table, columns)
        if masked := sorted(set(change.masked_columns).intersection(change.schema.row_key)):
            raise DeliveryError(
                f"table {table}: column {masked[0]} of its key is masked or truncated, so different rows have the same "
                "key. Exempt the column (column.mask.*, column.truncate.*), or use a hash that fits into it"
            )
        self._structures[table] = change.schema
        made = Pending(str(table), columns, change.schema.row_key, empty=table in self._reading)
        self._pending[table] = made
        return made

    def _flush(self, only: TableId | None = None) -> None:
        """Write the changes of all tables, or of one."""
        for table in list(self._pending) if only is None else [only]:
            pending = self._pending.pop(table, None)
            if pending is not None and pending.any:
                self._write(table, pending)
                if pending.changed:
                    self._reading.discard(table)

    def _write(self, table: TableId, pending: Pending) -> None:
        columns = pending.columns
        self._insert(table, columns, pending.read)
        if pending.rows:
            self._update(table, pending)
            whole = {key: row for key, row in pending.rows.items() if row is None or UNAVAILABLE not in row}
            if whole:
                self._store.replace(table, columns, [columns[place] for place in pending.key_places], whole)
        self._delete_counted(table, pending)
        self._insert(
            table, columns, [pending.image(image) for image, count in pending.counts.items() for _ in range(count)]
        )

    def _insert(self, table: TableId, columns: Sequence[Column], rows: Sequence[Image]) -> None:
        if rows:
            self._store.insert(table, columns, rows)

    def _update(self, table: TableId, pending: Pending) -> None:
        """Write rows from which the binlog omits columns, which stay unchanged."""
        groups: dict[tuple[int, ...], list[Image]] = {}
        for row in pending.rows.values():
            if row is not None and UNAVAILABLE in row:
                places = tuple(place for place, value in enumerate(row) if value is not UNAVAILABLE)
                groups.setdefault(places, []).append(tuple(row[place] for place in places))
        keys = [pending.columns[place] for place in pending.key_places]
        for places, rows in groups.items():
            columns = [pending.columns[place] for place in places]
            if self._store.update(table, columns, keys, rows) != len(rows):
                raise DeliveryError(
                    f"table {table}: the binlog omits columns of a row that {self._path} does not have. Set "
                    f"binlog_row_image=FULL in the source, and {self._anew}"
                )

    def _delete_counted(self, table: TableId, pending: Pending) -> None:
        """Delete rows of a table without a key: as many of each image as were deleted in the source."""
        gone = {image: -count for image, count in pending.counts.items() if count < 0}
        if not gone:
            return
        images, counts = [pending.image(image) for image in gone], list(gone.values())
        if self._store.delete(table, pending.columns, images, counts) != sum(counts):
            raise DeliveryError(
                f"table {table} has no primary key, and a row that was deleted in the source is not in "
                f"{self._path}. To continue, {self._anew}"
            )

    # --- structures -------------------------------------------------------------------------------------------------

    def _table_event(self, event: TableEvent) -> None:
        table = event.id
        exists = self._store.exists(table)
        match event.kind:
            case "only":
                self._retain(event.listed)
            case "read" | "create":
                self._store.drop(table)
                self._create(table, event.after)
                if event.kind == "read":
                    self._reading.add(table)
            case "unread" if exists and not self._store.is_empty(table):
                raise DeliveryError(
                    f"table {table} in {self._path} has rows from an earlier position, which this snapshot does "
                    "not read again (snapshot.mode, snapshot.include.collection.list): they would be out of date. Let "
                    f"the snapshot read them, or {self._anew}"
                )
            case "known" | "unread" if not exists:
                self._create(table, event.after)
            case "drop":
                self._store.drop(table)
            case "rename" if event.former is not None and self._store.exists(event.former):
                self._store.rename(event.former, table)
            case "alter":
                if exists:
                    self._alter(event)
                else:
                    self._create(table, event.after)
            case "refuse":
                raise DeliveryError(f"table {table} cannot be kept as in the source: {event.reason}. {self._way_out}")

    def _retain(self, listed: Sequence[TableId]) -> None:
        for table in self._store.made():
            if table not in listed:
                log.info("%s is dropped: the connector no longer captures it", table)
                self._store.drop(table)

    def _create(self, table: TableId, columns: Sequence[Column]) -> None:
        if not columns:
            raise DeliveryError(f"table {table} has no captured column. Exclude it (table.exclude.list)")
        self._store.create(table, columns)

    def _alter(self, event: TableEvent) -> None:
        """Change a table as ALTER TABLE does in the source, with the values that it gives to existing rows."""
        table = event.id
        if self._store.is_empty(table):
            self._store.drop(table)
            self._create(table, event.after)
            return
        values = event.values or {}  # a name that a column has given up may be that of a new column
        former = {new.lower(): old.lower() for old, new in event.renamed}
        before = {column.name.lower(): column for column in event.before}
        names = [(one.name.lower(), one) for one in event.after]
        pairs = [(None if one.name in values else before.get(former.get(lower, lower)), one) for lower, one in names]
        self._require_same(table, event.before)
        for old, new in pairs:
            if old is None and values.get(new.name, UNKNOWN) is UNKNOWN:
                raise DeliveryError(
                    f"table {table}: the server has set the values of the new column {new.name} in existing rows, and "
                    f"the binlog does not have them. {self._way_out}"
                )
            if old is not None and (what := self._replaced(table, old, new)) is not None:
                raise DeliveryError(
                    f"table {table}: column {new.name} has become {what} in existing rows: the server has set values "
                    f"that the binlog does not have. {self._way_out}"
                )
            if old is not None and not keeps_values(old, new):
                fitting = fitting_values(old, new)
                if fitting is None or not self._store.all_fit(table, old.name, fitting):
                    raise DeliveryError(
                        f"table {table}: column {new.name} has changed from {old.column_type} to {new.column_type}, "
                        "which may have changed values in existing rows, and the binlog does not have them. "
                        f"{self._way_out}"
                    )
        if (computed := computed_again(pairs)) is not None:
            raise DeliveryError(
                f"table {table}: the server has recomputed the generated column {computed.name} in existing rows, "
                f"and the binlog does not have the values. {self._way_out}"
            )
        if tuple(event.before) != tuple(event.after):
            self._store.alter(table, pairs, values)

    def _replaced(self, table: TableId, old: Column, new: Column) -> str | None:
        """Return the new column, with the values that the server has replaced; ``None`` if there are none.

        Only strict mode refuses NULL. For a DATE or DATETIME, it does not matter: the zero date that the server has set
        is NULL in the table, too.
        """
        if new.auto_increment and not old.auto_increment and self._store.has(table, old.name, 0):
            return "AUTO_INCREMENT, with 0"
        loses_null = old.nullable and not new.nullable and new.data_type not in ("date", "datetime")
        return "NOT NULL, with NULL" if loses_null and self._store.has(table, old.name, None) else None

    def _require_same(self, table: TableId, columns: Sequence[Column]) -> None:
        """Compare the structure of a table with the expected one; a table without rows is re-created.

        Raises:
            DeliveryError: they differ, because statements of the source are missing.
        """
        found = self._store.columns(table)
        expected = {column.name: self._store.type_of(column) for column in columns}
        if found == expected:
            return
        if self._store.is_empty(table):
            self._store.drop(table)
            self._create(table, columns)
            return
        differing = sorted({one for one, _ in found.items() ^ expected.items()})
        raise DeliveryError(
            f"table {table} in {self._path} has different columns from the source at this position: "
            f"{', '.join(differing)}. The captured columns were changed, or statements are missing from the schema "
            f"history. {self._way_out}"
        )


def shown(error: Exception) -> str:
    """Return an error in one line, without the colours that deltalake gives it."""
    return " ".join(re.sub(r"\x1b\[[\d;]*m", "", str(error)).split())
