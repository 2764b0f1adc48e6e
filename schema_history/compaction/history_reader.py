"""Which records of a kept history count, and what they come to at a position.

Connectors may share a history: only the records of one's own ``topic.prefix`` count, as in Debezium. Records that are
missing or damaged are an error, for structures would be wrong from there on; unless all structures were written anew
behind them, as ``snapshot.mode=recovery`` does: then everything counts from there. Such a snapshot is whole if it has
made every table that it dropped in its beginning.
"""

import logging
from dataclasses import dataclass

from rowtide.schema_history.catalog.changes import ChangeKind
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.compaction.covered_positions import CoveredPositions
from rowtide.schema_history.compaction.summary import Summary, SummaryHeader, UnusableSummary, digest, dump
from rowtide.schema_history.compaction.summary_store import SummaryStore
from rowtide.schema_history.errors import DamagedHistory, SchemaHistoryError
from rowtide.schema_history.model import TableId
from rowtide.schema_history.position.binlog_position import BinlogPosition, PositionFilter
from rowtide.schema_history.recovery.recover import Recovery, without_garbage_collection
from rowtide.schema_history.server.query_event import Server
from rowtide.schema_history.store.history_store import HistoryStoreError, SchemaHistoryStore, StoredText, parsed
from rowtide.schema_history.store.record import HistoryRecord, parse_record

log = logging.getLogger(__name__)

_NAMES_SHOWN = 5


class NotInHistory(SchemaHistoryError):
    """A history has records, but none of this connector; the message says whose they are."""


@dataclass(frozen=True, slots=True)
class StoredHistory:
    """A history where it is kept, and whose records of it count.

    Attributes:
        store: the history.
        source: ``topic.prefix`` of the records.
        summaries: its compact form, if there is one.
    """

    store: SchemaHistoryStore
    source: str
    summaries: SummaryStore | None = None


def read_history(kept: StoredHistory, server: Server, position: BinlogPosition | None) -> "HistoryReader":
    """Read a history, from the newest summary on that can be used.

    Args:
        kept: the history.
        server: decides how statements are read.
        position: up to where; ``None`` for all.

    Raises:
        NotInHistory: all its records are of other connectors.
        TrimmedHistory, DamagedHistory: records are missing, or cannot be read.
        HistoryStoreError: it cannot be read.
    """
    with without_garbage_collection():
        reading = HistoryReader(kept, server, position)
        start = reading.begin()
        for stored in kept.store.texts(start):
            reading.take(stored)
        reading.end()
    return reading


