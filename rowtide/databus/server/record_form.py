"""The form of databus' messages: one for each row event, or part of one, and one for each statement.

The position in a key is unique, and ascends with the messages of a server, because the clients of the original drop
every message that is not after the last one. It is the position at which the event begins, plus

* the number of its first row, if the event becomes several messages: each row has at least one byte;
* the number of the event in its transaction, if it has no position, as in a compressed transaction and on
  MariaDB; such an event becomes one message, whatever its size;
* the number of the table, if a statement changes several;
* the number of the message, for an XA transaction. Its rows are published at XA COMMIT, with that position.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import orjson

from rowtide.connector.protocol.events.classes import Rows
from rowtide.connector.protocol.json.binary import SERVER
from rowtide.connector.records.batch import Batch, Message
from rowtide.connector.records.change import SourcePosition
from rowtide.connector.records.codecs.rows import EventContext, RowsCodec
from rowtide.connector.records.codecs.system_versioning import CurrentRows, row_end
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.rows.messages import message_bytes
from rowtide.connector.rows.row_compiler import Column, KeyValueRows
from rowtide.connector.rows.row_decoder import key_value_rows
from rowtide.databus.events import DDL, DELETE, DML, INSERT, UPDATE, KafkaKey, Position, QueryEvent
from rowtide.databus.server.cells import image_columns
from rowtide.databus.server.statements import with_database
from rowtide.databus.server.structure import described, dropped
from rowtide.databus.tables import Table
from rowtide.envelope.table import RecordColumn, TableSchema
from rowtide.schema_history.catalog.changes import ChangeKind, SchemaChange
from rowtide.schema_history.queries.executable_statement import executable, required_mode
from rowtide.schema_history.server.query_event import QueryEvent as ExecutedStatement
from rowtide.schema_history.server.query_event import Server
from rowtide.schema_history.structure.context import context_of

_Row = tuple[tuple[()], tuple[str | None, ...]]
"""No key, and the cells."""

_ACTIONS = {
    ChangeKind.CREATE: "create",
    ChangeKind.ALTER: "alter",
    ChangeKind.DROP: "drop",
    ChangeKind.TRUNCATE: "truncate",
}
_EVENT_BYTES = 256 << 10
"""Bytes of a row event that become one message. Base64 and quotes make it longer, and Kafka takes 1 MB."""
_MAX_ROWS = 4096


@dataclass(frozen=True, slots=True)
class DatabusForm:
    """Makes the messages of one topic (:class:`~rowtide.connector.records.settings.MessageForm`).

    Attributes:
        topic: the topic; all messages go to its partition 0.
    """

    topic: str

    def codec(self, records: TableSchema, columns: Sequence[Column]) -> "RowsEventCodec":
        """Return the codec of a table."""
        return RowsEventCodec(self.topic, records, columns)

    def statement(
        self,
        changes: Sequence[tuple[SchemaChange, TableSchema | None]],
        statement: ExecutedStatement,
        server: Server,
        position: SourcePosition,
        offset: SourceOffset,
    ) -> Batch | None:
        """Return the messages of a statement, one for each table."""
        dialect = context_of(statement, server).dialect
        plain, mode = replace(dialect, sql_mode=0), required_mode(dialect)
        messages: list[Message] = []
        for change, records in changes:
            action = _ACTIONS.get(change.kind)
            if action is None or change.table_id is None or not change.ddl:
                continue
            table = dropped(change.table_id) if records is None else structure(records)
            query = with_database(executable(change.ddl, dialect), statement.database, plain)
            event = QueryEvent(table, action, query, mode)
            messages.append((_key(position, len(messages), DDL), event.encoded(), ()))
        return _batch(self.topic, messages, offset, position.ts_us // 1000) if messages else None

    def moved(self, batch: Batch, position: SourcePosition, number: int) -> Batch:
        """Return a batch of an XA transaction with the position of XA COMMIT."""
        return batch._replace(messages=[(_key(position, number, DML), value, ()) for _, value, _ in batch.messages])


class RowsEventCodec(RowsCodec[_Row, Message]):
    """Turns row events of one table into messages.

    Args:
        topic: the topic.
        records: the schemas of Debezium's records, which have the published columns.
        columns: all columns of row images.
    """

    def __init__(self, topic: str, records: TableSchema, columns: Sequence[Column]) -> None:
        cells = image_columns(published(records), columns)
        end = row_end(records.table)
        current = None if end is None else CurrentRows(columns, end)
        super().__init__(records, cells, current=current, json_style=SERVER)
        self._topic = topic
        self._encode = RowsEventEncoder(records)

    @property
    def topic(self) -> str:
        """The topic of all tables."""
        return self._topic

    def compiled(self, columns: Sequence[Column], *layouts: Sequence[bool], carry: bool) -> KeyValueRows:
        """Compile the function that makes cells."""
        return key_value_rows(columns, (), *layouts, carry=carry)

    def batch_rows(self, event: Rows, rows: int, position: SourcePosition) -> int:
        """Return the number of rows of an event in one message."""
        if position.ordinal:
            return rows
        return min(_MAX_ROWS, max(1, rows * _EVENT_BYTES // max(1, event.end - event.start)))

    def _refuse_partial(self, layout: Sequence[bool], *, after: bool) -> None:
        """Refuse images without columns: null in their place would be a wrong value."""
        pairs = zip(self._columns, layout, strict=True)
        missing = [column.output.field for column, present in pairs if column.output and not present]
        if missing:
            raise ValueError(
                f"the {'after' if after else 'before'} image of a row of table {self._table} lacks the columns "
                f"{', '.join(missing)}, and messages of databus have all columns. Set binlog_row_image=FULL on the "
                "server and in all sessions"
            )

    def created(self, rows: Sequence[_Row], first: int, context: EventContext) -> list[Message]:
        """Return the message of new rows."""
        return self._message(INSERT, rows, first, context)

    def deleted(self, rows: Sequence[_Row], first: int, context: EventContext) -> list[Message]:
        """Return the message of deleted rows."""
        return self._message(DELETE, rows, first, context)

    def updated(
        self, before: Sequence[_Row], after: Sequence[_Row], first: int, context: EventContext
    ) -> list[Message]:
        """Return the message of changed rows: those before and after the change alternate."""
        return self._message(UPDATE, chain.from_iterable(zip(before, after, strict=True)), first, context)

    def packed(self, records: Sequence[Message], event: Rows, offset: SourceOffset, ts_ms: int) -> Batch:
        """Return the batch of an event's messages."""
        return _batch(self._topic, records, offset, ts_ms)

    def _message(self, action: str, rows: Iterable[_Row], first: int, context: EventContext) -> list[Message]:
        cells = [row for _, row in rows]
        position = context.position
        assert position is not None
        return [(_key(position, first, DML), self._encode(action, cells), ())] if cells else []


