"""Requests the incremental snapshot of new tables from the reader's thread, some tables at a time."""

import logging
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from rowtide.connector.engine.start.later_structures import LaterStructure
from rowtide.connector.engine.start.new_tables import NewTablePlan
from rowtide.connector.engine.start.position import log_findings
from rowtide.connector.engine.start.table_lookup import StartTables
from rowtide.connector.errors import SnapshotError
from rowtide.connector.pipeline.pipeline import Pipeline
from rowtide.connector.records.batch import HistoryEntry, Output
from rowtide.connector.records.read_tables import ReadTables, with_read
from rowtide.connector.records.schema_changes import schema_change_message
from rowtide.connector.records.settings import PipelineSettings
from rowtide.connector.snapshot.incremental.state import IncrementalTable
from rowtide.connector.snapshot.on_demand import RequestedSnapshots
from rowtide.connector.snapshot.view.stream_order import AwaitedPosition, stream_position
from rowtide.connector.source.server_queries import quoted_table
from rowtide.schema_history.catalog.changes import ChangeKind, SchemaChange
from rowtide.schema_history.errors import SchemaHistoryError
from rowtide.schema_history.model import Table, TableId
from rowtide.schema_history.server.query_event import QueryEvent
from rowtide.schema_history.store.history_record import history_record

log = logging.getLogger(__name__)

Plan = Callable[[Sequence[TableId], Callable[[TableId], Table | None], Collection[TableId | None]], NewTablePlan]

_AT_ONCE = 100
"""The names of the tables of a snapshot are stored with each position."""


class NewTableRequests:
    """Requests the snapshot between two transactions, and captures hidden tables when their structure is known.

    The position after the first boundary is stored, so that the lists of captured tables are stored soon after a
    start. A table that is renamed to a captured name while the connector streams is new from that position. If it is
    renamed again before its snapshot is requested, it is read under the new name.

    Args:
        settings: of the records.
        found: the new tables.
        entered: tables that were renamed to a captured name since; they are removed.
        plan: decides what to do with them, see :func:`plan_new_tables`.
        snapshots: reads them.
        clock: nanoseconds since the epoch.
        new_id: creates the id of a request, which its notifications contain.

    Attributes:
        hidden: the tables that are not captured yet, as (database, table).
    """

    def __init__(
        self,
        settings: PipelineSettings,
        found: StartTables,
        entered: deque[TableId],
        plan: Plan,
        snapshots: RequestedSnapshots,
        clock: Callable[[], int],
        new_id: Callable[[], str],
    ) -> None:
        self.hidden = set(found.hidden)
        self._settings = settings
        self._waiting = list(found.wanted)
        self._later = list(found.later)
        self._entered = entered
        self._plan = plan
        self._awaited = AwaitedPosition(settings.connector)
        self._snapshots = snapshots
        self._clock = clock
        self._new_id = new_id
        self._begun = False
        self._known = {*(_unread(found.start.carried) or ())}

    @property
    def due(self) -> bool:
        """Whether :meth:`run` has not run yet, or more tables can be captured or requested."""
        if not self._begun or self._entered or (self._waiting and not self._snapshots.tables):
            return True
        progress = self._snapshots.progress
        return bool(self._later and progress and self._awaited.may_be_passed(progress.file, progress.end))

    def run(self, pipeline: Pipeline) -> Iterator[Output]:
        """Capture the hidden tables whose position the stream has passed, and request the next tables."""
        self._begun = True
        yield from self._captured(pipeline)
        if self._entered or (self._waiting and not self._snapshots.tables):
            self._take_entered(pipeline)
        if self._waiting and not self._snapshots.tables:
            tables, self._waiting = self._waiting[:_AT_ONCE], self._waiting[_AT_ONCE:]
            request = self._new_id()
            wanted = [IncrementalTable(str(table), table, request) for table in tables]
            yield from self._snapshots.add(wanted, request, pipeline.offset())

    def _take_entered(self, pipeline: Pipeline) -> None:
        """Add the tables that were renamed to a captured name, and update the names of waiting tables."""
        progress, tables = pipeline.progress, pipeline.tables
        unread = _unread(progress.carried)
        entered = list(self._entered)
        self._entered.clear()
        if unread is not None:
            entered = [table for table in entered if table in unread]  # others have got yet another name
            entered += [table for table in unread if table not in self._known]
            self._waiting = [one for one in self._waiting if one in unread or tables.exists(one.database, one.table)]
        found = []
        for table in dict.fromkeys(entered):
            if tables.exists(table.database, table.table):
                found.append(table)
            else:
                log.warning(
                    "%s now has a captured name, but its structure is not known: the next start reads its rows",
                    table,
                )
        self._known.update(entered)
        if not found:
            return
        reading = {one.table for one in self._snapshots.tables if one.condition is None}
        plan = self._plan(found, lambda table: tables.table(table.database, table.table), reading)
        progress.carried = with_read(progress.carried, {*found} - {*plan.read.unread})
        log_findings(plan.findings)
        self._waiting += plan.wanted

    def _captured(self, pipeline: Pipeline) -> Iterator[Output]:
        position = stream_position(pipeline)
        try:
            while self._later and self._awaited.is_passed(self._later[0].position, position):
                yield from self._capture(self._later.pop(0), pipeline)
        except SnapshotError as error:
            names = ", ".join(str(one.table) for one in self._later)
            log.warning("%s: not captured until the next start, which tries again: %s", names, error)
            self._later.clear()

    def _capture(self, found: LaterStructure, pipeline: Pipeline) -> Iterator[Output]:
        table, progress = found.table, pipeline.progress
        try:
            yield from written_structure(self._settings, pipeline, table, found.statement, self._clock())
        except SchemaHistoryError as error:
            problem = error.message(literals=self._settings.show_values)
            log.error("the new table %s is not captured, because its structure cannot be parsed: %s", table, problem)  # noqa: TRY400
            return
        self.hidden.discard((table.database, table.table))
        log.info("table %s is captured starting at %s:%d", table, progress.file, progress.end)
        self._waiting.append(table)


