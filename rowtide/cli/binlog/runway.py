"""``rowtide runway``: how long the server keeps the binlog that a connector needs."""

import json
import time

import click
import pymysql

from rowtide.cli.connectors import config_argument, read_configuration
from rowtide.connector.config import Configuration, Flavor
from rowtide.connector.config.catalogue import connect, connection, history
from rowtide.connector.errors import ConnectorError
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.source.binlog_runway import RetentionUnknown, Runway, RunwayQuery
from rowtide.connector.source.search.positions import utc
from rowtide.connector.source.session import Session
from rowtide.connector.worker.status import runway_fields

_NEEDLESS = (connection.SERVER_ID, connect.BOOTSTRAP_SERVERS, history.TOPIC, history.FILE_NAME)
UNNEEDED = frozenset(entry.name for entry in _NEEDLESS)
"""Required properties of a connector on which its runway does not depend."""
_SHORT = 3
_FORESEEN_S = 1000 * 365 * 86_400
"""The date may be too far away if the server writes little: a year of more than four digits is not a date."""


@click.command()
@config_argument()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def runway(config: tuple[str, ...], *, as_json: bool) -> None:
    """Show how long the server keeps the binlog file that the stored position needs.

    Without that file, the connector of CONFIG needs a new snapshot or a mirror. The server deletes it at the earliest
    when its last event is as old as binlog_expire_logs_seconds (Amazon RDS: binlog retention hours), or when all files
    together are larger than max_binlog_total_size, at the rate at which the server has written since the file began.

    The command also works while the connector is stopped. A running connector shows the same in /health and /metrics.

    The exit code is 0, 1 after an error or if the time is not known, and 3 if the time is short: at most 24 hours, and
    at most half of what a position at the end of the binlog has.

    \b
    Example:
      rowtide runway shop.properties
    """  # noqa: D301 - Click's mark of a paragraph
    try:
        offset, found = runway_of(read_configuration(config, UNNEEDED))
    except ConnectorError as error:
        raise click.ClickException(str(error)) from None
    seconds = None if found.seconds is None or found.seconds > _FORESEEN_S else found.seconds
    until = None if seconds is None else utc(round(time.time() + seconds) * 1_000_000)
    if as_json:
        fields = {"stored": offset.to_map(), **runway_fields(found), "until": until}
        click.echo(json.dumps(fields, indent=2, ensure_ascii=False))
    else:
        click.echo(f"stored position  {offset.file}:{offset.pos}")
        click.echo(f"runway           {found.text}")
        if seconds:
            click.echo(f"until            {until}")
    if found.short:
        raise SystemExit(_SHORT)


class NoPositionStored(ConnectorError):
    """The connector has not stored a position yet."""


def runway_of(configuration: Configuration) -> tuple[SourceOffset, Runway]:
    """Return the stored position of a connector, and how long the server keeps the binlog file that it needs.

    Raises:
        NoPositionStored: there is none.
        ConnectorError: the position cannot be read, or the server does not answer, or its answer is not known.
    """
    from rowtide.connector.engine.wiring import offset_store  # noqa: PLC0415 - needs the Kafka client

    offset = offset_store(configuration).load()
    if offset is None:
        raise NoPositionStored("no position is stored yet: the connector needs no binlog file before its start")
    try:
        with Session(configuration.database, mariadb=configuration.flavor is Flavor.MARIADB) as session:
            return offset, RunwayQuery(configuration).ask(session.client, offset)
    except pymysql.MySQLError as error:
        raise RetentionUnknown(f"the server refuses a query: {error.args[-1]}") from None
