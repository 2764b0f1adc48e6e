"""``rowtide mirror``: copies the binlog files of a server into a directory."""

import contextlib
import logging
import re
import signal
import threading
from pathlib import Path

import click

from rowtide.cli.binlog.runway import UNNEEDED, runway_of
from rowtide.cli.connectors import config_argument, log_options, read_configuration
from rowtide.cli.option_types import HOST, FiniteRange
from rowtide.connector.config import Configuration, Flavor
from rowtide.connector.config.catalogue import connect, connection, history
from rowtide.connector.errors import ConnectorError
from rowtide.connector.source.connection import DatabaseUnreachableError
from rowtide.connector.source.mirror.folder import MirrorFolder, MirrorRetention
from rowtide.connector.source.mirror.mirror import Mirror, MirrorSettings, as_mirror, start_file
from rowtide.connector.worker import logs
from rowtide.connector.worker.failures import describe, failed_threads

log = logging.getLogger(__name__)

_NEEDLESS = (connection.NAME, connection.TOPIC_PREFIX, connection.SERVER_ID, connect.BOOTSTRAP_SERVERS)
_UNNEEDED = frozenset(entry.name for entry in (*_NEEDLESS, history.TOPIC, history.FILE_NAME))
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_SIZE = re.compile(r"(\d+)\s*([kmgt]?)i?b?", re.IGNORECASE)
_DAY_S = 86_400
_HOUR_S = 3600
_LOOK_S = 60.0


