"""Reads a stored history up to a position: from the newest usable summary, then record by record.

Connectors may share a history, so only the records with the connector's own ``topic.prefix`` count, as in Debezium.
Missing or damaged records are an error, because every structure after them may be wrong. The exception is a complete
snapshot of all structures after them, as ``snapshot.mode=recovery`` writes it: reading then starts over there. Such a
snapshot is complete if it has created every table that it dropped first.
"""

import logging
from dataclasses import dataclass

from rowtide.schema_history.catalog.changes import ChangeKind
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.compaction.summary import (
    CoveredPositions,
    Summary,
    SummaryHeader,
    UnusableSummary,
    digest,
    dump_summary,
)
from rowtide.schema_history.compaction.summary_store import SummaryStore
from rowtide.schema_history.errors import DamagedHistory, SchemaHistoryError
from rowtide.schema_history.model import TableId
from rowtide.schema_history.position.binlog_position import BinlogPosition, PositionFilter, SourceFilter
from rowtide.schema_history.recovery.recover import Recovery, garbage_collection_paused
from rowtide.schema_history.server.query_event import Server
from rowtide.schema_history.store.history_record import HistoryRecord, parse_record
from rowtide.schema_history.store.history_store import HistoryStoreError, SchemaHistoryStore, StoredText, parsed

log = logging.getLogger(__name__)

_PREFIXES_SHOWN = 5


class NotInHistory(SchemaHistoryError):
    """The history has records, but none of this connector; the message names the connectors that it has."""


@dataclass(frozen=True, slots=True)
class StoredHistory:
    """A connector's history and its store.

    Attributes:
        store: the store, possibly shared with other connectors.
        prefix: ``topic.prefix`` of the records that count.
        summaries: the store of its summaries; ``None`` without compaction.
    """

    store: SchemaHistoryStore
    prefix: str
    summaries: SummaryStore | None = None


def read_history(
    history: StoredHistory, server: Server, position: BinlogPosition | None, keep: SourceFilter | None = None
) -> "HistoryReader":
    """Read a history up to a position.

    Args:
        history: the history.
        server: determines how statements are parsed.
        position: records after it are ignored; ``None`` to read all.
        keep: selects the sources of GTIDs that count; ``None`` for all.

    Raises:
        NotInHistory: all records belong to other connectors.
        TrimmedHistory, DamagedHistory: records are missing or damaged.
        HistoryStoreError: the store cannot be read.
    """
    with garbage_collection_paused():
        reader = HistoryReader(history, server, position, keep)
        start = reader.load_summary()
        for stored in history.store.texts(start):
            reader.take(stored)
        reader.finish()
    return reader


