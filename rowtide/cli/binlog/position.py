"""``rowtide position``: finds a position in a binlog."""

import contextlib
import datetime as dt
import json
import zoneinfo
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import click

from rowtide.cli.binlog.position_report import PositionReport, report_json, report_text
from rowtide.cli.connectors import config_argument, read_configuration
from rowtide.connector.config import Configuration, Flavor
from rowtide.connector.config.catalogue import connect, connection, history
from rowtide.connector.errors import ConnectorError
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.source.connection import DatabaseUnreachableError
from rowtide.connector.source.connection import connect as connected
from rowtide.connector.source.position.check import check_position
from rowtide.connector.source.search.comparison import compared
from rowtide.connector.source.search.places import FolderFiles, ServerFiles
from rowtide.connector.source.search.positions import (
    BinlogFiles,
    FoundPosition,
    PositionNotFound,
    end_of,
    find_gtid,
    find_gtids,
    find_time,
)
from rowtide.connector.source.search.unread import unread_rows
from rowtide.connector.source.server_queries import binlog_files, current_position
from rowtide.connector.source.session import Session
from rowtide.schema_history.position.binlog_position import parse_gtids

_NEEDLESS = (connection.NAME, connection.TOPIC_PREFIX, connection.SERVER_ID, connect.BOOTSTRAP_SERVERS)
_UNNEEDED = frozenset(entry.name for entry in (*_NEEDLESS, history.TOPIC, history.FILE_NAME))
_SERVER = frozenset(entry.name for entry in (connection.HOSTNAME, connection.USER, connection.PASSWORD))
_NOT_FOUND = 3


@click.command()
@config_argument(required=False)
@click.option("--at", metavar="TIME", help="The first transaction that was committed then or later: ISO 8601.")
@click.option("--time-zone", metavar="ZONE", help="The zone of a TIME without one, such as Europe/Berlin.")
@click.option("--gtid", metavar="GTID", help="The beginning of this transaction.")
@click.option("--gtids", metavar="SET", help="The first transaction that is not in this set.")
@click.option(
    "--from",
    "folder",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Search this mirror or folder of binlog files.  [default: the server of CONFIG]",
)
@click.option("--without-stored", is_flag=True, help="Do not compare with the stored position of the connector.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def position(
    config: tuple[str, ...],
    *,
    at: str | None,
    time_zone: str | None,
    gtid: str | None,
    gtids: str | None,
    folder: Path | None,
    without_stored: bool,
    as_json: bool,
) -> None:
    """Find a position in the binlog: for a time, for a GTID, for a GTID set, or without them the end.

    A position is always the beginning of a transaction, or the end. Prints the file, the position in it and the GTIDs
    executed before it, and the transactions that a start there would repeat or miss, compared with the position that
    the connector of CONFIG has stored. The last line is an offset for rowtide replay --start.

    TIME needs a zone: 2026-11-22T10:00:00Z, 2026-11-22T11:00:00+01:00, or --time-zone. Times are compared with those at
    which the server committed, so they are wrong if its clock was set back. Times are printed in UTC.

    The exit code is 0 if the position was found, 1 after an error, 2 for wrong options, and 3 if the binlog does not
    have it: it was purged, or never there.

    \b
    Examples:
      rowtide position shop.properties --at 2026-11-22T10:00:00Z
      rowtide position --from /archive/shop --gtid 3e11fa47-71ca-11e1-9e33-c80aa9429562:23
    """  # noqa: D301 - Click's mark of a paragraph
    if sum(given is not None for given in (at, gtid, gtids)) > 1:
        raise click.UsageError("--at, --gtid and --gtids are mutually exclusive")
    if not config and folder is None:
        raise click.UsageError("a binlog is needed: CONFIG... or --from DIR")
    micros = None if at is None else _micros(at, time_zone)
    configuration = read_configuration(config, _UNNEEDED | (_SERVER if folder else frozenset())) if config else None
    try:
        files, sizes = _files(configuration, folder)
        found = _found(files, configuration, folder, micros, gtid, gtids)
        report = _report(found, files, sizes, configuration, folder, stored=not without_stored)
    except PositionNotFound as error:
        click.echo(json.dumps({"found": False, "error": str(error)}) if as_json else f"Error: {error}", err=not as_json)
        raise SystemExit(_NOT_FOUND) from None
    except ConnectorError as error:
        raise click.ClickException(str(error)) from None
    click.echo(report_json(report) if as_json else report_text(report))


