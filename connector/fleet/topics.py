"""Looks up the topics and the consumer group of a fleet; creates the topics that do not exist."""

import logging
import time

from confluent_kafka import ConsumerGroupState, KafkaError, KafkaException

from rowtide.connector.fleet.settings import CLIENT_ID, FleetSettings
from rowtide.schema_history.store.admin_clients import admin_client
from rowtide.topics.admin.errors import is_away
from rowtide.topics.admin.topic_admin import TopicAdmin
from rowtide.topics.errors import KafkaUnreachable, TopicError

log = logging.getLogger(__name__)

_RETRY_S = 2.0
_ANSWER_S = 20.0
_ASSIGNOR = "faust"
_EMPTY = (ConsumerGroupState.EMPTY, ConsumerGroupState.DEAD)
_NO_COORDINATOR = {
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.NOT_COORDINATOR,
    KafkaError._WAIT_COORD,  # noqa: SLF001 - librdkafka's local code
}
"""Errors of brokers that have just started."""


class GroupInUse(TopicError):
    """The members of a consumer group are not workers of this fleet."""


def prepare_topics(settings: FleetSettings) -> dict[str, int]:
    """Create the fleet's missing topics, after waiting until Kafka answers.

    Returns:
        The numbers of partitions of the topics that the worker shares.

    Raises:
        TopicError: a topic cannot be created, or has unsuitable settings.
        GroupInUse: the consumer group has members of another program or fleet.
    """
    while True:
        try:
            require_group(settings)
            return _prepared(settings, TopicAdmin(settings.admin))
        except KafkaUnreachable as error:
            log.warning("%s; retrying in %.0f s", error, _RETRY_S)
            time.sleep(_RETRY_S)


def require_group(settings: FleetSettings) -> None:
    """Check that the consumer group has no members of another program or fleet.

    Raises:
        GroupInUse: it has some.
        KafkaUnreachable: Kafka does not answer.
        TopicError: the account may not look.
    """
    admin = admin_client({"log_level": 2, **settings.admin})
    found = admin.describe_consumer_groups([settings.group], request_timeout=_ANSWER_S)[settings.group]
    try:
        group = found.result()
    except KafkaException as failure:
        error: KafkaError = failure.args[0]
        if "not a consumer group" in error.str():
            raise GroupInUse(
                f"group.id={settings.group}: workers of Kafka Connect are in this group. Stop them first; if they were "
                "killed, wait until their session has ended"
            ) from failure
        reason = error.str()
        if reason.endswith(": "):  # the broker has sent a code without a text
            reason += KafkaError(error.code()).str()
        message = f"the consumer group {settings.group} cannot be looked up: {reason}"
        if is_away(error) or error.code() in _NO_COORDINATOR:
            raise KafkaUnreachable(message) from failure
        raise TopicError(message) from failure
    if group.state not in _EMPTY and group.partition_assignor not in ("", _ASSIGNOR):
        raise GroupInUse(
            f"group.id={settings.group}: consumers of another program are in this group, with the assignor "
            f"{group.partition_assignor}. Give the fleet its own group.id"
        )
    others = {member.client_id for member in group.members if member.client_id.startswith(CLIENT_ID)}
    for other in sorted(others - {settings.client_id}):
        raise GroupInUse(
            f"group.id={settings.group}: workers with config.storage.topic={other.removeprefix(CLIENT_ID)} are in this "
            f"group, and this worker has {settings.config_topic}. Each fleet needs its own group.id: the connectors of "
            "one would be assigned to workers of the other, which do not know them. If these workers were killed, such "
            f"as before a change of config.storage.topic, wait {settings.session_s:.0f} s (session.timeout.ms) until "
            "Kafka has removed them"
        )


def _prepared(settings: FleetSettings, admin: TopicAdmin) -> dict[str, int]:
    created = admin.ensure_all(settings.topics)
    for topic in sorted(created):
        log.info("topic %s is created", topic)
    for topic in (settings.config_topic, settings.status_topic):
        found = admin.describe(topic)
        policy = "compact" if found is None else found.config.get("cleanup.policy", "delete")
        if policy != "compact":
            raise TopicError(
                f"topic {topic!r} has cleanup.policy={policy}, so Kafka deletes configurations or states that are "
                f"still valid. Set it: kafka-configs.sh --alter --topic {topic} --add-config cleanup.policy=compact"
            )
        if found is not None and topic == settings.config_topic and found.partitions != 1:
            raise TopicError(
                f"topic {topic!r} has {found.partitions} partitions, and config.storage.topic must have one: the order "
                "of its records matters. Name another topic"
            )
    shared = {topic: admin.describe(topic) for topic in settings.shared_topics}
    for topic, found in shared.items():
        if found is None:
            raise KafkaUnreachable(f"topic {topic!r} was created, but does not exist yet")
    return {topic: found.partitions for topic, found in shared.items() if found is not None}
