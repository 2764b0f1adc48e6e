"""The producer's settings, with librdkafka's names: rowtide's defaults, and those that delivery requires. Pure.

The user's settings (``producer.override.*``) override the defaults. A setting that contradicts the delivery guarantee
is an error.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from rowtide.connector.config.errors import Problem
from rowtide.connector.kafka_producer.librdkafka_settings import unsupported
from rowtide.schema_history.store.client_limits import CLIENT_LIMITS

_ANSWER_MS = int(CLIENT_LIMITS["socket.timeout.ms"])
_REPLICAS = 0.75
"""The part of the time for an answer in which the broker may wait for its replicas."""

DEFAULTS: Mapping[str, Any] = {
    **CLIENT_LIMITS,
    "request.timeout.ms": round(_ANSWER_MS * _REPLICAS),
    "partitioner": "murmur2_random",  # as Java's producer, so that rows keep their partitions when rowtide takes over
    "message.max.bytes": 1048576,  # Java's max.request.size; librdkafka's default is slightly smaller
    "queue.buffering.max.kbytes": 65536,  # librdkafka's default is 1 GiB; raised for larger messages
    "queue.buffering.max.messages": 100000,
    # Records of incomplete batches wait this long while others are ready to be sent, see ``delivery/kafka/lingering``.
    "linger.ms": 50,
    "message.timeout.ms": 0,  # retry forever, as Kafka Connect does; back-pressure bounds the queue
}
"""rowtide's defaults where they differ from librdkafka's."""

_NO_NEW_TOPICS: Mapping[str, Any] = {"allow.auto.create.topics": False}
"""A topic that is missing while the connector runs was deleted. It is created again with its own settings."""

REQUIRED: Mapping[str, Any] = {"enable.idempotence": True, "acks": "all"}
"""No loss, no duplicates and no reordering during a producer's life."""

_ONE_IN_FLIGHT: Mapping[str, Any] = {"max.in.flight.requests.per.connection": 1}
"""One request at a time, as in Kafka Connect.

A broker that has nothing of a producer yet accepts any of its requests as the first one (KAFKA-15591). If the first one
to a new topic is refused because the broker does not lead it yet, and the second one is accepted, librdkafka reports
the records of both as delivered, and those of the first are lost.
"""

_SPELLINGS = {
    "acks": ("acks", "request.required.acks"),
    "message.timeout.ms": ("message.timeout.ms", "delivery.timeout.ms"),
    "linger.ms": ("linger.ms", "queue.buffering.max.ms"),
}
_IN_FLIGHT = ("max.in.flight.requests.per.connection", "max.in.flight")
_SAME = {"acks": {"all", "-1"}, "enable.idempotence": {"true", "1"}}
_TRANSACTION_TIMEOUT_MS = 60000
_ATTEMPTS = 3
"""The responses that may time out while a transaction is open: that of the broker that vanished, and two more."""


class ProducerSettingsError(ValueError):
    """A setting of the producer contradicts the delivery guarantee; the message names it."""


def transactional_id(group: str, connector: str) -> str:
    """Return the transactional id of a source task in Kafka Connect. It lets a later instance fence an earlier one."""
    return f"{group}-{connector}-0"  # the number of the task


def standby_group(group: str, connector: str) -> str:
    """Return the consumer group of a connector's copies with ``rowtide.standby``, named as its transactional id is."""
    return f"{group}-{connector}-standby"


def idempotent_settings(client: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings for at-least-once delivery.

    Args:
        client: the user's settings, including those of the connection.

    Raises:
        ProducerSettingsError: they contradict the delivery guarantee.
    """
    if "transactional.id" in client:
        raise ProducerSettingsError(
            "producer.override.transactional.id has no effect without exactly-once delivery; "
            "set exactly.once.source.support=enabled and exactly.once.support=required, or remove it"
        )
    return {**_with_defaults(client, DEFAULTS), **REQUIRED, **_ONE_IN_FLIGHT, **_NO_NEW_TOPICS}


def transactional_settings(client: Mapping[str, Any], transactional_id: str, interval_ms: int = 0) -> dict[str, Any]:
    """Return the settings for exactly-once delivery.

    Args:
        client: the user's settings, including those of the connection.
        transactional_id: used unless the user sets one.
        interval_ms: the time that a transaction may stay open (``transaction.boundary.interval.ms``), 0 for short ones.

    Raises:
        ProducerSettingsError: they contradict the delivery guarantee.
    """
    # librdkafka itself keeps message.timeout.ms below transaction.timeout.ms
    defaults = {name: value for name, value in DEFAULTS.items() if name != "message.timeout.ms"}
    defaults["transactional.id"] = transactional_id
    defaults["transaction.timeout.ms"] = _TRANSACTION_TIMEOUT_MS + interval_ms
    lasts_ms = int(client.get("transaction.timeout.ms", _TRANSACTION_TIMEOUT_MS))
    answer_ms = min(_ANSWER_MS, lasts_ms // _ATTEMPTS)
    defaults |= {"socket.timeout.ms": answer_ms, "request.timeout.ms": round(answer_ms * _REPLICAS)}
    given = {name: value for name, value in client.items() if CLIENT_LIMITS.get(name) != value}
    settings = {**_with_defaults(given, defaults), **REQUIRED, **_ONE_IN_FLIGHT, **_NO_NEW_TOPICS}
    if int(settings["transaction.timeout.ms"]) <= interval_ms:
        raise ProducerSettingsError(
            f"producer.override.transaction.timeout.ms={settings['transaction.timeout.ms']} must be longer than "
            f"transaction.boundary.interval.ms={interval_ms}, or the broker aborts every transaction"
        )
    return settings


def _with_defaults(client: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    for name, required in REQUIRED.items():
        for spelling in _SPELLINGS.get(name, (name,)):
            if spelling in client and str(client[spelling]).lower() not in _SAME[name]:
                raise ProducerSettingsError(
                    f"producer.override.{spelling}={client[spelling]} would risk losing or duplicating changes; "
                    f"it must be {str(required).lower()}: remove it"
                )
    forced = (*_SPELLINGS["acks"], *_IN_FLIGHT)
    settings = {name: value for name, value in client.items() if name not in forced}
    missing = {
        name: value
        for name, value in defaults.items()
        if not any(spelling in client for spelling in _SPELLINGS.get(name, (name,)))
    }
    if "queue.buffering.max.kbytes" in missing:  # a message larger than the queue would never fit
        largest = int(settings.get("message.max.bytes", DEFAULTS["message.max.bytes"]))
        missing["queue.buffering.max.kbytes"] = max(missing["queue.buffering.max.kbytes"], largest // 1024 + 1)
    return settings | missing


def native_problems(settings: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield a problem for each setting of the producer that only librdkafka has, not rowtide's own producer.

    Args:
        settings: with librdkafka's names, without synonyms.
    """
    for name, what in unsupported(settings):
        yield Problem(name, f"{what}. Change or remove it, or set rowtide.producer=librdkafka")
