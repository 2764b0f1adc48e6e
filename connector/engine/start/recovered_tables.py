"""Recovers the tables' structures at a stored position from the schema history."""

import logging
import time
from dataclasses import replace

from rowtide.connector.config import Configuration
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.source.server_queries import server as server_of
from rowtide.connector.source.session import Session
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.compaction.compacting_history import save_summary
from rowtide.schema_history.compaction.history_reader import StoredHistory, read_history
from rowtide.schema_history.position.binlog_position import BinlogPosition

log = logging.getLogger(__name__)


def recovered_tables(config: Configuration, history: StoredHistory, offset: SourceOffset) -> tuple[Tables, int]:
    """Return the structures at a position, and the number of records after the last summary, which may be a new one.

    Raises:
        SchemaHistoryError: the history cannot be read, or is not this connector's.
        DatabaseUnreachableError: the server cannot be reached; its version determines how statements are parsed.
    """
    with Session(config.database, mariadb=config.mariadb) as session:
        server = server_of(session)
    begin = time.monotonic()
    counted = config.capture.counted_sources
    position = BinlogPosition.from_map(replace(offset, prepared=()).to_map())
    reading = read_history(history, server, position, None if counted is None else counted.selects)
    tables = reading.tables(prefer_ddl=config.history.prefer_ddl)
    log.info(
        "recovered the schema history in %.1f s; tables: %d, records: %d, of which in a summary: %d",
        time.monotonic() - begin,
        len(tables),
        reading.records,
        reading.records - reading.unsummarised,
    )
    return tables, save_summary(history, reading, config.history.compact_interval)
