"""The data of databus in ZooKeeper: the dump that new clients begin with, and the server that is alive.

===============================  ====================================  ==============================
Node below the root              Content                               Written
===============================  ====================================  ==============================
``<NodeName>/<Topic>``           ``Dumpfile:Name:Pos:Offset``          after each dump
``<KeepAlivepath>/<Topic>``      ``IP:Port:Topic:TimeSecond``          every 30 seconds by the server
===============================  ====================================  ==============================

The texts are parsed from the end, so that a name or an IPv6 address may contain colons.
"""

from dataclasses import dataclass

from rowtide.databus.errors import DiscoveryError
from rowtide.databus.events import Position

ROOT = "/Databus"


@dataclass(frozen=True, slots=True)
class DumpDescriptor:
    """The dump that new clients begin with (``DumpSyncMetaData``).

    Attributes:
        file: the name under which the server offers it.
        position: the position whose table states the dump contains.
        offset: the first event after the dump is at this offset of the topic, or after it.
    """

    file: str
    position: Position
    offset: int

    def encoded(self) -> str:
        """Return the content of the node (``DumpsyncMetaDataEncode``)."""
        return f"{self.file}:{self.position.file}:{self.position.pos}:{self.offset}"

    @classmethod
    def decode(cls, text: str, node: str) -> "DumpDescriptor":
        """Read the content of a node (``DumpsyncMetaDataDecode``).

        Raises:
            DiscoveryError: it is damaged.
        """
        match text.rsplit(":", 3):
            case [str(file), str(name), str(pos), str(offset)] if file and name and _number(pos) and _number(offset):
                return cls(file, Position(name, int(pos)), int(offset))
        raise _damaged(node, text, "Dumpfile:Name:Pos:Offset", "Let the server make a new dump")


@dataclass(frozen=True, slots=True)
class KeepAlive:
    """The server that is alive (``KeepAliveNode``).

    Attributes:
        ip: the address of its dump server.
        port: its port.
        topic: the topic that it publishes to.
        time_s: the time of its last keep-alive, in seconds since the epoch.
    """

    ip: str
    port: int
    topic: str
    time_s: int

    def encoded(self) -> str:
        """Return the content of the node; an IPv6 address is in brackets, which old clients cannot read."""
        ip = f"[{self.ip}]" if ":" in self.ip else self.ip
        return f"{ip}:{self.port}:{self.topic}:{self.time_s}"

    @classmethod
    def decode(cls, text: str, node: str) -> "KeepAlive":
        """Read the content of a node (``KeepAliveNodeDecode``).

        Raises:
            DiscoveryError: it is damaged.
        """
        match text.rsplit(":", 3):
            case [str(ip), str(port), str(topic), str(time_s)] if ip and _number(port) and _number(time_s):
                return cls(ip.removeprefix("[").removesuffix("]"), int(port), topic, int(time_s))
        raise _damaged(node, text, "IP:Port:Topic:TimeSecond", "Check that a databus server is running")


def root_path(path: str) -> str:
    """Return the root of the nodes, without a slash at its end.

    Raises:
        DiscoveryError: it is empty or relative.
    """
    if not path.startswith("/"):
        raise DiscoveryError(
            f"initPath must len > 0 or begin with / : the root in ZooKeeper is {path!r}; {ROOT} is usual"
        )
    return path.rstrip("/")


def _number(text: str) -> bool:
    return text.isascii() and text.isdecimal()


def _damaged(node: str, text: str, form: str, way_out: str) -> DiscoveryError:
    return DiscoveryError(f"Decode Data From zk Wrong: node {node} has {text!r} instead of {form}. {way_out}")
