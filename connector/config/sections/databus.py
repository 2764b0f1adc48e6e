"""The section about the databus server; pure."""

from rowtide.connector.config.catalogue import databus
from rowtide.connector.config.model.databus import DatabusConfig
from rowtide.connector.config.sections.property_reader import PropertyReader


def databus_config(reader: PropertyReader) -> DatabusConfig:
    """The settings of the databus server."""
    return DatabusConfig(topic=reader[databus.TOPIC])
