"""Where the stream stands: position, transaction, and from where a restart would go on.

This follows Debezium's offset context step by step, because offsets must be exchangeable: a restart begins at the
transaction's BEGIN (or behind the last statement outside of one), skips ``event`` events of the transaction, and then
``row`` rows of the next one. Debezium counts every event after BEGIN, table maps and row queries included.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rowtide.connector.records.change import SourcePosition
from rowtide.connector.records.offset import SourceOffset


class Progress:
    """The position of the event in hand, and the restart point.

    Attributes:
        file: binlog file.
        pos: start of the event in hand.
        end: where the last event ends that has a place in ``file``.
        row: row number of the last record, kept until the next one as Debezium does.
        server_id: of the event in hand.
        timestamp: of the event in hand, seconds since the epoch.
        timestamp_before: of the event before it.
        gtid: of the transaction in hand, ``None`` without GTIDs.
        micros: commit time of the transaction on its first server in µs, ``None`` if the event has none.
        thread: of the transaction in hand, ``None`` outside of one.
        query: statement of the rows in hand, if it is wanted.
        in_transaction: between BEGIN and its end.
    """

    def __init__(self, start: SourceOffset) -> None:
        self.file = start.file
        self.pos = start.pos
        self.end = start.pos
        self.row = 0
        self.server_id = start.server_id
        self.timestamp = start.ts_sec
        self.timestamp_before = start.ts_sec
        self.gtid: str | None = None
        self.micros: int | None = None
        self.thread: int | None = None
        self.query: str | None = None
        self.group = start.file, start.pos
        self.in_transaction = False
        # By GTIDs a server begins with the head of a file, which is no place behind the transactions of the set.
        self._settled = start.gtids is None
        self._server = start.server
        self._restart_file = start.file
        self._restart_pos = start.pos
        self._restart_gtids = start.gtids
        self._current_gtids = start.gtids
        self._events_done = 0
        self._rows_done = 0
        self._transactions = 0
        self._statement_pos: int | None = None

    def source_position(self, ts_us: int, now: int) -> SourcePosition:
        """Where the event in hand stands.

        Args:
            ts_us: when the source made the change, µs since the epoch.
            now: when it is processed, ns since the epoch.
        """
        return SourcePosition(self.file, self.pos, self.gtid, self.server_id, self.thread, self.query, ts_us, now)

    def at_event(self, start: int, end: int, server_id: int, timestamp: int) -> None:
        """The next event; ``end`` 0 means that it has no position of its own (inside a compressed transaction)."""
        self.server_id = server_id
        self.timestamp_before = self.timestamp
        self.timestamp = timestamp
        if not end:
            return
        self.pos, self.end = start, end
        if self._settled and not self.in_transaction:
            self._restart_file = self.file
            self._restart_pos = end
            self._events_done = self._rows_done = 0

    def rotated(self, file: str, pos: int) -> None:
        """The log goes on in another file."""
        self.file, self.pos, self.end, self.row = file, pos, pos, 0
        if self._settled and not self.in_transaction:
            self._restart_file, self._restart_pos = file, pos
            self._events_done = self._rows_done = 0

    def gtid_started(self, gtid: str, before: str, with_it: str, micros: int | None) -> None:
        """A transaction with a GTID; ``before`` and ``with_it`` are the executed sets."""
        self._settled = True
        self.group = self.file, self.pos
        self.gtid = gtid
        self.micros = micros
        self._restart_gtids = before
        self._current_gtids = with_it

    def anonymous_started(self, micros: int | None) -> None:
        """A transaction without a GTID."""
        self._settled = True
        self.group = self.file, self.pos
        self.gtid = None
        self.micros = micros

    def began(self, thread: int | None) -> None:
        """BEGIN: restarts come back to here."""
        self._settled = True
        self._restart_file = self.file
        self._restart_pos = self.pos
        self._events_done = self._rows_done = 0
        self.in_transaction = True
        self.thread = thread

    def committed(self, end: int) -> None:
        """The end of the transaction; ``end`` is the position behind its last event, 0 if that has none."""
        self._transactions += 1
        self._restart_gtids = self._current_gtids
        self._restart_file = self.file
        if end:
            self._restart_pos = end
        self._events_done = self._rows_done = 0
        self.in_transaction = False
        self.thread = None
        self.query = None

    def statement_began(self) -> None:
        """A GTID of MariaDB that stands for one statement: Debezium takes it for a transaction, and its first event."""
        self._statement_pos = self.pos

    def executed(self) -> None:
        """The statement in hand is done: outside of a transaction a restart goes on behind it."""
        self._statement_pos = None
        if not self.in_transaction:
            self._restart_gtids = self._current_gtids

    @property
    def statement_place(self) -> tuple[str, int, str | None, int]:
        """Where Debezium's offset of the statement in hand stands: file, position, GTIDs, events."""
        if self._statement_pos is not None:
            return self._restart_file, self._statement_pos, self._restart_gtids, 1
        return self._restart_file, self._restart_pos, self._restart_gtids, self._events_done

    def statement_offset(self, transaction: Mapping[str, Any] | None) -> SourceOffset:
        """Debezium's offset of the records of the statement in hand."""
        _, pos, _, event = self.statement_place
        return replace(self.offset(transaction), pos=pos, event=event)

    def taken_transactions(self) -> int:
        """How many transactions have ended since this was asked last."""
        ended, self._transactions = self._transactions, 0
        return ended

    def completed(self) -> None:
        """The event in hand is done."""
        if self.in_transaction:
            self._events_done += 1
            self._rows_done = 0

    def rows(self, last: int, total: int) -> None:
        """Records up to row ``last`` of ``total`` rows of the event in hand are made."""
        self.row = last
        self._rows_done = last + 1 if last < total - 1 else total

    def change_micros(self) -> int:
        """The time of the change in hand, in µs since the epoch."""
        return self.micros if self.micros is not None else (self.timestamp or 0) * 1_000_000

    def change_seconds(self) -> int | None:
        """The same in seconds, ``None`` if it is not known."""
        return self.timestamp if self.micros is None else self.micros // 1_000_000

    def boundary_ms(self) -> int:
        """The time of a transaction's beginning or end: without one in the GTID event, that of the event before."""
        if self.micros is not None:
            return self.micros // 1000
        return (self.timestamp_before or 0) * 1000

    def offset(self, transaction: Mapping[str, Any] | None) -> SourceOffset:
        """Where a restart goes on after the records made so far."""
        return SourceOffset(
            self._restart_file,
            self._restart_pos,
            self._restart_gtids or None,
            self._events_done,
            self._rows_done,
            self.server_id,
            self.change_seconds(),
            None,
            transaction,
            server=self._server,
        )
