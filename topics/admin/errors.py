"""Converts errors of Kafka's admin client to errors of topics that say what to do."""

from collections.abc import Iterable, Sequence

from confluent_kafka import KafkaError

from rowtide.topics.errors import KafkaUnreachable, TopicDenied, TopicError
from rowtide.topics.settings import TopicSettings

GONE = {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC}  # noqa: SLF001 - librdkafka's local codes
"""The topic does not exist."""
REFUSED = {KafkaError.INVALID_CONFIG, KafkaError.INVALID_PARTITIONS, KafkaError.POLICY_VIOLATION}
"""The settings of the topic are not accepted."""
_DENIED = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
}
_DESTROY_BROKER = -137
"""librdkafka's "Broker handle destroyed without termination", which older versions of its Python client do not name."""
_AWAY = {
    KafkaError._TRANSPORT,  # noqa: SLF001 - librdkafka's local codes
    KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001
    KafkaError._TIMED_OUT,  # noqa: SLF001
    _DESTROY_BROKER,
    KafkaError.BROKER_NOT_AVAILABLE,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NETWORK_EXCEPTION,
    KafkaError.NOT_CONTROLLER,
    KafkaError.REQUEST_TIMED_OUT,
}
"""The answers of a broker that restarts or hangs, or that has just done so."""


_OPERATIONS = {"look up": "Describe", "describe": "DescribeConfigs", "create": "Create"}
"""The right that an operation needs, as Kafka's tool writes it."""


def acl_command(
    servers: str, operations: str | Sequence[str], resource: str, names: Iterable[str], user: str | None = None
) -> str:
    """Return the Kafka command that grants rights.

    Args:
        servers: ``bootstrap.servers``.
        operations: one or several, as the command writes them: ``Write``.
        resource: ``topic``, ``group`` or ``transactional-id``.
        names: of the resources.
        user: the account, if it is known.
    """
    given = (operations,) if isinstance(operations, str) else operations
    rights = " ".join(f"--operation {operation}" for operation in given)
    resources = " ".join(f"--{resource} {name}" for name in names)
    principal = f"User:{user or 'NAME'}"
    return f"kafka-acls.sh --bootstrap-server {servers} --add --allow-principal {principal} {rights} {resources}"


def is_away(error: KafkaError) -> bool:
    """Return whether the brokers are unavailable, in which case a later attempt may succeed."""
    return error.code() in _AWAY or "brokers are currently fenced" in error.str()  # they register after a restart


def failed(
    what: str,
    topic: str,
    error: KafkaError,
    servers: str,
    settings: TopicSettings | None = None,
    user: str | None = None,
) -> TopicError:
    """Return the error for an operation on a topic.

    Args:
        what: the operation, such as "look up".
        topic: the topic.
        error: the client's error.
        servers: ``bootstrap.servers``.
        settings: the settings of the topic, if it should be created.
        user: the account, if it is known.
    """
    text = f"cannot {what} topic {topic!r}: {error.str().rstrip('.')}"
    if error.code() in _DENIED:
        operation = _OPERATIONS.get(what, "All")
        way_out = f"Grant the right: {acl_command(servers, operation, 'topic', (topic,), user)}"
        return TopicDenied(f"{text}. {way_out}{', or create the topic beforehand' if what == 'create' else ''}")
    if is_away(error):
        return KafkaUnreachable(f"{text}. No broker answers at bootstrap.servers={servers}")
    if settings is not None and error.code() == KafkaError.INVALID_REPLICATION_FACTOR:
        return TopicError(
            f"{text}. {settings.replication_factor} replicas were requested; set topic.creation."
            "default.replication.factor (for the offsets topic offset.storage.replication.factor) to at most the "
            "number of brokers, or to -1 for the broker's default"
        )
    return TopicError(text)
