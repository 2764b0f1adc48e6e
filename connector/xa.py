"""XA transactions: their records are held back from XA PREPARE to XA COMMIT, and forgotten at XA ROLLBACK.

The binlog has the rows of an XA transaction where it was prepared; whether they count is known only later, perhaps
behind other transactions, and perhaps in another life of the connector. As long as one is prepared, a restart therefore
begins before it: the stored offset is that of its beginning, and names beside it up to where everything else has been
written (:attr:`SourceOffset.done`). What comes again up to there is read for the XA transactions in it alone.
"""

import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from rowtide.connector.batch import Batch
from rowtide.connector.offset import SourceOffset
from rowtide.connector.protocol import events
from rowtide.connector.protocol.events import Event
from rowtide.schema_history.gtid import GtidSet, MariadbGtidPosition
from rowtide.schema_history.position import file_number

log = logging.getLogger(__name__)

FL_PREPARED_XA = 64
"""Of a GTID event of MariaDB: the transaction is the first part of an XA transaction."""

_SECOND_PART = re.compile(rb"XA\s+(COMMIT|ROLLBACK)\s+(\S+)(\s+ONE\s+PHASE)?", re.IGNORECASE)


@dataclass(slots=True)
class _Held:
    """An XA transaction.

    Attributes:
        place: the offset before it.
        batches: its records.
    """

    place: SourceOffset
    batches: list[Batch] = field(default_factory=list)


class XaTransactions:
    """The XA transactions of a stream.

    Args:
        start: where the stream begins; with :attr:`SourceOffset.done`, what was prepared comes again.
        connector: ``mysql`` or ``mariadb``.

    Attributes:
        repeating: whether what comes now was written before, but for XA transactions that were only prepared.
    """

    def __init__(self, start: SourceOffset, connector: str) -> None:
        done = start.done
        self.repeating = done is not None
        self._start = start
        self._done = start if done is None else done
        self._done_gtids = self._done.gtid_set(connector)
        self._open: _Held | None = None
        self._prepared: dict[bytes, _Held] = {}

    @property
    def is_open(self) -> bool:
        """Whether an XA transaction is in hand."""
        return self._open is not None

    def offset(self, plain: SourceOffset) -> SourceOffset:
        """Where a restart goes on.

        Args:
            plain: where it would if there were no XA transactions.
        """
        if self.repeating:
            return self._start
        done = plain if self._open is None else self._open.place
        return self._behind(done)

    def _behind(self, done: SourceOffset) -> SourceOffset:
        oldest = next(iter(self._prepared.values()), None)
        return done if oldest is None else replace(oldest.place, done=done)

    def reached(self, event: Event, file: str) -> bool:
        """Whether an event is the first one that was not written before."""
        gtids, header = self._done_gtids, event.header
        if isinstance(event, events.Gtid) and not event.anonymous and isinstance(gtids, GtidSet):
            return not gtids.contains(event.uuid, event.gno, event.tag)
        if isinstance(event, events.MariadbGtidEvent) and isinstance(gtids, MariadbGtidPosition):
            return not gtids.contains(event.gtid)
        if self._done.gtids is not None and not isinstance(event, events.Gtid):
            return False
        # Without GTIDs, or where they have been turned off since.
        if not header.log_pos or header.flags & 0x20:
            return False
        here, there = file_number(file) or 0, file_number(self._done.file) or 0
        return (here, header.log_pos - header.size) >= (there, self._done.pos)

    def go_on(self) -> SourceOffset:
        """Everything has come again; gives the offset at which the stream goes on."""
        self.repeating = False
        return self._done

    def begin(self, place: SourceOffset) -> None:
        """An XA transaction begins.

        Args:
            place: the offset before it.
        """
        if self._open is None:
            self._open = _Held(place)

    def hold(self, batch: Batch) -> None:
        """Keep records of the transaction in hand; with the offset as it would be if there were no XA transactions."""
        assert self._open is not None
        self._open.batches.append(batch)

    def prepared(self, event: events.XaPrepare) -> Iterator[Batch]:
        """The transaction in hand is prepared; if that was all of it, its records are given."""
        held, self._open = self._open, None
        if held is None:
            return
        if not event.one_phase:
            self._prepared[_key(event.xid.encode())] = held
            return
        for batch in held.batches:
            yield batch._replace(offset=self.offset(batch.offset))

    def ended(self, statement: bytes, before: SourceOffset, after: SourceOffset, skip: int) -> Iterator[Batch]:
        """``XA COMMIT`` or ``XA ROLLBACK``; gives the records of what was committed.

        Args:
            statement: the statement.
            before: the offset at which it would come again.
            after: the offset behind it.
            skip: how many of the batches were written before.
        """
        found = _SECOND_PART.match(statement.strip())
        if found is None:
            return
        key = _key(found[2])
        held = self._prepared.get(key)
        if held is None:
            if found[1].upper() == b"COMMIT" and not self.repeating:
                log.warning(
                    "%s: it was prepared before the place from which the binlog is read (%s:%d); its changes are not "
                    "in any record", statement[:200].decode("ascii", "replace"), before.file, before.pos
                )  # fmt: skip
            return
        if found[1].upper() == b"COMMIT":
            batches = held.batches[skip:]
            for number, batch in enumerate(batches[:-1], skip + 1):
                yield batch._replace(offset=self.offset(replace(before, event=number, row=0)))
            del self._prepared[key]
            for batch in batches[-1:]:
                yield batch._replace(offset=self.offset(after))
        else:
            del self._prepared[key]


def _key(xid: bytes) -> bytes:
    return xid.lower().replace(b" ", b"")
