"""``rowtide canal``: serves Canal's clients."""

import asyncio
import logging
import signal
from pathlib import Path

import click

from rowtide.canal.service import CanalService
from rowtide.cli.connectors import log_options
from rowtide.connector.errors import ConnectorError
from rowtide.connector.worker import logs
from rowtide.connector.worker.failures import describe, failed_threads
from rowtide.tcp_server import Address

log = logging.getLogger(__name__)


@click.command()
@click.argument("folder", metavar="CONF_DIR", type=click.Path(exists=True, file_okay=False, path_type=Path))
@log_options
def canal(folder: Path, *, log_level: str, log_format: str) -> None:
    """Serve Canal's clients, or send messages to Kafka, until stopped.

    CONF_DIR is a Canal configuration folder: canal.properties, and NAME/instance.properties for each destination. Every
    instance reads its server's binlog, and clients read the entries over TCP (canal.port); with canal.serverMode=kafka,
    messages go to Kafka instead. Positions are stored in NAME/meta.dat, as Canal does; with canal.zkServers, in
    ZooKeeper, and the servers of the cluster take over from each other. Destinations that appear, change or vanish are
    started, restarted and stopped (canal.auto.scan).

    The exit code is 0 after SIGTERM or Ctrl-C, 1 if the configuration is invalid, the server cannot listen, or a part
    of the process has failed.
    """
    logs.set_up(log_level, as_json=log_format == "json", threads=True)
    try:
        service = CanalService(folder)
        for note in service.notes:
            log.info("%s", note)
        asyncio.run(_serve(service))
    except ConnectorError as error:
        raise click.ClickException(str(error)) from error


async def _serve(service: CanalService) -> None:
    loop, stop, failures = asyncio.get_running_loop(), asyncio.Event(), list[BaseException]()

    def failed(error: BaseException) -> None:
        failures.append(error)
        loop.call_soon_threadsafe(stop.set)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    with failed_threads(failed):
        await service.run(stop, _listening)
    if failures:
        raise click.ClickException(describe(failures[0]))
    log.info("stopped")


def _listening(address: Address | None) -> None:
    if address is None:
        log.info("sending messages to Kafka (canal.serverMode=kafka)")
    else:
        host, port = address
        log.info("serving Canal's clients at %s:%d", f"[{host}]" if ":" in host else host, port)