class HistoryReader:
    """The state of reading a history.

    Attributes:
        records: number of the connector's records so far.
        unsummarised: number of them that are not in the summary that was used.
    """

    def __init__(
        self, history: StoredHistory, server: Server, position: BinlogPosition | None, keep: SourceFilter | None = None
    ) -> None:
        self.records = 0
        self.unsummarised = 0
        self._history = history
        self._server = server
        self._position = position
        self._filter = None if position is None else PositionFilter(position, keep)
        self._recovery = Recovery(server, position, keep)
        self._covered: CoveredPositions | None = CoveredPositions() if history.summaries is not None else None
        self._last: StoredText | None = None
        self._summary: SummaryHeader | None = None
        self._problem: HistoryStoreError | DamagedHistory | None = None
        self._other_prefixes: set[str] = set()
        self._snapshot_tables: set[TableId] | None = None  # dropped by a snapshot after the problem, not yet created

    def tables(self, *, prefer_ddl: bool = False) -> Tables:
        """Return the structure of all tables; ``prefer_ddl`` as in ``recover``."""
        return self._recovery.tables(prefer_ddl=prefer_ddl)

    def summary(self) -> bytes | None:
        """Return a summary of all records; ``None`` if a record after the position was ignored."""
        if self._covered is None or self._last is None:
            return None
        last = self._last
        prefix, server = self._history.prefix, self._server
        header = SummaryHeader(prefix, server, last.at, digest(last.text), self.records, self._covered)
        return dump_summary(header, self._recovery)

    def load_summary(self) -> int:
        """Load the newest usable summary.

        Returns:
            The location from which to continue: the last record of the summary, or 0 without a summary.
        """
        for packed in self._history.summaries.load() if self._history.summaries is not None else ():
            try:
                summary = Summary(packed)
                self._check(summary.header)
                self._recovery = summary.restore(self._position)
            except UnusableSummary as reason:
                log.info("a summary of the schema history is not used: %s", reason)
                continue
            self._summary = summary.header
            self._covered = summary.header.covered
            self.records = summary.header.records
            return summary.header.last
        return 0

    def _check(self, header: SummaryHeader) -> None:
        if (header.prefix, header.server) != (self._history.prefix, self._server):
            raise UnusableSummary("it was written for another connector or another version of the server")
        if self._position is not None and not header.covered.all_within(self._position):
            raise UnusableSummary("it contains changes after the stored position")
        last = next((stored for stored in self._history.store.texts(header.last) if stored.lost is None), None)
        if last is None or last.at != header.last or digest(last.text) != header.digest:
            raise UnusableSummary("it belongs to another history")

    def take(self, stored: StoredText) -> None:
        """Process the next record of the store."""
        if stored.lost is not None:
            self._note_problem(stored.lost)
            return
        if self._summary is not None:  # the first record read is the last one of the summary
            self._summary, self._last = None, stored
            return
        try:
            record = parsed(stored, self._history.store, parse_record)
            if record.server != self._history.prefix:
                self._other_prefixes.add(record.server)
                return
            self._take_own(record, stored)
        except DamagedHistory as problem:
            self._note_problem(problem)
        except (ValueError, TypeError, AttributeError) as error:
            location = self._history.store.describe(stored.at)
            self._note_problem(
                DamagedHistory(
                    f"damaged record in the schema history, {location}: {error}; rebuild it with snapshot.mode=recovery"
                )
            )

    def _note_problem(self, problem: HistoryStoreError | DamagedHistory) -> None:
        self._problem, self._snapshot_tables = self._problem or problem, None

    def _take_own(self, record: HistoryRecord, stored: StoredText) -> None:
        position = BinlogPosition.from_map(record.position)
        if self._problem is not None and (self._filter is None or self._filter.includes(position)):
            self._look_for_snapshot(record)
        self.records += 1
        self.unsummarised += 1
        if self._recovery.add(record):
            self._last = stored
            self._cover(position)
        else:
            self._covered = None  # a summary must not omit a record that another position includes

    def _look_for_snapshot(self, record: HistoryRecord) -> None:
        """After a problem, look for a complete snapshot of all structures, which resolves it."""
        if record.position.get("snapshot") not in ("INITIAL", True, "true"):
            return
        if (record.ddl or "").startswith("SET character_set_server"):
            self._recovery, self._snapshot_tables = Recovery(self._server, self._position), set()
        if self._snapshot_tables is None:
            return
        for table in record.tables:
            if table.kind is ChangeKind.DROP:
                self._snapshot_tables.add(table.id)
            elif table.id in self._snapshot_tables:
                self._snapshot_tables.remove(table.id)
                if not self._snapshot_tables:
                    log.warning(
                        "%s. This is ignored, because a later snapshot has written all structures again", self._problem
                    )
                    self._problem = self._snapshot_tables = None
                    return

    def _cover(self, position: BinlogPosition) -> None:
        if self._covered is None:
            return
        try:
            self._covered.add(position)
        except ValueError as error:  # a binlog file name without a number: positions cannot be compared
            log.info("no summary of the schema history can be built: %s", error)
            self._covered = None

    def finish(self) -> None:
        """Check that the history was read completely; raises as ``read_history``."""
        if self._problem is not None:
            raise self._problem
        if not self.records and self._other_prefixes:
            names = ", ".join(repr(name) for name in sorted(self._other_prefixes)[:_PREFIXES_SHOWN])
            raise NotInHistory(
                f"the schema history has no record of topic.prefix={self._history.prefix}, only of {names}: it belongs "
                "to another connector, or the prefix was changed. Configure the history or the prefix that was used "
                "before; or set snapshot.mode=recovery to write all structures into it again, which is correct if no "
                "table was changed since"
            )
