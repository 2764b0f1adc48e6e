"""The settings of a fleet's worker, with Kafka Connect's names, and the configurations of its connectors."""

import hashlib
import json
import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from rowtide._version import __version__
from rowtide.connector.config import (
    Configuration,
    ConfigurationError,
    Problem,
    catalogue,
    from_properties,
    read_properties,
    read_written_properties,
)
from rowtide.connector.config.catalogue import connect, connection
from rowtide.connector.config.catalogue.kinds import integer, long, names, optional, text
from rowtide.connector.config.catalogue.property import Property
from rowtide.connector.config.choices import ExactlyOnceSource
from rowtide.connector.config.kafka.clients import ClientSettings
from rowtide.connector.config.load import Paths
from rowtide.connector.config.secret import Sanitizer
from rowtide.connector.config.sections.kafka import kafka_config
from rowtide.connector.config.sections.property_reader import PropertyReader
from rowtide.connector.kafka_producer.connection.errors import NotSupported
from rowtide.connector.kafka_producer.connection.settings import ConnectionSettings, connection_settings
from rowtide.connector.worker.validation import password_source_problem
from rowtide.schema_history.server.query_event import Flavor
from rowtide.topics.settings import BROKER_DEFAULT, TopicSettings

_TOPIC = text(r"[a-zA-Z0-9_.\-]{1,249}", "is not a valid name of a topic")

CONFIG_TOPIC = Property(
    "config.storage.topic", _TOPIC, "", "The topic of the connectors' configurations.", required=True
)
STATUS_TOPIC = Property("status.storage.topic", _TOPIC, "", "The topic of the connectors' states.", required=True)
STATUS_PARTITIONS = Property(
    "status.storage.partitions", integer(1), 5, "Its number of partitions, when it is created."
)
CONFIG_REPLICAS = Property(
    "config.storage.replication.factor", integer(-1), BROKER_DEFAULT, "Its number of replicas, when it is created."
)
STATUS_REPLICAS = Property(
    "status.storage.replication.factor", integer(-1), BROKER_DEFAULT, "Its number of replicas, when it is created."
)
FLEET_TOPIC = Property(
    "rowtide.fleet.topic",
    optional(_TOPIC),
    None,
    "The topic whose partitions the workers share: a connector runs where its partition is.",
    default_text="<group.id>-fleet",
)
FLEET_PARTITIONS = Property(
    "rowtide.fleet.partitions",
    integer(1, 1000),
    32,
    "Its number of partitions, when it is created: as many machines at most can share the connectors.",
)
LABELS = Property(
    "rowtide.worker.labels",
    names(),
    (),
    "The labels of the worker: it also shares the connectors whose `rowtide.runs.on` is one of them.",
    default_text="none",
)
BALANCE = Property(
    "rowtide.fleet.balance.interval.ms",
    long(0),
    0,
    "How often a connector may move to a worker with less load, in milliseconds; 0 to spread connectors by number.",
)
SESSION = Property(
    "session.timeout.ms",
    integer(3000),
    6000,
    "After this time without a heartbeat, in milliseconds, a worker's connectors run on other workers. "
    "Brokers accept 6000 and more, unless `group.min.session.timeout.ms` says otherwise.",
)
ADVERTISED_HOST = Property(
    "rest.advertised.host.name",
    optional(text()),
    None,
    "The name of the machine under which other machines reach the worker's web server.",
    default_text="the machine's name",
)
ADVERTISED_PORT = Property(
    "rest.advertised.port",
    optional(integer(1, 65535)),
    None,
    "The port under which they reach it.",
    default_text="the server's port",
)
HEARTBEAT = Property(
    "heartbeat.interval.ms", integer(100), 1500, "How often a worker sends a heartbeat, in milliseconds."
)
PROPERTIES = (
    CONFIG_TOPIC,
    STATUS_TOPIC,
    STATUS_PARTITIONS,
    CONFIG_REPLICAS,
    STATUS_REPLICAS,
    FLEET_TOPIC,
    FLEET_PARTITIONS,
    LABELS,
    BALANCE,
    SESSION,
    HEARTBEAT,
    ADVERTISED_HOST,
    ADVERTISED_PORT,
)
"""The properties of a worker that connectors do not have."""

_LEAST_BALANCE_MS = 1000
"""Loads are sampled once a second."""
_WORKER = re.compile(connect.WORKER_ONLY.pattern)
"""Properties that mean nothing to connectors."""

_OWN = re.compile(rf"group\.id|bootstrap\.servers|{connect.WORKER_ONLY.pattern}|{connect.CLIENTS.pattern}")
"""Properties that a worker reads itself."""

