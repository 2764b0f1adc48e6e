"""XA transactions: their records are held back from XA PREPARE to XA COMMIT, and forgotten at XA ROLLBACK.

The binlog has the rows of an XA transaction where it was prepared; whether they count is known only later, perhaps
behind other transactions, and perhaps in another life of the connector. Offsets therefore name the transactions that
are prepared (:attr:`SourceOffset.prepared`), and where the binlog has them: what is not in memory when it is committed
is read from there again. A prepared transaction keeps its tables from being altered, so their structure is still right.
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
"""Of a GTID event of MariaDB: the transaction is the first part of an XA transaction."""

Reread = Callable[[PreparedXa], list[Batch]]
"""Gives the records of a prepared transaction from the binlog; raises a ``ProtocolError`` if it has them no more."""

_SECOND_PART = re.compile(rb"XA\s+(COMMIT|ROLLBACK)\s+(\S+)(\s+ONE\s+PHASE)?", re.IGNORECASE)
_MOST_HELD = 16 << 20
"""Bytes of records of one prepared transaction that are kept; those of a larger one are read again."""


@dataclass(slots=True)
class _Open:
    """The XA transaction in hand: the offset before it, where it begins, and its records."""

    before: SourceOffset
    group: tuple[str, int]
    batches: list[Batch] = field(default_factory=list)


class XaTransactions:
    """The XA transactions of a stream.

    Args:
        start: where the stream begins.
        reread: reads a transaction again; without it all records are kept.
    """

    def __init__(self, start: SourceOffset, reread: Reread | None) -> None:
        self._reread = reread
        self._open: _Open | None = None
        self._prepared = {xa.xid: xa for xa in start.prepared}
        self._held: dict[str, list[Batch]] = {}

    @property
    def is_open(self) -> bool:
        """Whether an XA transaction is in hand."""
        return self._open is not None

    def offset(self, plain: SourceOffset) -> SourceOffset:
        """Where a restart goes on.

        Args:
            plain: where it would if there were no XA transactions.
        """
        place = plain if self._open is None else self._open.before
        return replace(place, prepared=tuple(self._prepared.values())) if self._prepared else place

    def begin(self, before: SourceOffset, group: tuple[str, int]) -> None:
        """An XA transaction begins.

        Args:
            before: the offset before it.
            group: file and position of its GTID event.
        """
        if self._open is None:
            self._open = _Open(before, group)

    def hold(self, batch: Batch) -> None:
        """Keep records of the transaction in hand; with the offset as it would be if there were no XA transactions."""
        assert self._open is not None
        self._open.batches.append(batch)

    def prepared(self, event: events.XaPrepare) -> Iterator[Batch]:
        """The transaction in hand is prepared; if that was all of it, its records are given."""
        opened, self._open = self._open, None
        if opened is None:
            return
        if event.one_phase:
            for batch in opened.batches:
                yield batch._replace(offset=self.offset(batch.offset))
            return
        self._prepared[event.xid] = PreparedXa(event.xid, *opened.group, opened.before)
        if self._reread is None or sum(batch.size for batch in opened.batches) <= _MOST_HELD:
            self._held[event.xid] = opened.batches

    def records(self, xid: str) -> list[Batch] | None:
        """The records that are held of a prepared transaction."""
        return self._held.get(xid)

    def recall(self, statement: bytes) -> None:
        """Have the records at hand if the statement commits what was prepared.

        Raises:
            ProtocolError: the binlog has them no more; the transaction is then known no longer.
        """
        xid, commit = second_part(statement)
        if commit and xid in self._prepared and xid not in self._held and self._reread is not None:
            try:
                self._held[xid] = self._reread(self._prepared[xid])
            except ProtocolError:
                del self._prepared[xid]
                raise

    def ended(self, statement: bytes, before: SourceOffset, after: SourceOffset, skip: int) -> Iterator[Batch]:
        """``XA COMMIT`` or ``XA ROLLBACK``; gives the records of what was committed.

        Args:
            statement: the statement.
            before: the offset at which it would come again.
            after: the offset behind it.
            skip: how many of the batches were written before.
        """
        xid, commit = second_part(statement)
        if xid not in self._prepared:
            if commit:
                log.warning(
                    "%s: it was prepared before the place from which the binlog is read; its changes are in no record "
                    "(at %s:%d)", statement[:200].decode("ascii", "replace"), before.file, before.pos
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