def _micros(at: str, zone: str | None) -> int:
    """Return a time in µs since the epoch."""
    try:
        moment = dt.datetime.fromisoformat(at)
    except ValueError:
        raise click.UsageError(f"--at: {at!r} is not a time such as 2026-11-22T10:00:00Z") from None
    if moment.tzinfo is None:
        if zone is None:
            raise click.UsageError(
                f"--at: {at!r} has no time zone: append Z or an offset such as +01:00, or --time-zone"
            )
        try:
            moment = moment.replace(tzinfo=zoneinfo.ZoneInfo(zone))
        except (zoneinfo.ZoneInfoNotFoundError, ValueError):
            raise click.UsageError(f"--time-zone: there is no time zone {zone!r}") from None
    return int(moment.timestamp()) * 1_000_000 + moment.microsecond


def _files(configuration: Configuration | None, folder: Path | None) -> tuple[BinlogFiles, Mapping[str, int]]:
    """Return the files to search, and their sizes."""
    if folder is not None:
        found = FolderFiles(folder)
        return found, found.sizes()
    assert configuration is not None
    with contextlib.closing(connected(configuration.database)) as client:
        listed = binlog_files(client)
    return ServerFiles(configuration.database, listed, mariadb=configuration.flavor is Flavor.MARIADB), dict(listed)


def _found(
    files: BinlogFiles,
    configuration: Configuration | None,
    folder: Path | None,
    micros: int | None,
    gtid: str | None,
    gtids: str | None,
) -> FoundPosition:
    try:
        if micros is not None:
            return find_time(files, micros)
        if gtid is not None:
            return find_gtid(files, gtid)
        if gtids is not None:
            return find_gtids(files, parse_gtids(gtids))
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    if folder is not None:
        return end_of(files)
    assert configuration is not None
    with Session(configuration.database, mariadb=configuration.flavor is Flavor.MARIADB) as session:
        now = current_position(session)
    return FoundPosition(now.file, now.pos, now.gtids)


def _report(
    found: FoundPosition,
    files: BinlogFiles,
    sizes: Mapping[str, int],
    configuration: Configuration | None,
    folder: Path | None,
    *,
    stored: bool,
) -> PositionReport:
    if configuration is None:
        return PositionReport(found)
    report = PositionReport(found, server=_server(found, configuration) if folder is not None else None)
    if not stored or not configuration.name or not configuration.topics.prefix:
        return report
    offset, problem = _stored(configuration)
    if offset is None:
        return PositionReport(found, report.server, stored_problem=problem)
    capture = configuration.capture
    unread = partial(
        unread_rows,
        files,
        offset,
        capture.tables.captures,
        capture.skipped_operations,
        annotations=configuration.values.include_query,
    )
    difference = compared(found, offset, configuration.flavor.value, sizes, unread)
    return PositionReport(found, report.server, offset, difference=difference)


def _stored(configuration: Configuration) -> tuple[SourceOffset | None, str]:
    """Return the stored position, or the reason why there is none."""
    from rowtide.connector.delivery.errors import OffsetStoreError  # noqa: PLC0415 - needs the Kafka client
    from rowtide.connector.engine.wiring import offset_store  # noqa: PLC0415

    try:
        offset = offset_store(configuration).load()
    except OffsetStoreError as error:
        return None, str(error)
    return offset, "no position is stored yet"


def _server(found: FoundPosition, configuration: Configuration) -> str | None:
    """Return whether the server still has a position that was found elsewhere; ``None`` if no server is configured."""
    if not configuration.database.hostname:
        return None
    mariadb = configuration.flavor is Flavor.MARIADB
    try:
        with contextlib.closing(connected(configuration.database)) as client:
            check = check_position(client, SourceOffset(found.file, found.pos, found.gtids), mariadb=mariadb)
    except DatabaseUnreachableError as error:
        return f"unknown: {error}"
    return "has the position" if check.available else f"does not have the position: {check.reason}"
