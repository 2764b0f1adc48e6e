"""Turns the events of a binlog stream into records, without input or output.

::

    packet ──► event ──► row images ──► messages ──► batches
                 └─────► statement ──► structure ──► history entry, schema change message

Pass every event of the stream to :meth:`Pipeline.receive`, from the FORMAT_DESCRIPTION on, and write its outputs in
order. A pipeline that resumes from the offset of any batch makes the records behind that batch.
"""

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

from rowtide.connector.errors import ProtocolError, SchemaError, TopicClash
from rowtide.connector.pipeline.captured_tables import CapturedTables, event_context
from rowtide.connector.pipeline.resume_position import Progress
from rowtide.connector.pipeline.statements import StatementContext, Statements, is_begin, is_end, is_xa, query_event
from rowtide.connector.pipeline.transaction_metadata import TransactionMonitor
from rowtide.connector.pipeline.xa_transactions import FL_PREPARED_XA, ReadXa, XaTransactions
from rowtide.connector.protocol import events
from rowtide.connector.protocol.decoder import EventDecoder
from rowtide.connector.protocol.events.classes import Event, RowsKind
from rowtide.connector.protocol.events.table_structure import TableStructure
from rowtide.connector.protocol.header import ROWS_TYPES
from rowtide.connector.records.batch import Batch, Message, Output, Schemas
from rowtide.connector.records.codecs.debezium_messages import json_message
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.records.settings import PipelineSettings
from rowtide.connector.records.transforms import Transformer
from rowtide.envelope import transaction
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.errors import SchemaHistoryError
from rowtide.schema_history.position.gtid import GtidSet, MariadbGtidPosition

log = logging.getLogger(__name__)

Clock = Callable[[], int]
"""Nanoseconds since the epoch."""


