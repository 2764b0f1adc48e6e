"""The section about signals; pure."""

from rowtide.connector.config.catalogue import connect, connection, topics
from rowtide.connector.config.kafka.clients import ClientKind
from rowtide.connector.config.model import SignalsConfig
from rowtide.connector.config.sections.kafka import check_servers, client_settings
from rowtide.connector.config.sections.property_reader import PropertyReader

CHANNELS = frozenset({"source", "kafka", "file", "jmx", "in-process"})
"""Debezium's channels. HTTP takes the place of ``jmx``; it and calls (``in-process``) are always on."""


def signals_config(reader: PropertyReader) -> SignalsConfig:
    """Return the channels of signals."""
    channels = reader[topics.SIGNAL_CHANNELS]
    if strange := sorted(set(channels) - CHANNELS):
        reader.problem(
            topics.SIGNAL_CHANNELS.name, f"may hold {', '.join(sorted(CHANNELS))}; not {', '.join(map(repr, strange))}"
        )
    brokers = reader[connect.BOOTSTRAP_SERVERS]
    servers = reader[topics.SIGNAL_SERVERS] or ",".join(brokers)
    if "kafka" in channels:
        if not servers:
            reader.problem(topics.SIGNAL_SERVERS.name, "is required, since the channel kafka is enabled")
        elif reader.is_set(topics.SIGNAL_SERVERS):
            check_servers(reader, topics.SIGNAL_SERVERS.name, servers)
    base = {"bootstrap.servers": servers, "group.id": reader[topics.SIGNAL_GROUP]}
    return SignalsConfig(
        **reader.declared(SignalsConfig),
        source="source" in channels,
        topic=(reader[topics.SIGNAL_TOPIC] or f"{reader[connection.TOPIC_PREFIX]}-signal")
        if "kafka" in channels
        else None,
        consumer=client_settings(reader, ClientKind.CONSUMER, ("signal.consumer.",)).over(base),
        file=reader[topics.SIGNAL_FILE] if "file" in channels else None,
    )
