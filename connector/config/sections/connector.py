"""Builds the configuration from properties, and checks rules that involve several properties; pure."""

import hashlib
import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence

from rowtide.connector.config.catalogue import canal, connect, connection, databus, history, running, topics, values
from rowtide.connector.config.catalogue.property import Property
from rowtide.connector.config.choices import Acknowledge, TransactionBoundary, Values
from rowtide.connector.config.errors import Problem
from rowtide.connector.config.model import (
    Configuration,
    DatabusConfig,
    GuardrailConfig,
    HeartbeatConfig,
    Properties,
    TelemetryConfig,
)
from rowtide.connector.config.secret import Sanitizer
from rowtide.connector.config.sections.converters import converters_config
from rowtide.connector.config.sections.kafka import (
    delivery_config,
    history_config,
    kafka_config,
    uses_kafka,
)
from rowtide.connector.config.sections.property_reader import PropertyReader
from rowtide.connector.config.sections.signals import signals_config
from rowtide.connector.config.sections.source import (
    capture_config,
    database_config,
    failure_config,
    snapshot_config,
    streaming_config,
    values_config,
)
from rowtide.connector.config.sections.topics import topics_config
from rowtide.envelope.column_converters import ColumnConverters
from rowtide.envelope.post_processors import RESELECT, post_processors
from rowtide.envelope.transforms import Plugin, TransformConfigurationError, transform_chain
from rowtide.schema_history.server.query_event import Flavor
from rowtide.topics.addresses import server_problems
from rowtide.topics.java_regex import InvalidPatternError


def build(
    properties: Mapping[str, str], written: Mapping[str, str] | None = None, not_required: Collection[str] = ()
) -> tuple[Configuration, list[Problem]]:
    """Check properties and build a configuration.

    Args:
        properties: Debezium's, Kafka Connect's and Kafka's properties, with references resolved.
        written: the same with references, for display; by default ``properties``.
        not_required: names of required properties that may be absent.

    Returns:
        The configuration, in which invalid properties have their defaults, and all problems.
    """
    texts = properties if written is None else written
    sanitizer = _sanitizer(properties)
    if not uses_kafka(properties):
        not_required = {*not_required, connect.BOOTSTRAP_SERVERS.name}
    reader = PropertyReader(properties, _flavor(properties), sanitizer, not_required, exact=_exact(properties))
    _flavors_agree(reader)
    kafka = kafka_config(reader)
    configuration = Configuration(
        name=reader[connection.NAME] or reader[connection.TOPIC_PREFIX],
        flavor=reader.flavor,
        database=database_config(reader, texts),
        capture=capture_config(reader),
        values=values_config(reader),
        failure=failure_config(reader),
        snapshot=snapshot_config(reader),
        streaming=streaming_config(reader),
        topics=topics_config(reader),
        signals=signals_config(reader),
        heartbeat=HeartbeatConfig(**reader.declared(HeartbeatConfig)),
        history=history_config(reader),
        converters=converters_config(reader),
        delivery=delivery_config(reader, kafka.producer),
        kafka=kafka,
        transforms=_plugins(reader, connect.TRANSFORMS),
        predicates=_plugins(reader, connect.PREDICATES),
        column_converters=_classes(reader, values.CONVERTERS),
        post_processors=_classes(reader, values.POST_PROCESSORS),
        guardrail=GuardrailConfig(**reader.declared(GuardrailConfig)),
        telemetry=TelemetryConfig(**reader.declared(TelemetryConfig)),
        metric_tags=_metric_tags(reader),
        canal_gtids=reader[canal.GTIDS],
        databus=databus_config(reader),
        warnings=tuple(reader.warnings),
        sanitizer=sanitizer,
        properties=Properties(texts),
        file_values=Properties(),
        fingerprint=hashlib.sha256(json.dumps(sorted(properties.items())).encode()).hexdigest(),
    )
    _distinct_topics(reader, configuration)
    _transforms_are_right(reader, configuration)
    _classes_are_right(reader, ColumnConverters, configuration.column_converters)
    _classes_are_right(reader, post_processors, configuration.post_processors)
    _acknowledges_delivery(reader, configuration)
    return configuration, reader.problems


def _sanitizer(properties: Mapping[str, str]) -> Sanitizer:
    try:
        return Sanitizer(properties.get(running.SANITIZE_PATTERN.name) or running.SANITIZE_PATTERN.default)
    except InvalidPatternError:  # reported with the other properties
        return Sanitizer()


def _flavor(properties: Mapping[str, str]) -> Flavor:
    flavor = properties.get(connection.DATABASE_FLAVOR.name, "").strip().lower()
    if flavor in set(Flavor):
        return Flavor(flavor)
    return connection.CONNECTORS.get(properties.get(connection.CONNECTOR_CLASS.name, "").strip().lower(), Flavor.MYSQL)


