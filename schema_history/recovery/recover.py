"""Structure at a position, rebuilt from a schema history.

Records are taken in their order up to the position, as Debezium compares positions. The tables that a record tells
are taken as they are (Debezium's own answer), the statement beside them is applied as well: it knows what they leave
out, such as collations, unsigned columns behind a synonym, unique keys. Where the two disagree, what was recorded
counts, unless ``prefer_ddl`` is set.

Statements are applied to a table when it is first asked for (see ``journal``); here is only looked which statement
belongs to which table.
"""

import gc
import logging
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from hashlib import blake2b

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
from rowtide.schema_history.errors import SchemaHistoryError, UnparsedDdl
from rowtide.schema_history.model import TableId
from rowtide.schema_history.position.binlog_position import BinlogPosition, PositionFilter
from rowtide.schema_history.recovery.session_settings import recorded_event
from rowtide.schema_history.recovery.table_history import HistoryEntry, TableHistory, table_of
from rowtide.schema_history.server.query_event import QueryEvent, Server
from rowtide.schema_history.store.record import HistoryRecord, RecordedTable
from rowtide.schema_history.structure.context import context_of

log = logging.getLogger(__name__)

IDENTITY = 8
"""Bytes of a record's identity."""

# Statements that are about more than the one table which their record tells, or about less than all of it.
_MORE = re.compile(r"\b(?:RENAME|LIKE|EXCHANGE|CONVERT|DATABASE|SCHEMA|EXISTS)\b", re.IGNORECASE)


def recover(
    records: Iterable[HistoryRecord], server: Server, position: BinlogPosition | None, *, prefer_ddl: bool = False
) -> Tables:
    """The structure of all tables.

    Args:
        records: the history, from its first record on.
        server: decides how statements are read.
        position: up to where; ``None`` for all.
        prefer_ddl: ``schema.history.internal.prefer.ddl``: statements count, recorded tables only where there is none.
    """
    recovery = Recovery(server, position)
    with without_garbage_collection():
        for record in records:
            recovery.add(record)
    return recovery.tables(prefer_ddl=prefer_ddl)


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Without the search for unreachable cycles: what is read here has none, and would be searched many times."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _identity(record: HistoryRecord, place: BinlogPosition) -> bytes:
    """Equal for records that tell the same statement of the same place.

    After a crash between writing a record and storing an offset the statement is read, and recorded, a second time.
    """
    changed = tuple((table.kind.value, table.id, table.previous_id) for table in record.tables)
    return blake2b(repr((place, record.database, record.ddl, changed)).encode(), digest_size=IDENTITY).digest()


