"""Makes the messages of a snapshot from rows: op ``r``, with a marker for the place of the row in the snapshot.

The last row of a table and of the snapshot has its own marker, so the latest rows are withheld until it is clear
whether others follow.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any, Literal, Protocol, TypeVar

from rowtide.connector.records.batch import Batch, Schemas
from rowtide.connector.records.change import SourcePosition
from rowtide.connector.records.codecs.builder import absent_value, column_output, table_schema
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.records.settings import PipelineSettings
from rowtide.connector.rows.messages import message_bytes, message_parts
from rowtide.connector.rows.text_protocol_decoder import result_text_reader
from rowtide.connector.rows.text_protocol_rows import ResultColumn, ResultReader, Rows
from rowtide.connector.source.server_queries import is_rounded, quoted_table, selected
from rowtide.envelope.converters.json import EnvelopeText, processing_times, wrapping
from rowtide.envelope.source import Snapshot, SourceTemplate
from rowtide.envelope.table import TableSchema
from rowtide.schema_history.model import Column, Table

Row = TypeVar("Row", bound=Sequence[Any])


class SnapshotTable:
    """A captured table whose rows are read.

    Attributes:
        table: its structure.
        columns: the columns to read.
    """

    def __init__(self, table: Table, settings: PipelineSettings, *, custom_query: bool = False) -> None:
        self.table = table
        self._custom_query = custom_query
        database, name = table.id.database, table.id.table
        topic, augment = settings.naming.data_change(database, name), settings.naming.key_augment(database, name)
        self._records = table_schema(table, topic, settings.rules, "snapshot", augment=augment)
        self._settings = settings
        self._source = SourceTemplate(settings.connector, settings.topic_prefix, table.id.database, table.id.table)
        self._key_open, self._key_close = wrapping(self._records.key, settings.keys)
        self._envelope = EnvelopeText(self._records.envelope, settings.values)
        self.columns: Sequence[Column] = [record.column for record in self._records.columns]

    @property
    def records(self) -> TableSchema:
        """The schemas of the records."""
        return self._records

    @property
    def settings(self) -> PipelineSettings:
        """The settings for its records."""
        return self._settings

    @property
    def topic(self) -> str:
        """The topic of the records."""
        return self._records.topic

    @property
    def selected(self) -> list[str]:
        """The expressions that select the columns."""
        return [selected(column, exact=self._settings.canonical) for column in self.columns]

    def query(self, where: str) -> str:
        """Return the query for the rows that meet a condition, as SQL."""
        return f"SELECT {', '.join(self.selected) or '1'} FROM {quoted_table(self.table.id)} WHERE {where}"

    @property
    def prepared(self) -> bool:
        """Whether only a prepared statement returns exact values: the query is not rowtide's own."""
        return self._custom_query and self._settings.canonical and any(map(is_rounded, self.columns))

    @property
    def schemas(self) -> Schemas:
        """The schemas of the records."""
        return self._records.key, self._records.envelope

    def reader(self, names: Sequence[str]) -> ResultReader:
        """Compile a reader for a result set with columns of these names."""
        form = self._settings.values.json_format
        columns = []
        for record in self._records.columns:
            absent = record.text(absent_value(record.column, record, self._settings), form)
            columns.append(ResultColumn(record.column, column_output(record, self._records, self._settings), absent))
        return result_text_reader(
            columns, self._key_places(), names, self._records.key_constants, verify=self._custom_query
        )

    def _key_places(self) -> list[int]:
        """Return the places of the key's columns among the record's."""
        place = {record.index: place for place, record in enumerate(self._records.columns)}
        return [place[index] for index in self._records.key_columns]

    def deletions(self, rows: Rows, read_time: "ReadTime") -> Sequence[Any]:
        """Return the messages for rows that an incremental snapshot found to be deleted, each with its tombstone."""
        made = self._of_op(rows, "incremental", read_time, "d")
        if not self._settings.tombstones:
            return made
        return [one for key, value, headers in made for one in ((key, value, headers), (key, None, headers))]

    def messages(self, rows: Rows, marker: Snapshot, read_time: "ReadTime") -> Sequence[Any]:
        """Return the messages of rows, with one marker for all of them."""
        return self._of_op(rows, marker, read_time, "r")

    def _of_op(self, rows: Rows, marker: Snapshot, read_time: "ReadTime", op: Literal["r", "d"]) -> Sequence[Any]:
        at = read_time.place
        source = self._source.prefix(read_time.micros, marker, at.server_id, at.gtid, at.file, at.pos)
        whole = f"{source}0{self._source.suffix(at.thread, None)}"
        opening, closing = self._envelope.around(op, whole, processing_times(read_time.clock()))
        headers = self._settings.headers
        values = message_parts(opening, rows, 1, closing)
        keys = repeat(None) if self._records.key is None else message_parts(self._key_open, rows, 0, self._key_close)
        return list(zip(keys, values, repeat(headers)))

    def batch(self, messages: Sequence[Any], ts_ms: int, offset: SourceOffset) -> Batch:
        """Return the batch of messages, with the offset after them."""
        return Batch(self.topic, -1, messages, offset, message_bytes(messages), ts_ms, self.schemas)

    def unplaced(self, rows: Rows, clock: Callable[[], int]) -> Batch:
        """Return the batch of rows that are read outside of a snapshot, without a place in the binlog.

        Args:
            rows: the rows.
            clock: nanoseconds since the epoch.
        """
        nowhere = SourceOffset("", 0)
        return self.batch(self.messages(rows, "true", ReadTime(0, nowhere, clock)), 0, nowhere)


