"""The properties of Canal's Kafka mode: ``canal.mq.*`` of both files, and ``kafka.*``. Pure.

``kafka.*`` are settings of Java's producer. Those that would weaken the delivery have no effect.
"""

from collections.abc import Mapping

from rowtide.canal.configuration.model import KafkaSettings
from rowtide.canal.configuration.reader import CanalPropertyReader
from rowtide.canal.mq.messages import CanalMessageForm
from rowtide.canal.mq.routing import Router, Routes
from rowtide.canal.server.stored_entry import BatchMode
from rowtide.connector.config.catalogue.connect import PRODUCER_KIND
from rowtide.connector.config.choices import ProducerKind
from rowtide.connector.config.kafka.clients import ClientKind, translate
from rowtide.connector.config.kafka.producer_settings import (
    ProducerSettingsError,
    idempotent_settings,
    native_problems,
    transactional_settings,
)

OF_DESTINATION: Mapping[str, str] = {
    "canal.mq.topic": "",
    "canal.mq.partition": "",
    "canal.mq.partitionsNum": "",
    "canal.mq.partitionHash": "",
    "canal.mq.dynamicTopic": "",
    "canal.mq.dynamicTopicPartitionNum": "",
}
"""Properties of a destination, with their defaults."""

OF_SERVER: Mapping[str, str] = {
    "canal.mq.flatMessage": "true",
    "canal.mq.canalBatchSize": "50",
    "canal.mq.database.hash": "true",
    "canal.mq.exactlyOnce": "false",
    "canal.mq.offsetsTopic": "rowtide-canal-offsets",
    "canal.mq.producer": PRODUCER_KIND.default,
}
"""Properties of the server, with their defaults. The last three are rowtide's own."""

_OLD_NAMES: Mapping[str, str] = {
    "canal.mq.servers": "bootstrap.servers",
    "canal.mq.compressionType": "compression.type",
    "canal.mq.batchSize": "batch.size",
    "canal.mq.lingerMs": "linger.ms",
    "canal.mq.maxRequestSize": "max.request.size",
    "canal.mq.bufferMemory": "buffer.memory",
}
"""Names of Canal up to 1.1.4. As in Canal, they take precedence."""

_PREFIX = "kafka."
_IGNORED = {
    "acks": "rowtide waits for all replicas",
    "retries": "rowtide retries until Kafka acknowledges",
    "max.in.flight.requests.per.connection": "rowtide sends one request at a time, which keeps the order",
    "key.serializer": "there are no keys",
    "value.serializer": "rowtide makes the bytes",
}
_OLD_IGNORED = {"canal.mq.acks": _IGNORED["acks"], "canal.mq.retries": _IGNORED["retries"]}
_KERBEROS = ("kafka.kerberos.enable", "canal.mq.kafka.kerberos.enable")
_KERBEROS_FILES = ("kafka.kerberos.", "canal.mq.kafka.kerberos.")


def of_kafka(name: str) -> bool:
    """Return whether a property of the server belongs to the Kafka mode."""
    old = name in _OLD_NAMES or name in _OLD_IGNORED or name.startswith(_KERBEROS_FILES)
    return old or name in OF_SERVER or name.startswith(_PREFIX)


def ignored_properties(properties: Mapping[str, str]) -> list[str]:
    """Return notes on the properties that have no effect."""
    reasons = {**{_PREFIX + name: reason for name, reason in _IGNORED.items()}, **_OLD_IGNORED}
    return [f"{name} has no effect: {reason}" for name, reason in reasons.items() if properties.get(name)]


