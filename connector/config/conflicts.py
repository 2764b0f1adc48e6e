"""Finds the reasons why connectors cannot run side by side; pure."""

from collections.abc import Callable, Mapping, Sequence

from rowtide.connector.config.errors import Problem
from rowtide.connector.config.kafka.producer_settings import transactional_id
from rowtide.connector.config.model import Configuration


def conflicts(configs: Mapping[str, Configuration]) -> list[Problem]:
    """Return the reasons why connectors cannot run in one process.

    Args:
        configs: their configurations, by their names in messages, such as their files.
    """
    return [
        *_shared(configs, lambda config: config.name, "name", "the position of one would replace that of the other"),
        *_shared(configs, lambda config: config.topics.prefix, "topic.prefix", "both would write to the same topics"),
        *_shared(
            configs,
            lambda config: (config.database.hostname.lower(), config.database.port, config.database.server_id),
            "database.server.id",
            "the server disconnects one of two replicas with the same id",
        ),
        *_shared(
            configs,
            _transactional_id,
            "producer.override.transactional.id",
            "Kafka lets only one producer with a transactional id write, so each would end the other",
        ),
    ]


def _transactional_id(config: Configuration) -> tuple[str, str] | None:
    """Return the transactional id and its brokers; ``None`` without exactly-once delivery."""
    if not config.delivery.exactly_once:
        return None
    own = config.kafka.producer.get("transactional.id") or transactional_id(config.delivery.group_id, config.name)
    return config.kafka.bootstrap_servers, str(own)


def _shared(
    configs: Mapping[str, Configuration], value: Callable[[Configuration], object], name: str, reason: str
) -> Sequence[Problem]:
    owners: dict[object, list[str]] = {}
    for owner, config in configs.items():
        if (found := value(config)) is not None:
            owners.setdefault(found, []).append(owner)
    return [
        Problem(name, f"{' and '.join(several)} have the same: {reason}")
        for several in owners.values()
        if len(several) > 1
    ]