class SizeText(click.ParamType):
    """A number of bytes with an optional unit (K, M, G, T; powers of 1024)."""

    name = "size"

    def convert(self, value: str | int, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Parse a size."""
        match = _SIZE.fullmatch(str(value).strip())
        if match is None:
            self.fail(f"{value!r} is not a size such as 500M or 200G", param, ctx)
        return int(match[1]) * _UNITS[match[2].lower()]


@click.command()
@config_argument()
@click.option(
    "--to",
    "folder",
    metavar="DIR",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="The directory of the files. It is created if it is missing; an existing mirror is resumed.",
)
@click.option(
    "--start",
    metavar="oldest|newest|FILE|GTIDS",
    default="oldest",
    show_default=True,
    help="The first file of a new mirror: the oldest or the newest one of the server, a file by its name, or the one "
    "with the first transaction that is not in a GTID set.",
)
@click.option(
    "--below-runway",
    metavar="HOURS",
    type=FiniteRange(min=0, min_open=True),
    help="Wait, and begin a new mirror when the server keeps the binlog that the connector of CONFIG needs for less "
    "than HOURS (rowtide runway). Its first file is then the one of the connector's stored position.",
)
@click.option(
    "--sync",
    type=click.Choice(["always", "interval", "file"]),
    default="interval",
    show_default=True,
    help="When data is flushed to the disk (fsync): after each piece that arrives, each second, or at the end "
    "of each file. It matters only if the machine crashes; after a crash of the process, nothing is missing.",
)
@click.option("--keep-size", metavar="SIZE", type=SizeText(), help="Delete the oldest files beyond this size: 500G.")
@click.option("--keep-days", metavar="DAYS", type=FiniteRange(min=0), help="Delete files whose last event is older.")
@click.option("--once", is_flag=True, help="Stop at the position that is the end of the server's binlog at the start.")
@click.option(
    "--server-id",
    type=click.IntRange(1, 2**32 - 1),
    help="The server id with which the mirror registers as a replica.  [default: derived from database.server.id and "
    "DIR]",
)
@click.option(
    "--web-port", type=click.IntRange(1, 65535), help="Serve /health and /metrics at this port.  [default: none]"
)
@click.option(
    "--web-bind",
    type=HOST,
    metavar="TEXT",
    default="127.0.0.1",
    show_default=True,
    help="Address of the web server.",
)
@log_options
def mirror(
    config: tuple[str, ...],
    *,
    folder: Path,
    start: str,
    below_runway: float | None,
    sync: str,
    keep_size: int | None,
    keep_days: float | None,
    once: bool,
    server_id: int | None,
    web_port: int | None,
    web_bind: str,
    log_level: str,
    log_format: str,
) -> None:
    """Copy the binlog files of a server, byte for byte, until stopped.

    Reads the server's address and account from the configuration files CONFIG. Needs REPLICATION SLAVE and REPLICATION
    CLIENT (MariaDB: BINLOG MONITOR). An encrypted binlog arrives decrypted: protect the directory.

    A mirror that was stopped or killed resumes after its last complete event. It refuses any other server, and a server
    that has purged the files that follow. rowtide replay, rowtide position and rowtide run (--from-mirror) read from
    the directory, even while the mirror runs. With --below-runway, the server is asked each minute; the web server
    starts with the mirror.

    The exit code is 0 after SIGTERM or Ctrl-C, or with --once at the end, and 1 after an error.

    \b
    Examples:
      rowtide mirror shop.properties --to /archive/shop --keep-days 30
      rowtide mirror shop.properties --to /archive/shop --once --start binlog.000042
      rowtide mirror shop.properties --to /archive/shop --below-runway 24
    """  # noqa: D301 - Click's mark of a paragraph
    logs.set_up(log_level, as_json=log_format == "json")
    configuration = read_configuration(config, _UNNEEDED if below_runway is None else UNNEEDED)
    mariadb = configuration.flavor is Flavor.MARIADB
    database = as_mirror(configuration.database, str(folder.resolve()), server_id)
    failures: list[BaseException] = []
    stopped = threading.Event()
    stops = [stopped.set]
    for received in (signal.SIGTERM, signal.SIGINT):
        signal.signal(received, lambda *_: [stop() for stop in stops])
    try:
        with MirrorFolder(folder) as opened, contextlib.ExitStack() as parts:
            if below_runway is not None and not opened.size()[0]:
                start = _file_with_short_runway(configuration, below_runway, stopped) or start
            settings = MirrorSettings(
                start_file(start, database, mariadb=mariadb),
                sync,
                MirrorRetention(keep_size, None if keep_days is None else keep_days * _DAY_S),
                once=once,
            )
            running = Mirror(database, opened, settings, mariadb=mariadb)
            stops.append(running.stop)
            if stopped.is_set():
                return

            def failed(error: BaseException) -> None:
                failures.append(error)
                running.stop()

            parts.enter_context(failed_threads(failed))
            if web_port is not None:
                _serve(parts, running, web_bind, web_port)
            running.run()
    except ConnectorError as error:
        raise click.ClickException(str(error)) from None
    if failures:
        raise click.ClickException(describe(failures[0]))


def _file_with_short_runway(configuration: Configuration, hours: float, stopped: threading.Event) -> str | None:
    """Wait until the server keeps the file of the stored position for a few hours only, and return its name.

    Returns:
        ``None`` if the mirror is stopped before that.

    Raises:
        DatabaseUnreachableError: the server refuses the log-in. Further ones might lock the account.
    """
    told = ""
    while not stopped.is_set():
        try:
            offset, found = runway_of(configuration)
            if found.seconds is not None and found.seconds < hours * _HOUR_S:
                log.info("%s: the mirror begins with it", found.text)
                return offset.file
            state, text = "known", f"the mirror begins below {hours:g} hours: {found.text}"
        except ConnectorError as error:
            if isinstance(error, DatabaseUnreachableError) and not error.retriable:
                raise
            state = text = f"the mirror waits, and it is not known how long the server keeps its binlog: {error}"
        if state != told:
            log.info("%s", text)
            told = state
        stopped.wait(_LOOK_S)
    return None


def _serve(parts: contextlib.ExitStack, running: Mirror, host: str, port: int) -> None:
    """Serve the state of a mirror as long as its other parts run."""
    from rowtide.cli.binlog.mirror_web import served  # noqa: PLC0415 - slow to import

    try:
        parts.enter_context(served(running.status, host, port))
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise click.ClickException(f"cannot listen at {host}:{port}: {reason}") from None
