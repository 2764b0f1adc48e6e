"""Receives signals: the rows of ``signal.data.collection`` in the stream, and messages of other channels."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from rowtide.connector.errors import SignalError
from rowtide.connector.pipeline.captured_tables import CapturedTable, CapturedTables
from rowtide.connector.pipeline.resume_position import Progress
from rowtide.connector.protocol.events.classes import Rows, RowsKind
from rowtide.connector.protocol.events.table_structure import TableStructure
from rowtide.connector.records.batch import Output
from rowtide.connector.records.codecs.builder import Codec, Codecs
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.records.settings import PipelineSettings
from rowtide.connector.records.unavailable import UNAVAILABLE
from rowtide.connector.signals.actions import Signals
from rowtide.connector.signals.signal import WINDOW_CLOSE, WINDOW_OPEN, Signal, SignalContext, from_columns
from rowtide.connector.signals.snapshots import Window
from rowtide.envelope.table import RecordRules
from rowtide.schema_history.catalog.tables import Tables

_COLUMNS = 3
_CHANNEL = "source"
_WINDOWS: dict[tuple[str, str], Window] = {
    (RowsKind.WRITE.value, WINDOW_OPEN): "open",
    (RowsKind.WRITE.value, WINDOW_CLOSE): "close",
    (RowsKind.DELETE.value, WINDOW_OPEN): "open deleted",
}


class SignalReceiver:
    """Carries out the signals of a stream, and those of other channels.

    Signals of the signal table are carried out before the records of their rows are made, as in Debezium. After a crash
    in between, the row is read again, and its signal is carried out: the offset of its record is the first one after
    the signal.

    Args:
        settings: of the records; masks and column lists do not apply to signals.
        signals: the actions.
        tables: every table's structure.
        captured: the captured tables.
    """

    def __init__(self, settings: PipelineSettings, signals: Signals, tables: Tables, captured: CapturedTables) -> None:
        self._signals = signals
        self._signal_tables = settings.tables.always
        self._tables = tables
        self._captured = captured
        self._codecs = Codecs(replace(settings, rules=RecordRules(), changes=True), captured.topics)
        self._built: tuple[CapturedTable, Codec] | None = None

    def is_signal_table(self, structure: TableStructure) -> bool:
        """Return whether it is ``signal.data.collection``."""
        return (structure.database, structure.table) in self._signal_tables

    def message(
        self, received: Signal | SignalError, channel: str, progress: Progress, at: SourceOffset
    ) -> list[Output]:
        """Carry out a signal that is not a row of the signal table, and return its outputs; only between transactions.

        Args:
            received: the signal, or the error of its message.
            channel: the channel through which it arrived.
            progress: the position in the stream.
            at: the resume position.
        """
        if isinstance(received, SignalError):
            return self._signals.refuse(received, channel, at)
        return self._signals.execute(received, SignalContext(at, at, progress, self._tables, self._captured))

    def rows(
        self,
        event: Rows,
        captured: CapturedTable,
        skip: int,
        progress: Progress,
        offset: Callable[[], SourceOffset],
        *,
        in_xa: bool,
    ) -> Iterator[Output]:
        """Carry out the signals of a row event, and return their outputs.

        Args:
            event: rows of a signal table: inserted ones are signals, deleted ones may close the window of a chunk.
            captured: the table.
            skip: rows that were processed before the start.
            progress: the position in the stream; rows are counted in it.
            offset: returns the resume position after the rows that are counted.
            in_xa: whether the rows belong to an XA transaction, which may be rolled back.
        """
        if event.kind is RowsKind.UPDATE:
            return
        at = offset()
        rows = self._codec(captured).rows(event)
        for index in range(skip, len(rows)):
            _key, values = rows[index]
            progress.rows(index, len(rows))
            context = SignalContext(at, offset(), progress, self._tables, self._captured, captured.table.id)
            yield from self._row(event.kind, values, context, in_xa=in_xa)

    def _row(self, kind: RowsKind, values: tuple[Any, ...], context: SignalContext, *, in_xa: bool) -> list[Output]:
        signals = self._signals
        window = _WINDOWS.get((kind.value, str(values[1]))) if len(values) >= _COLUMNS else None
        if window is not None:
            signals.snapshots.window(str(values[0]), window)
        elif kind is RowsKind.WRITE and signals.from_table:
            try:
                signal = self._signal(values, in_xa=in_xa)
            except SignalError as error:
                return signals.refuse(error, _CHANNEL, context.at)
            return signals.execute(signal, context)
        return []

    def _signal(self, values: tuple[Any, ...], *, in_xa: bool) -> Signal:
        if len(values) < _COLUMNS:
            raise SignalError("the signal table must have the columns id, type and data")
        data = None if values[2] is UNAVAILABLE else values[2]
        signal = from_columns(values[0], values[1], data, _CHANNEL)
        if in_xa:
            problem = "it was inserted in an XA transaction, which can be rolled back; insert it in a plain transaction"
            raise SignalError(problem, signal.id, signal.type)
        return signal

    def _codec(self, captured: CapturedTable) -> Codec:
        if self._built is None or self._built[0] is not captured:
            self._built = captured, self._codecs.codec(captured.structure, captured.table)
        return self._built[1]
