"""The configuration: reads and checks Debezium's, Kafka Connect's and Kafka's properties, and returns one tree."""

from rowtide.connector.config.errors import ConfigurationError, Problem
from rowtide.connector.config.kafka.clients import ClientSettings
from rowtide.connector.config.load import from_properties, load, load_invalid, read_properties, read_written_properties
from rowtide.connector.config.model import Configuration
from rowtide.connector.config.secret import Secret
from rowtide.schema_history.server.query_event import Flavor

__all__ = [
    "ClientSettings",
    "Configuration",
    "ConfigurationError",
    "Flavor",
    "Problem",
    "Secret",
    "from_properties",
    "load",
    "load_invalid",
    "read_properties",
    "read_written_properties",
]
