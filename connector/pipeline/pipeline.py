"""Turns the events of a binlog stream into records, without input or output.

::

    packet ──► event ──► row images ──► messages ──► batches
                 └─────► statement ──► structure ──► history entry, schema change message

Pass every event of the stream to :meth:`Pipeline.receive`, from the FORMAT_DESCRIPTION on, and write its outputs in
order. A pipeline that resumes from the offset of any batch makes the records after that batch. One event can hold a
whole transaction: its outputs are made step by step, so they are never all in memory.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import NoReturn, Protocol

from rowtide.connector.errors import ProtocolError, SchemaError, TopicClash
from rowtide.connector.pipeline.captured_tables import CapturedTable, CapturedTables
from rowtide.connector.pipeline.events_needed import EventsNeeded, table_id
from rowtide.connector.pipeline.executed_gtids import ExecutedGtids
from rowtide.connector.pipeline.resume_position import Progress
from rowtide.connector.pipeline.row_writer import RowWriter
from rowtide.connector.pipeline.statements import Statements, statement_context
from rowtide.connector.pipeline.stream_state import StreamState
from rowtide.connector.pipeline.transaction_metadata import (
    BOUNDARY_SCHEMAS,
    TransactionMonitor,
    begin_message,
    end_message,
)
from rowtide.connector.pipeline.xa_transactions import ReadXa, XaTransactions
from rowtide.connector.protocol import events
from rowtide.connector.protocol.decoder import EventDecoder
from rowtide.connector.protocol.event_groups import EventGroups, TemporaryFile
from rowtide.connector.protocol.events.classes import Event, RowsKind
from rowtide.connector.protocol.events.rows import table_map_of
from rowtide.connector.protocol.events.table_structure import TableStructure
from rowtide.connector.protocol.header import ROWS_TYPES
from rowtide.connector.protocol.statements import FL_PREPARED_XA, is_begin, is_end, is_xa, query_event, xa_start
from rowtide.connector.records.batch import Batch, Message, MoreOutputs, Output, Outputs, Schemas, Steps
from rowtide.connector.records.dead_letters import Reason
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.records.settings import PipelineSettings
from rowtide.connector.records.transforms import Transformer
from rowtide.connector.rows.messages import message_bytes
from rowtide.envelope.settings import FailureMode
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.errors import SchemaHistoryError

log = logging.getLogger(__name__)

Clock = Callable[[], int]
"""Nanoseconds since the epoch."""

NO_OUTPUTS: tuple[Outputs] = ((),)
"""The one step of an event without outputs."""


class SignalTable(Protocol):
    """Carries out the signals that are rows of ``signal.data.collection``."""

    def is_signal_table(self, structure: TableStructure) -> bool:
        """Return whether it is ``signal.data.collection``."""
        ...

    def rows(
        self,
        event: events.Rows,
        captured: CapturedTable,
        skip: int,
        progress: Progress,
        offset: Callable[[], SourceOffset],
        *,
        in_xa: bool,
    ) -> Iterator[Output]:
        """Carry out the signals of a row event, starting with a row, and return their outputs."""
        ...


class Pipeline:
    """Turns the events of one stream into records.

    Args:
        settings: settings of the records, and what to do with rows that cannot be handled.
        tables: every table's structure at the start; the statements of the stream change it.
        start: the start position; events and rows before it in its transaction are skipped.
        clock: for the processing times.
        captured: the captured tables of a stream that continues, with their codecs; they belong to the same tables.
        read_xa: reads an XA transaction again whose records are not in memory.
        signals: without it, rows of the signal table are records only.
        temporary_file: opens a file for a large transaction that may be rolled back; without it, it is held in memory.

    Attributes:
        tables: every table's structure.
        progress: the position in the stream.
        gtids: the transactions of the stream.
        decoder: of the events.
        groups: holds transactions that may be rolled back.
        xa: the XA transactions of the stream.
        signals: carries out signals, if it is given.
    """

    def __init__(
        self,
        settings: PipelineSettings,
        tables: Tables,
        start: SourceOffset,
        clock: Clock,
        captured: CapturedTables | None = None,
        read_xa: ReadXa | None = None,
        signals: SignalTable | None = None,
        temporary_file: TemporaryFile | None = None,
    ) -> None:
        self.tables = tables
        self.progress = Progress(start, settings.published_sources)
        self.decoder = EventDecoder(start.file)
        self.groups = EventGroups(temporary_file)
        self._settings = settings
        self._clock = clock
        self._captured = CapturedTables(settings, tables, clock) if captured is None else captured
        self._table_ids: dict[int, TableStructure] = {}
        self._packet = b""  # of the current event
        self._needed = EventsNeeded() if settings.dead_letters is not None else None
        self.gtids = ExecutedGtids(start, settings.connector)
        self._start_statement = False, (start.file, start.pos, start.gtids and self.gtids.text, start.event)
        self._skipped = [kind for kind in RowsKind if kind.value in settings.skipped_operations]
        self._statements = Statements(settings, tables, self._captured)
        self._transformer = Transformer(settings.transforms) if settings.transforms else None
        skipped = partial(skip_rows, mode=settings.processing_failure)
        self.xa = XaTransactions(self.progress, start, read_xa, skipped, self._captured.emitted, settings.form)
        self._monitor = TransactionMonitor(start.transaction) if settings.transaction_metadata else None
        self._state = StreamState(self.progress, self.xa, self._monitor)
        self._row_writer = RowWriter(settings, self._state, clock)
        self.signals = signals
        self._described = (
            False  # by a FORMAT_DESCRIPTION, which at the beginning of a stream may be older than the start
        )
        self._handlers: dict[type, Callable[..., Steps | None]] = {
            events.TableMap: self._table_map,
            events.Query: self._query,
            events.ExecuteLoadQuery: self._load,
            events.Xid: self._end_transaction,
            events.XaPrepare: self._xa_prepare,
            events.FormatDescription: self._format_description,
            events.PreviousGtids: self._previous_gtids,
            events.Gtid: self._gtid,
            events.MariadbGtidEvent: self._mariadb_gtid,
            events.Rotate: self._rotate,
            events.RowsQuery: self._rows_query,
            events.Incident: self._incident,
        }
        # Most events only move the position. They neither fail nor make outputs: there is nothing to return to.
        moving: list[type] = [events.TableMap, events.Gtid, events.RowsQuery]
        if self._monitor is None:
            moving += [events.MariadbGtidEvent, events.Query, events.Xid]
        self._moving = {kind: self._handlers[kind] for kind in moving}

    def enter_file(self, name: str, decoder: EventDecoder | None = None) -> None:
        """Set the binlog file of the next event, for files that are read one after the other.

        Args:
            name: of the file.
            decoder: a decoder that has read the file's FORMAT_DESCRIPTION, if the next event is after it.
        """
        if decoder is not None:
            self.decoder = decoder
            if decoder.format is not None:
                self.progress.timestamp = decoder.format.header.timestamp
        self.decoder.file = name
        self.progress.file = name

    def receive(self, packet: bytes) -> Iterable[Sequence[Output]]:
        """Process one event, and return its outputs in steps.

        Most events are one step. Each event in a compressed transaction is one, and so is each batch of an XA
        transaction or of a very large row event. The events of a transaction that may be rolled back are processed
        with its last event. After a step, :meth:`offset` is the position after the outputs that were yielded. Iterate
        to the end before the next event, or do not use the pipeline any further.

        Raises:
            ConnectorError: the event cannot be handled; the message names file and position. :meth:`offset` is then
                the position after the last step. Do not use the pipeline any further: resume with a new one.
        """
        return self.receive_settled(packet) if self.groups.passes(packet) else self._group(packet)

    def _group(self, packet: bytes) -> Iterator[Sequence[Output]]:
        for event in self.groups.add(packet, self.decoder.format):
            yield from self.receive_settled(event)

    def receive_settled(self, packet: bytes) -> Iterable[Sequence[Output]]:
        """Process one event of a transaction that is not rolled back; see :meth:`receive`."""
        self._packet = packet
        try:
            event = self.decoder.decode(packet)
        except ProtocolError as error:
            return self._undecoded(error)
        if isinstance(event, events.TransactionPayload):
            return self._payload(event)
        if self._needed is not None:
            self._needed.add(packet, event)
        return self._steps(event)

    def _undecoded(self, error: ProtocolError) -> tuple[Outputs]:
        """Omit the current event, which cannot be decoded. Raises the error, unless it is that of a row event."""
        if ROWS_TYPES.isdisjoint(self._packet[4:5]):
            raise error
        skip_rows(error, self._settings.processing_failure)
        if self.progress.skipping:
            self.progress.completed()
            return NO_OUTPUTS
        self.progress.rows_to_skip()  # they were rows of this event, not of the next one
        before = self._state.plain_offset()
        self.progress.completed()
        return (self._keep(error, before),)

    def receive_next(self, packets: list[bytes], at: int) -> tuple[Iterable[Sequence[Output]], int]:
        """Process the event ``packets[at]``, or the three together that open a transaction; see :meth:`receive`.

        Returns:
            The steps, and the place after the events.
        """
        progress, groups = self.progress, self.groups
        if not progress.in_transaction and self._monitor is None and progress.passed_start and not groups.holding:
            opening = self.decoder.opening(packets, at)
            if opening is not None and not opening[0].may_have_statements:
                progress.opened(*opening, self.gtids.add(opening[0]))
                self._table_map(opening[2])
                if self._needed is not None:
                    self._needed.add(packets[at], opening[0])
                    self._needed.add(packets[at + 1], opening[1])
                    self._needed.add(packets[at + 2], opening[2])
                return NO_OUTPUTS, at + 3
        packet = packets[at]
        settled = groups.passes(packet) or groups.commits_within(packets, at)
        return self.receive_settled(packet) if settled else self._group(packet), at + 1

    def _payload(self, payload: events.TransactionPayload) -> Iterator[Sequence[Output]]:
        header = payload.header
        self.progress.at_payload(header.log_pos - header.size, header.log_pos, header.server_id, header.timestamp)
        needed = self._needed
        if needed is not None:
            needed.payload = header
        for packet in self.decoder.packets_in(payload):
            self._packet = packet
            try:
                event = self.decoder.decode_in(payload, packet)
            except ProtocolError as error:
                yield from self._undecoded(error)
                continue
            if needed is not None:
                needed.add(packet, event)
            yield from self._steps(event)
        self.progress.completed()

    def _steps(self, event: Event) -> Iterable[Sequence[Output]]:
        move = self._moving.get(type(event))
        if move is not None and (not isinstance(event, events.Query) or event.statement == b"BEGIN"):
            self.progress.advance(event.header)
            move(event)
            self.progress.completed()
            return NO_OUTPUTS
        out, rest = self._step(event, None)
        return (out,) if rest is None else self._further(out, event, rest)

    def _further(self, out: list[Output], event: Event, rest: MoreOutputs | None) -> Iterator[list[Output]]:
        yield out
        while rest is not None:
            out, rest = self._step(event, rest)
            yield out

    def _step(self, event: Event, rest: MoreOutputs | None) -> tuple[list[Output], MoreOutputs | None]:
        """Make the first outputs of an event, or the next ones; return them with the steps that make the rest."""
        out: list[Output] = []
        before = self._state.saved()
        try:
            try:
                rest = self._handle(event, out) if rest is None else self._next(event, out, rest)
                problem = None
            except _Skipped as skipped:
                rest, problem = None, skipped.problem
            if rest is None:
                self.progress.completed()  # even if it was omitted: offsets count it
                if problem is not None:
                    out += self._keep(problem, self._state.offset_before(before))
            return (out if self._transformer is None else list(self._transformer.outputs(out))), rest
        except Exception:
            self._state.restore(before)
            raise

    def transformed(self, outputs: Iterable[Output]) -> Iterable[Output]:
        """Apply the transforms to outputs that were made between two transactions."""
        return outputs if self._transformer is None else self._transformer.outputs(outputs)

    def _keep(self, problem: ProtocolError | SchemaError, before: SourceOffset) -> Outputs:
        """Tell the snapshot about an event that is skipped, and return its dead letter, if there is a topic for them.

        Args:
            problem: why it is skipped.
            before: the resume position before it.
        """
        structure = self._table_ids.get(table_id(self._packet))
        self._captured.omitted(structure)
        letters, needed, form = self._settings.dead_letters, self._needed, self.decoder.format
        if letters is None or needed is None or form is None or self.progress.filtered:
            return ()
        place = Batch("", -1, (), self._state.batch_offset(), 0, self.progress.change_micros() // 1000)
        table = None if structure is None else f"{structure.database}.{structure.table}"
        reason = Reason("TASK_POLL", f"{type(problem).__module__}.{type(problem).__name__}", str(problem))
        return self._state.outputs(letters.event(place, needed.file(form, self._packet), before, table, reason))

    def continue_within(self, packets: Iterable[bytes]) -> None:
        """Continue at a position that :attr:`progress` was given; ``packets`` are the events of its transaction."""
        self._table_ids.clear()
        for packet in packets:
            event = self.decoder.decode(packet)
            if isinstance(event, events.TableMap):
                self._table_map(event)
            if self._needed is not None:
                self._needed.add(packet, event)

    def offset(self) -> SourceOffset:
        """Return the current resume position."""
        return self._state.offset()

    def _handle(self, event: Event, out: list[Output]) -> MoreOutputs | None:
        """Process an event, and add its outputs; return the further steps if they are too many for one step."""
        try:
            self.progress.advance(event.header)
            if isinstance(event, events.Rows):
                made = self._rows(event, out)
            else:
                handler = self._handlers.get(type(event))
                made = None if handler is None else handler(event)
            if made is None:
                return None
            if not isinstance(made, (list, tuple)):
                return _advanced(made, out)
            out += made
        except (SchemaError, ProtocolError, TopicClash, ValueError) as error:
            self._refuse(event, error)
        return None

    def _next(self, event: Event, out: list[Output], rest: MoreOutputs) -> MoreOutputs | None:
        """Make the next outputs of an event; return the further steps, if any."""
        try:
            return _advanced(rest, out)
        except (SchemaError, ProtocolError, TopicClash, ValueError) as error:
            self._refuse(event, error)

    def _refuse(self, event: Event, error: Exception) -> NoReturn:
        """Raise an error with its place; ``_Skipped`` if the event is skipped by the settings."""
        if isinstance(error, SchemaError | TopicClash):
            raise type(error)(f"{error} (at {self.progress.place})") from error
        problem = error if isinstance(error, ProtocolError) else ProtocolError(f"{event.header.type_name}: {error}")
        problem.location = problem.location or self.progress.place
        if isinstance(event, events.Rows | events.Incident):
            skip_rows(problem, self._settings.processing_failure)
            raise _Skipped(problem)
        if problem is error:
            raise problem
        raise problem from error

    # --- transaction boundaries ---------------------------------------------------------------------------------

    def _rotate(self, event: events.Rotate) -> None:
        self.progress.rotated(event.next_file, event.next_position)
        self._table_ids.clear()

    def _gtid(self, event: events.Gtid) -> None:
        executed = self.gtids.add(event)
        if executed is None:
            self.progress.anonymous_started(None)
        else:
            self.progress.gtid_started(event.text, *executed, event.original_commit_timestamp or None)

    def _format_description(self, event: events.FormatDescription) -> None:
        if event.created and self._described:
            self.tables.temporary.clear()  # the server was started again
        self._described = True

    def _previous_gtids(self, event: events.PreviousGtids) -> None:
        self.gtids.start_of_file(event)

    def _mariadb_gtid(self, event: events.MariadbGtidEvent) -> Outputs:
        executed = self.gtids.add(event)
        if executed is not None:
            self.progress.gtid_started(event.text, *executed, None)
        if event.standalone:
            self.progress.statement_began()
            made = self._begin_record()  # Debezium begins a transaction here, and never ends it
        else:
            made = self._begin(None)
        if event.flags & FL_PREPARED_XA:
            self.xa.begin(event.xid, self._state.plain_offset())
        return made

    def _begin(self, thread: int | None) -> Outputs:
        self.progress.began(thread)
        return self._begin_record()

    def _begin_record(self) -> Outputs:
        """Return the BEGIN record of the transaction (``provide.transaction.metadata``)."""
        if self._monitor is None:
            return ()
        return self._transaction_record(begin_message(self._settings, self._monitor, self.progress))

    def _end_transaction(self, _event: Event | None = None) -> Outputs:
        end = None if self._monitor is None else end_message(self._settings, self._monitor, self.progress)
        self.progress.committed(self.progress.end)
        self._table_ids.clear()
        return self._transaction_record(end)  # its offset is after the transaction: a restart does not repeat it

    def _transaction_record(self, message: Message | None) -> Outputs:
        if message is None or self._settings.changes:  # changes carry their transaction themselves
            return ()
        return self._batch(self._settings.naming.transaction, 0, [message], BOUNDARY_SCHEMAS)

    def _rows_query(self, event: events.RowsQuery) -> None:
        if self._settings.include_query:
            self.progress.query = event.text

    def _incident(self, event: events.Incident) -> None:
        raise ProtocolError(event.problem)

    # --- statements ---------------------------------------------------------------------------------------------

    def _query(self, event: events.Query) -> Steps | None:
        word = event.statement[:24].lstrip().upper()
        if is_begin(word):
            return self._begin(event.thread_id if self._settings.connector == "mysql" else None)
        if is_end(word):
            return self._end_transaction()
        if is_xa(word):
            return self._xa(event)
        if self.progress.skipping:
            # CREATE TABLE … SELECT: rows after it may not be skipped. The history may have the table already.
            with suppress(SchemaHistoryError):
                self.tables.apply(query_event(event, self.progress.place))
            return None
        return self._statement(event)

    def _load(self, event: events.ExecuteLoadQuery) -> Outputs:
        """Process LOAD DATA that was logged as a statement."""
        return () if self.progress.skipping else self._statement(event.query)

    def _statement(self, event: events.Query) -> Outputs:
        """Process a statement that is not a transaction boundary.

        In Debezium's offset of its records, the position is after it (MariaDB: after its GTID event), but the GTIDs
        are those before it. After a restart the server sends it again; it is recognised by that position. The offset
        stored here has its GTID too.
        """
        progress = self.progress
        if self._start_statement == (progress.in_transaction, progress.statement_position):
            progress.executed()
            return ()
        made = self._statements.handle(event, statement_context(progress, self._monitor, self._clock()))
        progress.executed()
        plain = self._state.plain_offset()
        if progress.in_transaction:
            plain = replace(plain, event=plain.event + 1, row=0)
        offset = plain if self.xa.is_open else self.xa.offset(plain)
        out: list[Output] = []
        for output in made:
            out += self._state.outputs(output._replace(offset=offset)) if isinstance(output, Batch) else (output,)
        return out

    def _xa(self, event: events.Query) -> Steps | None:
        """Process XA START, XA END, XA COMMIT or XA ROLLBACK. Debezium's rows have neither metadata nor thread."""
        if xid := xa_start(event.statement):
            self.progress.began(None)
            self.xa.begin(xid, self._state.plain_offset())
            return None
        return self._xa_second_part(event.statement)

    def _xa_second_part(self, statement: bytes) -> MoreOutputs:
        for batch in self.xa.second_part(statement, self._state.plain_offset):
            yield (batch,)
        return () if self.progress.in_transaction else self._batch("", -1, ())

    def _xa_prepare(self, event: events.XaPrepare) -> MoreOutputs:
        if self._monitor is not None:
            self._monitor.end()  # MariaDB's had a BEGIN record; Debezium writes no END for a prepared one
        if event.one_phase:
            for batch in self.xa.one_phase():
                yield (batch,)
        ended = self._end_transaction()
        self.xa.prepare(event.xid)
        # Move the offset after the transaction: Debezium does not recognise it, and cannot resume inside it.
        return (*ended, *self._batch("", -1, ()))

    # --- rows ---------------------------------------------------------------------------------------------------

    def _table_map(self, event: events.TableMap) -> None:
        self._table_ids[event.table_id] = event.structure

    def _rows(self, event: events.Rows, out: list[Output]) -> Steps | None:
        """Make the records of rows; add the outputs before them, which are counted even if the rows are skipped."""
        if self.progress.skipping or self.progress.filtered:
            return None
        skip, skipped = self.progress.rows_to_skip(), bool(self._skipped) and event.kind in self._skipped
        structure = table_map_of(event, self._table_ids)
        signals = self.signals if self.signals is not None and self.signals.is_signal_table(structure) else None
        if skipped and signals is None:
            return None
        captured, entries, problem = self._captured.find(structure, self.progress, self._state.plain_offset)
        out += entries  # even if the rows are skipped: the structures have the repaired table from here on
        if captured is None:
            if self._captured.cascades is not None:
                self._captured.cascades.refuse_unread(event, structure)
            if problem is not None:
                raise _Skipped(problem)
            return None
        if signals is not None:
            offset = self._state.batch_offset
            out += signals.rows(event, captured, skip, self.progress, offset, in_xa=self.xa.is_open)
        if skipped:
            return None
        derived = self._captured.derived(event, captured)
        made = self._row_writer.write(event, captured, skip, derived)
        if self.xa.is_open:
            return made
        for child, rows, _ in derived:
            made = self._captured.observed(made, rows, child)
        return self._captured.observed(made, event, captured)

    def _batch(
        self, topic: str, partition: int, messages: Sequence[Message], schemas: Schemas | None = None
    ) -> Outputs:
        size, ts_ms = message_bytes(messages), self.progress.change_micros() // 1000
        offset = self._state.batch_offset()
        return self._state.outputs(Batch(topic, partition, messages, offset, size, ts_ms, schemas))


class _Skipped(Exception):
    """An event is skipped, because its rows cannot be handled and the settings allow it."""

    def __init__(self, problem: ProtocolError | SchemaError) -> None:
        super().__init__(problem)
        self.problem = problem


def _advanced(steps: MoreOutputs, out: list[Output]) -> MoreOutputs | None:
    """Add the next outputs; return the further steps, if any."""
    try:
        out += next(steps)
    except StopIteration as end:
        out += end.value
        return None
    return steps


def skip_rows(problem: ProtocolError, mode: FailureMode) -> None:
    """Skip rows that are missing or cannot be decoded, if the settings allow it.

    Args:
        problem: the problem.
        mode: ``event.processing.failure.handling.mode``.

    Raises:
        ProtocolError: the problem, with ``fail``.
    """
    if mode == "fail":
        raise problem
    if mode == "warn":
        log.warning("skipped because of event.processing.failure.handling.mode=warn: %s", problem)
