"""Checks that Kafka can be reached by each client."""

import socket
from collections.abc import Iterator, Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from rowtide.connector.check.findings import Finding, Severity, errors_in
from rowtide.connector.config import ClientSettings, Configuration
from rowtide.connector.config.catalogue import connect
from rowtide.connector.config.choices import ProducerKind
from rowtide.connector.config.kafka.producer_settings import native_problems
from rowtide.connector.delivery.kafka import producers
from rowtide.connector.kafka_producer.connection.settings import addresses

_K: Any = KafkaError
_LOOK_S = 1.0
_ADVICE = "Check the addresses, that a broker runs there, its advertised.listeners, and security.protocol"


def broker_findings(config: Configuration, *, timeout: float = 10.0) -> list[Finding]:
    """Return the findings about Kafka's clients and brokers: settings, connections, log-ins.

    Args:
        config: the configuration.
        timeout: seconds to wait for an answer.
    """
    found = list(_settings(config))
    if not errors_in(found):
        found += _reach(config.kafka.admin, "bootstrap.servers", timeout)
    if errors_in(found):
        return found
    for name, client in (("producer.override", config.kafka.producer), ("consumer.override", config.kafka.consumer)):
        connection = connection_settings(client)
        if connection != connection_settings(config.kafka.admin):
            found += [
                finding._replace(subject=f"{name}.{finding.subject}")
                for finding in _reach(connection, "bootstrap.servers", timeout)
            ]
    history, servers = config.history, config.kafka.bootstrap_servers
    if history.topic is not None and history.admin["bootstrap.servers"] != servers:
        found += _reach(history.admin, "schema.history.internal.kafka.bootstrap.servers", timeout)
    if config.signals.topic is not None and config.signals.consumer["bootstrap.servers"] != servers:
        about = _reach(connection_settings(config.signals.consumer), "signal.kafka.bootstrap.servers", timeout)
        # A connector whose signals cannot be read runs.
        found += [finding._replace(severity=Severity.WARNING) for finding in about]
    return found


def _settings(config: Configuration) -> Iterator[Finding]:
    """Yield the settings that librdkafka itself refuses, such as a missing certificate file."""
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
            yield Finding.error(name, f"Kafka's client refuses these settings: {reason}")
    if config.delivery.sink == "kafka":
        yield from producer_findings(config.delivery.producer, config.kafka.producer)


def producer_findings(kind: ProducerKind, settings: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield the reason why ``rowtide.producer=auto`` chooses librdkafka, or the native producer cannot send records."""
    if kind is ProducerKind.AUTO:
        reason = producers.why_librdkafka(settings)
        if reason is not None:
            yield Finding.remark(connect.PRODUCER_KIND.name, f"librdkafka sends the records, because {reason}")
    elif kind is ProducerKind.NATIVE and not any(native_problems(settings)):  # those of the configuration
        problem, warning = producers.native_problem(settings), producers.native_warning()
        if problem is not None:
            yield Finding.error(connect.PRODUCER_KIND.name, problem)
        elif warning is not None:
            yield Finding.warning(connect.PRODUCER_KIND.name, f"native {warning}")


def connection_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a client that determine its brokers and its login."""
    prefixes = ("bootstrap.", "metadata.broker.", "security.", "sasl.", "ssl.", "enable.ssl.", "enable.sasl.")
    return {name: value for name, value in settings.items() if name.startswith(prefixes)}


def _reach(settings: Mapping[str, Any], name: str, timeout: float) -> list[Finding]:
    """Return the finding if no broker answers."""
    servers = settings["bootstrap.servers"]
    if _is_refused(servers):
        message = f"no Kafka broker answers at {servers}: Connection refused. {_ADVICE}"
        return [Finding.error(name, message, retriable=True)]
    reasons: list[KafkaError] = []
    options: dict[str, Any] = {"log_level": 0, **settings, "error_cb": reasons.append}
    client = AdminClient(options)
    try:
        client.list_topics(timeout=timeout)
    except KafkaException as error:
        client.poll(0)
        reason = _most_specific([*reasons, error.args[0]])
        text = reason.str()
        if reason.code() in (_K._AUTHENTICATION, _K.SASL_AUTHENTICATION_FAILED):  # noqa: SLF001 - librdkafka's codes
            message = (
                f"Kafka at {servers} does not accept the log-in: {text}. Check sasl.mechanism and sasl.jaas.config"
            )
            return [Finding.error("sasl.jaas.config", message)]
        if reason.code() == _K._SSL:  # noqa: SLF001
            message = (
                f"no TLS connection to Kafka at {servers}: {text}. Check security.protocol and ssl.truststore.location"
            )
            return [Finding.error("security.protocol", message)]
        message = f"no Kafka broker answers at {servers} within {timeout:.0f} s: {text}. {_ADVICE}"
        return [Finding.error(name, message, retriable=True)]
    return []


def _is_refused(servers: str) -> bool:
    """Return whether all brokers refuse connections: librdkafka would retry until its timeout."""
    try:
        brokers = addresses(servers)
    except ValueError:  # librdkafka says what is wrong
        return False
    for broker in brokers:
        try:
            socket.create_connection((broker.host, broker.port), _LOOK_S).close()
        except ConnectionRefusedError:
            continue
        except (OSError, UnicodeError):  # the latter for a name that cannot be that of a host
            pass
        return False
    return True


def _most_specific(errors: list[KafkaError]) -> KafkaError:
    """Return the error to report: a refused log-in on one broker is more useful than the error that all are down."""
    rank = {_K._AUTHENTICATION: 3, _K.SASL_AUTHENTICATION_FAILED: 3, _K._SSL: 3, _K._RESOLVE: 2, _K._TRANSPORT: 1}  # noqa: SLF001
    return max(errors, key=lambda error: rank.get(error.code(), 0))
