"""Three Kafka brokers and their controller, each a process of its own, with a link in front of each broker."""

from __future__ import annotations

import base64
import shutil
import socket
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from confluent_kafka import TopicCollection
from confluent_kafka.admin import AdminClient
from rowtide_stack import Kafka
from rowtide_stack.programs import catalogue
from rowtide_stack.programs.host import run
from rowtide_stack.servers.brokers import java_properties

from tests.chaos.network import Link

__all__ = ["KafkaCluster"]

_CONTROLLER = 100
_CLUSTER = "cm93dGlkZS1jaGFvcy0wMQ"
_OPTIONS = {
    "process.roles": "broker",
    "default.replication.factor": "3",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "transaction.state.log.num.partitions": "3",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    # Leaders return to a broker soon after it is back, so that they move often
    "leader.imbalance.check.interval.seconds": "2",
    "leader.imbalance.per.broker.percentage": "0",
    "replica.lag.time.max.ms": "3000",
}


class KafkaCluster:
    """A controller and three brokers. ``with`` starts and ends them.

    Args:
        options: properties of the brokers that override the defaults.
        jars: the folder with the jars of the version to run; ``None`` for the stack's.

    Attributes:
        brokers: by id, from 1.
        links: the ways to them, by id. Only clients take them, not the other brokers.
        to_controller: the ways from them to the controller, by id.
    """

    def __init__(self, options: Mapping[str, str] | None = None, jars: Path | None = None) -> None:
        self._controller = controller = _Controller(jars)
        self.to_controller = {number: Link(controller.host, controller.port) for number in (1, 2, 3)}
        self.brokers = {
            number: _Broker(number, _voters(link.port), jars, {**_OPTIONS, **(options or {})})
            for number, link in self.to_controller.items()
        }
        self.links = {number: Link(broker.host, broker.port) for number, broker in self.brokers.items()}
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.enter_context(self._controller)
            for number, broker in self.brokers.items():
                broker.advertise(self.links[number].port)
                stack.enter_context(self.links[number])
                stack.enter_context(self.to_controller[number])
                stack.callback(broker.close)
            with ThreadPoolExecutor() as starters:
                list(starters.map(Kafka.start, self.brokers.values()))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def bootstrap(self) -> str:
        """``bootstrap.servers`` with all links."""
        return ",".join(f"{broker.host}:{self.links[number].port}" for number, broker in self.brokers.items())

    @property
    def direct(self) -> str:
        """``bootstrap.servers`` without the links."""
        return ",".join(broker.internal for broker in self.brokers.values())

    def leader(self, topic: str, partition: int = 0) -> int | None:
        """The broker that leads a partition, or ``None``."""
        admin = AdminClient({"bootstrap.servers": self.direct, "log_level": 0})
        described: Any = admin.describe_topics(TopicCollection([topic]), request_timeout=10)[topic].result()
        leader = described.partitions[partition].leader
        return None if leader is None else int(leader.id)

    def coordinator(self, transactional_id: str) -> int | None:
        """The broker that coordinates the transactions of an id, or ``None``."""
        return self.leader("__transaction_state", _java_hash(transactional_id) % 3)

    def heal(self) -> None:
        """Start and continue all brokers, and heal their links."""
        for number, broker in self.brokers.items():
            self.links[number].heal()
            self.to_controller[number].heal()
            broker.resume()
            broker.start()


def _java_hash(text: str) -> int:
    """Java's ``Utils.abs(text.hashCode())``, by which Kafka chooses the coordinator."""
    code = 0
    for letter in text:
        code = (code * 31 + ord(letter)) & 0xFFFFFFFF
    signed = code - (1 << 32) if code >> 31 else code
    return 0 if signed == -(1 << 31) else abs(signed)


class _Node(Kafka):
    """A process of the cluster."""

    def __init__(self, number: int, jars: Path | None, options: Mapping[str, str]) -> None:
        super().__init__({**options, "node.id": str(number)})
        self._number = number
        self._jars = jars

    def _prepare(self, folder: Path) -> list[str]:
        if self._jars is None:
            shutil.copytree(self._template(), folder / "data")
        else:
            self._format(self._jars, folder)
        file = folder / "data/meta.properties"
        lines = dict(_assignments(file.read_text()))
        unique = base64.urlsafe_b64encode(bytes([self._number]) * 16).decode().rstrip("=")
        file.write_text(java_properties({**lines, "node.id": str(self._number), "directory.id": unique}))
        properties = self._properties(self.host, self.port, str(folder / "data"))
        (folder / "server.properties").write_text(java_properties(properties))
        jars = self._jars or catalogue.kafka()
        return catalogue.java_command(jars, "512m", "kafka.Kafka", folder / "server.properties")

    def _format(self, jars: Path, folder: Path) -> None:
        """Format the storage as a node of another version does."""
        file = folder / "format.properties"
        file.write_text(java_properties(Kafka()._properties(self.host, self.port, str(folder / "data"))))
        run(catalogue.java_command(jars, "256m", "kafka.tools.StorageTool", "format", "-t", _CLUSTER, "-c", str(file)))


def _assignments(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        name, separator, value = line.partition("=")
        if separator and not line.startswith("#"):
            yield name, value


def _voters(port: int) -> str:
    return f"{_CONTROLLER}@127.0.0.1:{port}"


class _Controller(_Node):
    """The controller, which keeps the metadata."""

    def __init__(self, jars: Path | None) -> None:
        super().__init__(_CONTROLLER, jars, {"process.roles": "controller"})

    def _properties(self, listen: str, port: int, log_dir: str) -> dict[str, str]:
        found = {
            **super()._properties(listen, port, log_dir),
            "listeners": f"CONTROLLER://{listen}:{port}",
            "controller.quorum.voters": _voters(self.port),
        }
        del found["advertised.listeners"], found["inter.broker.listener.name"]
        return found

    def _ready(self) -> bool:
        with socket.create_connection((self.host, self.port), timeout=2):
            return True


class _Broker(_Node):
    """A broker."""

    def __init__(self, number: int, voters: str, jars: Path | None, options: Mapping[str, str]) -> None:
        super().__init__(number, jars, {**options, "controller.quorum.voters": voters})
        self.internal = f"127.0.0.1:{self._internal_port}"

    def _properties(self, listen: str, port: int, log_dir: str) -> dict[str, str]:
        return {
            **super()._properties(listen, port, log_dir),
            "listeners": f"CLIENT://{listen}:{port},INTERNAL://{self.internal}",
        }

    def _ready(self) -> bool:
        client = AdminClient({"bootstrap.servers": self.internal, "log_level": 0})
        return self._number in client.list_topics(timeout=2).brokers
