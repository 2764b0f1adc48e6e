"""The settings of the databus server."""

from dataclasses import dataclass

from rowtide.connector.config.catalogue import databus
from rowtide.connector.config.catalogue.property import given


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabusConfig:
    """The databus server. Dumps are served only if ZooKeeper servers are named."""

    topic: str | None = given(databus.TOPIC)
    dump_address: str = given(databus.DUMP_ADDRESS)
    dump_port: int = given(databus.DUMP_PORT)
    dump_folder: str = given(databus.DUMP_FOLDER)
    dump_interval_s: int = given(databus.DUMP_INTERVAL)
    zookeeper: tuple[str, ...] = given(databus.ZOOKEEPER)
    zookeeper_root: str = given(databus.ZOOKEEPER_ROOT)
    dump_node: str = given(databus.DUMP_NODE)
    alive_node: str = given(databus.ALIVE_NODE)
    alive_timeout_s: int = given(databus.ALIVE_TIMEOUT)