def _exact(properties: Mapping[str, str]) -> bool:
    """Return whether values are exact. Any of Debezium's classes selects Debezium's values."""
    given = properties.get(values.VALUES.name, "").strip().lower()
    if given in set(Values):
        return given == Values.EXACT
    return not properties.get(connection.CONNECTOR_CLASS.name, "").strip()


def _flavors_agree(reader: PropertyReader) -> None:
    name = reader[connection.CONNECTOR_CLASS]
    if name is None:
        return
    flavor = connection.CONNECTORS.get(name.strip().lower())
    if flavor is None:
        known = "io.debezium.connector.mysql.MySqlConnector, io.debezium.connector.mariadb.MariaDbConnector"
        reader.problem(connection.CONNECTOR_CLASS.name, f"must be one of {known}, not {name!r}")
    elif reader[connection.DATABASE_FLAVOR] not in (None, flavor):
        reader.problem(connection.DATABASE_FLAVOR.name, f"contradicts connector.class={name}")


def _distinct_topics(reader: PropertyReader, configuration: Configuration) -> None:
    """Report every topic of the connector that is configured for two kinds of records."""
    naming, letters = configuration.topics.naming, configuration.delivery.dead_letters
    used = {naming.schema_change: "schema changes (topic.prefix)"}
    own = [
        (topics.TRANSACTION.name, naming.transaction, "transaction metadata"),
        (topics.HEARTBEAT_PREFIX.name, naming.heartbeat, "heartbeats"),
        (connect.OFFSET_TOPIC.name, configuration.delivery.offset_topic, "positions"),
        (history.TOPIC.name, configuration.history.topic, "the schema history"),
        (connect.DEAD_LETTER_TOPIC.name, None if letters is None else letters.topic, "dead letters"),
    ]
    for name, topic, purpose in own:
        if topic is not None and configuration.topics.prefix and used.setdefault(topic, purpose) != purpose:
            reader.problem(
                name, f"the topic {topic!r} is already used for {used[topic]}; another topic is needed for {purpose}"
            )


def _transforms_are_right(reader: PropertyReader, configuration: Configuration) -> None:
    try:
        transform_chain(configuration.transforms, configuration.predicates, exact=configuration.values.exact)
    except TransformConfigurationError as error:
        for problem in error.problems:
            reader.problem(problem.property, problem.message)


def _classes(reader: PropertyReader, property_: Property[tuple[str, ...]]) -> tuple[Plugin, ...]:
    """Return the classes that a property names, each with the options whose prefix is its name."""
    plugins: list[Plugin] = []
    for name in reader[property_]:
        options = reader.with_prefix(f"{name}.")
        plugins.append(Plugin(name, options.pop("type", "").strip(), options))
    return tuple(plugins)


def _classes_are_right(
    reader: PropertyReader, make: Callable[[Sequence[Plugin]], object], plugins: Sequence[Plugin]
) -> None:
    try:
        make(plugins)
    except TransformConfigurationError as error:
        for problem in error.problems:
            reader.problem(problem.property, problem.message)


def _acknowledges_delivery(reader: PropertyReader, configuration: Configuration) -> None:
    """Report acknowledgement after delivery where Kafka does not receive the records immediately."""
    if configuration.streaming.semi_sync is not Acknowledge.DELIVERED:
        return
    delivery, name = configuration.delivery, connection.SEMI_SYNC_ACKNOWLEDGE.name
    if any(one.type == RESELECT for one in configuration.post_processors):
        reader.problem(
            name,
            "must be received with ReselectColumnsPostProcessor: it reads rows as they are after their commit, which "
            "would wait for rowtide",
        )
    if delivery.sink != "kafka":
        reader.problem(name, f"delivered requires rowtide.sink=kafka, not {delivery.sink}; set received")
    elif delivery.exactly_once and delivery.boundary is not TransactionBoundary.POLL:
        reader.problem(
            connect.BOUNDARY.name, f"must be poll with {name}=delivered: a commit on the server waits for Kafka's"
        )


def _plugins(reader: PropertyReader, names: Property[tuple[str, ...]]) -> tuple[Plugin, ...]:
    plugins: list[Plugin] = []
    for name in reader[names]:
        options = reader.with_prefix(f"{names.name}.{name}.")
        plugins.append(Plugin(name, options.pop("type", "").strip(), options))
    return tuple(plugins)


def _metric_tags(reader: PropertyReader) -> dict[str, str]:
    tags: dict[str, str] = {}
    for item in reader[running.METRIC_TAGS]:
        name, equals, value = item.partition("=")
        if not equals or not re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_]*", name.strip()):
            reader.problem(running.METRIC_TAGS.name, f"{item!r} is not of the form name=value")
        tags[name.strip()] = value.strip()
    return tags


def databus_config(reader: PropertyReader) -> DatabusConfig:
    """Return the settings of the databus server."""
    servers = reader[databus.ZOOKEEPER]
    for problem in server_problems(",".join(servers), "ZooKeeper server") if servers else ():
        reader.problem(databus.ZOOKEEPER.name, problem)
    return DatabusConfig(**reader.declared(DatabusConfig))
