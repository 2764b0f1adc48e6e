"""Recovery of all tables at a position from the records of a schema history.

Records up to the position count, by Debezium's comparison of positions. A record has a statement and Debezium's own
description of the tables after it. Both are used: the description matches Debezium's own result, and the statement also
determines properties that the description lacks, such as collations, unsigned columns after a synonym, and unique keys.
Where the two disagree the description wins, unless ``prefer_ddl`` is set.

This module only sorts records by table; ``table_history`` applies the statements on first access to a table.
"""

import gc
import logging
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from hashlib import blake2b

from rowtide.schema_history.catalog.by_table import ByTable
from rowtide.schema_history.catalog.changes import ChangeKind
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.ddl.parser import parse
from rowtide.schema_history.ddl.statements import (
    AlterDatabase,
    AlterSequence,
    AlterTable,
    Body,
    CreateDatabase,
    CreateIndex,
    CreateSequence,
    CreateTable,
    CreateTableLike,
    DropDatabase,
    DropIndex,
    DropTable,
    ExchangePartition,
    RenameTable,
    RenameTo,
    SetVariables,
    TableName,
    Use,
)
from rowtide.schema_history.errors import SchemaHistoryError, UnparsedStatement
from rowtide.schema_history.model import TableId
from rowtide.schema_history.position.binlog_position import BinlogPosition, PositionFilter, SourceFilter
from rowtide.schema_history.recovery.session_settings import concerns_temporary, recorded_event
from rowtide.schema_history.recovery.table_history import RecordedStructure, TableHistory, build_from_history
from rowtide.schema_history.server.query_event import QueryEvent, Server
from rowtide.schema_history.store.history_record import HistoryRecord, RecordedTable
from rowtide.schema_history.structure.context import context_of

log = logging.getLogger(__name__)

IDENTITY_BYTES = 8
"""Length of a record's identity."""

# Statements that concern other tables than the one that their record describes, or that may change nothing.
_OTHER_TABLES = re.compile(r"\b(?:RENAME|LIKE|EXCHANGE|CONVERT|DATABASE|SCHEMA|EXISTS)\b", re.IGNORECASE)


def recover(
    records: Iterable[HistoryRecord],
    server: Server,
    position: BinlogPosition | None,
    *,
    prefer_ddl: bool = False,
    keep: SourceFilter | None = None,
) -> Tables:
    """Recover the structure of all tables.

    Args:
        records: the history, from its first record.
        server: determines how statements are parsed.
        position: records after it are ignored; ``None`` to use all.
        prefer_ddl: ``schema.history.internal.prefer.ddl``: let the statements decide instead of the recorded
            descriptions.
        keep: selects the sources of GTIDs that count; ``None`` for all.
    """
    recovery = Recovery(server, position, keep)
    with garbage_collection_paused():
        for record in records:
            recovery.add(record)
    return recovery.tables(prefer_ddl=prefer_ddl)


