"""Requests the incremental snapshot of new tables from the reader's thread, some tables at a time."""

import logging
from collections.abc import Callable, Iterable, Sequence

from rowtide.connector.pipeline.pipeline import Pipeline
from rowtide.connector.records.batch import Output
from rowtide.connector.snapshot.incremental.snapshots import IncrementalSnapshots
from rowtide.connector.snapshot.incremental.state import TableToRead
from rowtide.schema_history.model import TableId

log = logging.getLogger(__name__)

_AT_ONCE = 100
"""The names of the tables of a snapshot are stored with each position."""


class NewTableRequests:
    """Requests the snapshot at the first boundary between two transactions.

    The position behind that boundary is stored, so that the lists of captured tables are stored soon after a start.

    Args:
        wanted: the tables to read.
        snapshots: reads them.
        new_id: makes the id of a request, which its notifications have.
    """

    def __init__(self, wanted: Sequence[TableId], snapshots: IncrementalSnapshots, new_id: Callable[[], str]) -> None:
        self._waiting = list(wanted)
        self._snapshots = snapshots
        self._new_id = new_id
        self._begun = False

    @property
    def due(self) -> bool:
        """Whether :meth:`run` has not run yet, or more tables can be requested."""
        return not self._begun or (bool(self._waiting) and not self._snapshots.tables)

    def run(self, pipeline: Pipeline) -> Iterable[Output]:
        """Request the next tables."""
        self._begun = True
        tables, self._waiting = self._waiting[:_AT_ONCE], self._waiting[_AT_ONCE:]
        if not tables:
            return ()
        request = self._new_id()
        wanted = [TableToRead(str(table), table, request) for table in tables]
        return self._snapshots.add(wanted, request, pipeline.offset())