class Pipeline:
    """Turns the events of one stream into records.

    Args:
        settings: settings of the records, and what to do with rows that cannot be handled.
        tables: every table's structure at the start; the statements of the stream change it.
        start: the start position; events and rows before it in its transaction are skipped.
        clock: for the processing times.
        captured: the captured tables of a stream that is read on, with their codecs; they belong to the same tables.
        read_xa: reads an XA transaction again whose records are not in memory.

    Attributes:
        tables: every table's structure.
        progress: the position in the stream.
        decoder: of the events.
        xa: the XA transactions of the stream.
    """

    def __init__(
        self,
        settings: PipelineSettings,
        tables: Tables,
        start: SourceOffset,
        clock: Clock,
        captured: CapturedTables | None = None,
        read_xa: ReadXa | None = None,
    ) -> None:
        self.tables = tables
        self.progress = Progress(start)
        self.decoder = EventDecoder(start.file)
        self._settings = settings
        self._clock = clock
        self._captured = CapturedTables(settings, tables, clock) if captured is None else captured
        self._table_ids: dict[int, TableStructure] = {}
        self._gtids = start.gtid_set(settings.connector)
        # A stream without GTIDs at its start may get them later. The set is complete from the next file on, which
        # begins with PREVIOUS_GTIDS; a set without the earlier transactions would make the server send them again.
        self._gtids_known = start.gtids is not None or settings.connector == "mariadb"
        self._start_statement = False, (start.file, start.pos, start.gtids and str(self._gtids), start.event)
        self._monitor = TransactionMonitor(start.transaction) if settings.transaction_metadata else None
        self._statements = Statements(settings, tables, self._captured)
        self._transformer = Transformer(settings.transforms) if settings.transforms else None
        self.xa = XaTransactions(start, read_xa)
        self._event_end = start.pos
        self._out: list[Output] = []
        self._handlers: dict[type, Callable[..., None]] = {
            events.Rows: self._rows,
            events.TableMap: self._table_map,
            events.Query: self._query,
            events.Xid: self._end_transaction,
            events.XaPrepare: self._xa_prepare,
            events.PreviousGtids: self._previous_gtids,
            events.Gtid: self._gtid,
            events.MariadbGtidEvent: self._mariadb_gtid,
            events.Rotate: self._rotate,
            events.RowsQuery: self._rows_query,
            events.TransactionPayload: self._payload,
            events.Incident: self._incident,
        }

    def enter_file(self, name: str, decoder: EventDecoder | None = None) -> None:
        """Set the binlog file of the next event, for files that are read one after the other.

        Args:
            name: of the file.
            decoder: a decoder that has read the file's FORMAT_DESCRIPTION, if the next event is behind it.
        """
        if decoder is not None:
            self.decoder = decoder
            if decoder.format is not None:
                self.progress.timestamp = decoder.format.header.timestamp
        self.decoder.file = name
        self.progress.file = name

    def receive(self, packet: bytes) -> list[Output]:
        """Process one event and return its outputs.

        Raises:
            ConnectorError: the event cannot be handled; the message names file and position. :meth:`offset` is then
                the position before the event. Do not use the pipeline any further: resume with a new one.
        """
        out: list[Output] = []
        self._out = out
        point = self.progress.resume_point()
        counts = self._monitor.state() if self._monitor else None
        try:
            self._receive(packet)
            if self._transformer is not None:
                return list(self._transformer.outputs(out))
        except Exception:  # the outputs of the event are dropped, so a restart must read it again
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
        """The current resume position."""
        return self.xa.offset(self._plain_offset())

    def _plain_offset(self) -> SourceOffset:
        """The resume position without regard to XA transactions."""
        return self.progress.offset(self._monitor.offset_fields() if self._monitor else None)

    def _handle(self, event: Event) -> None:
        header = event.header
        if not header.flags & 0x20:  # artificial events have no position in the file
            start, end = header.log_pos - header.size, header.log_pos
            if end:
                self._event_end = end
            self.progress.at_event(start, end, header.server_id, header.timestamp)
        handler = self._handlers.get(type(event))
        if handler is not None:
            try:
                handler(event)
            except (SchemaError, TopicClash) as error:
                raise type(error)(f"{error} (at {self._position()})") from error
            except (ProtocolError, ValueError) as error:
                problem = error if isinstance(error, ProtocolError) else ProtocolError(f"{header.type_name}: {error}")
                problem.location = problem.location or self._position()
                if isinstance(event, events.Rows | events.Incident):
                    self._leave_out(problem)
                elif problem is error:
                    raise
                else:
                    raise problem from error
        self.progress.completed()  # also if it was left out: offsets count it

    def _leave_out(self, problem: ProtocolError) -> None:
        """Handle missing or undecodable rows as ``event.processing.failure.handling.mode`` says."""
        if self._settings.processing_failure == "fail":
            raise problem
        if self._settings.processing_failure == "warn":
            log.warning("left out because of event.processing.failure.handling.mode=warn: %s", problem)

    def _position(self) -> str:
        return f"{self.progress.file}:{self.progress.pos}"

    # --- transaction boundaries ---------------------------------------------------------------------------------

    def _rotate(self, event: events.Rotate) -> None:
        self.progress.rotated(event.next_file, event.next_position)
        self._table_ids.clear()

    def _gtid(self, event: events.Gtid) -> None:
        micros = event.original_commit_timestamp or None
        if event.anonymous or not isinstance(self._gtids, GtidSet):
            self.progress.anonymous_started(None)
            return
        if not self._gtids_known:
            self.progress.gtid_started(event.text, None, None, micros)
            return
        before = str(self._gtids)
        self._gtids.add(event.uuid, event.gno, event.tag)
        self.progress.gtid_started(event.text, before, str(self._gtids), micros)

    def _previous_gtids(self, event: events.PreviousGtids) -> None:
        if not self._gtids_known:
            self._gtids, self._gtids_known = event.gtids.copy(), True

    def _mariadb_gtid(self, event: events.MariadbGtidEvent) -> None:
        if isinstance(self._gtids, MariadbGtidPosition):
            before = str(self._gtids)
            self._gtids.add(event.gtid)
            self.progress.gtid_started(event.text, before, str(self._gtids), None)
        if event.standalone:
            self.progress.statement_began()
            self._begin_record()  # Debezium begins a transaction here, and never ends it
        else:
            self._begin(None)
        if event.flags & FL_PREPARED_XA:
            self.xa.begin(self._plain_offset(), self.progress.group)

    def _begin(self, thread: int | None) -> None:
        self.progress.began(thread)
        self._begin_record()

    def _begin_record(self) -> None:
        """Emit the BEGIN record of the transaction (``provide.transaction.metadata``)."""
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
        if end is not None:  # its offset is behind the transaction, so that a restart does not repeat it
            self._transaction_record(*end)

    def _transaction_record(self, transaction_id: str, value: dict[str, object]) -> None:
        settings = self._settings
        key = json_message(transaction.KEY_SCHEMA, {"id": transaction_id}, settings.keys)
        data = json_message(transaction.VALUE_SCHEMA, value, settings.values)
        schemas = transaction.KEY_SCHEMA, transaction.VALUE_SCHEMA
        if not settings.changes:  # changes carry their transaction themselves
            self._emit(settings.naming.transaction, 0, [(key, data, ())], schemas)

    def _rows_query(self, event: events.RowsQuery) -> None:
        if self._settings.include_query:
            self.progress.query = event.text

    def _payload(self, event: events.TransactionPayload) -> None:
        for inner in self.decoder.unpack(event):
            self._handle(inner)

    def _incident(self, event: events.Incident) -> None:
        raise ProtocolError(
            f"the server reports that changes are missing in its binlog (INCIDENT {event.number}: {event.message}); "
            "take a new snapshot of the tables, or set event.processing.failure.handling.mode=warn to continue "
            "without them"
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
            # CREATE TABLE … SELECT: rows behind it may not be skipped. The history may have the table already.
            with suppress(SchemaHistoryError):
                self.tables.apply(query_event(event, self._position()))
        else:
            self._statement(event)

    def _statement(self, event: events.Query) -> None:
        """Process a statement that is not a transaction boundary.

        In Debezium's offset of its records, the position is behind it (MariaDB: behind its GTID event), but the GTIDs
        are those before it. After a restart the server sends it again; it is recognised by that position. The offset
        stored here has its GTID too.
        """
        progress, monitor = self.progress, self._monitor
        if self._start_statement != (progress.in_transaction, progress.statement_position):
            micros = progress.change_micros() // 1000 * 1000  # Debezium's time of a statement is in milliseconds
            block = monitor.block if monitor else lambda _table: None
            recorded = progress.statement_offset(monitor.offset_fields() if monitor else None)
            context = StatementContext(progress, micros, self._clock(), lambda: recorded, block)
            made = self._statements.handle(event, context)
            progress.executed()
            plain = self._plain_offset()
            if progress.in_transaction:
                plain = replace(plain, event=plain.event + 1, row=0)
            offset = self.xa.offset(plain)
            self._out.extend(output._replace(offset=offset) if isinstance(output, Batch) else output for output in made)
        else:
            progress.executed()

    def _xa(self, event: events.Query) -> None:
        """Process XA START, XA END, XA COMMIT or XA ROLLBACK. Debezium's rows have neither metadata nor thread."""
        if event.statement[:24].lstrip().upper().startswith(b"XA START"):
            self.progress.began(None)
            self.xa.begin(self._plain_offset(), self.progress.group)
            return
        before, skip = replace(self._plain_offset(), pos=self.progress.pos), self.progress.events_to_skip
        try:
            self.xa.load(event.statement)
        except ProtocolError as problem:
            self._leave_out(problem)
        self.progress.executed()
        self._out += self.xa.ended(event.statement, before, self._plain_offset(), skip)
        if not self.progress.in_transaction:
            self._emit("", -1, ())

    def _xa_prepare(self, event: events.XaPrepare) -> None:
        if self._monitor is not None:
            self._monitor.end()  # MariaDB's had a BEGIN record; Debezium writes no END for a prepared one
        self._end_transaction()
        self._out += self.xa.prepared(event)
        # Move the offset behind the transaction: Debezium cannot resume inside one that it takes for none.
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
            raise ProtocolError(f"rows of table id {event.table_id} without a TABLE_MAP before them")
        captured = self._captured.find(structure, self.progress, self._plain_offset, self._out)
        if captured is None:
            return
        codec = captured.codec
        rows = codec.rows(event)
        total = len(rows) // 2 if event.kind is RowsKind.UPDATE else len(rows)
        if skip >= total:
            return
        monitor, table = self._monitor, captured.table
        blocks = partial(monitor.blocks, str(table.id)) if monitor is not None and monitor.id is not None else None
        context = event_context(self._settings, self.progress, self._clock(), captured.source, blocks)
        self.progress.rows(total - 1, total)
        self._put(codec.batch(event, rows, skip, context, self._batch_offset))

    def _emit(self, topic: str, partition: int, messages: Sequence[Message], schemas: Schemas | None = None) -> None:
        size = sum([len(key or b"") + len(value or b"") for key, value, _ in messages])
        ts_ms = self.progress.change_micros() // 1000
        self._put(Batch(topic, partition, messages, self._batch_offset(), size, ts_ms, schemas))

    def _batch_offset(self) -> SourceOffset:
        """The offset of records of the current event; those of an XA transaction get their final one when it ends."""
        return self._plain_offset() if self.xa.is_open else self.offset()

    def _put(self, batch: Batch | None) -> None:
        if batch is not None:
            self.xa.hold(batch) if self.xa.is_open else self._out.append(batch)