CLIENT_ID = "rowtide:"
"""The beginning of the client ids of a fleet's workers."""


@dataclass(frozen=True, slots=True)
class FleetSettings:
    """The settings of a fleet's worker.

    Attributes:
        properties: all properties of the worker, as written: those of connectors are their defaults. A connector
            resolves their references at its start.
        group: ``group.id``, which names the fleet.
        config_topic: ``config.storage.topic``.
        status_topic: ``status.storage.topic``.
        fleet_topic: ``rowtide.fleet.topic``.
        labels: ``rowtide.worker.labels``.
        balance_s: ``rowtide.fleet.balance.interval.ms``, in seconds; 0 if loads are not balanced.
        topics: the settings of these topics, for those that do not exist.
        session_s: ``session.timeout.ms``, in seconds.
        heartbeat_s: ``heartbeat.interval.ms``, in seconds.
        advertised_host: ``rest.advertised.host.name``; ``None`` for this machine's name.
        advertised_port: ``rest.advertised.port``; ``None`` for the web server's.
        connection: the settings of the connection to Kafka.
        producer: librdkafka's settings of producers, including those of the connection.
        consumer: the settings of consumers.
        admin: the same of admin clients.
    """

    properties: Mapping[str, str]
    group: str
    config_topic: str
    status_topic: str
    fleet_topic: str
    labels: tuple[str, ...]
    balance_s: float
    topics: Mapping[str, TopicSettings]
    session_s: float
    heartbeat_s: float
    advertised_host: str | None
    advertised_port: int | None
    connection: ConnectionSettings
    producer: ClientSettings
    consumer: ClientSettings
    admin: ClientSettings

    @property
    def client_id(self) -> str:
        """Return the client id of a member of the fleet's consumer group, which two fleets must not share."""
        return f"{CLIENT_ID}{self.config_topic}"

    def shared_topic(self, label: str | None) -> str:
        """Return the topic whose partitions the workers with a label, or all workers for ``None``, share."""
        return self.fleet_topic if label is None else f"{self.fleet_topic}.{label}"

    @property
    def shared_topics(self) -> list[str]:
        """The topics whose partitions this worker shares."""
        return [self.shared_topic(label) for label in (None, *self.labels)]


def fleet_settings(paths: Paths, environ: Mapping[str, str] = os.environ) -> FleetSettings:
    """Read the settings of a worker.

    Args:
        paths: its files.
        environ: the environment, for ``ROWTIDE_…`` overrides and references.

    Raises:
        ConfigurationError: with all problems.
    """
    properties, unresolved = read_properties(paths, environ)
    problems = list(unresolved)
    of_connectors = {property_.name for property_ in catalogue.PROPERTIES.values() if property_.required}
    of_connectors.remove(connect.BOOTSTRAP_SERVERS.name)
    reader = PropertyReader(properties, Flavor.MYSQL, Sanitizer(), of_connectors)
    own = {property_.name: _read(property_, properties, problems) for property_ in PROPERTIES}
    kafka = kafka_config(reader)
    problems += reader.problems
    if not reader.is_set(connect.GROUP_ID):
        problems.append(Problem(connect.GROUP_ID.name, "is required: it is the same for all workers of a fleet"))
    if own[HEARTBEAT.name] * 3 > own[SESSION.name]:
        problems.append(Problem(HEARTBEAT.name, f"must be at most a third of {SESSION.name}={own[SESSION.name]}"))
    if 0 < own[BALANCE.name] < _LEAST_BALANCE_MS:
        message = f"must be 0, or at least {_LEAST_BALANCE_MS} milliseconds: a move is a restart"
        problems.append(Problem(BALANCE.name, message))
    for label in own[LABELS.name]:
        if re.fullmatch(connect.LABEL, label) is None:
            problems.append(Problem(LABELS.name, f"a label has 1 to 60 letters, digits, _ and -, not {label!r}"))
    if connect.RUNS_ON.name in properties:
        message = f"is a property of a connector, not of all connectors of a worker, whose labels are {LABELS.name}"
        problems.append(Problem(connect.RUNS_ON.name, message))
    connection = _connection(kafka.consumer, problems)
    if problems or connection is None:
        raise ConfigurationError(problems)
    group = reader[connect.GROUP_ID]
    fleet_topic = own[FLEET_TOPIC.name] or f"{group}-fleet"
    compacted = {"cleanup.policy": "compact"}
    shared = TopicSettings(own[FLEET_PARTITIONS.name], own[CONFIG_REPLICAS.name], compacted)
    found = FleetSettings(
        properties=read_written_properties(paths, environ),
        group=group,
        config_topic=own[CONFIG_TOPIC.name],
        status_topic=own[STATUS_TOPIC.name],
        fleet_topic=fleet_topic,
        labels=own[LABELS.name],
        balance_s=own[BALANCE.name] / 1000,
        topics={
            own[CONFIG_TOPIC.name]: TopicSettings(1, own[CONFIG_REPLICAS.name], compacted),
            own[STATUS_TOPIC.name]: TopicSettings(own[STATUS_PARTITIONS.name], own[STATUS_REPLICAS.name], compacted),
        },
        session_s=own[SESSION.name] / 1000,
        heartbeat_s=own[HEARTBEAT.name] / 1000,
        advertised_host=own[ADVERTISED_HOST.name],
        advertised_port=own[ADVERTISED_PORT.name],
        connection=connection,
        producer=kafka.producer,
        consumer=kafka.consumer,
        admin=kafka.admin,
    )
    return replace(found, topics={**found.topics, **dict.fromkeys(found.shared_topics, shared)})