class RowsEventEncoder:
    """Writes rows events of one table as JSON.

    The output is that of ``RowsEvent.encoded``, but the input is base64 texts.

    Args:
        records: the schemas of Debezium's records, which have the published columns.
    """

    def __init__(self, records: TableSchema) -> None:
        self._start = b'{"Table":' + orjson.dumps(structure(records).fields()) + b',"Action":"'

    def __call__(self, action: str, rows: Sequence[tuple[str | None, ...]]) -> bytes:
        """Return the event of some rows.

        Args:
            action: ``insert``, ``update`` or ``delete``.
            rows: the cells of each row, in base64.
        """
        return b"".join((self._start, action.encode(), b'","Rows":', orjson.dumps(rows), b"}"))


def published(records: TableSchema) -> list[RecordColumn]:
    """Return the columns in messages; the configuration omits the others, or they are hidden."""
    return [column for column in records.columns if column.in_value]


def structure(records: TableSchema) -> Table:
    """Return the structure of a table, with the columns in messages."""
    return described(records.table, [column.column for column in published(records)])


def _key(position: SourcePosition, number: int, action: str) -> bytes:
    return KafkaKey(Position(position.file, position.pos + position.ordinal + number), action).encoded()


def _batch(topic: str, messages: Sequence[Message], offset: SourceOffset, ts_ms: int) -> Batch:
    return Batch(topic, 0, messages, offset, message_bytes(messages), ts_ms)
