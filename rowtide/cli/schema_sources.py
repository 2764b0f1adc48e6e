"""The sources of ``rowtide schema``: a schema history in a file or topic, or binlog files."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.ddl.parser import parse
from rowtide.schema_history.ddl.statements import AlterTable, RenameTo
from rowtide.schema_history.errors import SchemaHistoryError
from rowtide.schema_history.model import TableId
from rowtide.schema_history.position.binlog_position import BinlogPosition
from rowtide.schema_history.queries.point_in_time import PointInTime
from rowtide.schema_history.queries.table_changes import TableChange
from rowtide.schema_history.recovery.recover import recover
from rowtide.schema_history.recovery.session_settings import recorded_event
from rowtide.schema_history.server.query_event import Flavor, Server
from rowtide.schema_history.store.file import FileSchemaHistory
from rowtide.schema_history.store.history_store import SchemaHistoryStore
from rowtide.schema_history.store.record import HistoryRecord, parse_record
from rowtide.schema_history.structure.context import context_of

if TYPE_CHECKING:
    from rowtide.connector.config import Configuration


class Source(Protocol):
    """Table structures at any position, and the statements that changed them."""

    server: Server

    def tables(self, at: PointInTime) -> Tables:
        """The structures of all tables at a position, GTID set or time."""

    def changes(self) -> Iterator[TableChange]:
        """The statements that changed tables, in the order of the binlog."""


@dataclass
class HistorySource:
    """A schema history, in a file or in a topic."""

    server: Server
    store: SchemaHistoryStore

    def tables(self, at: PointInTime) -> Tables:
        """The structures of all tables at a position, GTID set or time."""
        prefix = at.filter()
        records = self.store.replay_as(parse_record)
        return recover((r for r in records if prefix.includes(_position_of(r))), self.server, None)

    def changes(self) -> Iterator[TableChange]:
        """The statements that changed tables, in the order of the binlog."""
        for record in self.store.replay_as(parse_record):
            changed = frozenset(table.id for table in record.tables)
            renamed = [(t.previous_id, t.id) for t in record.tables if t.previous_id is not None]
            if changed:
                yield TableChange(
                    _position_of(record), record.ddl or "", changed, tuple(renamed or self._renamed(record))
                )

    def _renamed(self, record: HistoryRecord) -> Iterator[tuple[TableId, TableId]]:
        """The old and new names of an ALTER TABLE ... RENAME, whose record has only the new one."""
        if "rename" not in (record.ddl or "").lower():
            return
        try:
            event = recorded_event(record.ddl or "", record.database, record.session)
            body = parse(record.ddl or "", context_of(event, self.server).dialect).body
        except SchemaHistoryError:
            return
        if isinstance(body, AlterTable) and any(isinstance(action, RenameTo) for action in body.actions):
            old = TableId(body.name.database or event.database, body.name.table)
            yield from ((old, table.id) for table in record.tables if table.id != old)


def _position_of(record: HistoryRecord) -> BinlogPosition:
    """The position of a record, with the record's own time if the position has none."""
    position = BinlogPosition.from_map(record.position)
    return position if position.ts_sec else replace(position, ts_sec=record.ts_ms // 1000)


class BinlogSource:
    """The binlog files in a folder. Tables that were created before the first file are missing."""

    def __init__(self, folder: Path, flavor: Flavor) -> None:
        self._folder = folder
        self.server = Server(flavor)

    def tables(self, at: PointInTime) -> Tables:
        """The structures of all tables at a position, GTID set or time."""
        prefix = at.filter()
        tables: Tables | None = None
        for tables, _ in self._applied(prefix.includes):  # noqa: B007 - the last one counts
            pass
        return tables if tables is not None else Tables(self.server)

    def changes(self) -> Iterator[TableChange]:
        """The statements that changed tables, in the order of the binlog."""
        for _, change in self._applied(lambda _: True):
            if change.tables:
                yield change

    def _applied(self, included: Callable[[BinlogPosition], bool]) -> Iterator[tuple[Tables, TableChange]]:
        """The tables after each statement, as long as ``included`` accepts its position."""
        from rowtide.connector.source.binlog_statements import binlog_statements  # noqa: PLC0415 - needs the extra

        tables: Tables | None = None
        for statement in binlog_statements(self._folder):
            if not included(statement.position):
                return
            if tables is None:
                self.server = Server(self.server.flavor, statement.version)
                tables = Tables(self.server)
            applied = tables.apply(statement.event)
            gone = [table_id for table_id, table in applied.altered if table is None]
            made = [table_id for table_id, table in applied.altered if table is not None]
            renamed = [(gone[0], made[-1])] if applied.statement_class == "alter table" and gone and made else []
            ddl = applied.changes[0].ddl if applied.changes else ""
            if "rename" in applied.statement_class:
                renamed = [(c.previous_id, c.table_id) for c in applied.changes if c.previous_id and c.table_id]
                ddl = ", ".join(change.ddl for change in applied.changes)
            yield tables, TableChange(statement.position, ddl, frozenset((*gone, *made)), tuple(renamed))


def file_source(path: Path, flavor: Flavor) -> HistorySource:
    """A schema history file."""
    return HistorySource(Server(flavor), FileSchemaHistory(path))


def configured_source(config: "Configuration") -> HistorySource:
    """The schema history of a connector.

    Raises:
        SchemaHistoryError: the connector keeps its history in memory.
    """
    history, flavor = config.history, Flavor(config.flavor.value)
    if history.topic is not None:
        from rowtide.schema_history.store.kafka import KafkaSchemaHistory  # noqa: PLC0415 - needs the extra

        store = KafkaSchemaHistory(history.topic, history.producer, history.consumer, history.admin, timeout=15)
        return HistorySource(Server(flavor), store)
    if history.file is None:
        raise SchemaHistoryError(f"the connector {config.name} keeps its schema history in memory only")
    return file_source(Path(history.file), flavor)
