"""Where ``rowtide schema`` looks for structures: a schema history in a file or topic, or binlog files."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
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
    """Knows structures over time."""

    server: Server

    def tables(self, moment: PointInTime) -> Tables:
        """The structures at a moment."""

    def changes(self) -> Iterator[TableChange]:
        """What changed tables, in order."""


@dataclass
class HistorySource:
    """A schema history."""

    server: Server
    store: SchemaHistoryStore

    def tables(self, moment: PointInTime) -> Tables:
        """The structures at a moment."""
        reached = moment.filter()
        records = self.store.replay_as(parse_record)
        return recover((r for r in records if reached.includes(_place(r))), self.server, None)

    def changes(self) -> Iterator[TableChange]:
        """What changed tables, in order."""
        for record in self.store.replay_as(parse_record):
            told = frozenset(table.id for table in record.tables)
            moved = [(t.previous_id, t.id) for t in record.tables if t.previous_id is not None]
            if told:
                yield TableChange(_place(record), record.ddl or "", told, tuple(moved or self._renamed(record)))

    def _renamed(self, record: HistoryRecord) -> Iterator[tuple[TableId, TableId]]:
        """ALTER TABLE ... RENAME: the record tells the new name only."""
        if "rename" not in (record.ddl or "").lower():
            return
        try:
            event = recorded_event(record.ddl or "", record.database, record.session)
            body = parse(record.ddl or "", context_of(event, self.server).dialect).body
        except SchemaHistoryError:
            return
        if isinstance(body, AlterTable) and any(isinstance(action, RenameTo) for action in body.actions):
            old = TableId(body.name.database or event.database, body.name.table)
            yield from ((old, told.id) for told in record.tables if told.id != old)


def _place(record: HistoryRecord) -> BinlogPosition:
    place = BinlogPosition.from_map(record.position)
    if place.ts_sec:
        return place
    return BinlogPosition(place.file, place.pos, place.gtids, place.event, place.row, ts_sec=record.ts_ms // 1000)


class BinlogSource:
    """The binlog files in a folder; tables that were made before their beginning are not known."""

    def __init__(self, folder: Path, flavor: Flavor) -> None:
        self._folder = folder
        self.server = Server(flavor)

    def tables(self, moment: PointInTime) -> Tables:
        """The structures at a moment."""
        reached = moment.filter()
        tables: Tables | None = None
        for tables, _ in self._applied(reached.includes):  # noqa: B007 - the last one counts
            pass
        return tables if tables is not None else Tables(self.server)

    def changes(self) -> Iterator[TableChange]:
        """What changed tables, in order."""
        for _, change in self._applied(lambda _: True):
            if change.tables:
                yield change

    def _applied(self, wanted: Callable[[BinlogPosition], bool]) -> Iterator[tuple[Tables, TableChange]]:
        from rowtide.connector.source.binlog_statements import binlog_statements  # noqa: PLC0415 - needs the extra

        tables: Tables | None = None
        for statement in binlog_statements(self._folder):
            if not wanted(statement.place):
                return
            if tables is None:
                self.server = Server(self.server.flavor, statement.version)
                tables = Tables(self.server)
            applied = tables.apply(statement.event)
            gone = [table_id for table_id, table in applied.altered if table is None]
            made = [table_id for table_id, table in applied.altered if table is not None]
            moved = [(gone[0], made[-1])] if applied.statement_class == "alter table" and gone and made else []
            ddl = applied.changes[0].ddl if applied.changes else ""
            if "rename" in applied.statement_class:
                moved = [(c.previous_id, c.table_id) for c in applied.changes if c.previous_id and c.table_id]
                ddl = ", ".join(change.ddl for change in applied.changes)
            yield tables, TableChange(statement.place, ddl, frozenset((*gone, *made)), tuple(moved))


def file_source(path: Path, flavor: Flavor) -> HistorySource:
    """A history file."""
    return HistorySource(Server(flavor), FileSchemaHistory(path))


def configured_source(config: "Configuration") -> HistorySource:
    """The history of a connector.

    Raises:
        SchemaHistoryError: it is kept in memory, or nowhere.
    """
    history, flavor = config.history, Flavor(config.flavor.value)
    if history.topic is not None:
        from rowtide.schema_history.store.kafka import KafkaSchemaHistory  # noqa: PLC0415 - needs the extra

        store = KafkaSchemaHistory(history.topic, history.producer, history.consumer, history.admin, timeout=15)
        return HistorySource(Server(flavor), store)
    if history.file is None:
        raise SchemaHistoryError(f"the connector {config.name} keeps its schema history in memory: it cannot be asked")
    return file_source(Path(history.file), flavor)
