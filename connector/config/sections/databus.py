"""The section about the databus server; pure."""

from rowtide.connector.config.catalogue import databus
from rowtide.connector.config.model.databus import DatabusConfig
from rowtide.connector.config.sections.property_reader import PropertyReader
from rowtide.topics.addresses import server_problems


def databus_config(reader: PropertyReader) -> DatabusConfig:
    """Return the settings of the databus server."""
    servers = reader[databus.ZOOKEEPER]
    for problem in server_problems(",".join(servers), "ZooKeeper server") if servers else ():
        reader.problem(databus.ZOOKEEPER.name, problem)
    return DatabusConfig(**reader.declared(DatabusConfig))
