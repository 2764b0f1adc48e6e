"""The part of a databus server without Kafka: it serves dumps, and takes part in a cluster of servers by ZooKeeper.

::

    start ──► standby ──► running ──► ended: another server may run, and this one must stop publishing
                             │
                             └──► once it streams, dumps are made and announced
"""

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rowtide.cluster.session import ZooKeeperSession, own_host
from rowtide.databus.server.dumps.dumping import Dumping
from rowtide.databus.server.dumps.folder import DumpFolder
from rowtide.databus.server.dumps.publication import PublishedPosition
from rowtide.databus.server.dumps.source import DumpSource
from rowtide.databus.server.dumps.tcp import DumpServer
from rowtide.databus.server.registration import ServerNodes, ServerRegistration
from rowtide.tcp_server import Address


@dataclass(frozen=True, slots=True)
class DumpSettings:
    """The settings of dumps and of ZooKeeper.

    Attributes:
        zookeeper: the ZooKeeper servers, ``host:port`` separated by commas (``zkpath``).
        nodes: the nodes of the topic.
        folder: of the dumps (``data_dir``).
        host: the address on which dumps are served; ``""`` for all (``monitorip``).
        port: the port; 0 for a free one (``monitorport``).
        advertised_host: the address at which clients reach this server; ``""`` for its address in the network of
            ZooKeeper.
        interval_s: how long a dump is announced, in seconds; ``None`` forever (``dumpclock``).
        alive_timeout_s: how long an original databus server counts as alive after its last keep-alive
            (``masteralive_timeout``).
    """

    zookeeper: str
    nodes: ServerNodes
    folder: Path
    host: str
    port: int
    advertised_host: str
    interval_s: float | None
    alive_timeout_s: float


class DumpService:
    """Serves dumps, and decides when this server may publish.

    Args:
        settings: of dumps and of ZooKeeper.
        source: makes the dumps.
        setting: the setting with the ZooKeeper servers, for messages.
    """

    def __init__(self, settings: DumpSettings, source: DumpSource, setting: str) -> None:
        self._settings = settings
        self._source = source
        self._session = ZooKeeperSession(settings.zookeeper, setting)
        self._folder = DumpFolder(settings.folder)
        self._server = DumpServer(self._folder)
        self._loop = asyncio.new_event_loop()
        self._serving = threading.Thread(target=self._loop.run_forever, name="databus-dumps", daemon=True)
        self._registration: ServerRegistration | None = None
        self._dumping: Dumping | None = None

    def start(self, reading: Callable[[], PublishedPosition | None], on_end: Callable[[], None]) -> Address:
        """Begin to serve dumps, and stand by.

        Args:
            reading: returns the progress of the connector; ``None`` while it reads no stream. Dumps are made only while
                it reads one.
            on_end: called in another thread when this server has stopped running, and another one may run.

        Returns:
            The address at which dumps are served.

        Raises:
            OSError: the server cannot listen there, or there is no route to ZooKeeper.
        """
        settings = self._settings
        host = settings.advertised_host or own_host(settings.zookeeper)
        self._serving.start()
        address = asyncio.run_coroutine_threadsafe(
            self._server.start(settings.host, settings.port), self._loop
        ).result()
        self._session.start()
        self._registration = ServerRegistration(
            self._session, settings.nodes, host, address.port, settings.alive_timeout_s
        )
        self._registration.on_end = on_end
        self._registration.start()
        self._dumping = Dumping(self._source, self._folder, self._registration, settings.interval_s, reading)
        self._dumping.start()
        return address

    def wait(self, seconds: float) -> bool:
        """Wait until this server may publish; returns whether it may."""
        assert self._registration is not None, "it is started"
        return self._registration.wait(seconds)

    @property
    def problem(self) -> tuple[str, int] | None:
        """The reason why ZooKeeper does not answer, and the number of failures; ``None`` if it answers."""
        registration = self._registration
        if registration is None or registration.problem is None:
            return None
        return registration.problem, registration.failures

    def stop(self) -> None:
        """Stop, so that another server can run. Call this when nothing is published any more."""
        if self._registration is not None:
            self._registration.stop()
        if self._dumping is not None:
            self._dumping.stop()
        if self._serving.is_alive():
            asyncio.run_coroutine_threadsafe(self._server.close(), self._loop).result()
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._serving.join()
        self._loop.close()
        self._session.close()
