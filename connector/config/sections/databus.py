"""The section about the databus server; pure."""

from rowtide.connector.config.catalogue import databus
from rowtide.connector.config.model.databus import DatabusConfig
from rowtide.connector.config.sections.property_reader import PropertyReader
from rowtide.topics.addresses import server_problems


def databus_config(reader: PropertyReader) -> DatabusConfig:
    """The settings of the databus server."""
    servers = reader[databus.ZOOKEEPER]
    for problem in server_problems(",".join(servers), "ZooKeeper server") if servers else ():
        reader.problem(databus.ZOOKEEPER.name, problem)
    return DatabusConfig(
        topic=reader[databus.TOPIC],
        dump_address=reader[databus.DUMP_ADDRESS],
        dump_port=reader[databus.DUMP_PORT],
        dump_folder=reader[databus.DUMP_FOLDER],
        dump_interval_s=reader[databus.DUMP_INTERVAL],
        zookeeper=servers,
        zookeeper_root=reader[databus.ZOOKEEPER_ROOT],
        dump_node=reader[databus.DUMP_NODE],
        alive_node=reader[databus.ALIVE_NODE],
        alive_timeout_s=reader[databus.ALIVE_TIMEOUT],
    )
