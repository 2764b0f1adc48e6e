"""Finds the new tables of a start and of a check, with queries to the server where the position does not suffice."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pymysql

from rowtide.connector.check import CheckedTable, Finding
from rowtide.connector.check.findings import from_problem
from rowtide.connector.config import Configuration
from rowtide.connector.engine.start.later_structures import LaterStructure, later_structures
from rowtide.connector.engine.start.new_tables import new_tables_action, plan_new_tables, unread_tables
from rowtide.connector.errors import SnapshotError
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.records.read_tables import ReadTables
from rowtide.connector.snapshot import Decision
from rowtide.connector.snapshot.incremental.state import SnapshotState
from rowtide.connector.source import server_queries
from rowtide.connector.source.connection import DatabaseUnreachableError
from rowtide.connector.source.session import Session
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.errors import SchemaHistoryError
from rowtide.schema_history.model import TableId
from rowtide.schema_history.server.query_event import QueryEvent
from rowtide.topics.filters import CapturedNames

log = logging.getLogger(__name__)

_TABLES = (
    "SELECT TABLE_SCHEMA, TABLE_NAME, UNIX_TIMESTAMP(CREATE_TIME) FROM information_schema.TABLES "
    "WHERE TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED')"
)
_MOST_SHOWN = 100
"""A check looks up the keys of at most this many tables."""


@dataclass(frozen=True, slots=True)
class StartTables:
    """The decisions of a start about new tables.

    Attributes:
        start: the start position, with the lists of tables to store from now on.
        wanted: the tables that an incremental snapshot has to read.
        later: tables that are captured, and then read, once the stream reaches a position at which their structure
            is known.
        hidden: the tables that are not captured yet, as (database, table).
        findings: for the log.
    """

    start: SourceOffset
    wanted: Sequence[TableId] = ()
    later: Sequence[LaterStructure] = ()
    hidden: frozenset[tuple[str, str]] = frozenset()
    findings: Sequence[Finding] = ()


def new_tables_at_start(
    config: Configuration, start: SourceOffset, tables: Tables, captured: Iterable[CheckedTable] | None
) -> StartTables:
    """Find the new tables of a start.

    Args:
        config: the configuration.
        start: the stored position.
        tables: the structures at that position.
        captured: the captured tables that the server has; ``None`` if they were not looked up. Without them, nothing is
            decided if the position does not say which tables were read.

    Raises:
        DatabaseUnreachableError, StreamBroken, SnapshotError: the server cannot be queried.
    """
    lists = config.capture.tables
    start = replace(start, carried=_without_others(start, CapturedNames(lists, tables.exists)))
    read = ReadTables.from_carried(start.carried)
    if read is not None:
        unread = unread_tables(lists, read, tables.names(), tables.exists) + _unknown(config, start, read, tables)
    elif captured is not None:
        unread = _never_written(config, [table for table in captured if _existed(config, start, tables, table)])
    else:
        return StartTables(start)
    reading = {table.table for table in SnapshotState.from_carried(start.carried).tables}
    plan = plan_new_tables(config, unread, lambda table: tables.table(table.database, table.table), reading)
    start = replace(start, carried=plan.read.carried(start.carried))
    wanted = [table for table in plan.wanted if tables.exists(table.database, table.table)]
    hidden = [table for table in plan.wanted if not tables.exists(table.database, table.table)]
    names = frozenset((table.database, table.table) for table in hidden)
    return StartTables(start, wanted, later_structures(config, hidden), names, plan.findings)


def _unknown(config: Configuration, start: SourceOffset, read: ReadTables, tables: Tables) -> list[TableId]:
    """Return the new tables that may have existed at the stored position, but are not in the schema history."""
    lists = config.capture.tables
    if read.lists == lists and all(tables.exists(table.database, table.table) for table in read.unread):
        return []
    with Session(config.database, mariadb=config.mariadb) as session:
        found = {TableId(str(row[0]), str(row[1])): row[2] for row in session.query(_TABLES)}
    names = {*found, *tables.names()}
    return [
        table
        for table in unread_tables(lists, read, found, lambda *name: TableId(*name) in names)
        if table in found
        and not tables.exists(table.database, table.table)
        and not (_is_whole(config) and _created_later(found[table], start))
    ]


def _existed(config: Configuration, start: SourceOffset, tables: Tables, table: CheckedTable) -> bool:
    """Return whether a table may have existed at the stored position."""
    known = tables.exists(table.database, table.name)
    return known or not (_is_whole(config) and _created_later(table.created_at, start))


def _is_whole(config: Configuration) -> bool:
    """Return whether the schema history has all statements, so that a table that it lacks was created later."""
    return not (config.history.store_only_captured_tables or config.history.store_only_captured_databases)


def _created_later(created_at: object, start: SourceOffset) -> bool:
    """Return whether a table was created after a position, in seconds since the epoch.

    The stream has all of its rows.
    """
    return created_at is not None and start.ts_sec is not None and int(str(created_at)) > start.ts_sec


def new_table_findings(
    config: Configuration, offset: SourceOffset | None, decision: Decision, captured: Iterable[CheckedTable] | None
) -> list[Finding]:
    """Return findings about what a start would do with new tables, as far as possible without the schema history.

    Args:
        config: the configuration.
        offset: the stored position.
        decision: what the start does.
        captured: the captured tables that the server has; ``None`` if they are not known.
    """
    if offset is None or decision.position is None or not decision.stream or captured is None:
        return []
    read = ReadTables.from_carried(offset.carried)
    # The stream has all rows of a table that was created after the position.
    before = [table for table in captured if not _created_later(table.created_at, offset)]
    names = {TableId(table.database, table.name) for table in before}
    reading = {table.table for table in SnapshotState.from_carried(offset.carried).tables}
    try:
        if read is None:
            unread = _never_written(config, before)
        else:
            unread = unread_tables(config.capture.tables, read, names, lambda *name: TableId(*name) in names)
        found = _current(config, unread[:_MOST_SHOWN])
    except DatabaseUnreachableError as error:
        return [from_problem(error.problem, retriable=error.retriable)]
    plan = plan_new_tables(config, unread, lambda table: found.table(table.database, table.table), reading)
    return list(plan.findings)


def _without_others(start: SourceOffset, names: CapturedNames) -> Mapping[str, Any] | None:
    """Return the fields of the position, without the incremental snapshot of tables that are no longer captured."""
    state = SnapshotState.from_carried(start.carried)
    left = tuple(
        table
        for table in state.tables
        if table.table is None or names.captures(table.table.database, table.table.table)
    )
    if len(left) == len(state.tables):
        return start.carried
    gone = ", ".join(table.name for table in state.tables if table not in left)
    log.info("the incremental snapshot of %s does not continue: it is no longer captured", gone)
    return replace(state, tables=left, paused=state.paused and bool(left)).carried(start.carried)


def _never_written(config: Configuration, captured: Iterable[CheckedTable]) -> list[TableId]:
    """Return the captured tables that have rows, but no topic.

    A position of Debezium or of an earlier version does not say which tables were read. A table without a topic has
    never had a record. If it is not empty either, its rows were not read.
    """
    if new_tables_action(config.snapshot) is None or config.transforms:  # a transform can name other topics
        return []
    suspects = [TableId(table.database, table.name) for table in captured if table.partitions == 0]
    if not suspects:
        return []
    with Session(config.database, mariadb=config.mariadb) as session:
        return [table for table in suspects if _has_rows(session, table)]


def _has_rows(session: Session, table: TableId) -> bool:
    """Return whether a table is not empty.

    A table that cannot be read counts as not empty; the snapshot reports the reason.
    """
    try:
        return bool(session.query(f"SELECT 1 FROM {server_queries.quoted_table(table)} LIMIT 1"))
    except pymysql.MySQLError as error:
        return error.args[0] not in server_queries.GONE


def _current(config: Configuration, names: Sequence[TableId]) -> Tables:
    """Return the current structures of tables, without those that cannot be looked up."""
    with Session(config.database, mariadb=config.mariadb) as session:
        found = Tables(server_queries.server(session))
        for table in names:
            try:
                text = server_queries.create_statement(session, table)
                found.apply(QueryEvent(text, table.database, sql_mode=0))
            except (SnapshotError, SchemaHistoryError) as error:
                log.debug("the structure of %s cannot be looked up: %s", table, error)
    return found
