"""``rowtide canal``: the instances of a Canal configuration folder, and the TCP server for their clients."""

import asyncio
import contextlib
import logging
import ssl
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rowtide.canal.configuration.load import (
    INSTANCE_FILE,
    SERVER_FILE,
    destinations,
    read_folder,
    read_instance,
    server_properties,
)
from rowtide.canal.configuration.model import CanalConfiguration, InstanceSettings, TlsFiles
from rowtide.canal.instance.base import BaseInstance
from rowtide.canal.instance.instance import Instance
from rowtide.canal.instance.kafka import KafkaInstance
from rowtide.canal.instance.storage import FolderStorage, Storage
from rowtide.canal.metrics import MetricsServer
from rowtide.canal.server.destination import Destination
from rowtide.canal.server.tcp import CanalServer
from rowtide.connector.config.errors import ConfigurationError, Problem
from rowtide.connector.errors import ConnectorError
from rowtide.connector.worker.web.access import is_loopback
from rowtide.tcp_server import Address

if TYPE_CHECKING:
    from rowtide.canal.cluster.cluster import ClusterMember
    from rowtide.canal.cluster.nodes import DestinationNodes

log = logging.getLogger(__name__)

_POLL_S = 1.0
"""How often ZooKeeper is asked who runs the destinations."""
_SETTLE_S = 0.2
"""How long files must stay the same before they are read: a half-written one can look complete."""
_STOP_S = 10.0
"""The longest wait for the end of an instance."""

_Version = tuple[int, ...]


def _context(files: TlsFiles | None) -> ssl.SSLContext | None:
    """Return the TLS context of the server.

    Raises:
        ConfigurationError: a file is invalid.
    """
    if files is None:
        return None
    try:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=files.client_ca)
        context.load_cert_chain(files.certificate, files.key)
    except (OSError, ValueError) as error:
        problem = Problem(f"{SERVER_FILE}: canal.tls.certificate", f"no certificate with its key can be read: {error}")
        raise ConfigurationError([problem]) from error
    if files.client_ca is not None:
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def _instance(settings: InstanceSettings, storage: Storage, flush_s: float) -> BaseInstance:
    """Return the instance of a destination.

    Raises:
        OffsetError: its positions are damaged, or cannot be read.
    """
    if settings.kafka is not None:
        return KafkaInstance(settings, settings.kafka, storage, flush_s)
    return Instance(settings, storage, flush_s)


class _Served(Mapping[str, Destination]):
    """The destinations that clients can use, which are those that this server certainly runs.

    Args:
        runs: whether it runs a destination.
    """

    def __init__(self, runs: Callable[[str], bool]) -> None:
        self._runs = runs
        self._all: dict[str, Destination] = {}

    def __getitem__(self, name: str) -> Destination:
        if not self._runs(name):
            raise KeyError(name)
        return self._all[name]

    def __iter__(self) -> Iterator[str]:
        return iter([name for name in self._all if self._runs(name)])

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def add(self, name: str, destination: Destination) -> None:
        """Serve a destination."""
        self._all[name] = destination

    def remove(self, name: str) -> None:
        """Stop serving a destination, if it was served."""
        self._all.pop(name, None)


