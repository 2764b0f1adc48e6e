"""Turns the events of a binlog stream into Canal's entries, without input or output.

::

    packet ──► event ──► row images ──► rows ──► entry
                 └─────► statement ──► structure ──► history entry, entry

As in Canal, one event makes one entry, transactions have separate entries at both ends, and the rows of a
distributed transaction are sent when it is prepared. Decoding, structures and their repair are those of the connector.
"""

import logging
from collections.abc import Callable, Iterator
from typing import NamedTuple

from rowtide.canal.entries.columns import table_columns
from rowtide.canal.entries.ddl import classify, classify_dml
from rowtide.canal.entries.entry import (
    Content,
    Entry,
    EntryHeader,
    EntryStatement,
    EventType,
    Pairs,
    TransactionBegin,
    TransactionEnd,
)
from rowtide.canal.entries.filters import EntryColumnFilter
from rowtide.canal.entries.rows import EntryRows
from rowtide.connector.errors import ProtocolError, SchemaError, UnparsedDdl
from rowtide.connector.pipeline.captured_tables import MAX_COLUMNS
from rowtide.connector.pipeline.executed_gtids import ExecutedGtids
from rowtide.connector.pipeline.pipeline import Clock
from rowtide.connector.pipeline.resume_position import Progress
from rowtide.connector.pipeline.structures.lookup import CurrentStructures, Structures
from rowtide.connector.protocol import events
from rowtide.connector.protocol.decoder import EventDecoder
from rowtide.connector.protocol.event_groups import EventGroups, TemporaryFile
from rowtide.connector.protocol.events.classes import Event
from rowtide.connector.protocol.events.rows import table_map_of
from rowtide.connector.protocol.events.table_structure import TableStructure
from rowtide.connector.protocol.header import EventType as BinlogEventType
from rowtide.connector.protocol.statements import is_begin, is_end, query_event
from rowtide.connector.records.batch import HistoryEntry
from rowtide.connector.records.codecs.recently_used import RecentlyUsed
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.records.settings import PipelineSettings
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.ddl.parser import parse
from rowtide.schema_history.errors import SchemaHistoryError
from rowtide.schema_history.queries.executable_statement import executable, required_mode
from rowtide.schema_history.recovery.session_settings import required_sessions
from rowtide.schema_history.store.history_record import history_record
from rowtide.schema_history.structure.context import context_of, statement_text

log = logging.getLogger(__name__)

_ARTIFICIAL = 0x20
_HEAD = {BinlogEventType.FORMAT_DESCRIPTION, BinlogEventType.MARIADB_START_ENCRYPTION}
"""Events at the beginning of a file. A stream that begins within the file also has them, without a position."""
_XA = ("XA START", "XA END", "XA COMMIT", "XA ROLLBACK")


class EntryBatch(NamedTuple):
    """The entries of one event, and the resume position after them."""

    entries: list[Entry]
    offset: SourceOffset


Output = EntryBatch | HistoryEntry


