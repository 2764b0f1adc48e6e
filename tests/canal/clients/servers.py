"""Processes of ``rowtide canal`` that are killed and started again: one, or two in a cluster."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from kazoo.client import KazooClient
from rowtide_stack.ports import free_port

from rowtide.canal.cluster.nodes import Paths
from rowtide.canal.instance.positions import CanalPosition, read_cursor, read_meta
from rowtide.canal.instance.storage import META
from tests.canal.clients.received import Position
from tests.support.processes.child_process import ChildProcess

if TYPE_CHECKING:
    from rowtide_stack import Database, ZooKeeper

__all__ = ["Cluster", "Server", "SingleServer"]

CLIENT_ID = 1001


class Server(ChildProcess):
    """A process of ``rowtide canal``.

    Args:
        folder: of its configuration.
        database: whose changes it reads.
        destinations: their names.
        properties: further ones, for ``canal.properties``.
        of_instances: further ones, for ``instance.properties``.

    Attributes:
        address: where it listens.
    """

    def __init__(
        self,
        folder: Path,
        database: Database,
        destinations: list[str],
        properties: Mapping[str, str],
        of_instances: Mapping[str, str],
    ) -> None:
        super().__init__()
        self.address = ("127.0.0.1", str(free_port()))
        self.folder = folder
        server = database.server
        instance = {
            "canal.instance.master.address": f"{server.host}:{server.port}",
            "canal.instance.dbUsername": server.user,
            "canal.instance.dbPassword": server.password,
            "canal.instance.filter.regex": rf"{database.name}\\..*",
            **of_instances,
        }
        for name in destinations:
            _write(folder / name / "instance.properties", instance)
        own = {"canal.ip": self.address[0], "canal.port": self.address[1]}
        _write(folder / "canal.properties", {**own, **properties})

    def start(self) -> None:
        """Start it."""
        self._run([sys.executable, "-m", "rowtide", "canal", str(self.folder)], self.folder / "rowtide.log")

    def kill(self) -> None:
        """End it immediately, as a crash does."""
        process, self._process = self._process, None
        assert process is not None
        process.kill()
        process.wait()


def _write(path: Path, properties: Mapping[str, str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))


class SingleServer:
    """One server, which is started again after each kill.

    Attributes:
        where: the address for the clients.
    """

    def __init__(self, folder: Path, database: Database, destinations: list[str], instance: Mapping[str, str]) -> None:
        self._server = Server(folder / "server", database, destinations, {}, instance)
        self.where = self._server.address

    def start(self) -> None:
        """Start it."""
        self._server.start()

    def serves(self) -> bool:
        """Whether it runs."""
        assert not self._server.ended(), self.log()
        return True

    def kill(self) -> None:
        """Kill it."""
        self._server.kill()

    def stored(self, destination: str) -> Position | None:
        """The position of the client in ``meta.dat``."""
        path = self._server.folder / destination / META
        if not path.exists():
            return None
        found = [client.position for client in read_meta(path.read_text()) if client.client_id == CLIENT_ID]
        return _position(found[0]) if found else None

    def stop(self) -> None:
        """End it as an operator does."""
        self._server.stop()

    def log(self) -> str:
        """What all its processes have written."""
        return self._server.output()


class Cluster:
    """Two servers with ZooKeeper: the one that runs the destinations is killed, and started again as the standby.

    Attributes:
        where: ``zookeeper`` and its address, for the cluster client.
    """

    def __init__(
        self,
        folder: Path,
        database: Database,
        zookeeper: ZooKeeper,
        destinations: list[str],
        instance: Mapping[str, str],
    ) -> None:
        servers = f"{zookeeper.host}:{zookeeper.port}"
        own = {"canal.zkServers": servers}
        self._servers = [Server(folder / f"server{number}", database, destinations, own, instance) for number in (1, 2)]
        self._destinations = destinations
        self.where = ("zookeeper", servers)
        self._client = KazooClient(servers)
        self._client.start()

    def start(self) -> None:
        """Start the servers that do not run."""
        for server in self._servers:
            if not server.alive():
                server.start()

    def serves(self) -> bool:
        """Whether a server that lives runs the destination."""
        assert not any(server.ended() for server in self._servers), self.log()
        return self._running() is not None

    def kill(self) -> None:
        """Kill the server that runs the destination; if none does, the first one."""
        (self._running() or self._servers[0]).kill()

    def stored(self, destination: str) -> Position | None:
        """The position of the client in ZooKeeper."""
        text = self._read(Paths(destination).cursor(CLIENT_ID))
        return None if text is None else _position(read_cursor(text)[1])

    def stop(self) -> None:
        """End both as an operator does."""
        for server in self._servers:
            server.stop()
        self._client.stop()
        self._client.close()

    def log(self) -> str:
        """What all processes have written."""
        return "".join(server.output() for server in self._servers)

    def _running(self) -> Server | None:
        text = self._read(Paths(self._destinations[0]).running)
        if text is None:
            return None
        address = json.loads(text)["address"]
        return next((one for one in self._servers if ":".join(one.address) == address and one.alive()), None)

    def _read(self, path: str) -> str | None:
        if not self._client.exists(path):
            return None
        return self._client.get(path)[0].decode() or None


def _position(position: CanalPosition | None) -> Position | None:
    return None if position is None else Position(position.file, position.pos)
