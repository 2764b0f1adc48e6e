"""Makes the incremental snapshots of a connector from its configuration."""

from collections.abc import Callable

from rowtide.connector.config import Configuration, Flavor
from rowtide.connector.records.settings import PipelineSettings
from rowtide.connector.snapshot.chunks.table_rows import SnapshotProgress
from rowtide.connector.snapshot.incremental.chunk_reader import ChunkReader, ReaderSettings
from rowtide.connector.snapshot.incremental.snapshots import IncrementalSnapshots
from rowtide.connector.snapshot.incremental.watermarks import SignalRows
from rowtide.connector.source.session import Session
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.model import TableId


def incremental_snapshots(
    config: Configuration,
    settings: PipelineSettings,
    tables: Tables,
    clock: Callable[[], int],
    progress: SnapshotProgress | None,
) -> IncrementalSnapshots:
    """The incremental snapshots of a run.

    Args:
        config: the configuration.
        settings: of the records.
        tables: every table's structure, as the stream has it.
        clock: nanoseconds since the epoch.
        progress: receives the progress.
    """
    incremental, database = config.snapshot.incremental, config.database
    rows = None if incremental.read_only else _signal_rows(config, tables)
    reader_settings = ReaderSettings(incremental.threads, incremental.target_ms / 1000, rows)
    reader = ChunkReader(lambda: Session(database, mariadb=config.flavor is Flavor.MARIADB), reader_settings)
    return IncrementalSnapshots(settings, tables, reader, incremental.chunk_size, clock, progress)


def _signal_rows(config: Configuration, tables: Tables) -> SignalRows | None:
    """Where windows are written: to the first signal table, if there is one."""
    found = sorted(config.capture.tables.always)
    if not found:
        return None
    structure = tables.table(*found[0])
    id_column = structure.columns[0].name if structure is not None else "id"
    return SignalRows(TableId(*found[0]), id_column, config.snapshot.incremental.watermarking)