class CanalService:
    """The instances of a folder and their server.

    Args:
        folder: with ``canal.properties`` and a folder for each destination.

    Raises:
        ConfigurationError: with all problems of all files.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._config: CanalConfiguration = read_folder(folder)
        self._instances: dict[str, BaseInstance] = {}
        self._ending: dict[str, BaseInstance] = {}  # not ended yet
        self._server_properties = server_properties(folder)
        self._restart_for: list[str] = []  # properties that have changed since
        self._files: dict[str, _Version] = {}  # as of the last scan
        self._versions: dict[str, _Version] = {}
        self._destinations = _Served(self._runs)
        self._cluster: ClusterMember | None = None
        self._terms: dict[str, int] = {}  # those that the instances were started in
        self._due = asyncio.Event()  # a scan
        self._tls = _context(self._config.server.tls)
        self.notes = self._config.notes

    async def run(
        self, stop: asyncio.Event, listening: Callable[[Address | None], None] = lambda _address: None
    ) -> None:
        """Serve until ``stop`` is set.

        Args:
            stop: ends the service; acknowledged positions are written first.
            listening: called when the instances are started, with the address for clients; ``None`` in the Kafka mode.

        Raises:
            ConnectorError: the server cannot listen.
            OSError: the folder cannot be read.
        """
        settings = self._config.server
        host = await self._own_host()
        server = CanalServer(self._destinations, settings.credentials, self._tls)
        metrics = MetricsServer(lambda: [instance.state for instance in self._instances.values()])
        address = None if settings.kafka else await self._listen(server)
        if address is not None and not (settings.credentials.required or is_loopback(address.host)):
            log.warning(
                "anyone who can reach %s:%d can read all destinations: set canal.user and canal.passwd", *address
            )
        async with self._in_cluster(f"{host}:{settings.port if address is None else address.port}"):
            try:
                await self._scan()
                await self._offer_metrics(metrics)
                listening(address)
                await self._watch(stop)
            finally:
                await server.close()
                await metrics.close()
                await asyncio.gather(*[self._end(name) for name in list(self._instances)])

    @property
    def instances(self) -> Mapping[str, BaseInstance]:
        """The instances, by destination."""
        return self._instances

    async def _listen(self, server: CanalServer) -> Address:
        settings = self._config.server
        try:
            return await server.start(settings.host, settings.port)
        except OSError as error:
            place = f"canal.ip={settings.host} and canal.port={settings.port}"
            raise ConnectorError(f"cannot listen at {place}: {error.strerror or error}") from error

    async def _offer_metrics(self, metrics: MetricsServer) -> None:
        settings = self._config.server
        if settings.metrics_port is None:
            return
        try:
            address = await metrics.start(settings.host, settings.metrics_port)
            log.info("metrics for Prometheus are at port %d", address.port)
        except OSError as error:  # as in Canal: the instances are worth more
            log.error("no metrics: cannot listen at canal.metrics.pull.port: %s", error)  # noqa: TRY400

    async def _own_host(self) -> str:
        """Return the address that this server announces to clients in ZooKeeper; ``""`` without a cluster.

        Raises:
            ConfigurationError: it cannot be determined.
        """
        cluster = self._config.server.cluster
        if cluster is None:
            return ""
        from rowtide.cluster.session import own_host  # noqa: PLC0415 - needs kazoo

        try:
            return cluster.host or await asyncio.to_thread(own_host, cluster.servers)
        except OSError as error:
            name = f"{SERVER_FILE}: canal.register.ip"
            problem = Problem(name, f"is required, because there is no route to canal.zkServers: {error}")
            raise ConfigurationError([problem]) from error

    @contextlib.asynccontextmanager
    async def _in_cluster(self, address: str) -> AsyncIterator[None]:
        """Be a server of the cluster while this runs, if there is one."""
        settings = self._config.server.cluster
        if settings is None:
            yield
            return
        from rowtide.canal.cluster.cluster import ClusterMember  # noqa: PLC0415 - needs kazoo
        from rowtide.cluster.session import ZooKeeperSession  # noqa: PLC0415

        session = ZooKeeperSession(settings.servers, "canal.zkServers")
        await asyncio.to_thread(session.start)
        self._cluster = ClusterMember(session, address)
        polling = asyncio.create_task(self._poll(self._cluster))
        try:
            yield
        finally:
            polling.cancel()
            await asyncio.gather(polling, return_exceptions=True)
            await asyncio.to_thread(session.close)

    async def _poll(self, cluster: "ClusterMember") -> None:
        while True:
            try:
                names = destinations(self._folder)
                await asyncio.to_thread(cluster.poll, names)
                running = {name for name in names if cluster.nodes(name) is not None}
                if running != set(self._instances) or not all(self._runs(name) for name in running):
                    self._due.set()
            except Exception:
                log.exception("the state of the cluster cannot be read")
            await asyncio.sleep(_POLL_S)

    def _runs(self, name: str) -> bool:
        """Return whether this server still runs a destination in the term that its instance was started in."""
        if self._cluster is None:
            return True
        nodes = self._cluster.nodes(name)
        return nodes is not None and nodes.term == self._terms.get(name)

    async def _watch(self, stop: asyncio.Event) -> None:
        stopped = asyncio.create_task(stop.wait())
        while not stop.is_set():
            due = asyncio.create_task(self._due.wait())
            scan_s = self._config.server.scan_s
            await asyncio.wait({stopped, due}, timeout=scan_s, return_when=asyncio.FIRST_COMPLETED)
            due.cancel()
            self._due.clear()
            if stop.is_set():
                return
            try:
                await self._scan()
            except OSError as error:  # too many open files, for example
                log.error("%s cannot be scanned; retrying later: %s", self._folder, error)  # noqa: TRY400

    async def _scan(self) -> None:
        """Start new instances, restart changed ones, and stop those that were removed.

        In a cluster, also start and stop those that this server begins or ceases to run.
        """
        self._note_restart()
        found, writing = await self._settled()
        gone, ceased = set(self._instances) - found, {name for name in self._instances if not self._runs(name)}
        for name in gone:
            log.info("destination %s: its %s no longer exists; the instance is stopped", name, INSTANCE_FILE)
        for name in ceased - gone:
            log.warning("destination %s: this server no longer runs it; the instance is stopped", name)
        await asyncio.gather(*[self._end(name, release=name not in ceased) for name in gone | ceased])
        for name in sorted(found - writing):
            if not await self._has_ended(name):
                continue
            try:
                nodes = None if self._cluster is None else self._cluster.nodes(name)
                if self._cluster is not None and nodes is None:
                    continue  # another server runs it
                version = self._version(name, nodes)
                if self._versions.get(name) == version:
                    continue
                self._versions[name] = version
                settings = read_instance(self._folder, name, kafka=self._config.server.kafka)
                if self._files_of(name) != self._files.get(name):  # it has been written since
                    self._versions.pop(name, None)
                    continue
                if name in self._instances:
                    log.info("destination %s: its settings have changed; the instance is started again", name)
                    await self._end(name, release=False)
                    if not await self._has_ended(name):
                        continue
                await self._start(name, settings, nodes, version)
            except (ConnectorError, OSError) as error:
                if not isinstance(error, ConfigurationError):  # another file, or the disk: try again
                    self._versions.pop(name, None)
                state = "continues with its former settings" if name in self._instances else "is not started"
                log.error("destination %s %s: %s", name, state, error)  # noqa: TRY400
                if name not in self._instances:
                    await self._release(name)

    async def _start(
        self, name: str, settings: InstanceSettings, nodes: "DestinationNodes | None", version: _Version
    ) -> None:
        server = self._config.server
        storage: Storage = FolderStorage(server.data / name, name)
        if nodes is not None:
            from rowtide.canal.cluster.storage import ZooKeeperStorage  # noqa: PLC0415 - needs kazoo

            storage, self._terms[name] = ZooKeeperStorage(nodes), nodes.term
        # In a thread, because it reads the positions, and clients would otherwise wait for ZooKeeper.
        instance = await asyncio.to_thread(_instance, settings, storage, server.flush_s)
        if isinstance(instance, Instance):
            self._destinations.add(name, instance.destination)
        self._instances[name], self._versions[name] = instance, version
        instance.start()

    async def _end(self, name: str, *, release: bool = True) -> None:
        self._destinations.remove(name)
        self._versions.pop(name, None)
        instance = self._instances.pop(name)
        if not await asyncio.to_thread(instance.stop, _STOP_S):
            log.warning(
                "destination %s: the instance still waits for its server, and stops when the server answers", name
            )
            self._ending[name] = instance
        if release:
            await self._release(name)

    async def _release(self, name: str) -> None:
        """Let another server of the cluster run a destination."""
        if self._cluster is not None:
            await asyncio.to_thread(self._cluster.release, name)

    async def _has_ended(self, name: str) -> bool:
        """Return whether no earlier instance of a destination still uses its files."""
        instance = self._ending.get(name)
        if instance is not None and not await asyncio.to_thread(instance.stop, 0):
            self._versions.pop(name, None)  # the next scan tries again
            return False
        self._ending.pop(name, None)
        return True

    def _note_restart(self) -> None:
        """Log once which changed properties need a restart."""
        try:
            now = server_properties(self._folder)
        except (ConfigurationError, OSError):
            return  # each instance reports it
        changed = [name for name, value in now.items() if value != self._server_properties[name]]
        if changed and changed != self._restart_for:
            names = ", ".join(changed)
            log.warning("%s: %s changed: restart rowtide canal to use the new values", SERVER_FILE, names)
        self._restart_for = changed

    async def _settled(self) -> tuple[set[str], set[str]]:
        """Return the destinations of the folder, and those whose files are still being written, for the next scan."""
        before = self._all_files()
        if before == self._files:
            return set(before), set()
        await asyncio.sleep(_SETTLE_S)
        self._files = self._all_files()
        found = before.keys() | self._files.keys()
        return found, {name for name in found if before.get(name) != self._files.get(name)}

    def _all_files(self) -> dict[str, _Version]:
        return {name: self._files_of(name) for name in destinations(self._folder)}

    def _files_of(self, name: str) -> _Version:
        """Return a value that changes with any file from which the settings of an instance are read."""
        version: list[int] = []
        for path in (self._folder / SERVER_FILE, self._folder / name / INSTANCE_FILE):
            with contextlib.suppress(OSError):  # whoever reads it reports it
                found = path.stat()
                version += [found.st_mtime_ns, found.st_size, found.st_ino]
        return tuple(version)

    def _version(self, name: str, nodes: "DestinationNodes | None") -> _Version:
        """Return a value that changes with the files, and with the term of this server."""
        return (*([] if nodes is None else [nodes.term]), *self._files_of(name))
