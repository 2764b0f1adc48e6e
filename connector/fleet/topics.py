"""Edge: creates the topics of a fleet, and looks them up."""

import logging
import time

from rowtide.connector.fleet.settings import FleetSettings
from rowtide.topics.admin.topic_admin import TopicAdmin
from rowtide.topics.errors import KafkaUnreachable, TopicError

log = logging.getLogger(__name__)

_RETRY_S = 2.0


def prepare_topics(settings: FleetSettings) -> int:
    """Create the fleet's topics that do not exist. Waits until Kafka answers.

    Returns:
        The number of partitions of the fleet's topic.

    Raises:
        TopicError: a topic cannot be created, or must not be used as it is.
    """
    while True:
        try:
            return _prepared(settings, TopicAdmin(settings.admin))
        except KafkaUnreachable as error:
            log.warning("%s; it is tried again in %.0f s", error, _RETRY_S)
            time.sleep(_RETRY_S)


def _prepared(settings: FleetSettings, admin: TopicAdmin) -> int:
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
    shared = admin.describe(settings.fleet_topic)
    if shared is None:
        raise KafkaUnreachable(f"topic {settings.fleet_topic!r} was created, and is not there yet")
    return shared.partitions
