"""Edge: checks that Kafka can be reached, and that its topics meet the connector's requirements."""

from collections.abc import Iterator, Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from rowtide.connector.check.facts import TableFact
from rowtide.connector.check.findings import Finding, Severity
from rowtide.connector.check.message_sizes import size_findings
from rowtide.connector.config import ClientSettings, Configuration
from rowtide.topics.admin import TopicAdmin
from rowtide.topics.errors import TopicError
from rowtide.topics.internal import wrong_history_config
from rowtide.topics.settings import TopicCreation

_SHOWN = 5
_K: Any = KafkaError


def broker_findings(
    config: Configuration, tables: tuple[TableFact, ...] | None = None, *, timeout: float = 10.0
) -> list[Finding]:
    """Findings about Kafka.

    Args:
        config: the configuration.
        tables: the tables on the server, to look up the topics of captured ones; ``None`` if they are not known.
        timeout: seconds to wait for an answer.
    """
    found = list(_settings(config))
    if found:
        return found
    problems, brokers = _reach(config.kafka.admin, "bootstrap.servers", timeout)
    if problems:
        return problems
    for name, client in (("producer.override", config.kafka.producer), ("consumer.override", config.kafka.consumer)):
        connection = _connection(client)
        if connection != _connection(config.kafka.admin):
            found += [
                finding._replace(subject=f"{name}.{finding.subject}")
                for finding in _reach(connection, "bootstrap.servers", timeout)[0]
            ]
    if found:
        return found
    found += _replication_factors(config, brokers)
    found += _topics(config, tables, timeout)
    history = config.history
    if history.topic is not None:
        if history.admin["bootstrap.servers"] != config.kafka.bootstrap_servers:
            problems, _ = _reach(history.admin, "schema.history.internal.kafka.bootstrap.servers", timeout)
            if problems:
                return found + problems
        found += _history(history.topic, history.admin, timeout)
    return found


def _settings(config: Configuration) -> Iterator[Finding]:
    """Settings that librdkafka itself refuses, such as a missing certificate file."""
    clients: tuple[tuple[str, Any, ClientSettings], ...] = (
        ("producer.override", Producer, config.kafka.producer),
        ("consumer", Consumer, config.kafka.consumer.over({"group.id": "rowtide-check"})),
        ("admin", AdminClient, config.kafka.admin),
        ("schema.history.internal.producer", Producer, config.history.producer),
        ("schema.history.internal.consumer", Consumer, config.history.consumer.over({"group.id": "rowtide-check"})),
    )
    for name, client, settings in clients:
        try:
            made = client({"log_level": 0, **settings})
            if client is Consumer:
                made.close()
        except (KafkaException, ValueError) as error:
            reason = error.args[0].str() if isinstance(error, KafkaException) else str(error)
            yield Finding(Severity.ERROR, name, f"Kafka's client refuses these settings: {reason}")


