"""Decides where a start resumes, and whether it takes a snapshot, by the stored position and the server."""

import logging
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace

import pymysql

from rowtide.connector.check import CheckedTable, check_database
from rowtide.connector.check.findings import Finding, Severity, from_problem
from rowtide.connector.config import Configuration, Flavor
from rowtide.connector.config.catalogue.capture import TABLE_INCLUDE
from rowtide.connector.config.catalogue.topics import IGNORE_POSITION
from rowtide.connector.config.choices import BoolHandling
from rowtide.connector.delivery.errors import OffsetStoreError
from rowtide.connector.delivery.kafka.offset_store import KafkaOffsetStore
from rowtide.connector.delivery.kafka.second_writer import still_writing
from rowtide.connector.engine.start.demanded_position import WrongDemand, resume_position
from rowtide.connector.engine.start.included_tables import IncludedTables, with_included_tables
from rowtide.connector.engine.start.record_values import bool_findings, changed_values
from rowtide.connector.engine.start.table_lookup import new_table_findings
from rowtide.connector.engine.wiring import history_source, history_store, offset_store
from rowtide.connector.errors import OffsetError, SnapshotError
from rowtide.connector.records.offset import SourceOffset, describe
from rowtide.connector.snapshot import Decision, decide
from rowtide.connector.source.connection import DatabaseUnreachableError
from rowtide.connector.source.mirror.streams import check_with_mirror
from rowtide.connector.source.position.check import check_position
from rowtide.connector.source.position.rules import PositionCheck
from rowtide.connector.source.server_queries import server_identity
from rowtide.connector.source.session import Session
from rowtide.schema_history.errors import SchemaHistoryError
from rowtide.schema_history.store.history_store import SchemaHistoryStore

log = logging.getLogger(__name__)


def decide_start(config: Configuration, offset: SourceOffset | None, history: SchemaHistoryStore) -> Decision:
    """Return the decision of a start with this stored position and this history.

    Raises:
        OffsetError: the GTIDs of the stored position do not match the kind of server.
        SnapshotError, PositionPurged: the configuration does not allow to resume from them.
        HistoryStoreError: the history cannot be read.
    """
    if offset is not None:
        _check_gtids(offset, config.flavor)
    position: PositionCheck | None = None
    if offset is not None and config.streaming.check_position:
        with Session(config.database, mariadb=config.mariadb) as session:
            sources, mariadb = config.capture.gtid_sources, session.mariadb
            semi_sync = config.streaming.semi_sync is not None
            position = check_position(session.client, offset, sources, mariadb=mariadb, semi_sync=semi_sync)
            if offset.server is None:
                offset = replace(offset, server=server_identity(session.client, mariadb=mariadb))
        position = check_with_mirror(config, position, offset)
    snapshot = config.snapshot
    decision = decide(
        snapshot.mode,
        offset,
        history_exists=history.exists(),
        position=position,
        flags=snapshot.flags,
        resumable=snapshot.resumable,
    )
    if position is not None and position.note and decision.position is not None and decision.stream:
        return replace(decision, notes=(*decision.notes, position.note))
    return decision


def _check_gtids(offset: SourceOffset, flavor: Flavor) -> None:
    try:
        offset.gtid_set(flavor.value)
    except ValueError as error:
        raise OffsetError(
            f"the stored position {offset.file}:{offset.pos} has no GTIDs of {flavor.value}: {error}. "
            "Use the connector's own offset (name, topic.prefix, offset.storage.topic), or delete it and take a new "
            "snapshot"
        ) from None


def as_signalled(config: Configuration) -> Configuration | None:
    """Return the configuration with the captured tables that a signal has set, as at a start.

    Returns:
        ``None`` if no signal has set any, or the stored position cannot be read, which :func:`start_findings` reports.
    """
    try:
        stored = offset_store(config).load()
    except OffsetStoreError:
        return None
    found = None if stored is None else IncludedTables.from_carried(stored.carried)
    return found.applied(config) if found is not None and found.applies_to(config) else None


