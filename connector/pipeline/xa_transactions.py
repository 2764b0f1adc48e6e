"""XA transactions: their records are held from XA PREPARE until XA COMMIT, and dropped at XA ROLLBACK.

The binlog has the rows of an XA transaction where it was prepared. Whether they count is known only at its end, which
may be behind other transactions and behind a restart of the connector. Offsets therefore list the prepared
transactions and where the binlog has them (:attr:`SourceOffset.prepared`); records that are not in memory at XA COMMIT
are read from there again. Locks of a prepared transaction keep its tables from being altered, so their current
structure is that of its rows.
"""

import logging
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from rowtide.connector.errors import ProtocolError
from rowtide.connector.protocol import events
from rowtide.connector.records.batch import Batch
from rowtide.connector.records.offset import PreparedXa, SourceOffset

log = logging.getLogger(__name__)

FL_PREPARED_XA = 64
"""Flag of a MariaDB GTID event: the transaction is the first part of an XA transaction."""

ReadXa = Callable[[PreparedXa], list[Batch]]
"""Reads the records of a prepared transaction from the binlog; raises ``ProtocolError`` if they are no longer there."""

_SECOND_PART = re.compile(rb"XA\s+(COMMIT|ROLLBACK)\s+(\S+)(\s+ONE\s+PHASE)?", re.IGNORECASE)
_MAX_HELD_BYTES = 16 << 20
"""Records of a larger prepared transaction are not held, but read again at its end."""


@dataclass(slots=True)
class _OpenXa:
    """The XA transaction between XA START and XA PREPARE.

    Attributes:
        before: the offset before it.
        group: file and position of its GTID event.
        batches: its records.
    """

    before: SourceOffset
    group: tuple[str, int]
    batches: list[Batch] = field(default_factory=list)


class XaTransactions:
    """The XA transactions of a stream.

    Args:
        start: the start position, with the transactions that are prepared there.
        read_xa: reads a transaction again; without it all records are held.
    """

    def __init__(self, start: SourceOffset, read_xa: ReadXa | None) -> None:
        self._read_xa = read_xa
        self._open: _OpenXa | None = None
        self._prepared = {xa.xid: xa for xa in start.prepared}
        self._held: dict[str, list[Batch]] = {}

    @property
    def is_open(self) -> bool:
        """Whether the stream is between XA START and XA PREPARE."""
        return self._open is not None

    def offset(self, plain: SourceOffset) -> SourceOffset:
        """The resume position.

        Args:
            plain: the resume position without regard to XA transactions.
        """
        offset = plain if self._open is None else self._open.before
        return replace(offset, prepared=tuple(self._prepared.values())) if self._prepared else offset

    def begin(self, before: SourceOffset, group: tuple[str, int]) -> None:
        """Open an XA transaction.

        Args:
            before: the offset before it.
            group: file and position of its GTID event.
        """
        if self._open is None:
            self._open = _OpenXa(before, group)

    def hold(self, batch: Batch) -> None:
        """Hold records of the open transaction; their offset is the one without regard to XA transactions."""
        assert self._open is not None
        self._open.batches.append(batch)

    def prepared(self, event: events.XaPrepare) -> Iterator[Batch]:
        """Close the open transaction; yields its records if it is committed in one phase."""
        opened, self._open = self._open, None
        if opened is None:
            return
        if event.one_phase:
            for batch in opened.batches:
                yield batch._replace(offset=self.offset(batch.offset))
            return
        self._prepared[event.xid] = PreparedXa(event.xid, *opened.group, opened.before)
        if self._read_xa is None or sum(batch.size for batch in opened.batches) <= _MAX_HELD_BYTES:
            self._held[event.xid] = opened.batches

    def records(self, xid: str) -> list[Batch] | None:
        """The held records of a prepared transaction, ``None`` if there are none."""
        return self._held.get(xid)

    def load(self, statement: bytes) -> None:
        """Read the records again if the statement commits a prepared transaction that is not held.

        Raises:
            ProtocolError: the binlog no longer has them. The transaction is no longer in the offset then.
        """
        xid, commit = second_part(statement)
        if commit and xid in self._prepared and xid not in self._held:
            if self._read_xa is None:
                raise ProtocolError(f"the rows of XA transaction {xid} were prepared before the start position")
            try:
                self._held[xid] = self._read_xa(self._prepared[xid])
            except ProtocolError:
                del self._prepared[xid]
                raise

    def ended(self, statement: bytes, before: SourceOffset, after: SourceOffset, skip: int) -> Iterator[Batch]:
        """Handle ``XA COMMIT`` or ``XA ROLLBACK``; yields the records of a committed transaction.

        Args:
            statement: the statement.
            before: the offset before the statement.
            after: the offset behind it.
            skip: how many of the batches were delivered before the start.
        """
        xid, commit = second_part(statement)
        if xid not in self._prepared:
            if commit:
                log.warning(
                    "%s: the transaction was prepared before the start position of the stream; its changes are in no "
                    "record (at %s:%d)", statement[:200].decode("ascii", "replace"), before.file, before.pos
                )  # fmt: skip
            return
        batches = self._held.pop(xid, [])[skip:] if commit else []
        for number, batch in enumerate(batches[:-1], skip + 1):
            yield batch._replace(offset=self.offset(replace(before, event=number, row=0)))
        del self._prepared[xid]
        self._held.pop(xid, None)
        for batch in batches[-1:]:
            yield batch._replace(offset=self.offset(after))


def second_part(statement: bytes) -> tuple[str, bool]:
    """The XA transaction that a statement ends, ``""`` if it ends none, and whether it commits it."""
    found = _SECOND_PART.match(statement.strip())
    if found is None:
        return "", False
    return found[2].decode("ascii", "replace").lower().replace("x'", "X'"), found[1].upper() == b"COMMIT"
