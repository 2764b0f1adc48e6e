"""Reads the records of a prepared XA transaction from the binlog again, through its own pipeline."""

import logging
from collections.abc import Callable, Iterable, Iterator

from rowtide.connector.errors import ProtocolError
from rowtide.connector.pipeline.pipeline import Clock, Pipeline
from rowtide.connector.pipeline.xa_transactions import ReadXa
from rowtide.connector.protocol.event_groups import TemporaryFile
from rowtide.connector.records.batch import Batch
from rowtide.connector.records.offset import PreparedXa, SourceOffset
from rowtide.connector.records.settings import PipelineSettings
from rowtide.schema_history.catalog.tables import Tables

log = logging.getLogger(__name__)

XaPackets = Callable[[PreparedXa], Iterable[bytes]]
"""Returns the events from the start of a transaction, the FORMAT_DESCRIPTION first."""


def xa_reader(
    settings: PipelineSettings,
    tables: Tables,
    clock: Clock,
    packets: XaPackets,
    temporary_file: TemporaryFile | None = None,
) -> ReadXa:
    """Return a function that reads a transaction again when it is committed.

    Args:
        settings: of the pipeline whose transactions are read.
        tables: the structures of that pipeline.
        clock: for the processing times.
        packets: reads the binlog alongside the stream.
        temporary_file: see :class:`Pipeline`.
    """

    def read(xa: PreparedXa) -> Iterator[Batch]:
        log.info("XA transaction %s is committed: its rows are read from %s:%d", xa.xid, xa.file, xa.pos)
        done = (xa.before.event, xa.before.row) if xa.before is not None else (0, 0)
        pipeline = Pipeline(
            settings, tables.copy(), SourceOffset(xa.file, xa.pos, None, *done), clock, temporary_file=temporary_file
        )
        opened: str | None = None
        for packet in packets(xa):
            for _ in pipeline.receive(packet):
                yield from pipeline.xa.take()  # before the next step, so that one batch is in memory at a time
                if opened == xa.xid and pipeline.xa.open_xid is None:
                    return
                opened = pipeline.xa.open_xid
                if opened not in (None, xa.xid) or pipeline.progress.taken_transactions():
                    raise _absent(xa)
        raise _absent(xa)

    return read


def _absent(xa: PreparedXa) -> ProtocolError:
    return ProtocolError(
        f"the binlog has a transaction other than XA transaction {xa.xid} at {xa.file}:{xa.pos}: the server is not "
        "the one that prepared it, or its binlog was reset. Take a new snapshot of its tables, or set "
        "event.processing.failure.handling.mode=warn to continue without its rows"
    )