def start_findings(
    config: Configuration, tables: Iterable[CheckedTable] | None = None, differences: Sequence[str] = ()
) -> list[Finding]:
    """Return findings about what a start would do, or the reason why it would fail.

    If Kafka Connect stored the position less than ``offset.flush.interval.ms`` ago, this waits for the next one.

    Args:
        config: the configuration.
        tables: the captured tables, to find new ones; ``None`` if they are not known.
        differences: the values that exact values preserve, see ``Report.exact_differences``.
    """
    try:
        store = offset_store(config)
        running = second_writer_findings(config, store) if isinstance(store, KafkaOffsetStore) else []
        stored = store.load()
        offset, note = (None, "") if stored is None else resume_position(config, stored)
        decision = decide_start(config, offset, history_store(config))
    except DatabaseUnreachableError as error:
        return [from_problem(error.problem, retriable=error.retriable)]
    except pymysql.MySQLError as error:  # a privilege is missing, which is another finding
        return [Finding.error("database.hostname", f"the server refuses a query: {error.args[-1]}")]
    except OffsetStoreError as error:
        return [Finding.error("offset.storage.topic", str(error))]
    except SchemaHistoryError as error:
        return [Finding.error("schema.history.internal", str(error))]
    except WrongDemand as error:
        return [Finding.error(IGNORE_POSITION.name, str(error))]
    except (OffsetError, SnapshotError) as error:
        return [Finding.error("snapshot.mode", str(error))]
    where = "no position is stored yet" if stored is None else f"the stored position is {describe(stored)}"
    does = ["takes a snapshot"] if decision.rows else ["reads the tables' structures"] if decision.structure else []
    does += ["streams"] if decision.stream else []
    what = f"{where}; a start {' and '.join(does) or 'does nothing'}"
    config, included, offset = with_included_tables(config, None, offset)
    more = new_table_findings(config, offset, decision, tables)
    more += changed_values(config, offset, differences)
    if offset is not None and config.values.bool_handling is BoolHandling.BOOLEAN:
        more += _recorded_bools(config)
    if included is not None:
        more.append(_included_finding(included))
    if note:
        more.append(Finding.warning(IGNORE_POSITION.name, note))
    return [*running, *more, Finding.remark("snapshot.mode", "; ".join((what, *decision.notes)))]


def _recorded_bools(config: Configuration) -> list[Finding]:
    """Return the findings of a start about BOOL columns; none if it cannot read the schema history."""
    try:
        with history_source(config) as source:
            return bool_findings(config, source.latest())
    except SchemaHistoryError:
        return []


def included_findings(config: Configuration, included: IncludedTables) -> list[Finding]:
    """Return the findings that a run logs about the captured tables that a signal has set.

    The check before it used those of the files.

    Args:
        config: the configuration with these tables.
        included: the list of the signal.
    """
    found, _ = check_database(config)
    return [_included_finding(included), *(one for one in found if one.subject == TABLE_INCLUDE.name)]


def _included_finding(included: IncludedTables) -> Finding:
    return Finding.warning(TABLE_INCLUDE.name, included.note)


def second_writer_findings(config: Configuration, store: KafkaOffsetStore) -> list[Finding]:
    """Return the findings about programs that store offsets for this connector now.

    Raises:
        OffsetStoreError: the offsets topic cannot be read.
    """
    interval = config.delivery.offset_flush_interval_ms / 1000
    if still_writing(store, interval, time.sleep) is not None:
        message = (
            f"another program, such as Kafka Connect with Debezium, still stores offsets for {config.name} in topic "
            f"{store.topic}: stop the connector there before rowtide starts"
        )
        return [Finding.error("name", message)]
    last = store.last_write()
    age = None if last is None else max(0.0, time.time() - last.at_ms / 1000)
    if last is not None and last.writer is not None and age is not None and age < interval and last.writer.may_run:
        message = f"{last.writer} stored a position {age:.0f} s ago; if it still runs, it stops when another one starts"
        return [Finding.remark("name", message)]
    return []


def log_findings(findings: Iterable[Finding]) -> None:
    """Log the findings of a check."""
    for finding in findings:
        log.log(logging.INFO if finding.severity is Severity.REMARK else logging.WARNING, "%s", finding)