def kafka_settings(
    server: CanalPropertyReader, properties: Mapping[str, str], instance: CanalPropertyReader, name: str
) -> KafkaSettings:
    """Return the Kafka mode of one destination.

    Args:
        server: values of ``canal.properties``.
        properties: its properties.
        instance: values of ``instance.properties``.
        name: the destination.
    """
    unit = instance.number("canal.instance.memory.buffer.memunit", 1, 1024)
    counts_entries = instance.text("canal.instance.memory.batch.mode") == "ITEMSIZE"
    filters = properties.get("canal.instance.filter.transaction.entry", "") or "true"
    form = CanalMessageForm(
        server.flag("canal.mq.flatMessage"),
        filters.strip().lower() != "true",
        server.number("canal.mq.canalBatchSize", 1, 50),
        BatchMode(counts_entries, 1 if counts_entries else unit),
        instance.flag("canal.instance.get.ddl.isolation"),
    )
    routes = Routes(
        instance.required("canal.mq.topic"),
        instance.number("canal.mq.partition"),
        instance.number("canal.mq.partitionsNum", 1, 1),
        instance.text("canal.mq.partitionHash"),
        instance.text("canal.mq.dynamicTopic"),
        instance.text("canal.mq.dynamicTopicPartitionNum"),
        server.flag("canal.mq.database.hash"),
    )
    for rule in ("partition_hash", "dynamic_topic", "dynamic_partitions"):
        try:
            Router(Routes(routes.topic, **{rule: getattr(routes, rule)}))
        except ValueError as error:  # among them those of regular expressions
            instance.problem(_RULES[rule], str(error))
    producer, consumer, admin = (_client(server, properties, kind) for kind in ClientKind)
    exactly_once = server.flag("canal.mq.exactlyOnce")
    # Two Canal servers may use the same Kafka for destinations with the same name, most often "example".
    transactional_id = f"rowtide-canal-{name}-{instance.text('canal.instance.master.address')}"
    try:
        made = transactional_settings(producer, transactional_id) if exactly_once else idempotent_settings(producer)
    except ProducerSettingsError as error:
        server.problem("kafka", str(error).replace("producer.override.", _PREFIX))
        made = {}
    kind = server.parsed("canal.mq.producer", _producer_kind, PRODUCER_KIND.default)
    if kind is ProducerKind.NATIVE:
        for problem in native_problems(made):
            server.problem(_PREFIX + problem.property, problem.message.replace("rowtide.producer", "canal.mq.producer"))
    return KafkaSettings(routes, form, kind, made, consumer, admin, server.text("canal.mq.offsetsTopic"), exactly_once)


def _producer_kind(text: str) -> ProducerKind:
    if text not in ProducerKind.__members__.values():
        raise ValueError(f"must be one of {', '.join(ProducerKind)}, not {text!r}")
    return ProducerKind(text)


_RULES = {
    "partition_hash": "canal.mq.partitionHash",
    "dynamic_topic": "canal.mq.dynamicTopic",
    "dynamic_partitions": "canal.mq.dynamicTopicPartitionNum",
}


def _client(server: CanalPropertyReader, properties: Mapping[str, str], kind: ClientKind) -> dict[str, str]:
    """Return the settings of one of Kafka's clients, with librdkafka's names."""
    if any(properties.get(name, "").strip().lower() == "true" for name in _KERBEROS):
        server.problem(
            "kafka.kerberos.enable",
            "Java's JAAS files are not read; set kafka.security.protocol, kafka.sasl.mechanism=GSSAPI and "
            "kafka.sasl.jaas.config with Krb5LoginModule, keyTab and principal",
        )
    given = {
        name.removeprefix(_PREFIX): value.strip()
        for name, value in properties.items()
        if name.startswith(_PREFIX) and not name.startswith(_KERBEROS_FILES) and value
    }
    given |= {setting: properties[old].strip() for old, setting in _OLD_NAMES.items() if properties.get(old)}
    given = {name: value for name, value in given.items() if name not in _IGNORED}
    if "bootstrap.servers" not in given:
        server.problem("kafka.bootstrap.servers", "is required with canal.serverMode=kafka")
    found, problems = translate(kind, _PREFIX, given, strict=kind is ClientKind.PRODUCER)
    for problem in problems:
        server.problem(problem.property, problem.message)
    return found
