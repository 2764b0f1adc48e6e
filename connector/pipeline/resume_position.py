"""The position in the binlog: of the current event, and the one from which a restart resumes.

The resume position follows Debezium's offset context step by step, because both must be able to read the offsets of
the other. A restart begins at the transaction's BEGIN (outside of a transaction: after the last statement), skips
``event`` events of the transaction, and then ``row`` rows of the next row event. Debezium counts every event from BEGIN
on, TABLE_MAP and ROWS_QUERY included.
"""

import logging
from collections.abc import Mapping
from dataclasses import replace
from operator import attrgetter
from typing import Any

from rowtide.connector.protocol.events.classes import Gtid, Query, TableMap
from rowtide.connector.protocol.header import ARTIFICIAL, EventHeader
from rowtide.connector.records.change import SourcePosition
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.records.settings import PipelineSettings
from rowtide.envelope.source import source_value
from rowtide.schema_history.position.gtid import source_of
from rowtide.topics.filters import Selection

log = logging.getLogger(__name__)

_RESUME_FIELDS = (
    "_restart_file",
    "_restart_pos",
    "_restart_gtids",
    "_events_done",
    "_rows_done",
    "in_transaction",
    "_skip",
    "_within",
    "carried",
)
ResumePoint = tuple[Any, ...]
"""The state from which :class:`Progress` makes the resume position: the values of ``_RESUME_FIELDS``."""
_resume_values = attrgetter(*_RESUME_FIELDS)