class EntryPipeline:
    """Turns the events of one stream into entries.

    Args:
        settings: what to do with rows that cannot be handled; which tables are captured.
        tables: every table's structure at the start; the statements of the stream change it.
        start: the start position.
        clock: for the times in the schema history.
        gtids: whether headers have GTIDs (``canal.instance.gtidon``). As in Canal, after a start without GTIDs the
            headers have no executed set until the next file, which begins with one.
        current: the server, to look up the structure of a table whose rows do not fit the schema history.
        captures: which tables' rows are decoded, by database and name; by default those of ``settings``.
        columns: which of their columns the entries contain.
        temporary_file: opens a file for a large transaction that may be rolled back; without it, it is held in memory.
        executable_ddl: whether statements are written so that other sessions can execute them.

    Attributes:
        tables: every table's structure.
        progress: the position in the stream.
        decoder: of the events.
    """

    def __init__(
        self,
        settings: PipelineSettings,
        tables: Tables,
        start: SourceOffset,
        clock: Clock,
        *,
        gtids: bool = False,
        current: CurrentStructures | None = None,
        captures: Callable[[str, str], bool] | None = None,
        columns: EntryColumnFilter | None = None,
        temporary_file: TemporaryFile | None = None,
        executable_ddl: bool = False,
    ) -> None:
        self.tables = tables
        self.progress = Progress(start)
        self.decoder = EventDecoder(start.file)
        self._groups = EventGroups(temporary_file)
        self._settings = settings
        self._captures = captures or settings.tables.captures
        self._columns = columns or EntryColumnFilter()
        self._executable_ddl = executable_ddl
        self._clock = clock
        self._structures = Structures(settings, tables, clock, current)
        self._table_ids: dict[int, TableStructure] = {}
        self._rows: RecentlyUsed[TableStructure, EntryRows] = RecentlyUsed(MAX_COLUMNS)
        self._gtids = ExecutedGtids(start, settings.connector, all_domains=False)
        self._show_gtids = gtids
        self._gtid_props: Pairs = ()
        self._place = 0, 0  # begin and length of the event, or of the payload that holds it
        self._end = start.pos
        self._entries: list[Entry] = []  # of the current event
        self._out: list[Output] = []
        self._handlers: dict[type, Callable[..., None]] = {
            events.Rows: self._row_event,
            events.TableMap: self._table_map,
            events.Query: self._query,
            events.Xid: self._xid,
            events.XaPrepare: self._xa_prepare,
            events.PreviousGtids: self._start_of_file,
            events.MariadbGtidList: self._start_of_file,
            events.Gtid: self._gtid,
            events.MariadbGtidEvent: self._mariadb_gtid,
            events.Rotate: self._rotate,
            events.RowsQuery: self._rows_query,
        }

    def enter_file(self, name: str, decoder: EventDecoder | None = None) -> None:
        """Set the binlog file of the next event, for files that are read one after the other.

        Args:
            name: of the file.
            decoder: a decoder that has read the file's FORMAT_DESCRIPTION, if the next event is after it.
        """
        self._groups.abandon("its file ends there")
        if decoder is not None:
            self.decoder = decoder
        else:
            self._end = 4
        self.decoder.file = name
        self.progress.file = name

    def offset(self) -> SourceOffset:
        """Return the current resume position."""
        return self.progress.offset(None)

    def receive(self, packet: bytes) -> Iterator[list[Output]]:
        """Process one event, and yield its outputs in steps: each event in a compressed transaction is one.

        The events of a transaction that may be rolled back are processed with its last event.

        After a step, :meth:`offset` is the position after the outputs that were yielded. Iterate to the end before the
        next event; otherwise, discard the pipeline.

        Raises:
            ConnectorError: the event cannot be handled; the message names file and position. :meth:`offset` is then
                the position after the last step. Discard the pipeline, and resume with a new one.
        """
        for event in self._groups.add(packet, self.decoder.format):
            yield from self._receive_settled(event)

    def _receive_settled(self, packet: bytes) -> Iterator[list[Output]]:
        event = self.decoder.decode(packet)
        header = event.header
        repeated = packet[4] in _HEAD and not header.log_pos
        if not header.flags & _ARTIFICIAL and not repeated:
            end = header.log_pos or self._end + header.size  # MariaDB's row events have no position
            self._place = end - header.size, header.size
            self._end = end
            self.progress.at_event(end - header.size, end, header.server_id, header.timestamp)
        if isinstance(event, events.TransactionPayload):
            for inner in self.decoder.unpack(event):
                yield self._step(inner)
            self.progress.completed()
        else:
            yield self._step(event)

    def finish(self) -> Iterator[list[Output]]:
        """Return the remaining outputs after the last event, of which there are none."""
        self._groups.abandon("the events end there")
        return iter(())

    def _step(self, event: Event) -> list[Output]:
        self._out = []
        point = self.progress.resume_point()
        try:
            self._handle(event)
        except Exception:
            self.progress.return_to(point)
            raise
        self.progress.completed()
        if self._entries:
            self._out.append(EntryBatch(self._entries, self.offset()))
            self._entries = []
        return self._out

    def _handle(self, event: Event) -> None:
        handler = self._handlers.get(type(event))
        if handler is None:
            return
        try:
            handler(event)
        except SchemaError as error:
            raise type(error)(f"{error} (at {self._position()})") from error
        except (ProtocolError, ValueError) as error:
            problem = error if isinstance(error, ProtocolError) else ProtocolError(str(error))
            problem.location = problem.location or self._position()
            raise problem from error

    def _position(self) -> str:
        return f"{self.progress.file}:{self.progress.pos}"

    def _emit(
        self, event: Event, content: Content, database: str | None = "", table: str | None = "", props: Pairs = ()
    ) -> None:
        if self.progress.skipping:
            return
        offset, length = self._place
        header = event.header
        gtids = self._show_gtids
        made = EntryHeader(
            self.progress.file,
            offset,
            length,
            header.server_id,
            header.timestamp,
            database,
            table,
            (self._gtids.text or "") if gtids else "",
            (*self._gtid_props, *props) if gtids else props,
        )
        self._entries.append(Entry(made, content))

    # --- transactions ------------------------------------------------------------------------------------------------

    def _rotate(self, event: events.Rotate) -> None:
        self.progress.rotated(event.next_file, event.next_position)
        self._end = event.next_position
        self._table_ids.clear()

    def _start_of_file(self, event: events.PreviousGtids | events.MariadbGtidList) -> None:
        if not event.header.flags & _ARTIFICIAL:  # MariaDB also sends lists that are not at the beginning of a file
            self._gtids.start_of_file(event)

    def _gtid(self, event: events.Gtid) -> None:
        executed = self._gtids.add(event)
        if executed is None:
            self.progress.anonymous_started(None)
            return
        self.progress.gtid_started(event.text, *executed, None)
        self._gtid_props = (
            ("curtGtid", event.text),
            ("curtGtidSn", str(event.sequence_number)),
            ("curtGtidLct", str(event.last_committed)),
        )

    def _mariadb_gtid(self, event: events.MariadbGtidEvent) -> None:
        executed = self._gtids.add(event)
        if executed is not None:
            self.progress.gtid_started(event.text, *executed, None)
        if not event.standalone:
            self.progress.began(None)

    def _xid(self, event: events.Xid) -> None:
        self._transaction_ended(event, TransactionEnd(event.xid))

    def _transaction_ended(self, event: Event, end: TransactionEnd | None) -> None:
        skipped = self.progress.skipping
        self.progress.committed(self._end)
        self._table_ids.clear()
        if end is not None and not skipped:
            self._emit(event, end)

    def _xa_prepare(self, event: events.XaPrepare) -> None:
        self._transaction_ended(event, None)

    # --- statements --------------------------------------------------------------------------------------------------

    def _query(self, event: events.Query) -> None:
        word = event.statement[:24].lstrip().upper()
        if is_begin(word):
            self.progress.began(event.thread_id)
            self._emit(event, TransactionBegin(event.thread_id))
        elif word.startswith(b"COMMIT"):
            self._transaction_ended(event, TransactionEnd(0))
        elif is_end(word):
            self._transaction_ended(event, None)
        elif word.startswith(b"XA "):
            self._xa(event)
        else:
            self._statement(event)

    def _xa(self, event: events.Query) -> None:
        sql = event.text
        kind = next((kind for kind in _XA if sql.upper().startswith(kind)), None)
        if kind is None:
            return
        props = (("XA_TYPE", kind), ("XA_XID", sql[len(kind) :]))
        if kind == "XA START":
            self.progress.began(event.thread_id)
            self._emit(event, TransactionBegin(event.thread_id, props))
        elif kind == "XA END":
            self._emit(event, TransactionEnd(0, props))
        else:
            self.progress.executed()
            ended = EventType.XACOMMIT if kind == "XA COMMIT" else EventType.XAROLLBACK
            self._emit(event, EntryStatement(ended, sql, props=props))

    def _statement(self, event: events.Query) -> None:
        statement = query_event(event, self._position())
        try:
            before = context_of(statement, self.tables.server)
            text = statement_text(statement, self.tables.server.flavor)
            body = parse(text, before.dialect).body
            applied = self.tables.apply(statement)
        except SchemaHistoryError as error:
            problem = error.message(literals=self._settings.show_values)
            if not self._settings.skip_unparseable_ddl:
                raise UnparsedDdl(problem) from error
            log.warning("skipped because of schema.history.internal.skip.unparseable.ddl=true: %s", problem)
            body, applied = None, None
        self.progress.executed()
        if applied is not None:
            sessions = required_sessions(self.tables, statement, applied, None)
            position, now = self.offset().to_map(), self._clock() // 1_000_000
            for change, session in zip(applied.changes, sessions, strict=True):
                record = history_record(change, self._settings.topic_prefix, position, now, session=session)
                self._out.append(HistoryEntry(record))
        sql = event.text
        found = classify(body, sql, event.database) if body is not None else classify_dml(sql, event.database)
        if found is not None:
            props: Pairs = ()
            if self._executable_ddl and not found.dml:
                dialect = context_of(statement, self.tables.server).dialect
                sql, mode = executable(sql, dialect), required_mode(dialect)
                props = (("sqlMode", mode),) if mode else ()
            content = EntryStatement(found.type, sql, not found.dml, event.database, props)
            self._emit(event, content, found.database, found.table)

    def _rows_query(self, event: events.RowsQuery) -> None:
        table: str | None = ""
        if self._settings.connector == "mysql":
            found = classify_dml(event.text, None)
            table = None if found is None else found.table
        self._emit(event, EntryStatement(EventType.QUERY, event.text), table=table)

    # --- rows --------------------------------------------------------------------------------------------------------

    def _table_map(self, event: events.TableMap) -> None:
        self._table_ids[event.table_id] = event.structure

    def _row_event(self, event: events.Rows) -> None:
        if self.progress.skipping:
            return
        skip = self.progress.rows_to_skip()
        structure = table_map_of(event, self._table_ids)
        rows = self._rows_of(structure)
        if rows is None:
            return
        for change in rows.changes(event, skip):
            self._emit(
                event, change, structure.database, structure.table, props=(("rowsCount", str(len(change.rows))),)
            )

    def _rows_of(self, structure: TableStructure) -> EntryRows | None:
        """Return the converter of a table's images to rows.

        ``None`` if the table is not captured, or its rows are omitted.
        """
        settings, progress = self._settings, self.progress
        table = self.tables.table(structure.database, structure.table)
        if not self._captures(structure.database, structure.table):
            return None
        found = self._rows.get(structure)
        if found is not None and found.table is table:
            return found
        position = progress.source_position()
        try:
            table, history = self._structures.checked(structure, position, self.offset)
            self._out += history
            columns = table_columns(structure.columns, table)
            described = self._columns.kept(structure.database, structure.table, columns.described)
            made = EntryRows(table, columns, described)
        except SchemaError as error:
            if settings.inconsistent_schema == "fail":
                raise
            if settings.inconsistent_schema == "warn":
                log.warning("rows are skipped: %s (at %s)", error, self._position())
            return None
        self._rows.put(structure, made, len(structure.columns))
        return made
