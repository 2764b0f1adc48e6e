"""Reports the captured tables and their topics to OpenLineage, again whenever a statement changes their structure."""

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence

from rowtide.connector.errors import SchemaError
from rowtide.connector.pipeline.pipeline import Pipeline
from rowtide.connector.records.batch import Output
from rowtide.connector.records.codecs.builder import table_schema
from rowtide.connector.records.settings import PipelineSettings
from rowtide.connector.telemetry import Lineage
from rowtide.envelope.table import TableSchema
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.model import Table, TableId
from rowtide.topics.filters import CapturedNames

_TOPICS_S = 10.0
"""The interval of the search for new topics if only the transforms determine them."""


class ReportedTables:
    """Work between two transactions that reports tables; see ``stream_pipelines.BoundaryWork``.

    Without transforms, each table has a topic with a known schema. With transforms, the topics are those that records
    were sent to, without a schema.

    Args:
        lineage: receives them.
        settings: which tables are captured, and how their records are formed.
        tables: the tables at the position of the stream.
        sent: returns the topics that records were sent to; ``None`` if records do not go to Kafka.
        clock: returns seconds of a monotonic clock.
    """

    def __init__(
        self,
        lineage: Lineage,
        settings: PipelineSettings,
        tables: Tables,
        sent: Callable[[], Sequence[str]] | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._lineage = lineage
        self._settings = settings
        self._tables = tables
        self._sent = sent
        self._clock = clock
        self._transformed = settings.transforms is not None and bool(settings.transforms.chain.steps)
        self._changes = -1
        self._reported: dict[TableId, Table] = {}
        self._look_at = clock() + _TOPICS_S

    @property
    def due(self) -> bool:
        """Whether a table has changed, or it is time to search for new topics."""
        return self._changes != self._tables.changes or (self._transformed and self._clock() >= self._look_at)

    def run(self, _pipeline: Pipeline) -> Iterator[Output]:
        """Report new structures and topics; there are no outputs."""
        self.report()
        return iter(())

    def report(self) -> None:
        """Report new structures and topics."""
        if self._changes != self._tables.changes:
            self._changes = self._tables.changes
            self._lineage.tables(self._changed(), topics=self._sent is not None and not self._transformed)
        if self._transformed and self._sent is not None:
            self._look_at = self._clock() + _TOPICS_S
            self._lineage.topics(self._sent())

    def _changed(self) -> Iterator[TableSchema]:
        """Yield the captured tables whose structure has changed since the last report: a schema takes time to make."""
        settings, names = self._settings, CapturedNames(self._settings.tables, self._tables.exists)
        for found in self._tables.names():
            database, name = found.database, found.table
            table = self._tables.table(database, name) if names.captures(database, name) else None
            if table is None or self._reported.get(found) is table:
                continue
            self._reported[found] = table
            topic, augment = settings.naming.data_change(database, name), settings.naming.key_augment(database, name)
            with contextlib.suppress(SchemaError):  # its rows are a separate error
                yield table_schema(table, topic, settings.rules, "stream", _unreported, augment)


def _unreported(*_unknown: object) -> None:
    """Drop a warning: types that have no schema are reported with the rows."""