@contextmanager
def garbage_collection_paused() -> Iterator[None]:
    """Pause Python's cyclic garbage collection: reading a history creates many objects and no cycles."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _identity(record: HistoryRecord, position: BinlogPosition) -> bytes:
    """Return a value that is equal for records of the same statement at the same position.

    After a crash between writing a record and storing an offset, the statement is read and recorded a second time.
    """
    changed = tuple((table.kind.value, table.id, table.previous_id) for table in record.tables)
    return blake2b(repr((position, record.database, record.ddl, changed)).encode(), digest_size=IDENTITY_BYTES).digest()


class Recovery:
    """Sorts the records of a history by the tables that they concern.

    Args:
        server: determines how statements are parsed.
        position: records after it are ignored; ``None`` to use all.
        keep: selects the sources of GTIDs that count; ``None`` for all.

    Attributes:
        processed: the identity of each record that was used.
        databases: the databases, and only temporary tables.
        histories: the entries of each table.
    """

    def __init__(
        self, server: Server, position: BinlogPosition | None = None, keep: SourceFilter | None = None
    ) -> None:
        self._server = server
        self._filter = PositionFilter(position, keep) if position is not None else None
        self._database = ""  # the default database of the current statement
        self.processed: set[bytes] = set()
        self.databases = Tables(server)
        self.histories: ByTable[TableHistory] = ByTable()

    def add(self, record: HistoryRecord) -> bool:
        """Use the next record, unless it is after the position or a repetition.

        Returns:
            Whether the record is not after the position.

        Raises:
            ValueError: its position cannot be parsed.
        """
        position = BinlogPosition.from_map(record.position)
        if self._filter is not None and not self._filter.includes(position):
            return False
        identity = _identity(record, position)
        if identity not in self.processed:
            self.processed.add(identity)
            self._process(record)
        return True

    def put(self, history: TableHistory) -> None:
        """Add or replace the history of a table."""
        self.histories[self._key(history.id)] = history

    def tables(self, *, prefer_ddl: bool) -> Tables:
        """Return all tables; each is built on first access."""
        for history in self.histories.values():
            self.databases.defer(
                history.id,
                lambda history=history: build_from_history(history, self._server, prefer_ddl=prefer_ddl),  # type: ignore[misc]
            )
        return self.databases

    def _process(self, record: HistoryRecord) -> None:
        self._database = record.database if record.session is None else record.session.get("db", record.database)
        if record.ddl and concerns_temporary(record.session):
            with suppress(SchemaHistoryError):
                self.databases.apply(recorded_event(record.ddl, record.database, record.session))
            if not record.tables:
                return
        if record.ddl and (not record.tables or _OTHER_TABLES.search(record.ddl)):
            event = recorded_event(record.ddl, record.database, record.session)
            try:
                body = parse(record.ddl, context_of(event, self._server).dialect).body
            except UnparsedStatement as error:
                if not record.tables:
                    # The statement was accepted when it was recorded; without descriptions it changed no table.
                    log.warning("a statement of the schema history is ignored: %s", error)
            else:
                self._statement(record, body, event)
        for recorded in record.tables:
            self._add_recorded(record, recorded)

    # ------------------------------------------------------------ tables that a record describes

    def _add_recorded(self, record: HistoryRecord, recorded: RecordedTable) -> None:
        key = self._key(recorded.id)
        if recorded.kind is ChangeKind.DROP:
            self.histories.pop(key, None)
            return
        known = self.histories.get(key)
        if not record.ddl:
            entries: tuple[RecordedStructure, ...] = (RecordedStructure(None, record.database, recorded=recorded),)
        elif known is not None and (recorded.previous_id is not None or known.entries[-1].ddl is record.ddl):
            entries = known.entries  # the statement was added before
        else:
            before = known.entries if known is not None and recorded.kind is not ChangeKind.CREATE else ()
            entries = (*before, self._entry(record, recorded.id))
        self.histories[key] = TableHistory(recorded.id, entries, recorded)

    def _entry(
        self, record: HistoryRecord, *about: TableId, sources: tuple[TableHistory, ...] = ()
    ) -> RecordedStructure:
        names = dict.fromkeys((self._database, *(table_id.database for table_id in about)))
        found = (self.databases.database(name) for name in names)
        databases = tuple(database for database in found if database)
        return RecordedStructure(record.ddl, record.database, databases, sources, session=record.session)

    def _move(self, old: TableId, new: TableId, *entries: RecordedStructure) -> None:
        history = self.histories.pop(self._key(old), None)
        if history is not None:
            recorded = None if history.recorded is None else replace(history.recorded, id=new)
            self.histories[self._key(new)] = TableHistory(new, (*history.entries, *entries), recorded)
            return
        # A history of captured tables lacks the renamed one, and that the one of this name was renamed before.
        known = self.histories.get(self._key(new))
        if known is not None and known.entries[-1].renamed != (old, new):
            del self.histories[self._key(new)]

    # ------------------------------------------------------------ information from the statement alone

    def _statement(self, record: HistoryRecord, body: Body, event: QueryEvent) -> None:
        if isinstance(body, CreateDatabase | AlterDatabase | DropDatabase | SetVariables | Use):
            self._about_databases(event, body)
        elif isinstance(body, RenameTable):
            self._rename(record, body)
        elif isinstance(body, AlterTable):
            self._alter(record, body)
        elif isinstance(body, CreateTableLike):
            self._create(record, body, self.histories.get(self._key(self._id(body.like))))
        elif isinstance(body, CreateTable | CreateSequence):
            self._create(record, body)
        elif isinstance(body, CreateIndex | DropIndex):
            self._add(record, self._id(body.table))
        elif isinstance(body, AlterSequence):
            self._add(record, self._id(body.name))
        elif isinstance(body, DropTable) and not body.temporary:
            for name in body.names:
                self.histories.pop(self._key(self._id(name)), None)

    def _about_databases(self, event: QueryEvent, body: Body) -> None:
        try:
            self.databases.apply(event)
        except SchemaHistoryError as error:
            log.warning("a statement of the schema history is ignored: %s", error)
        if isinstance(body, DropDatabase) or (isinstance(body, CreateDatabase) and body.or_replace):
            for table_id in self.histories.of(self._key(TableId(body.name, "")).database):
                del self.histories[table_id]

    def _create(
        self,
        record: HistoryRecord,
        body: CreateTable | CreateTableLike | CreateSequence,
        like: TableHistory | None = None,
    ) -> None:
        table_id = self._id(body.name)
        known = self.histories.get(self._key(table_id))
        if record.session is not None and record.session.get("error_code"):
            # CREATE OR REPLACE dropped the old table before it failed.
            self.histories.pop(self._key(table_id), None)
            return
        if body.temporary or (known is not None and body.if_not_exists and not body.or_replace):
            if known is not None and record.tables:
                entries = (*known.entries, self._entry(record, table_id))
                self.histories[self._key(table_id)] = replace(known, entries=entries)
            return
        entry = self._entry(record, table_id, sources=(like,) if like is not None else ())
        self.histories[self._key(table_id)] = TableHistory(table_id, (entry,))

    def _rename(self, record: HistoryRecord, body: RenameTable) -> None:
        """Return the names in the description: those in the statement may lack the session's default database."""
        pairs = [(recorded.previous_id, recorded.id) for recorded in record.tables if recorded.previous_id is not None]
        for old, new in pairs or [(self._id(old), self._id(new)) for old, new in body.pairs]:
            self._move(old, new, RecordedStructure(None, record.database, renamed=(old, new)))

    def _alter(self, record: HistoryRecord, body: AlterTable) -> None:
        table_id = self._id(body.name)
        self._add(record, table_id)
        renames = [action.name for action in body.actions if isinstance(action, RenameTo)]
        if renames:
            self._move(table_id, self._id(renames[-1]))
        for action in body.actions:
            if isinstance(action, ExchangePartition):
                other, history = self._id(action.table), self.histories.get(self._key(table_id))
                if action.makes and history is not None:
                    self.histories[self._key(other)] = replace(history, id=other, recorded=None)
                elif action.consumes:
                    self.histories.pop(self._key(other), None)

    def _add(self, record: HistoryRecord, table_id: TableId) -> None:
        key = self._key(table_id)
        history = self.histories.get(key)
        if history is None:
            return
        # A statement without a description of the table changed only its indexes: the last description stays valid.
        recorded = None if record.tables else history.recorded
        self.histories[key] = TableHistory(history.id, (*history.entries, self._entry(record, table_id)), recorded)

    def _id(self, name: TableName) -> TableId:
        return TableId(name.database if name.database is not None else self._database, name.table)

    def _key(self, table_id: TableId) -> TableId:
        if self._server.lower_case_table_names:
            return TableId(table_id.database.lower(), table_id.table.lower())
        return table_id
