"""The settings of the databus server."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DatabusConfig:
    """The databus server.

    Attributes:
        topic: the topic of its messages; ``None`` if it is not set.
        dump_address: where dumps are served, and what clients find in ZooKeeper.
        dump_port: the port; 0 for a free one.
        dump_folder: the folder of the dumps.
        dump_interval_s: how long a dump is announced; 0 for as long as this server runs.
        zookeeper: ZooKeeper servers, ``host:port``; none if dumps are not served.
        zookeeper_root: the root of the nodes.
        dump_node: the node of the descriptions of dumps.
        alive_node: the node of the running server.
        alive_timeout_s: how long an original databus server counts as alive after its last sign of life.
    """

    topic: str | None
    dump_address: str
    dump_port: int
    dump_folder: str
    dump_interval_s: int
    zookeeper: tuple[str, ...]
    zookeeper_root: str
    dump_node: str
    alive_node: str
    alive_timeout_s: int
