"""Makes the blocking snapshots of a connector from its configuration."""

from collections.abc import Callable

from rowtide.connector.config import Configuration
from rowtide.connector.records.settings import PipelineSettings
from rowtide.connector.snapshot.blocking.snapshots import BlockingSnapshots, SignalsThatCame
from rowtide.connector.snapshot.blocking.table_reader import TableReader
from rowtide.connector.snapshot.status import SnapshotProgress
from rowtide.schema_history.catalog.tables import Tables


def blocking_snapshots(
    config: Configuration,
    settings: PipelineSettings,
    tables: Tables,
    clock: Callable[[], int],
    progress: SnapshotProgress | None,
    stopped: Callable[[], bool],
    signals: SignalsThatCame,
) -> BlockingSnapshots:
    """Return the blocking snapshots of a run.

    Args:
        config: the configuration.
        settings: of the records.
        tables: every table's structure, as the stream has it.
        clock: nanoseconds since the epoch.
        progress: receives the progress.
        stopped: returns whether the connector stops.
        signals: carries out the signals that arrive during a snapshot.
    """
    semi_sync = config.streaming.semi_sync is not None
    reader = TableReader(config.database, settings, config.snapshot, tables, clock, progress, semi_sync=semi_sync)
    return BlockingSnapshots(settings, reader, clock, stopped, signals)
