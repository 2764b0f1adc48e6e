"""The heart: events in, records out. It does no IO, and at every moment knows from where a restart would go on.

::

    packet ──► event ──► row images ──► messages ──► batches
                 └─────► statement ──► structure ──► history entry, schema change message

Feed every event of the stream to :meth:`Pipeline.receive`, from the FORMAT_DESCRIPTION on, and write what it gives in
that order. A pipeline that was cut anywhere and begun again from the last batch's offset gives the same records.
"""

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

from rowtide.connector.errors import ProtocolError, SchemaError, TopicClash
from rowtide.connector.pipeline.resume_position import Progress
from rowtide.connector.pipeline.row_context import row_context
from rowtide.connector.pipeline.statements import Moment, Statements, is_begin, is_end, is_xa, query_event
from rowtide.connector.pipeline.structures import CurrentStructures, RowsPlace, Structures
from rowtide.connector.pipeline.transaction_metadata import TransactionMonitor
from rowtide.connector.pipeline.xa import FL_PREPARED_XA, Reread, XaTransactions
from rowtide.connector.protocol import events
from rowtide.connector.protocol.decoder import EventDecoder
from rowtide.connector.protocol.events.classes import Event, RowsKind
from rowtide.connector.protocol.events.table_structure import TableStructure
from rowtide.connector.protocol.header import ROWS_TYPES
from rowtide.connector.records.batch import Batch, Message, Output, Schemas
from rowtide.connector.records.codecs.builder import Codec, Codecs
from rowtide.connector.records.codecs.messages import json_message
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.records.settings import PipelineSettings
from rowtide.connector.records.topic_conflicts import TopicGuard
from rowtide.connector.records.transforms import Transformer
from rowtide.envelope import transaction
from rowtide.envelope.source import SourceTemplate
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.errors import SchemaHistoryError
from rowtide.schema_history.model import Table
from rowtide.schema_history.position.gtid import GtidSet, MariadbGtidPosition

log = logging.getLogger(__name__)

Clock = Callable[[], int]
"""Nanoseconds since the epoch."""