@dataclass(frozen=True, slots=True)
class ReadTime:
    """The time and the position at which rows were read.

    Attributes:
        micros: the server's time, in µs since the epoch.
        offset: the offset of the snapshot while it is in progress.
        clock: the connector's clock, in nanoseconds since the epoch.
        event: the event of the stream for ``source``; ``None`` in an initial snapshot, which has only its position.
    """

    micros: int
    offset: SourceOffset
    clock: Callable[[], int]
    event: SourcePosition | None = None

    @property
    def place(self) -> SourcePosition:
        """The fields of ``source`` for the place in the binlog."""
        return self.event or SourcePosition(self.offset.file, self.offset.pos)


@dataclass(frozen=True, slots=True)
class _Pending:
    """Withheld rows; ``starts`` if they are the first of their table."""

    table: SnapshotTable
    read_time: ReadTime
    rows: Rows
    starts: bool

    def batch(self, first: Snapshot, last: Snapshot | None, offset: SourceOffset | None = None) -> Batch:
        """Return the batch of the rows.

        Args:
            first: the marker of the table's first row.
            last: the marker of the last of these rows, if it is the table's last row.
            offset: the offset after them; by default that of the snapshot while it is in progress.
        """
        messages: list[Any] = []
        begin, end = 0, len(self.rows)
        if first == "first" and self.starts and end == 1 and last == "last_in_data_collection":
            last = None  # as in Debezium, ``first`` has precedence over ``last_in_data_collection``
        if last is not None:
            end -= 1
        if self.starts and end:
            messages += self.table.messages(self.rows[:1], first, self.read_time)
            begin = 1
        messages += self.table.messages(self.rows[begin:end], "true", self.read_time)
        if last is not None:
            messages += self.table.messages(self.rows[end:], last, self.read_time)
        return self.table.batch(messages, self.read_time.micros // 1000, offset or self.read_time.offset)


class StructureMessages(Protocol):
    """The messages before the rows. The last one is withheld."""

    def before_rows(self) -> Iterator[Batch]:
        """Yield the withheld message if rows follow."""
        ...

    def finish(self, completed: SourceOffset) -> Iterator[Batch]:
        """Yield the withheld message if no rows follow, so that the snapshot is complete."""
        ...


class RecordStream:
    """Marks the rows of a snapshot: pass all rows to :meth:`rows`, table by table, then call :meth:`finish`.

    Args:
        first_table: the first table that is read; only its rows can be marked ``first``.
        structure: the messages before the rows.
    """

    def __init__(self, first_table: Table | None, structure: StructureMessages) -> None:
        self._first_table = first_table
        self._structure = structure
        self._pending: _Pending | None = None

    def rows(self, table: SnapshotTable, read_time: ReadTime, rows: Rows) -> Iterator[Batch]:
        """Add rows of a table, and yield the withheld ones."""
        if not rows:
            return
        pending = self._pending
        if pending is None:
            yield from self._structure.before_rows()
        starts = pending is None or pending.table is not table
        self._pending = _Pending(table, read_time, rows, starts)
        if pending is not None:
            yield pending.batch(self._first(pending), "last_in_data_collection" if starts else None)

    def finish(self, offset: SourceOffset) -> Iterator[Batch]:
        """Yield the last rows; ``offset`` is that of the complete snapshot."""
        pending, self._pending = self._pending, None
        if pending is None:
            yield from self._structure.finish(offset)
        else:
            yield pending.batch(self._first(pending), "last", offset)

    def _first(self, pending: _Pending) -> Snapshot:
        return "first" if pending.table.table is self._first_table else "first_in_data_collection"


class ParallelRecordStream:
    """Marks the rows of a snapshot that reads several tables in parallel.

    Pass the rows to :meth:`rows` as they arrive, call :meth:`finished` after the last ones of each table, and
    :meth:`finish` at the end. Each table has one first and one last row, in the order of its records.

    Args:
        structure: the messages before the rows.
    """

    def __init__(self, structure: StructureMessages) -> None:
        self._structure = structure
        self._pending: dict[SnapshotTable, _Pending] = {}
        self._finished: _Pending | None = None
        self._begun = False

    def rows(self, table: SnapshotTable, read_time: ReadTime, rows: Rows) -> Iterator[Batch]:
        """Add rows of a table, and yield the withheld ones."""
        if not rows:
            return
        yield from self._followed()
        pending = self._pending.get(table)
        self._pending[table] = _Pending(table, read_time, rows, starts=pending is None)
        if pending is not None:
            yield from self._batch(pending, None)

    def finished(self, table: SnapshotTable) -> Iterator[Batch]:
        """End a table, and yield the last rows of another one, if there are any."""
        pending = self._pending.pop(table, None)
        if pending is not None:
            yield from self._followed()
            self._finished = pending

    def finish(self, offset: SourceOffset) -> Iterator[Batch]:
        """Yield the last rows; ``offset`` is that of the complete snapshot."""
        pending, self._finished = self._finished, None
        if pending is None:
            yield from self._structure.finish(offset)
        else:
            yield from self._batch(pending, "last", offset)

    def _followed(self) -> Iterator[Batch]:
        """Yield the last rows of a table, which are not the last ones of the snapshot."""
        pending, self._finished = self._finished, None
        if pending is not None:
            yield from self._batch(pending, "last_in_data_collection")

    def _batch(self, pending: _Pending, last: Snapshot | None, offset: SourceOffset | None = None) -> Iterator[Batch]:
        if not self._begun:
            yield from self._structure.before_rows()
        first: Snapshot = "first_in_data_collection" if self._begun else "first"
        self._begun = True
        yield pending.batch(first, last, offset)


def groups_by_size(rows: Sequence[Row], limit: int) -> Iterator[Sequence[Row]]:
    """Divide rows into groups, in order.

    Args:
        rows: rows of texts and other values, which do not count.
        limit: characters of the texts of a group; only a single row may have more.
    """
    begin = size = 0
    for place, row in enumerate(rows):
        length = sum([len(value) for value in row if isinstance(value, str)])
        if size and size + length > limit:
            yield rows[begin:place]
            begin, size = place, 0
        size += length
    if rows[begin:]:
        yield rows[begin:]