class HistoryReader:
    """A history that is being read.

    Attributes:
        records: how many records of the connector there are.
        behind: how many of them are not in the newest summary that was used.
    """

    def __init__(self, kept: StoredHistory, server: Server, position: BinlogPosition | None) -> None:
        self.records = 0
        self.behind = 0
        self._kept = kept
        self._server = server
        self._position = position
        self._reach = None if position is None else PositionFilter(position)
        self._recovery = Recovery(server, position)
        self._frontier: CoveredPositions | None = CoveredPositions() if kept.summaries is not None else None
        self._last: StoredText | None = None
        self._expected: SummaryHeader | None = None
        self._problem: HistoryStoreError | DamagedHistory | None = None
        self._others: set[str] = set()
        self._anew: set[TableId] | None = None

    def tables(self, *, prefer_ddl: bool = False) -> Tables:
        """The structure of all tables; ``prefer_ddl`` as in ``recover``."""
        return self._recovery.tables(prefer_ddl=prefer_ddl)

    def summary(self) -> bytes | None:
        """What was read, as a summary; ``None`` if a record of it is behind the position, so that it was left out."""
        if self._frontier is None or self._last is None:
            return None
        last = self._last
        source, server = self._kept.source, self._server
        origin = SummaryHeader(source, server, last.at, digest(last.text), self.records, self._frontier)
        return dump(origin, self._recovery)

    def begin(self) -> int:
        """Take the newest summary that can be used; gives the place from which to read on."""
        for packed in self._kept.summaries.load() if self._kept.summaries is not None else ():
            try:
                summary = Summary(packed)
                self._check(summary.origin)
                self._recovery = summary.recovery(self._position)
            except UnusableSummary as reason:
                log.info("a summary of the schema history is not used: %s", reason)
                continue
            self._expected = summary.origin
            self._frontier = summary.origin.frontier
            self.records = summary.origin.records
            return summary.origin.last
        return 0

    def _check(self, origin: SummaryHeader) -> None:
        if (origin.source, origin.server) != (self._kept.source, self._server):
            raise UnusableSummary("it was made for another connector, or another version of the server")
        if self._position is not None and not origin.frontier.within(self._position):
            raise UnusableSummary("it holds changes behind the stored position")
        last = next(iter(stored for stored in self._kept.store.texts(origin.last) if stored.lost is None), None)
        if last is None or last.at != origin.last or digest(last.text) != origin.digest:
            raise UnusableSummary("it is of another history")

    def take(self, stored: StoredText) -> None:
        """Take the next record of the store."""
        if stored.lost is not None:
            self._trouble(stored.lost)
            return
        if self._expected is not None:  # the last record of the summary
            self._expected, self._last = None, stored
            return
        try:
            record = parsed(stored, self._kept.store, parse_record)
            if record.server != self._kept.source:
                self._others.add(record.server)
                return
            self._own(record, stored)
        except DamagedHistory as problem:
            self._trouble(problem)
        except (ValueError, TypeError, AttributeError) as error:
            place = self._kept.store.place(stored.at)
            self._trouble(
                DamagedHistory(
                    f"damaged record in the schema history, {place}: {error}; rebuild it with snapshot.mode=recovery"
                )
            )

    def _trouble(self, problem: HistoryStoreError | DamagedHistory) -> None:
        self._problem, self._anew = self._problem or problem, None

    def _own(self, record: HistoryRecord, stored: StoredText) -> None:
        place = BinlogPosition.from_map(record.position)
        if self._problem is not None and (self._reach is None or self._reach.includes(place)):
            self._see_snapshot(record)
        self.records += 1
        self.behind += 1
        if self._recovery.add(record):
            self._last = stored
            self._reached(place)
        else:
            self._frontier = None  # a summary must not leave out a record that another position includes

    def _see_snapshot(self, record: HistoryRecord) -> None:
        """Look for a whole snapshot of all structures behind a problem."""
        if record.position.get("snapshot") not in ("INITIAL", True, "true"):
            return
        if (record.ddl or "").startswith("SET character_set_server"):
            self._recovery, self._anew = Recovery(self._server, self._position), set()
        if self._anew is None:
            return
        for told in record.tables:
            if told.kind is ChangeKind.DROP:
                self._anew.add(told.id)
            elif told.id in self._anew:
                self._anew.remove(told.id)
                if not self._anew:
                    log.warning("%s. All structures were written anew behind that: it is passed over", self._problem)
                    self._problem = self._anew = None
                    return

    def _reached(self, place: BinlogPosition) -> None:
        if self._frontier is None:
            return
        try:
            self._frontier.add(place)
        except ValueError as error:  # the name of a binlog file that has no number: positions cannot be compared
            log.info("no summary of the schema history can be made: %s", error)
            self._frontier = None

    def end(self) -> None:
        """See whether what was read can be relied on; raises as ``read_history``."""
        if self._problem is not None:
            raise self._problem
        if not self.records and self._others:
            names = ", ".join(repr(name) for name in sorted(self._others)[:_NAMES_SHOWN])
            raise NotInHistory(
                f"the schema history has no record of topic.prefix={self._kept.source}, only of {names}: it belongs to "
                "another connector, or the prefix was changed. Name the history that was used before, or the prefix; "
                "snapshot.mode=recovery writes all structures into it anew, right if no table was changed since"
            )
