"""Kafka (KRaft, one node) and ZooKeeper servers."""

import shutil
import socket
from collections.abc import Mapping
from pathlib import Path

from rowtide_stack.ports import free_port
from rowtide_stack.programs import catalogue
from rowtide_stack.programs.cache import cached
from rowtide_stack.programs.host import run
from rowtide_stack.runners.runner import ContainerPlan, LocalPlan
from rowtide_stack.servers.server import Server

__all__ = ["Kafka", "ZooKeeper", "java_properties"]

_CLUSTER_ID = "cm93dGlkZS1zdGFjay0wMQ"  # 16 bytes in base64; always the same, so that formatted storage can be copied


class Kafka(Server):
    """A single Kafka broker that is also the controller. Transactions and consumer groups work."""

    name = "kafka"

    def __init__(self, options: Mapping[str, str] | None = None) -> None:
        """Create a broker; ``options`` are broker properties (``message.max.bytes`` ...) that override the defaults."""
        super().__init__()
        self._controller_port = free_port()
        self._internal_port = free_port()
        self.options = {**_KAFKA_DEFAULTS, **(options or {})}
        self._advertised_port = self.port

    def advertise(self, port: int) -> None:
        """Let clients connect to another port of this host, such as that of a proxy; call this before the start."""
        self._advertised_port = port

    @property
    def bootstrap(self) -> str:
        """``host:port``: the value of ``bootstrap.servers``."""
        return f"{self.host}:{self._advertised_port}"

    def _ready(self) -> bool:
        from confluent_kafka.admin import AdminClient  # noqa: PLC0415 - not needed by users of MySQL alone

        client = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        return bool(client.list_topics(timeout=2).brokers)

    def _properties(self, listen: str, port: int, log_dir: str) -> dict[str, str]:
        internal, controller = f"127.0.0.1:{self._internal_port}", f"127.0.0.1:{self._controller_port}"
        # At the end of a transaction the broker connects to itself. From inside a container it cannot use the address
        # for clients, so it has an internal listener.
        return {
            "listeners": f"CLIENT://{listen}:{port},INTERNAL://{internal},CONTROLLER://{controller}",
            "advertised.listeners": f"CLIENT://{self.host}:{self._advertised_port},INTERNAL://{internal}",
            "controller.quorum.voters": f"1@{controller}",
            "log.dirs": log_dir,
            **self.options,
        }

    def _local(self) -> LocalPlan:
        return LocalPlan(self._prepare)

    def _prepare(self, folder: Path) -> list[str]:
        jars = catalogue.kafka()
        shutil.copytree(self._template(), folder / "data")
        properties = self._properties(self.host, self.port, str(folder / "data"))
        (folder / "server.properties").write_text(java_properties(properties))
        return catalogue.java_command(jars, "768m", "kafka.Kafka", folder / "server.properties")

    def _template(self) -> Path:
        """Return a formatted storage folder from the cache, because formatting takes as long as a start."""

        def build(folder: Path) -> None:
            properties = self._properties(self.host, self.port, str(folder / "data"))
            (folder / "format.properties").write_text(java_properties(properties))
            file = str(folder / "format.properties")
            tool = ["kafka.tools.StorageTool", "format", "-t", _CLUSTER_ID, "-c", file]
            run(catalogue.java_command(catalogue.kafka(), "256m", *tool))

        return cached(f"kafka-data-{catalogue.KAFKA_VERSION}", build) / "data"

    def _container(self) -> ContainerPlan:
        properties = self._properties("0.0.0.0", 9092, "/tmp/kafka-data")
        # The image reads message.max.bytes from KAFKA_MESSAGE_MAX_BYTES
        environment = {f"KAFKA_{key.upper().replace('.', '_')}": value for key, value in properties.items()}
        return ContainerPlan(
            image="apache/kafka:4.1.0", port=9092, environment={**environment, "CLUSTER_ID": _CLUSTER_ID}
        )


_KAFKA_DEFAULTS = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "INTERNAL",
    "listener.security.protocol.map": "CLIENT:PLAINTEXT,INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT",
    # A single node can hold only one replica
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    # Consumer groups start immediately, without waiting for more members
    "group.initial.rebalance.delay.ms": "0",
    # A misspelt name must not create a topic
    "auto.create.topics.enable": "false",
    # A killed broker can register again only after its session has timed out, by default after 9 s
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    "log.index.size.max.bytes": "1048576",
}


class ZooKeeper(Server):
    """A single ZooKeeper server."""

    name = "zookeeper"

    def _ready(self) -> bool:
        with socket.create_connection((self.host, self.port), timeout=2) as connection:
            connection.sendall(b"ruok")
            return connection.recv(4) == b"imok"

    def _local(self) -> LocalPlan:
        return LocalPlan(self._prepare)

    def _prepare(self, folder: Path) -> list[str]:
        properties = {
            "dataDir": str(folder / "data"),
            "clientPort": str(self.port),
            "clientPortAddress": self.host,
            "admin.enableServer": "false",
            "4lw.commands.whitelist": "ruok,stat,srvr",
            "tickTime": "500",  # session timeouts are 2 to 20 ticks, and tests use short ones
        }
        (folder / "zoo.cfg").write_text(java_properties(properties))
        main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        return catalogue.java_command(catalogue.zookeeper(), "256m", main, folder / "zoo.cfg")

    def _container(self) -> ContainerPlan:
        return ContainerPlan(
            image=f"zookeeper:{catalogue.ZOOKEEPER_VERSION}",
            port=2181,
            environment={
                "ZOO_4LW_COMMANDS_WHITELIST": "ruok,stat,srvr",
                "ZOO_ADMINSERVER_ENABLED": "false",
                "ZOO_TICK_TIME": "500",
            },
        )


def java_properties(properties: Mapping[str, str]) -> str:
    """Return the text of a Java properties file."""
    return "".join(f"{key}={value.replace(chr(92), chr(92) * 2)}\n" for key, value in properties.items())
