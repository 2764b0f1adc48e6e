"""Checks the requirements of a databus server other than the database and Kafka: ZooKeeper and the dumps."""

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from rowtide.cluster.session import ZooKeeperError, ZooKeeperSession, own_host
from rowtide.connector.check import CheckedTable, Finding, Severity
from rowtide.connector.config import Configuration
from rowtide.connector.config.catalogue import databus
from rowtide.connector.worker.web.access import is_loopback
from rowtide.connector.worker.web.address import bind_error
from rowtide.databus.server.registration import ServerNodes


def server_findings(config: Configuration, tables: tuple[CheckedTable, ...] | None) -> Iterator[Finding]:
    """Yield the findings about the topic, ZooKeeper, and the dumps. Nothing is changed.

    Args:
        config: the configuration of the server.
        tables: the captured tables with the topic, if they are known.
    """
    settings = config.databus
    yield from _partitions(tables or ())
    if not settings.zookeeper or settings.topic is None:
        return  # dumps are served with ZooKeeper only
    servers = ",".join(settings.zookeeper)
    nodes = ServerNodes(settings.zookeeper_root, settings.dump_node, settings.alive_node, settings.topic)
    running: str | None = None
    try:
        running = _running(servers, nodes)
    except (ZooKeeperError, ValueError) as error:
        yield Finding(Severity.ERROR, databus.ZOOKEEPER.name, f"{error}. Check it, and that ZooKeeper runs")
    if running is not None:
        message = f"the server at {running} runs topic {settings.topic}; this one stands by until that one ends"
        yield Finding(Severity.REMARK, databus.ZOOKEEPER.name, message)
    yield from _address(config, servers, running)
    yield from _folder(Path(settings.dump_folder))


def _partitions(tables: tuple[CheckedTable, ...]) -> Iterator[Finding]:
    found = {(table.topic, table.partitions) for table in tables if (table.partitions or 0) > 1}
    for topic, partitions in found:
        message = f"{topic} has {partitions} partitions: all messages go to partition 0, the others stay empty"
        yield Finding(Severity.REMARK, databus.TOPIC.name, message)


def _running(servers: str, nodes: ServerNodes) -> str | None:
    """Return the address of the server that runs the topic; ``None`` if no server does."""
    with closing(ZooKeeperSession(servers, databus.ZOOKEEPER.name)) as session:
        session.start()
        found = session.get(nodes.contest.running)
    return None if found is None else found.content.decode(errors="replace")


def _address(config: Configuration, servers: str, running: str | None) -> Iterator[Finding]:
    host, port = config.databus.dump_address, config.databus.dump_port
    try:
        own = host or own_host(servers)
    except (OSError, ValueError):
        own = host  # ZooKeeper cannot be reached, which is a separate finding
    error = bind_error(host, port)
    if error is not None and running != f"{own}:{port}":  # otherwise it is this server
        message = (
            f"dumps cannot be served at {host or 'any address'}, port {port}: {error.strerror or error}. Choose "
            f"another one, and see {databus.DUMP_ADDRESS.name}"
        )
        yield Finding(Severity.ERROR, databus.DUMP_PORT.name, message)
    if is_loopback(own):
        message = f"is {own}: only clients on this host reach the dumps. Set an address that all clients reach"
        yield Finding(Severity.REMARK, databus.DUMP_ADDRESS.name, message)


def _folder(folder: Path) -> Iterator[Finding]:
    """Yield a finding unless the folder exists or can be created."""
    existing = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not existing.is_dir():
        yield Finding(Severity.ERROR, databus.DUMP_FOLDER.name, f"{existing} is not a folder. Name another one")
    elif not os.access(existing, os.W_OK | os.X_OK):
        message = f"this account may not write to {existing}. Change its owner, or name another folder"
        yield Finding(Severity.ERROR, databus.DUMP_FOLDER.name, message)
