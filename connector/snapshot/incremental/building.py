"""Makes the incremental snapshots of a connector from its configuration."""

from collections.abc import Callable
from dataclasses import replace

from rowtide.connector.config import Configuration
from rowtide.connector.config.choices import Acknowledge
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.records.settings import PipelineSettings
from rowtide.connector.snapshot.incremental.reading.chunk_reader import ChunkReader, ReaderSettings
from rowtide.connector.snapshot.incremental.reading.watermarks import SignalRows
from rowtide.connector.snapshot.incremental.snapshots import IncrementalSnapshots
from rowtide.connector.snapshot.incremental.state import SnapshotState
from rowtide.connector.snapshot.status import SnapshotProgress
from rowtide.connector.source.session import Session
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.model import TableId


def incremental_snapshots(
    config: Configuration,
    settings: PipelineSettings,
    tables: Tables,
    start: SourceOffset,
    clock: Callable[[], int],
    progress: SnapshotProgress | None,
) -> IncrementalSnapshots:
    """Return the incremental snapshots of a run. A continued initial snapshot has as many connections as before.

    Args:
        config: the configuration.
        settings: of the records.
        tables: every table's structure, as the stream has it.
        start: the position at which the stream begins.
        clock: nanoseconds since the epoch.
        progress: receives the progress.
    """
    database, mariadb = config.database, config.mariadb
    continues = SnapshotState.from_carried(start.carried).unfinished
    reader = ChunkReader(
        lambda: Session(database, mariadb=mariadb), reader_settings(config, tables, continues=continues)
    )
    return IncrementalSnapshots(settings, tables, reader, config.snapshot.incremental.chunk_size, clock, progress)


def reader_settings(config: Configuration, tables: Tables, *, continues: bool) -> ReaderSettings:
    """Return the settings of the chunk reader.

    Args:
        config: the configuration.
        tables: every table's structure.
        continues: whether an initial snapshot continues.
    """
    incremental = config.snapshot.incremental
    rows = None if incremental.read_only else _signal_rows(config, tables)
    threads = max(incremental.threads, config.snapshot.threads) if continues else incremental.threads
    settings = ReaderSettings(threads, incremental.target_ms / 1000, rows, incremental.chunk_size)
    if config.streaming.semi_sync is Acknowledge.DELIVERED:
        # A transaction is visible once it is acknowledged, and the stream acknowledges none while it waits.
        return replace(settings, hold_s=0)
    return settings


def _signal_rows(config: Configuration, tables: Tables) -> SignalRows | None:
    """Return the writer of windows, which uses the first signal table, if there is one."""
    found = sorted(config.capture.tables.always)
    if not found:
        return None
    structure = tables.table(*found[0])
    id_column = structure.columns[0].name if structure is not None else "id"
    return SignalRows(TableId(*found[0]), id_column, config.snapshot.incremental.watermarking)