def own_changes(before: FleetSettings, now: FleetSettings) -> list[str]:
    """Return the properties that the worker itself has read, rather than its connectors, and that have changed."""
    if replace(now, properties=before.properties) == before:
        return []
    names = {*before.properties, *now.properties}
    changed = sorted(name for name in names if before.properties.get(name) != now.properties.get(name))
    return [name for name in changed if _OWN.fullmatch(name)] or changed or ["the value of a reference"]


def label_of(properties: Mapping[str, str]) -> str | None:
    """Return the label of the workers that may run a connector; ``None`` for any worker.

    It is the text as written: all workers must agree on it, and a reference may have different values on each.
    """
    return properties.get(connect.RUNS_ON.name, "").strip() or None


def connector_configuration(
    settings: FleetSettings,
    name: str,
    properties: Mapping[str, str],
    environ: Mapping[str, str] = os.environ,
    not_required: Collection[str] = (),
) -> Configuration:
    """Build the configuration of a connector of the fleet: its own properties over those of the worker.

    Records and position are always written in one transaction under the connector's own transactional id: when another
    worker takes a connector over, Kafka fences the worker that still has it.

    Args:
        settings: of the worker.
        name: of the connector.
        properties: its configuration.
        environ: the environment, for references.
        not_required: names of properties that may be absent.

    Raises:
        ConfigurationError: with all problems.
    """
    fleet = {
        "name": name,
        connect.GROUP_ID.name: settings.group,
        connect.EXACTLY_ONCE_SOURCE.name: ExactlyOnceSource.ENABLED.value,
        connect.STANDBY.name: "false",  # the fleet itself decides where it runs
    }
    defaults = {name: value for name, value in settings.properties.items() if _WORKER.fullmatch(name) is None}
    if connection.PASSWORD_SOURCE.name in properties:
        raise ConfigurationError([password_source_problem()])
    if connection.PASSWORD.name in properties:
        defaults.pop(connection.PASSWORD_SOURCE.name, None)
    given = {**defaults, **properties, **fleet}
    if given.get(connect.SINK.name, "kafka") != "kafka":
        raise ConfigurationError([Problem(connect.SINK.name, "must be kafka in a fleet: Kafka fences its connectors")])
    label = label_of(properties)
    if label is not None and re.fullmatch(connect.LABEL, label) is None:
        message = f"must be a label of workers, as {LABELS.name} has it; a reference cannot be one, not {label!r}"
        raise ConfigurationError([Problem(connect.RUNS_ON.name, message)])
    return from_properties(given, environ, not_required)


def digest(config: Configuration) -> str:
    """Return a text that differs for another configuration of a connector, or another version of rowtide.

    Secrets do not count: it is written to a topic.
    """
    text = json.dumps([__version__, sorted(config.masked_properties().items())])
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _read(property_: Property[Any], properties: Mapping[str, str], problems: list[Problem]) -> Any:
    given = properties.get(property_.name, "")
    if not given.strip():
        if property_.required:
            problems.append(Problem(property_.name, f"is required. {property_.doc}"))
        return property_.default
    try:
        return property_.kind.parse(given)
    except ValueError as error:
        problems.append(Problem(property_.name, f"{error}, not {given!r}"))
        return property_.default


def _connection(settings: Mapping[str, str], problems: list[Problem]) -> ConnectionSettings | None:
    """Return the connection settings of Faust's client, which does not support Kerberos or OAUTHBEARER here."""
    try:
        return connection_settings(settings)
    except NotSupported as error:
        problems.append(Problem(error.setting, "is not supported by a fleet: log in by PLAIN, SCRAM or a certificate"))
    except ValueError as error:
        if settings.get("bootstrap.servers"):
            problems.append(Problem(connect.BOOTSTRAP_SERVERS.name, str(error)))
    return None