class Pipeline:
    """Turns the events of one stream into records.

    Args:
        settings: how.
        tables: every table's structure at the start; changed by the statements of the stream.
        start: where the stream begins: what is before it in a transaction is skipped.
        clock: for the processing times.
        current: the server whose stream it is, to ask for the structure of a table that is not as it is known.
        reread: reads XA transactions again that were prepared before the start.
    """

    def __init__(
        self,
        settings: PipelineSettings,
        tables: Tables,
        start: SourceOffset,
        clock: Clock,
        current: CurrentStructures | None = None,
        reread: Reread | None = None,
    ) -> None:
        self.tables = tables
        self.progress = Progress(start)
        self.decoder = EventDecoder(start.file)
        self._settings = settings
        self._clock = clock
        guard = TopicGuard(settings, tables)
        self._codecs = Codecs(settings, guard)
        self._structures = Structures(settings, tables, clock, current)
        self._table_ids: dict[int, TableStructure] = {}
        self._wanted: dict[TableStructure, tuple[Table, Codec, SourceTemplate] | None] = {}
        self._gtids = start.gtid_set(settings.connector)
        self._start_place = False, (start.file, start.pos, start.gtids and str(self._gtids), start.event)
        self._monitor = TransactionMonitor(start.transaction) if settings.transaction_metadata else None
        self._statements = Statements(settings, tables, guard)
        self._transformer = Transformer(settings.transforms) if settings.transforms else None
        self.xa = XaTransactions(start, reread)
        self._event_end = start.pos
        self._out: list[Output] = []
        self._handlers: dict[type, Callable[..., None]] = {
            events.Rows: self._rows,
            events.TableMap: self._table_map,
            events.Query: self._query,
            events.Xid: self._end_transaction,
            events.XaPrepare: self._xa_prepare,
            events.Gtid: self._gtid,
            events.MariadbGtidEvent: self._mariadb_gtid,
            events.Rotate: self._rotate,
            events.RowsQuery: self._rows_query,
            events.TransactionPayload: self._payload,
            events.Incident: self._incident,
        }

    def enter_file(self, name: str, decoder: EventDecoder | None = None) -> None:
        """Say that the next event is of that binlog file: for files that are read one after the other.

        Args:
            name: of the file.
            decoder: one that has seen the file's FORMAT_DESCRIPTION, if the events begin behind it.
        """
        if decoder is not None:
            self.decoder = decoder
            if decoder.format is not None:
                self.progress.timestamp = decoder.format.header.timestamp
        self.decoder.file = name
        self.progress.file = name

    def receive(self, packet: bytes) -> list[Output]:
        """Take one event; give what it makes.

        Raises:
            ConnectorError: the event cannot be handled; the message names file and position. The pipeline must not be
                used any further: begin again from the last offset.
        """
        out: list[Output] = []
        self._out = out
        point = self.progress.resume_point()
        counts = self._monitor.state() if self._monitor else None
        try:
            self._receive(packet)
            if self._transformer is not None:
                return list(self._transformer.outputs(out))
        except Exception:  # what the event has made so far is dropped: a restart must read the event again
            self.progress.return_to(point)
            if self._monitor and counts:
                self._monitor.return_to(counts)
            raise
        return out

    def _receive(self, packet: bytes) -> None:
        try:
            event = self.decoder.decode(packet)
        except ProtocolError as error:
            if packet[4] not in ROWS_TYPES:
                raise
            self._leave_out(error)
            self.progress.completed()
        else:
            self._handle(event)

    def offset(self) -> SourceOffset:
        """Where a restart would go on now."""
        return self.xa.offset(self._plain_offset())

    def _plain_offset(self) -> SourceOffset:
        """The same if there were no XA transactions: where the stream stands."""
        return self.progress.offset(self._monitor.offset_fields() if self._monitor else None)

    def _handle(self, event: Event) -> None:
        header = event.header
        if not header.flags & 0x20:  # artificial events have no place in the file
            start, end = header.log_pos - header.size, header.log_pos
            if end:
                self._event_end = end
            self.progress.at_event(start, end, header.server_id, header.timestamp)
        handler = self._handlers.get(type(event))
        if handler is not None:
            try:
                handler(event)
            except (SchemaError, TopicClash) as error:
                raise type(error)(f"{error} (at {self._place()})") from error
            except (ProtocolError, ValueError) as error:
                problem = error if isinstance(error, ProtocolError) else ProtocolError(f"{header.type_name}: {error}")
                problem.location = problem.location or self._place()
                if isinstance(event, events.Rows | events.Incident):
                    self._leave_out(problem)
                elif problem is error:
                    raise
                else:
                    raise problem from error
        self.progress.completed()  # also if it was left out: offsets name its place among the events

    def _leave_out(self, problem: ProtocolError) -> None:
        """Rows that cannot be handled, or are not there (``event.processing.failure.handling.mode``)."""
        if self._settings.processing_failure == "fail":
            raise problem
        if self._settings.processing_failure == "warn":
            log.warning("left out, for event.processing.failure.handling.mode=warn is set: %s", problem)

    def _place(self) -> str:
        return f"{self.progress.file}:{self.progress.pos}"

    # --- the frame of transactions ------------------------------------------------------------------------------

    def _rotate(self, event: events.Rotate) -> None:
        self.progress.rotated(event.next_file, event.next_position)
        self._table_ids.clear()

    def _gtid(self, event: events.Gtid) -> None:
        micros = event.original_commit_timestamp or None
        if event.anonymous or not isinstance(self._gtids, GtidSet):
            self.progress.anonymous_started(None)
            return
        before = str(self._gtids)
        self._gtids.add(event.uuid, event.gno, event.tag)
        self.progress.gtid_started(event.text, before, str(self._gtids), micros)

    def _mariadb_gtid(self, event: events.MariadbGtidEvent) -> None:
        if isinstance(self._gtids, MariadbGtidPosition):
            before = str(self._gtids)
            self._gtids.add(event.gtid)
            self.progress.gtid_started(event.text, before, str(self._gtids), None)
        if event.standalone:
            self.progress.statement_began()
            self._announce()  # for Debezium a transaction begins, which then has no end
        else:
            self._begin(None)
        if event.flags & FL_PREPARED_XA:
            self.xa.begin(self._plain_offset(), self.progress.group)  # nothing is ever skipped of a first part

    def _begin(self, thread: int | None) -> None:
        self.progress.began(thread)
        self._announce()

    def _announce(self) -> None:
        """The record of a transaction's beginning, if they are wanted."""
        progress, monitor = self.progress, self._monitor
        if monitor is None:
            return
        transaction_id = progress.gtid or f"file={progress.file},pos={progress.pos}"
        if monitor.begin(transaction_id):
            self._transaction_record(transaction_id, transaction.begin_value(transaction_id, progress.boundary_ms()))

    def _end_transaction(self, _event: Event | None = None) -> None:
        monitor, end = self._monitor, None
        if monitor is not None and monitor.id is not None:
            end = monitor.id, transaction.end_value(monitor.id, monitor.counts, self.progress.boundary_ms())
            monitor.end()
        self.progress.committed(self._event_end)
        self._table_ids.clear()
        if end is not None:  # with the offset behind the transaction: a restart from there must not give it again
            self._transaction_record(*end)

    def _transaction_record(self, transaction_id: str, value: dict[str, object]) -> None:
        settings = self._settings
        key = json_message(transaction.KEY_SCHEMA, {"id": transaction_id}, settings.keys)
        data = json_message(transaction.VALUE_SCHEMA, value, settings.values)
        schemas = transaction.KEY_SCHEMA, transaction.VALUE_SCHEMA
        if not settings.changes:  # each of them has its place in its transaction
            self._emit(settings.naming.transaction, 0, [(key, data, ())], schemas)

    def _rows_query(self, event: events.RowsQuery) -> None:
        if self._settings.include_query:
            self.progress.query = event.text

    def _payload(self, event: events.TransactionPayload) -> None:
        for inner in self.decoder.unpack(event):
            self._handle(inner)

    def _incident(self, event: events.Incident) -> None:
        raise ProtocolError(
            f"the server says that its binlog lacks changes here (INCIDENT {event.number}: {event.message}); take a "
            "new snapshot of the tables, or set event.processing.failure.handling.mode=warn to go on without them"
        )

    # --- statements ---------------------------------------------------------------------------------------------

    def _query(self, event: events.Query) -> None:
        word = event.statement[:24].lstrip().upper()
        if is_begin(word):
            self._begin(event.thread_id if self._settings.connector == "mysql" else None)
        elif is_end(word):
            self._end_transaction()
        elif is_xa(word):
            self._xa(event)
        elif self.progress.skipping:
            # CREATE TABLE … SELECT: its rows may be wanted. From the history the table is known already.
            with suppress(SchemaHistoryError):
                self.tables.apply(query_event(event, self._place()))
        else:
            self._statement(event)

    def _statement(self, event: events.Query) -> None:
        """A statement that is no frame of a transaction.

        Debezium's offset of its records is the place behind it (MariaDB: behind its GTID) with the GTIDs before it:
        the server sends the statement again, and it is known by its place. The offset stored here has its GTID too.
        """
        progress, monitor = self.progress, self._monitor
        if self._start_place != (progress.in_transaction, progress.statement_place):
            micros = progress.change_micros() // 1000 * 1000  # Debezium gives a statement's time in milliseconds
            block = monitor.block if monitor else lambda _table: None
            place = progress.statement_offset(monitor.offset_fields() if monitor else None)
            made = self._statements.handle(event, Moment(progress, micros, self._clock(), lambda: place, block))
            progress.executed()
            plain = self._plain_offset()
            if progress.in_transaction:
                plain = replace(plain, event=plain.event + 1, row=0)
            offset = self.xa.offset(plain)
            self._out.extend(output._replace(offset=offset) if isinstance(output, Batch) else output for output in made)
        else:
            progress.executed()

    def _xa(self, event: events.Query) -> None:
        """The frame of an XA transaction: Debezium gives its rows neither metadata nor a thread."""
        if event.statement[:24].lstrip().upper().startswith(b"XA START"):
            self.progress.began(None)
            self.xa.begin(self._plain_offset(), self.progress.group)
            return
        before, skip = replace(self._plain_offset(), pos=self.progress.pos), self.progress.events_to_skip
        try:
            self.xa.recall(event.statement)
        except ProtocolError as problem:
            self._leave_out(problem)
        self.progress.executed()
        self._out += self.xa.ended(event.statement, before, self._plain_offset(), skip)
        if not self.progress.in_transaction:
            self._emit("", -1, ())

    def _xa_prepare(self, event: events.XaPrepare) -> None:
        if self._monitor is not None:
            self._monitor.end()  # MariaDB's has had a BEGIN record; Debezium writes no END behind a prepared one
        self._end_transaction()
        self._out += self.xa.prepared(event)
        # The offset of its last row counts events of a transaction that Debezium does not know: leave it behind.
        self._emit("", -1, ())

    # --- rows ---------------------------------------------------------------------------------------------------

    def _table_map(self, event: events.TableMap) -> None:
        self._table_ids[event.table_id] = event.structure

    def _rows(self, event: events.Rows) -> None:
        if self.progress.skipping:
            return
        skip = self.progress.rows_to_skip()
        if event.kind.value in self._settings.skipped_operations:
            return
        structure = self._table_ids.get(event.table_id)
        if structure is None:
            raise ProtocolError(f"rows of table id {event.table_id}, for which no TABLE_MAP came before")
        if (wanted := self._codec(structure)) is None:
            return
        table, codec, source = wanted
        rows = codec.rows(event)
        total = len(rows) // 2 if event.kind is RowsKind.UPDATE else len(rows)
        if skip >= total:
            return
        monitor = self._monitor
        blocks = partial(monitor.blocks, str(table.id)) if monitor is not None and monitor.id is not None else None
        context = row_context(self._settings, self.progress, self._clock(), source, blocks)
        self.progress.rows(total - 1, total)
        batch = codec.batch(event, rows, skip, context, self._batch_offset)
        self._put(batch)

    def _codec(self, structure: TableStructure) -> tuple[Table, Codec, SourceTemplate] | None:
        table = self.tables.table(structure.database, structure.table)
        try:
            found = self._wanted[structure]
            if found is None or found[0] is table:
                return found
        except KeyError:
            pass
        settings, found = self._settings, None
        if settings.tables.captures(structure.database, structure.table):
            try:
                found = self._make_codec(structure)
            except SchemaError as error:
                if settings.inconsistent_schema == "fail":
                    raise
                if settings.inconsistent_schema == "warn":
                    log.warning("rows are left out: %s (at %s)", error, self._place())
                return None  # only for now: a statement may yet make the table known
        self._wanted[structure] = found
        return found

    def _make_codec(self, structure: TableStructure) -> tuple[Table, Codec, SourceTemplate]:
        settings, progress = self._settings, self.progress
        place = RowsPlace(progress.file, progress.pos, progress.timestamp or 0)
        table, entries = self._structures.checked(structure, place, self._plain_offset)
        self._out += entries
        codec = self._codecs.codec(structure, table)
        source = SourceTemplate(settings.connector, settings.topic_prefix, table.id.database, table.id.table)
        return table, codec, source

    def _emit(self, topic: str, partition: int, messages: Sequence[Message], schemas: Schemas | None = None) -> None:
        size = sum([len(key or b"") + len(value or b"") for key, value, _ in messages])
        ts_ms = self.progress.change_micros() // 1000
        self._put(Batch(topic, partition, messages, self._batch_offset(), size, ts_ms, schemas))

    def _batch_offset(self) -> SourceOffset:
        """The offset behind the event in hand: within an XA transaction, as if there were none."""
        return self._plain_offset() if self.xa.is_open else self.offset()

    def _put(self, batch: Batch | None) -> None:
        if batch is not None:
            self.xa.hold(batch) if self.xa.is_open else self._out.append(batch)