def _connection(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a client that decide which broker it connects to, and as whom."""
    prefixes = ("bootstrap.", "metadata.broker.", "security.", "sasl.", "ssl.", "enable.ssl.", "enable.sasl.")
    return {name: value for name, value in settings.items() if name.startswith(prefixes)}


def _reach(settings: Mapping[str, Any], name: str, timeout: float) -> tuple[list[Finding], int]:
    """The number of brokers, or the finding if none answers."""
    reasons: list[KafkaError] = []
    options: dict[str, Any] = {"log_level": 0, **settings, "error_cb": reasons.append}
    client = AdminClient(options)
    try:
        return [], len(client.list_topics(timeout=timeout).brokers)
    except KafkaException as error:
        client.poll(0)
        reason = _most_specific([*reasons, error.args[0]])
        servers = settings["bootstrap.servers"]
        text = reason.str()
        if reason.code() in (_K._AUTHENTICATION, _K.SASL_AUTHENTICATION_FAILED):  # noqa: SLF001 - librdkafka's codes
            message = (
                f"Kafka at {servers} does not accept the log-in: {text}. Check sasl.mechanism and sasl.jaas.config"
            )
            return [Finding(Severity.ERROR, "sasl.jaas.config", message)], 0
        if reason.code() == _K._SSL:  # noqa: SLF001
            message = (
                f"no TLS connection to Kafka at {servers}: {text}. Check security.protocol and ssl.truststore.location"
            )
            return [Finding(Severity.ERROR, "security.protocol", message)], 0
        message = (
            f"no Kafka broker answers at {servers} within {timeout:.0f} s: {text}. Check the addresses, that a broker "
            "runs there, its advertised.listeners, and security.protocol"
        )
        return [Finding(Severity.ERROR, name, message, retriable=True)], 0


def _most_specific(errors: list[KafkaError]) -> KafkaError:
    """The error to report: that one broker refused the log-in says more than that all are down."""
    rank = {_K._AUTHENTICATION: 3, _K.SASL_AUTHENTICATION_FAILED: 3, _K._SSL: 3, _K._RESOLVE: 2, _K._TRANSPORT: 1}  # noqa: SLF001
    return max(errors, key=lambda error: rank.get(error.code(), 0))


def _replication_factors(config: Configuration, brokers: int) -> Iterator[Finding]:
    factors = [("topic.creation.default.replication.factor", config.topics.creation.default.replication_factor)]
    factors += [
        (f"topic.creation.{group.name}.replication.factor", group.settings.replication_factor)
        for group in config.topics.creation.groups
    ]
    factors.append(("offset.storage.replication.factor", config.delivery.offset_topic_settings.replication_factor))
    for name, factor in factors:
        if factor > brokers:
            yield Finding(Severity.ERROR, name, f"is {factor}, but Kafka has {brokers} broker{'s' * (brokers != 1)}")


def _history(topic: str, settings: Mapping[str, Any], timeout: float) -> Iterator[Finding]:
    name = "schema.history.internal.kafka.topic"
    try:
        found = TopicAdmin(settings, timeout).describe(topic)
    except TopicError as error:
        yield Finding(Severity.ERROR, name, str(error))
        return
    if found is None:
        return
    if found.partitions != 1:
        yield Finding(
            Severity.ERROR,
            name,
            f"the topic {topic} has {found.partitions} partitions, but a history keeps its order only with "
            "one; name another topic, or copy the records to a new one",
        )
    wrong = wrong_history_config(found.config)
    if wrong:
        now = ", ".join(f"{setting}={found.config.get(setting)}" for setting in wrong)
        repaired = ",".join(f"{setting}={value}" for setting, value in wrong.items())
        message = f"the topic {topic} has {now} and will lose records; the connector sets {repaired} when it starts"
        yield Finding(Severity.WARNING, name, message)


def _topics(config: Configuration, tables: tuple[TableFact, ...] | None, timeout: float) -> Iterator[Finding]:
    admin = TopicAdmin(config.kafka.admin, timeout)
    try:
        yield from _offsets(config, admin)
        yield from _refused(config, admin)
        if config.delivery.sink == "kafka":
            topics = [] if tables is None else _data_topics(config, tables)
            yield from _missing(config.topics.creation, topics, admin)
            yield from size_findings(config, topics, admin)
    except TopicError as error:
        yield Finding(Severity.ERROR, "bootstrap.servers", str(error))


def _offsets(config: Configuration, admin: TopicAdmin) -> Iterator[Finding]:
    topic = config.delivery.offset_topic
    if topic is None:
        return
    found = admin.describe(topic)
    policy = None if found is None else found.config.get("cleanup.policy")
    if policy not in (None, "compact"):
        yield Finding(
            Severity.ERROR,
            "offset.storage.topic",
            f"the topic {topic} has cleanup.policy={policy} and would lose positions; it must be compact",
        )


def _refused(config: Configuration, admin: TopicAdmin) -> Iterator[Finding]:
    """Settings of new topics that Kafka does not accept; without the check, the first record would fail."""
    creation = config.topics.creation
    kinds = [("default", creation.default), *((group.name, group.settings) for group in creation.groups)]
    for name, settings in kinds if creation.enabled else ():
        refusal = admin.rejection(f"{config.topics.prefix}.rowtide-check", settings)
        if refusal is not None:
            message = f"Kafka does not accept these settings for a topic: {refusal}"
            yield Finding(Severity.ERROR, f"topic.creation.{name}", message)


def _data_topics(config: Configuration, tables: tuple[TableFact, ...]) -> list[str]:
    naming = config.topics.naming
    return sorted(
        {
            naming.data_change(table.database, table.name)
            for table in tables
            if config.capture.tables.captures(table.database, table.name)
        }
    )


def _missing(creation: TopicCreation, topics: list[str], admin: TopicAdmin) -> Iterator[Finding]:
    if creation.enabled:
        return
    missing = [topic for topic in topics if admin.partitions(topic) is None]
    if missing:
        more = f" and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else ""
        yield Finding(
            Severity.WARNING,
            "topic.creation.enable",
            f"is false, and these topics are missing: {', '.join(missing[:_SHOWN])}{more}. Create them, or set "
            "auto.create.topics.enable on the brokers",
        )
