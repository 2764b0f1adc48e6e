"""From rows of a table to the messages of a snapshot: op ``r``, with the markers of where in the snapshot a row stands.

The last row of all must say so, and whether a row is the last is known only when nothing comes after it: therefore the
rows that came last are held back.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from rowtide.connector.records.batch import Batch, Schemas
from rowtide.connector.records.codecs.builder import absent_value, column_output, warn_unknown
from rowtide.connector.records.codecs.messages import NO_TRANSACTION, wrapping
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.records.settings import PipelineSettings
from rowtide.connector.rows.text_protocol_rows import ResultColumn, Rows, TextRows, text_rows
from rowtide.envelope.source import Snapshot, SourceTemplate
from rowtide.envelope.table import build_table_schema
from rowtide.schema_history.model import Table


class SnapshotTable:
    """A captured table while its rows are read.

    Attributes:
        table: its structure.
        columns: names of the columns that are needed of it.
    """

    def __init__(self, table: Table, settings: PipelineSettings) -> None:
        self.table = table
        database, name = table.id.database, table.id.table
        topic, augment = settings.naming.data_change(database, name), settings.naming.key_augment(database, name)
        self._records = build_table_schema(table, topic, settings.rules, "snapshot", warn_unknown, augment)
        self._settings = settings
        self._source = SourceTemplate(settings.connector, settings.topic_prefix, table.id.database, table.id.table)
        self._key_open, self._key_close = wrapping(self._records.key, settings.keys)
        self._value_open, self._value_close = wrapping(self._records.envelope, settings.values)
        self.columns = tuple(column.column.name for column in self._records.columns)

    @property
    def topic(self) -> str:
        """The topic of the records."""
        return self._records.topic

    @property
    def schemas(self) -> Schemas:
        """The schemas of the records."""
        return self._records.key, self._records.envelope

    def reader(self, names: Sequence[str]) -> TextRows:
        """Compile the reader of a result set with columns of these names."""
        form = self._settings.values.json_format
        columns = []
        for record in self._records.columns:
            absent = record.text(absent_value(record.column, record, self._settings), form)
            columns.append(ResultColumn(record.column, column_output(record, self._settings), absent))
        return text_rows(columns, self._key_places(), names, self._records.key_constants)

    def _key_places(self) -> list[int]:
        """The places of the key's columns among the record's."""
        place = {record.index: place for place, record in enumerate(self._records.columns)}
        return [place[index] for index in self._records.key_columns]

    def messages(self, rows: Rows, marker: Snapshot, moment: "Moment") -> Sequence[Any]:
        """The messages of rows that have the same marker."""
        source = self._source.prefix(moment.micros, marker, 0, None, moment.offset.file, moment.offset.pos)
        now = moment.clock()
        micros = now // 1000
        tail = (
            f',"source":{source}0{self._source.suffix(None, None)},{NO_TRANSACTION},"op":"r",'
            f'"ts_ms":{micros // 1000},"ts_us":{micros},"ts_ns":{now}}}'
        ).encode() + self._value_close
        start = self._value_open + b'{"before":null,"after":'
        headers = self._settings.headers
        if self._records.key is None:
            return [(None, start + row.encode() + tail, headers) for _, row in rows]
        opening, closing = self._key_open, self._key_close
        return [(opening + key.encode() + closing, start + row.encode() + tail, headers) for key, row in rows]

    def batch(self, messages: Sequence[Any], ts_ms: int, offset: SourceOffset) -> Batch:
        """The batch of messages, with the offset behind them."""
        size = sum([len(key or b"") + len(value or b"") for key, value, _ in messages])
        return Batch(self.topic, -1, messages, offset, size, ts_ms, self.schemas)


@dataclass(frozen=True, slots=True)
class Moment:
    """When and where rows were read.

    Attributes:
        micros: the server's time, in µs since the epoch.
        offset: the snapshot's position, as it is while the snapshot is under way.
        clock: nanoseconds since the epoch.
    """

    micros: int
    offset: SourceOffset
    clock: Callable[[], int]


@dataclass(frozen=True, slots=True)
class _Held:
    table: SnapshotTable
    moment: Moment
    rows: Rows
    starts: bool


class Preceding(Protocol):
    """What is written before the rows."""

    def before_rows(self) -> Iterator[Batch]:
        """Rows follow."""
        ...

    def finish(self, completed: SourceOffset) -> Iterator[Batch]:
        """No rows follow: the snapshot is complete."""
        ...


class RecordStream:
    """Puts markers on rows: feed every table's rows in order, then finish."""

    def __init__(self, first_table: Table | None, preceding: Preceding) -> None:
        """Begin; only rows of ``first_table``, the first one that is read, can be marked ``first``.

        ``preceding`` is what stands before the rows, and is the end of the snapshot if there are none.
        """
        self._first_table = first_table
        self._preceding = preceding
        self._held: _Held | None = None

    def rows(self, table: SnapshotTable, moment: Moment, rows: Rows) -> Iterator[Batch]:
        """Take rows of a table; give what was held back."""
        if not rows:
            return
        held = self._held
        if held is None:
            yield from self._preceding.before_rows()
        starts = held is None or held.table is not table
        self._held = _Held(table, moment, rows, starts)
        if held is not None:
            made = self._messages(held, "last_in_data_collection" if starts else None)
            yield held.table.batch(made, held.moment.micros // 1000, held.moment.offset)

    def finish(self, offset: SourceOffset) -> Iterator[Batch]:
        """Give the last rows, behind which ``offset`` is that of a completed snapshot."""
        held, self._held = self._held, None
        if held is None:
            yield from self._preceding.finish(offset)
        else:
            yield held.table.batch(self._messages(held, "last"), held.moment.micros // 1000, offset)

    def _messages(self, held: _Held, last: Snapshot | None) -> list[Any]:
        table, moment, rows = held.table, held.moment, held.rows
        messages: list[Any] = []
        begin, end = 0, len(rows)
        first: Snapshot = "first_in_data_collection"
        if table.table is self._first_table:
            first = "first"
            if end == 1 and held.starts and last == "last_in_data_collection":
                last = None  # Debezium's order: a table with a single row is first of all before it is last
        if last is not None:
            end -= 1
        if held.starts and end:
            messages += table.messages(rows[:1], first, moment)
            begin = 1
        messages += table.messages(rows[begin:end], "true", moment)
        if last is not None:
            messages += table.messages(rows[end:], last, moment)
        return messages