class Recovery:
    """Sorts the records of a history by the tables that they are about.

    Args:
        server: decides how statements are read.
        position: records behind it are left out; ``None`` for none.

    Attributes:
        done: an identity of each record that was taken.
        catalog: the databases.
        journals: what is told of each table.
    """

    def __init__(self, server: Server, position: BinlogPosition | None = None) -> None:
        self._server = server
        self._reach = PositionFilter(position) if position is not None else None
        self._database = ""  # the default one of the statement in hand
        self.done: set[bytes] = set()
        self.catalog = Tables(server)
        self.journals: dict[TableId, TableHistory] = {}

    def add(self, record: HistoryRecord) -> bool:
        """Take the next record, if it is not behind the position; returns whether it is not.

        Raises:
            ValueError: its position cannot be read.
        """
        place = BinlogPosition.from_map(record.position)
        if self._reach is not None and not self._reach.includes(place):
            return False
        identity = _identity(record, place)
        if identity not in self.done:
            self.done.add(identity)
            self.take(record)
        return True

    def put(self, journal: TableHistory) -> None:
        """Add a table that was read before."""
        self.journals[self._key(journal.id)] = journal

    def tables(self, *, prefer_ddl: bool) -> Tables:
        """All tables, none of them made yet."""
        for journal in self.journals.values():
            self.catalog.defer(
                journal.id,
                lambda journal=journal: table_of(journal, self._server, prefer_ddl=prefer_ddl),  # type: ignore[misc]
            )
        return self.catalog

    def take(self, record: HistoryRecord) -> None:
        """Take the next record."""
        self._database = record.database if record.session is None else record.session.get("db", record.database)
        if record.ddl and (not record.tables or _MORE.search(record.ddl)):
            event = recorded_event(record.ddl, record.database, record.session)
            try:
                body = parse(record.ddl, context_of(event, self._server).dialect).body
            except UnparsedDdl as error:
                if not record.tables:
                    # A statement that was recorded was accepted once; one without tables changed none.
                    log.warning("a statement of the schema history is left out: %s", error)
            else:
                self._statement(record, body, event)
        for told in record.tables:
            self._told(record, told)

    # ------------------------------------------------------------ tables that a record tells

    def _told(self, record: HistoryRecord, told: RecordedTable) -> None:
        key = self._key(told.id)
        if told.kind is ChangeKind.DROP:
            self.journals.pop(key, None)
            return
        known = self.journals.get(key)
        if not record.ddl:
            entries: tuple[HistoryEntry, ...] = (HistoryEntry(None, record.database, told=told),)
        elif known is not None and (told.previous_id is not None or known.entries[-1].ddl is record.ddl):
            entries = known.entries  # the statement was looked at before
        else:
            before = known.entries if known is not None and told.kind is not ChangeKind.CREATE else ()
            entries = (*before, self._entry(record, told.id))
        self.journals[key] = TableHistory(told.id, entries, told)

    def _entry(self, record: HistoryRecord, *about: TableId, needs: tuple[TableHistory, ...] = ()) -> HistoryEntry:
        names = dict.fromkeys((self._database, *(table_id.database for table_id in about)))
        found = (self.catalog.database(name) for name in names)
        databases = tuple(database for database in found if database)
        return HistoryEntry(record.ddl, record.database, databases, needs, session=record.session)

    def _move(self, old: TableId, new: TableId, *entries: HistoryEntry) -> None:
        journal = self.journals.pop(self._key(old), None)
        if journal is not None:
            self.journals[self._key(new)] = replace(journal, id=new, entries=(*journal.entries, *entries))

    # ------------------------------------------------------------ what only the statement tells

    def _statement(self, record: HistoryRecord, body: Body, event: QueryEvent) -> None:
        if isinstance(body, CreateDatabase | AlterDatabase | DropDatabase | SetVariables | Use):
            self._about_databases(event, body)
        elif isinstance(body, RenameTable):
            self._rename(record, body)
        elif isinstance(body, AlterTable):
            self._alter(record, body)
        elif isinstance(body, CreateTableLike):
            self._create(record, body, self.journals.get(self._key(self._id(body.like))))
        elif isinstance(body, CreateTable | CreateSequence):
            self._create(record, body)
        elif isinstance(body, CreateIndex | DropIndex):
            self._add(record, self._id(body.table))
        elif isinstance(body, AlterSequence):
            self._add(record, self._id(body.name))
        elif isinstance(body, DropTable):
            for name in body.names:
                self.journals.pop(self._key(self._id(name)), None)

    def _about_databases(self, event: QueryEvent, body: Body) -> None:
        try:
            self.catalog.apply(event)
        except SchemaHistoryError as error:
            log.warning("a statement of the schema history is left out: %s", error)
        if isinstance(body, DropDatabase) or (isinstance(body, CreateDatabase) and body.or_replace):
            gone = self._key(TableId(body.name, "")).database
            self.journals = {key: journal for key, journal in self.journals.items() if key.database != gone}

    def _create(
        self,
        record: HistoryRecord,
        body: CreateTable | CreateTableLike | CreateSequence,
        like: TableHistory | None = None,
    ) -> None:
        table_id = self._id(body.name)
        known = self.journals.get(self._key(table_id))
        if record.session is not None and record.session.get("error_code"):
            # CREATE OR REPLACE has dropped the old one before it failed.
            self.journals.pop(self._key(table_id), None)
            return
        if body.temporary or (known is not None and body.if_not_exists and not body.or_replace):
            if known is not None and record.tables:
                entries = (*known.entries, self._entry(record, table_id))
                self.journals[self._key(table_id)] = replace(known, entries=entries)
            return
        entry = self._entry(record, table_id, needs=(like,) if like is not None else ())
        self.journals[self._key(table_id)] = TableHistory(table_id, (entry,))

    def _rename(self, record: HistoryRecord, body: RenameTable) -> None:
        """The names that a record tells are full; those of its statement may lack the session's database."""
        pairs = [(told.previous_id, told.id) for told in record.tables if told.previous_id is not None]
        for old, new in pairs or [(self._id(old), self._id(new)) for old, new in body.pairs]:
            self._move(old, new, HistoryEntry(None, record.database, moved=(old, new)))

    def _alter(self, record: HistoryRecord, body: AlterTable) -> None:
        table_id = self._id(body.name)
        self._add(record, table_id)
        renames = [action.name for action in body.actions if isinstance(action, RenameTo)]
        if renames:
            self._move(table_id, self._id(renames[-1]))
        for action in body.actions:
            if isinstance(action, ExchangePartition):
                other, journal = self._id(action.table), self.journals.get(self._key(table_id))
                if action.makes and journal is not None:
                    self.journals[self._key(other)] = replace(journal, id=other, told=None)
                elif action.consumes:
                    self.journals.pop(self._key(other), None)

    def _add(self, record: HistoryRecord, table_id: TableId) -> None:
        key = self._key(table_id)
        journal = self.journals.get(key)
        if journal is None:
            return
        # What was told of it before holds on after a statement with no table beside it: only indexes have changed.
        told = None if record.tables else journal.told
        self.journals[key] = TableHistory(journal.id, (*journal.entries, self._entry(record, table_id)), told)

    def _id(self, name: TableName) -> TableId:
        return TableId(name.database if name.database is not None else self._database, name.table)

    def _key(self, table_id: TableId) -> TableId:
        if self._server.lower_case_table_names:
            return TableId(table_id.database.lower(), table_id.table.lower())
        return table_id
