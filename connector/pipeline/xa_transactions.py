"""XA transactions: their records are written at XA COMMIT, and dropped at XA ROLLBACK.

The binlog has the rows of an XA transaction where it was prepared. Whether they count is known only at its end, which
may come after other transactions and after a restart of the connector. Offsets therefore list the prepared
transactions and where the binlog has them (:attr:`SourceOffset.prepared`). Records of small transactions are held in
memory; all others are read from the binlog again at XA COMMIT, batch by batch. Locks of a prepared transaction keep its
tables from being altered, so their current structure is that of its rows.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import NamedTuple

from rowtide.connector.errors import ProtocolError
from rowtide.connector.pipeline.resume_position import Progress
from rowtide.connector.protocol.statements import xa_end
from rowtide.connector.records.batch import Batch
from rowtide.connector.records.offset import PreparedXa, SourceOffset
from rowtide.connector.records.settings import MessageForm

log = logging.getLogger(__name__)

ReadXa = Callable[[PreparedXa], Iterator[Batch]]
"""Reads the records of a transaction from the binlog; raises ``ProtocolError`` if they are no longer there."""

_MAX_HELD_BYTES = 16 << 20
"""The size of all records that are held; those of further transactions are read again."""


@dataclass(slots=True)
class _OpenXa:
    """An XA transaction, from XA START on.

    Attributes:
        xid: its identifier.
        before: the offset before it.
        group: file and position of its GTID event.
        batches: its records; ``None`` if they are not held.
        size: bytes of the records that are held.
    """

    xid: str
    before: SourceOffset
    group: tuple[str, int]
    batches: list[Batch] | None = field(default_factory=list)
    size: int = 0


class XaState(NamedTuple):
    """The transactions that have not ended, without their records.

    Attributes:
        opened: the transaction between XA START and XA PREPARE.
        prepared: the prepared ones by identifier, in order.
    """

    opened: _OpenXa | None
    prepared: Mapping[str, PreparedXa]


class XaTransactions:
    """The XA transactions of a stream.

    Args:
        progress: the position in the stream.
        start: the start position, with the transactions that are prepared there.
        read_xa: reads a transaction again; without it all records are held.
        skip_rows: called with a problem of reading a transaction again; raises it, or continues without the rows.
        emitted: called with each batch of a committed transaction.
        form: writes the batches of a committed transaction, if it is not that of Debezium's messages.

    Attributes:
        state: the transactions that have not ended; assign an earlier value to return to it.
        find: finds a transaction that was prepared before the start, or raises ``ProtocolError``; ``None`` if the start
            position names all of them.
    """

    find: Callable[[str], PreparedXa] | None = None

    def __init__(
        self,
        progress: Progress,
        start: SourceOffset,
        read_xa: ReadXa | None,
        skip_rows: Callable[[ProtocolError], None],
        emitted: Callable[[Batch], None] = lambda _batch: None,
        form: MessageForm | None = None,
    ) -> None:
        self._progress = progress
        self._form = form
        self._hold_all = read_xa is None
        self._read_xa = read_xa or _unreadable
        self._skip_rows = skip_rows
        self._emitted = emitted
        self.state = XaState(None, {xa.xid: xa for xa in start.prepared})
        self._held: dict[str, _OpenXa] = {}
        self._held_bytes = 0

    @property
    def is_open(self) -> bool:
        """Whether the stream is between XA START and XA PREPARE."""
        return self.state.opened is not None

    @property
    def open_xid(self) -> str | None:
        """The identifier of the open transaction."""
        return None if self.state.opened is None else self.state.opened.xid

    def offset(self, plain: SourceOffset) -> SourceOffset:
        """Return the resume position.

        Args:
            plain: the resume position without regard to XA transactions.
        """
        opened, prepared = self.state
        offset = plain if opened is None else opened.before
        return replace(offset, prepared=tuple(prepared.values())) if prepared else offset

    def begin(self, xid: str, before: SourceOffset) -> None:
        """Open an XA transaction; ``before`` is the offset before it."""
        if self.state.opened is None:
            self.state = self.state._replace(opened=_OpenXa(xid, before, self._progress.group))

    def hold(self, batch: Batch) -> None:
        """Hold records of the open transaction; their offset is the one without regard to XA transactions."""
        opened = self.state.opened
        assert opened is not None
        if opened.batches is None:
            return
        opened.batches.append(batch)
        opened.size += batch.size
        if not self._hold_all and self._held_bytes + opened.size > _MAX_HELD_BYTES:
            opened.batches, opened.size = None, 0

    def take(self) -> list[Batch]:
        """Take the records of the open transaction that are held so far."""
        opened = self.state.opened
        taken: list[Batch] = []
        if opened is not None and opened.batches:
            taken, opened.batches, opened.size = opened.batches, [], 0
        return taken

    def prepare(self, xid: str) -> None:
        """Close the open transaction at XA PREPARE."""
        opened, prepared = self.state
        if opened is None:
            return
        self.state = XaState(None, {**prepared, xid: PreparedXa(xid, *opened.group, opened.before)})
        if opened.batches is not None:
            self._held[xid] = opened
            self._held_bytes += opened.size

    def one_phase(self) -> Iterator[Batch]:
        """Close the open transaction at XA COMMIT … ONE PHASE, and yield its records."""
        opened, prepared = self.state
        if opened is None:
            return
        self.state = XaState(None, prepared)
        for batch in self._records(PreparedXa(opened.xid, *opened.group, opened.before), opened):
            plain = batch.offset
            if opened.batches is None:  # a pipeline that reads it again begins elsewhere, but counts the same events
                plain = replace(opened.before, event=plain.event, row=plain.row)
            self._progress.resume_within(plain)
            yield batch._replace(offset=self.offset(plain))

    def second_part(self, statement: bytes, plain: Callable[[], SourceOffset]) -> Iterator[Batch]:
        """Handle ``XA COMMIT`` or ``XA ROLLBACK``, and yield the records of a committed transaction.

        A restart before the last batch begins at the statement again, and skips the batches before it.

        Args:
            statement: the statement.
            plain: returns the resume position without regard to XA transactions.
        """
        progress = self._progress
        before, skip = replace(plain(), pos=progress.pos, row=0), progress.events_to_skip
        xid, commit = xa_end(statement)
        last: Batch | None = None
        for number, batch in enumerate(islice(self._committed(xid, statement), skip, None) if commit else (), skip):
            if last is not None:
                progress.resume_within(replace(before, event=number))
                yield last._replace(offset=self.offset(plain()))
            last = batch if self._form is None else self._form.moved(batch, progress.source_position(0, 0), number)
        self._forget(xid)
        progress.executed()
        if last is not None:
            yield last._replace(offset=self.offset(plain()))

    def _committed(self, xid: str, statement: bytes) -> Iterator[Batch]:
        progress, prepared = self._progress, self.state.prepared.get(xid)
        if prepared is None and self.find is not None:
            try:
                prepared = self.find(xid)
            except ProtocolError as problem:
                self._skip_rows(problem)
                return
        if prepared is None:
            log.warning(
                "%s: the transaction was prepared before the start position of the stream; no record contains its "
                "changes (at %s:%d)", statement[:200].decode("ascii", "replace"), progress.file, progress.pos
            )  # fmt: skip
            return
        yield from self._records(prepared, self._held.get(xid))

    def _records(self, xa: PreparedXa, held: _OpenXa | None) -> Iterator[Batch]:
        batches: Iterable[Batch] | None = None if held is None else held.batches
        try:
            for batch in self._read_xa(xa) if batches is None else batches:
                self._emitted(batch)
                yield batch
        except ProtocolError as problem:
            self._skip_rows(problem)

    def _forget(self, xid: str) -> None:
        opened, prepared = self.state
        self.state = XaState(opened, {name: xa for name, xa in prepared.items() if name != xid})
        held = self._held.pop(xid, None)
        if held is not None:
            self._held_bytes -= held.size


def _unreadable(xa: PreparedXa) -> Iterator[Batch]:
    raise ProtocolError(f"the rows of XA transaction {xa.xid} were prepared before the start position")
