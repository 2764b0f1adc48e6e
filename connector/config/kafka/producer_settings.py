"""The producer's settings: what delivery needs of librdkafka, and what may be overridden. Pure.

Names are librdkafka's. What a user sets (``producer.override.*``) wins over the defaults here, but not over what the
promises of delivery rest on: a contradiction is an error, not a silent change.
"""

from collections.abc import Mapping
from typing import Any

DEFAULTS: Mapping[str, Any] = {
    "partitioner": "murmur2_random",  # the partition that Java's producer chooses, so a takeover keeps rows in place
    "message.max.bytes": 1048576,  # Java's max.request.size; librdkafka's own is a little less
    "queue.buffering.max.kbytes": 65536,  # librdkafka's own is 1 GiB
    "queue.buffering.max.messages": 100000,
    # While a request is on its way, librdkafka asks again and again, without a pause, whether it may send those records
    # that have waited as long as this: at 5 ms, Java's, that costs more processor time than everything else it does.
    # And a busy broker gets few large requests. Nobody waits longer than for Debezium, which looks every 500 ms.
    "linger.ms": 50,
    "message.timeout.ms": 0,  # never give up on a message, as Kafka Connect does; back-pressure bounds what waits
}
"""Where rowtide's defaults are not librdkafka's."""

REQUIRED: Mapping[str, Any] = {"enable.idempotence": True, "acks": "all"}
"""No loss, no duplicate and no reordering within a producer's life."""

_SPELLINGS = {
    "acks": ("acks", "request.required.acks"),
    "message.timeout.ms": ("message.timeout.ms", "delivery.timeout.ms"),
    "linger.ms": ("linger.ms", "queue.buffering.max.ms"),
}
_SAME = {"acks": {"all", "-1"}, "enable.idempotence": {"true", "1"}}
_TRANSACTION_TIMEOUT_MS = 60000


class ProducerSettingsError(ValueError):
    """A setting of the producer contradicts what delivery promises; the message names it."""


def transactional_id(group: str, connector: str, task: int = 0) -> str:
    """The id that Kafka Connect uses for a source task, so that whoever starts later fences the other one."""
    return f"{group}-{connector}-{task}"


def idempotent_settings(client: Mapping[str, Any]) -> dict[str, Any]:
    """Settings for delivery at least once.

    Args:
        client: the user's, the connection's among them.

    Raises:
        ProducerSettingsError: they contradict what delivery needs.
    """
    if "transactional.id" in client:
        raise ProducerSettingsError(
            "producer.override.transactional.id has no meaning without exactly-once delivery; "
            "set exactly.once.source.support=enabled and exactly.once.support=required, or leave it out"
        )
    return {**_with_defaults(client, DEFAULTS), **REQUIRED}


def transactional_settings(client: Mapping[str, Any], transactional_id: str, interval_ms: int = 0) -> dict[str, Any]:
    """Settings for delivery exactly once.

    Args:
        client: the user's, the connection's among them.
        transactional_id: used if the user sets none.
        interval_ms: how long a transaction may stay open (``transaction.boundary.interval.ms``), 0 for short ones.

    Raises:
        ProducerSettingsError: they contradict what delivery needs.
    """
    # the time-out of messages is left to librdkafka, which must keep it below that of the transaction
    defaults = {name: value for name, value in DEFAULTS.items() if name != "message.timeout.ms"}
    defaults["transactional.id"] = transactional_id
    defaults["linger.ms"] = 1  # every commit waits for it
    defaults["transaction.timeout.ms"] = _TRANSACTION_TIMEOUT_MS + interval_ms
    settings = {**_with_defaults(client, defaults), **REQUIRED}
    if int(settings["transaction.timeout.ms"]) <= interval_ms:
        raise ProducerSettingsError(
            f"producer.override.transaction.timeout.ms={settings['transaction.timeout.ms']} must be longer than "
            f"transaction.boundary.interval.ms={interval_ms}, or the broker aborts every transaction"
        )
    return settings


def _with_defaults(client: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    for name, wanted in REQUIRED.items():
        for spelling in _SPELLINGS.get(name, (name,)):
            if spelling in client and str(client[spelling]).lower() not in _SAME[name]:
                raise ProducerSettingsError(
                    f"producer.override.{spelling}={client[spelling]} would risk losing or doubling changes; "
                    f"it must be {str(wanted).lower()}: leave it out"
                )
    settings = {name: value for name, value in client.items() if name not in _SPELLINGS["acks"]}
    missing = {
        name: value
        for name, value in defaults.items()
        if not any(spelling in client for spelling in _SPELLINGS.get(name, (name,)))
    }
    return settings | missing
