"""Edge: ``rowtide canal``: the instances of a folder of Canal's, and the TCP server for their clients."""

import asyncio
import logging
import os
import ssl
from collections.abc import Callable, Mapping
from pathlib import Path

from rowtide.canal.configuration.load import INSTANCE_FILE, SERVER_FILE, destinations, read_folder, read_instance
from rowtide.canal.configuration.model import CanalConfiguration, InstanceSettings, TlsFiles
from rowtide.canal.instance.instance import Instance
from rowtide.canal.instance.kafka import KafkaInstance
from rowtide.canal.metrics import MetricsServer
from rowtide.canal.server.destination import Destination
from rowtide.canal.server.tcp import Address, CanalServer
from rowtide.connector.config.errors import ConfigurationError, Problem
from rowtide.connector.errors import ConnectorError

log = logging.getLogger(__name__)

_STOP_S = 10.0
"""How long the end of an instance is waited for."""

AnyInstance = Instance | KafkaInstance
Listening = Callable[[Address | None], None]
_Version = tuple[int, ...]


def _context(files: TlsFiles | None) -> ssl.SSLContext | None:
    """The TLS context of the server.

    Raises:
        ConfigurationError: a file is not what it should be.
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


class CanalService:
    """The instances of a folder and their server.

    Args:
        folder: with ``canal.properties`` and a folder for each destination.
        environ: the environment, for placeholders.

    Raises:
        ConfigurationError: with all problems of all files.
    """

    def __init__(self, folder: Path, environ: Mapping[str, str] = os.environ) -> None:
        self._folder = folder
        self._environ = environ
        self._config: CanalConfiguration = read_folder(folder, environ)
        self._instances: dict[str, AnyInstance] = {}
        self._ending: dict[str, AnyInstance] = {}  # not ended yet
        self._versions: dict[str, _Version] = {}
        self._destinations: dict[str, Destination] = {}
        self._tls = _context(self._config.server.tls)
        self.notes = self._config.notes

    async def run(
        self, stop: asyncio.Event, listening: Callable[[Address | None], None] = lambda _address: None
    ) -> None:
        """Serve until ``stop`` is set.

        Args:
            stop: ends the service; what clients have acknowledged is written.
            listening: called when the instances are started, with the address for clients; ``None`` in the Kafka mode.

        Raises:
            OSError: the server cannot listen.
        """
        settings = self._config.server
        server = CanalServer(self._destinations, settings.credentials, self._tls)
        metrics = MetricsServer(lambda: [instance.state for instance in self._instances.values()])
        address = None if settings.kafka else await server.start(settings.host, settings.port)
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
    def instances(self) -> Mapping[str, AnyInstance]:
        """The instances, by destination."""
        return self._instances

    async def _offer_metrics(self, metrics: MetricsServer) -> None:
        settings = self._config.server
        if settings.metrics_port is None:
            return
        try:
            port = await metrics.start(settings.host, settings.metrics_port)
            log.info("metrics for Prometheus are at port %d", port)
        except OSError as error:  # as in Canal: the instances are worth more
            log.error("no metrics: cannot listen at canal.metrics.pull.port: %s", error)  # noqa: TRY400

    async def _watch(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            try:
                await asyncio.wait_for(stop.wait(), self._config.server.scan_s)
            except TimeoutError:
                await self._scan()

    async def _scan(self) -> None:
        """Start the instances that have appeared, restart those that have changed, stop those that have vanished."""
        found = set(destinations(self._folder))
        for name in set(self._instances) - found:
            log.info("destination %s: its %s is gone; the instance is stopped", name, INSTANCE_FILE)
            await self._end(name)
        for name in sorted(found):
            if not await self._has_ended(name):
                continue
            try:
                version = self._version(name)
                if self._versions.get(name) == version:
                    continue
                self._versions[name] = version
                settings = read_instance(self._folder, name, self._environ)
                if name in self._instances:
                    log.info("destination %s: its %s has changed; the instance is started again", name, INSTANCE_FILE)
                    await self._end(name)
                    if not await self._has_ended(name):
                        continue
                self._start(name, settings, version)
            except (ConfigurationError, ConnectorError, OSError) as error:
                if not isinstance(error, ConfigurationError):  # another file, or the disk: try again
                    self._versions.pop(name, None)
                state = "goes on with its former settings" if name in self._instances else "is not started"
                log.error("destination %s %s: %s", name, state, error)  # noqa: TRY400

    def _start(self, name: str, settings: InstanceSettings, version: _Version) -> None:
        server = self._config.server
        folder = server.data / name
        instance: AnyInstance
        if settings.kafka is not None:
            instance = KafkaInstance(settings, settings.kafka, folder, server.flush_s)
        else:
            instance = Instance(settings, folder, server.flush_s)
            self._destinations[name] = instance.destination
        self._instances[name], self._versions[name] = instance, version
        instance.start()

    async def _end(self, name: str) -> None:
        self._destinations.pop(name, None)
        self._versions.pop(name, None)
        instance = self._instances.pop(name)
        if not await asyncio.to_thread(instance.stop, _STOP_S):
            log.warning("destination %s: the instance still waits for its server, and stops when that answers", name)
            self._ending[name] = instance

    async def _has_ended(self, name: str) -> bool:
        """Whether no earlier instance of a destination still uses its files."""
        instance = self._ending.get(name)
        if instance is not None and not await asyncio.to_thread(instance.stop, 0):
            self._versions.pop(name, None)  # the next scan tries again
            return False
        self._ending.pop(name, None)
        return True

    def _version(self, name: str) -> _Version:
        """Changes whenever a file does that the settings of an instance come from."""
        version: list[int] = []
        for path in (self._folder / SERVER_FILE, self._folder / name / INSTANCE_FILE):
            try:
                found = path.stat()
            except FileNotFoundError:
                continue
            version += [found.st_mtime_ns, found.st_size]
        return tuple(version)