def _unread(carried: Mapping[str, Any] | None) -> Sequence[TableId] | None:
    """Return the tables whose rows were not read, as an offset has them; ``None`` if it does not store them."""
    read = ReadTables.from_carried(carried)
    return None if read is None else read.unread


def written_structure(
    settings: PipelineSettings, pipeline: Pipeline, table: TableId, statement: str, now: int
) -> Iterator[Output]:
    """Replace or add a structure in those of the stream.

    Args:
        settings: of the records.
        pipeline: the stream, between two transactions.
        table: the table.
        statement: the text of its SHOW CREATE TABLE.
        now: nanoseconds since the epoch.

    Raises:
        SchemaHistoryError: the statement cannot be parsed.
    """
    tables, at, progress, changes = pipeline.tables, pipeline.offset(), pipeline.progress, []
    if tables.exists(table.database, table.table):
        tables.remove(table)
        drop = f"DROP TABLE IF EXISTS {quoted_table(table)}"
        changes.append(SchemaChange(ChangeKind.DROP, table.database, drop, table, tables=(table,)))
    changes += tables.apply(QueryEvent(statement, table.database, sql_mode=0, position="the server")).changes
    comments = settings.rules.values.include_schema_comments
    for change in changes:
        text = history_record(change, settings.topic_prefix, at.to_map(), now // 1_000_000, comments=comments)
        yield HistoryEntry(text)
    for change in changes if settings.schema_changes else ():
        micros = progress.change_micros()
        source = progress.source(settings, table.database, table.table, micros)
        yield schema_change_message(settings, change, source, at, now_ms=now // 1_000_000, ts_ms=micros // 1000)
