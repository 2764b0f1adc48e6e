"""The worker of a databus server: the connector's worker, with databus' messages, dumps, and a cluster of servers.

::

    start ──► standby ──► the connector runs ──► failed: another server may run
                                   │
                                   └──► dumps are made and announced
"""

import asyncio
import logging
from pathlib import Path

from mode import Service

from rowtide.connector.config import Configuration
from rowtide.connector.config.catalogue import databus
from rowtide.connector.errors import ConnectorError, SignalError
from rowtide.connector.signals.signal import Signal
from rowtide.connector.worker import faust_app
from rowtide.connector.worker.service import ConnectorService
from rowtide.connector.worker.standalone_app import App
from rowtide.connector.worker.web.settings import WebSettings
from rowtide.databus.server.dumps.publication import PublishedPosition, reading_of
from rowtide.databus.server.dumps.snapshot import SnapshotSource
from rowtide.databus.server.record_form import DatabusForm
from rowtide.databus.server.registration import ServerNodes
from rowtide.databus.server.service import DumpService, DumpSettings
from rowtide.databus.server.settings import checked_topic

log = logging.getLogger(__name__)

_WAIT_S = 1.0


def create_app(config: Configuration, web: WebSettings | None = None) -> App:
    """Create the app that publishes a connector's changes in databus' form.

    Args:
        config: the configuration.
        web: as for :func:`~rowtide.connector.worker.faust_app.create_app`.

    Raises:
        ConfigurationError: ``databus.topic`` is missing, or a property has no counterpart in the messages.
    """
    topic = checked_topic(config)
    form = DatabusForm(topic)
    app = faust_app.create_app(config, web=web, form=form)
    connector = app.connectors.services[config.name]
    connector.on_signal("execute-snapshot", _refuse)
    if config.databus.zookeeper:
        connector.stand_by()
        dumps = DumpService(dump_settings(config, topic), SnapshotSource(config, topic), databus.ZOOKEEPER.name)
        app.services.append(DatabusServer(dumps, connector))
    return app


def dump_settings(config: Configuration, topic: str) -> DumpSettings:
    """Return the settings of dumps and of ZooKeeper."""
    found = config.databus
    return DumpSettings(
        zookeeper=",".join(found.zookeeper),
        nodes=ServerNodes(found.zookeeper_root, found.dump_node, found.alive_node, topic),
        folder=Path(found.dump_folder),
        host=found.dump_address,
        port=found.dump_port,
        advertised_host=found.dump_address,
        interval_s=found.dump_interval_s or None,
        alive_timeout_s=found.alive_timeout_s,
    )


class DatabusServer(Service):
    """Runs the connector while this server is the running one of its cluster, and serves dumps.

    Args:
        dumps: serves dumps, and takes part in the cluster.
        connector: publishes the changes; it stands by until this server runs.
    """

    logger = ConnectorService.logger

    def __init__(self, dumps: DumpService, connector: ConnectorService) -> None:
        super().__init__()
        self._dumps = dumps
        self._connector = connector

    async def on_start(self) -> None:
        """Serve dumps, and stand by.

        Raises:
            ConnectorError: the server cannot listen, or there is no route to ZooKeeper.
        """
        settings = self._connector.config.databus
        try:
            address = await asyncio.to_thread(self._dumps.start, self._reading, self._ended)
        except OSError as error:
            raise ConnectorError(
                f"dumps cannot be served at {settings.dump_address}:{settings.dump_port}, or ZooKeeper cannot be "
                f"reached: {error}. Check databus.monitorip, databus.monitorport and databus.zkpath"
            ) from error
        log.info("serving dumps at %s:%d; standing by until no other server runs", *address)
        self.add_future(self._begin())

    async def on_stop(self) -> None:
        """Stop publishing, and then let another server run."""
        await self._connector.stop()
        await asyncio.to_thread(self._dumps.stop)

    async def _begin(self) -> None:
        limit = self._connector.config.failure.max_retries
        while not self.should_stop:
            if await asyncio.to_thread(self._dumps.wait, _WAIT_S):
                log.info("no other server runs: publishing begins")
                await self._connector.begin()
                return
            problem = self._dumps.problem
            self._connector.obstacle = None if problem is None else problem[0]
            if problem is not None and 0 <= limit < problem[1]:
                await asyncio.to_thread(self._connector.give_up, _unreachable(*problem))
                return

    def _reading(self) -> PublishedPosition | None:
        return reading_of(self._connector.connector)

    def _ended(self) -> None:
        if not self.should_stop:
            failure = ConnectorError(
                "ZooKeeper has ended the session of this server, so another one may run. Restart this "
                "server; it then stands by"
            )
            self.loop.call_soon_threadsafe(self._give_up, failure)

    def _give_up(self, failure: ConnectorError) -> None:
        self.add_future(asyncio.to_thread(self._connector.give_up, failure))


def _unreachable(reason: str, attempts: int) -> ConnectorError:
    return ConnectorError(
        f"this server cannot find out whether another one runs: {reason}, after {attempts} attempts. Check "
        "databus.zkpath, and that ZooKeeper is running; errors.max.retries=-1 waits for it"
    )


def _refuse(_signal: Signal) -> None:
    raise SignalError("the topic has no rows of snapshots; read them from a dump")