class Progress:
    """The position of the current event, and the resume position.

    If the start position is inside a transaction, the stream begins at its BEGIN and skips what was done before. Until
    it has passed that part, the resume position remains the start position.

    Args:
        start: the start position.
        published: the sources of GTIDs whose rows are published; ``None`` for all.

    Attributes:
        file: binlog file.
        pos: start of the current event.
        end: where the last event ends that has a position in ``file``.
        row: row number of the last record, kept until the next one as Debezium does.
        server_id: of the current event.
        timestamp: of the current event, seconds since the epoch.
        timestamp_before: of the event before it.
        gtid: of the current transaction, ``None`` without GTIDs.
        micros: commit time of the transaction on its first server in µs, ``None`` if the event has none.
        thread: of the current transaction, ``None`` outside of one.
        query: statement of the current rows (``include.query``).
        group: file and position of the GTID event of the current transaction.
        in_transaction: between BEGIN and the end of the transaction.
        filtered: whether the rows of the current transaction are not published, because of the source of its GTID.
        carried: ``SourceOffset.carried`` of all offsets from now on. Replace the mapping, do not change it.
    """

    def __init__(self, start: SourceOffset, published: Selection | None = None) -> None:
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
        self.filtered = False
        self._placed = True
        self._published = published
        self.carried = start.carried
        # Asked by GTIDs, a server begins at the head of a file: not a position after the transactions of the set.
        self._settled = start.gtids is None
        self._server = start.server
        self._restart_file = start.file
        self._restart_pos = start.pos
        self._restart_gtids = start.gtids
        self._current_gtids = start.gtids
        self._events_done = 0
        self._rows_done = 0
        self._skip: SourceOffset | None = start if start.event or start.row else None
        self._within: SourceOffset | None = None
        self._transactions = 0
        self._statement_pos: int | None = None  # of a MariaDB GTID event of a single statement

    def begin_at_file(self) -> None:
        """Note that the stream begins at the file and position of the start, although that has GTIDs."""
        self._settled = True

    def source_position(self, ts_us: int | None = None, now: int = 0) -> SourcePosition:
        """Return the position of the current event.

        Args:
            ts_us: when the source made the change, µs since the epoch; by default when its statement began.
            now: when it is processed, ns since the epoch.
        """
        if ts_us is None:
            ts_us = (self.timestamp or 0) * 1_000_000
        ordinal = 0 if self._placed else self._events_done
        return SourcePosition(
            self.file, self.pos, self.gtid, self.server_id, self.thread, self.query, ts_us, now, None, ordinal
        )

    def advance(self, header: EventHeader) -> None:
        """Advance to the next event. Artificial events have no position in the file."""
        timestamp, _, server_id, size, end, flags = header
        if not flags & ARTIFICIAL:
            self.at_event(end - size, end, server_id, timestamp)

    @property
    def place(self) -> str:
        """The position of the current event in words, for messages."""
        return f"{self.file}:{self.pos}"

    def opened(
        self, gtid: Gtid, begin: Query, table_map: TableMap, executed: tuple[str | None, str | None] | None
    ) -> None:
        """Advance after the events that open a transaction, none of which is skipped; all have a position in the file.

        Args:
            gtid: the first event.
            begin: the second one, from which events are counted.
            table_map: the third one.
            executed: the executed sets before it and with it; ``None`` if the transaction has no GTID.
        """
        self.advance(gtid.header)
        if executed is None:
            self.anonymous_started(None)
        else:
            self.gtid_started(gtid.text, *executed, gtid.original_commit_timestamp or None)
        self.advance(begin.header)
        self.began(begin.thread_id)
        self.advance(table_map.header)
        self._events_done = 2

    def at_event(self, start: int, end: int, server_id: int, timestamp: int) -> None:
        """Advance to the next event; ``end`` 0 means that it has none (in compressed ones)."""
        self.server_id = server_id
        self.timestamp_before = self.timestamp
        self.timestamp = timestamp
        self._placed = end > 0
        if not end:
            return
        self.pos, self.end = start, end
        if self._settled and not self.in_transaction:
            self._restart_file = self.file
            self._restart_pos = end

    def at_payload(self, start: int, end: int, server_id: int, timestamp: int) -> None:
        """Advance to a TRANSACTION_PAYLOAD; the resume position stays before it until the events in it move it."""
        self.at_event(0, 0, server_id, timestamp)
        self.pos, self.end = start, end

    def rotated(self, file: str, pos: int) -> None:
        """Advance to another binlog file."""
        self.file, self.pos, self.end, self.row = file, pos, pos, 0
        if self._settled and not self.in_transaction:
            self._restart_file, self._restart_pos = file, pos

    def gtid_started(self, gtid: str, before: str | None, with_it: str | None, micros: int | None) -> None:
        """Handle the GTID of a transaction; ``before`` and ``with_it`` are the executed sets, ``None`` if unknown."""
        self._group_started(gtid, micros)
        self._restart_gtids = before
        self._current_gtids = with_it

    def anonymous_started(self, micros: int | None) -> None:
        """Handle the GTID event of a transaction without a GTID."""
        self._group_started(None, micros)

    def _group_started(self, gtid: str | None, micros: int | None) -> None:
        self._settled = True
        self.group = self.file, self.pos
        self.gtid = gtid
        self.micros = micros
        if self._published is not None:
            self.filtered = gtid is not None and not self._published.selects(source_of(gtid))
        if self._skip is not None and self._skip.within not in (None, gtid):
            log.warning(
                "the server sends transaction %s before %s, which was read in part: its binlog has a different order "
                "from the previous server's. %s is read again from its beginning",
                gtid or "without a GTID", self._skip.within, self._skip.within,
            )  # fmt: skip
            self._skip = None

    def began(self, thread: int | None) -> None:
        """Handle BEGIN, to which restarts return until the transaction ends."""
        self._settled = True
        self._restart_file = self.file
        self._restart_pos = self.pos
        self._events_done = self._rows_done = 0
        self.in_transaction = True
        self.thread = thread

    def committed(self, end: int) -> None:
        """Handle the end of the transaction; ``end`` is the position after its last event, 0 if that has none."""
        self._transactions += 1
        self._restart_gtids = self._current_gtids
        self._restart_file = self.file
        if end:
            self._restart_pos = end
        self._events_done = self._rows_done = 0
        self._skip = self._within = None
        self.in_transaction = False
        self.thread = None
        self.query = None

    def statement_began(self) -> None:
        """Handle a MariaDB GTID event of a single statement, which Debezium counts as the first of a transaction."""
        self._statement_pos = self.pos

    def executed(self) -> None:
        """Complete the current statement; outside of a transaction, a restart resumes after it."""
        self._statement_pos = self._within = None
        if not self.in_transaction:
            self._restart_gtids = self._current_gtids
            self._skip = None

    def resume_within(self, offset: SourceOffset) -> None:
        """Resume at ``offset``, inside the current event, until it is complete: a part of its records is made."""
        self._within = offset

    @property
    def statement_position(self) -> tuple[str, int, str | None, int]:
        """The position of Debezium's offset of the current statement: file, position, GTIDs, events."""
        if self._statement_pos is not None:
            return self._restart_file, self._statement_pos, self._restart_gtids, 1
        return self._restart_file, self._restart_pos, self._restart_gtids, self._events_done

    def statement_offset(self, transaction: Mapping[str, Any] | None) -> SourceOffset:
        """Return Debezium's offset of the records of the current statement."""
        _, pos, _, event = self.statement_position
        return replace(self.offset(transaction), pos=pos, event=event)

    def taken_transactions(self) -> int:
        """Return how many transactions have ended since the last call."""
        ended, self._transactions = self._transactions, 0
        return ended

    @property
    def skipping(self) -> bool:
        """Whether the current event of a transaction was done before the start."""
        return self._skip is not None and self.in_transaction and self._events_done < self._skip.event

    @property
    def passed_start(self) -> bool:
        """Whether no part of the stream is skipped from here on, because it was done before the start."""
        return self._skip is None

    @property
    def events_to_skip(self) -> int:
        """How many events of the first transaction were done before the start; 0 once that part is passed."""
        return 0 if self._skip is None else self._skip.event

    def rows_to_skip(self) -> int:
        """Return how many rows of the current row event, the first one only, were done before the start."""
        if self._skip is not None:
            self._rows_done, self._skip = self._skip.row, None
            return self._rows_done
        return 0

    def completed(self) -> None:
        """Complete the current event."""
        if self.in_transaction:
            self._events_done += 1
            self._rows_done = 0

    def rows(self, last: int, total: int) -> None:
        """Count the rows of the current event: records up to row ``last`` of ``total`` are made."""
        self.row = last
        self._rows_done = last + 1 if last < total - 1 else total

    def change_micros(self) -> int:
        """Return the time of the current change, in µs since the epoch."""
        return self.micros if self.micros is not None else (self.timestamp or 0) * 1_000_000

    def change_seconds(self) -> int | None:
        """Return the same in seconds, ``None`` if it is not known."""
        return self.timestamp if self.micros is None else self.micros // 1_000_000

    def boundary_ms(self) -> int:
        """Return the time of a transaction's beginning or end, by its GTID event or else by the event before."""
        if self.micros is not None:
            return self.micros // 1000
        return (self.timestamp_before or 0) * 1000

    def source(self, settings: PipelineSettings, database: str, table: str | None, micros: int) -> dict[str, Any]:
        """Return the ``source`` block of a record about the current event, as a Connect value.

        Args:
            settings: of the records.
            database: the value of ``db``.
            table: the value of ``table``.
            micros: the time of the change, in µs since the epoch.
        """
        return source_value(
            settings.connector,
            settings.topic_prefix,
            database,
            table,
            micros=micros,
            snapshot="false" if settings.exact_values else None,
            server_id=self.server_id,
            gtid=self.gtid,
            file=self.file,
            pos=self.pos,
            row=self.row,
            thread=self.thread,
            query=self.query,
        )

    def offset(self, transaction: Mapping[str, Any] | None) -> SourceOffset:
        """Return the position from which a restart makes the records after those made so far.

        Args:
            transaction: fields of transaction metadata.
        """
        if self._within is not None:
            return self._within
        event, row, skip = self._events_done, self._rows_done, self._skip
        if skip is not None:
            event, row = max(event, skip.event), skip.row
        return SourceOffset(
            self._restart_file,
            self._restart_pos,
            self._restart_gtids or None,
            event,
            row,
            self.server_id,
            self.change_seconds(),
            None,
            transaction,
            server=self._server,
            within=self.gtid if skip is None else skip.within,
            carried=self.carried,
        )

    def state(self) -> dict[str, Any]:
        """Return the complete state, for :meth:`take`; it can be pickled."""
        return vars(self).copy()

    def take(self, state: Mapping[str, Any]) -> None:
        """Take the state of a position that has advanced elsewhere from this one's; a ``row`` of -1 stands for none."""
        ended, row = self._transactions, self.row
        vars(self).update(state)
        self._transactions += ended
        if self.row < 0:
            self.row = row

    def continue_at(self, event: int) -> None:
        """Continue in the current transaction, of which that many events are complete."""
        self._events_done = event

    @property
    def events_done(self) -> int:
        """How many events of the current transaction are complete."""
        return self._events_done

    def resume_point(self) -> ResumePoint:
        """Return the state for :meth:`return_to`."""
        point: ResumePoint = _resume_values(self)
        return point

    def return_to(self, point: ResumePoint) -> None:
        """Resume from an earlier point, because an event after it could not be handled to its end."""
        vars(self).update(zip(_RESUME_FIELDS, point, strict=True))
