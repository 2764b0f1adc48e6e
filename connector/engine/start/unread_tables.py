"""Edge: finds captured tables whose rows no snapshot has read, because they were added to the filters later."""

from collections.abc import Iterable

import pymysql

from rowtide.connector.check import CapturedTable, Finding, Severity
from rowtide.connector.config import Configuration, Flavor
from rowtide.connector.config.choices import SnapshotMode
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.snapshot import Decision
from rowtide.connector.source.connection import DatabaseUnreachableError
from rowtide.connector.source.server_queries import quoted_table
from rowtide.connector.source.session import Session
from rowtide.schema_history.model import TableId

_SHOWN = 5
_MOST_TABLES = 100
"""More tables are not queried."""


def unread_findings(
    config: Configuration, offset: SourceOffset | None, decision: Decision, tables: Iterable[CapturedTable] | None
) -> list[Finding]:
    """A warning about captured tables that have rows, but no topic, though the snapshot was taken before.

    Nothing records which tables a snapshot has read. A table without a topic has never had a record; if it is not
    empty either, its rows were not read, or were inserted after the stored position.

    Args:
        config: the configuration.
        offset: the stored position.
        decision: what the start does.
        tables: the captured tables; ``None`` if they are not known.
    """
    reads_rows = config.snapshot.mode in (SnapshotMode.INITIAL, SnapshotMode.WHEN_NEEDED)
    if offset is None or decision.rows or not reads_rows or config.transforms:  # a transform can name other topics
        return []
    suspects = [table for table in tables or () if _is_suspect(config, offset, table)]
    names = _with_rows(config, suspects[:_MOST_TABLES])
    if not names:
        return []
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    message = (
        f"{', '.join(names[:_SHOWN])}{more}: no record was ever written for these tables, but they have rows. If they "
        "were added to the filters after the snapshot, the rows that they have now are not read, only their changes "
        "are. To read them without losing the position, first run another connector once, with "
        "snapshot.mode=initial_only and these tables: see 'Add a table' in docs/operations.md"
    )
    return [Finding(Severity.WARNING, "table.include.list", message)]


def _is_suspect(config: Configuration, offset: SourceOffset, table: CapturedTable) -> bool:
    if table.partitions != 0 or not config.snapshot.reads_rows_of(table.database, table.name):
        return False
    # The stream has all rows of a table that was created after the position.
    return table.created_at is None or offset.ts_sec is None or table.created_at <= offset.ts_sec


def _with_rows(config: Configuration, tables: list[CapturedTable]) -> list[str]:
    """The names of those that are not empty; none if the server cannot be queried, which the start itself reports."""
    if not tables:
        return []
    found = []
    try:
        with Session(config.database, mariadb=config.flavor is Flavor.MARIADB) as session:
            for table in tables:
                name = TableId(table.database, table.name)
                if session.query(f"SELECT 1 FROM {quoted_table(name)} LIMIT 1"):
                    found.append(str(name))
    except (pymysql.MySQLError, DatabaseUnreachableError):
        return []
    return found
