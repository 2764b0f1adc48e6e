"""The records of an XA transaction that was prepared before the stream began."""

import logging
from collections.abc import Callable, Iterable

from rowtide.connector.errors import ProtocolError
from rowtide.connector.pipeline.pipeline import Clock, Pipeline
from rowtide.connector.pipeline.xa import Reread
from rowtide.connector.records.batch import Batch
from rowtide.connector.records.offset import PreparedXa, SourceOffset
from rowtide.connector.records.settings import PipelineSettings
from rowtide.schema_history.catalog.tables import Tables

log = logging.getLogger(__name__)

Packets = Callable[[PreparedXa], Iterable[bytes]]
"""The events from the beginning of a transaction on."""


def rereader(settings: PipelineSettings, tables: Tables, clock: Clock, packets: Packets) -> Reread:
    """What reads such transactions when they are committed.

    Args:
        settings: of the pipeline that asks.
        tables: its structures, as they are when it asks.
        clock: for the processing times.
        packets: reads the binlog beside the stream.
    """

    def records(xa: PreparedXa) -> list[Batch]:
        log.info("XA transaction %s is committed: its rows are read from %s:%d", xa.xid, xa.file, xa.pos)
        done = (xa.before.event, xa.before.row) if xa.before is not None else (0, 0)
        pipeline = Pipeline(settings, tables.copy(), SourceOffset(xa.file, xa.pos, None, *done), clock)
        for packet in packets(xa):
            pipeline.receive(packet)
            found = pipeline.xa.records(xa.xid)
            if found is not None:
                return found
            if pipeline.progress.taken_transactions():
                break
        raise ProtocolError(
            f"the binlog has another transaction than XA transaction {xa.xid} at {xa.file}:{xa.pos}: the server is not "
            "the one that prepared it, or its binlog was reset. Take a new snapshot of its tables, or set "
            "event.processing.failure.handling.mode=warn to continue without its rows"
        )

    return records
