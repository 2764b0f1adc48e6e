"""Creates the topics of records, as ``topic.creation.*`` demands."""

from collections.abc import Collection

from rowtide.topics.admin.topic_admin import TopicAdmin
from rowtide.topics.settings import TopicCreation


class MissingTopics:
    """Creates the topics of records before the first record is sent to each.

    Args:
        admin: creates the topics.
        rules: their settings; if not ``enabled``, creating missing topics is left to the broker, for which ``admin``
            needs ``auto_create``.
    """

    def __init__(self, admin: TopicAdmin, rules: TopicCreation) -> None:
        self._admin = admin
        self._rules = rules

    def __call__(self, topics: Collection[str]) -> None:
        """Create the topics that do not exist.

        Raises:
            TopicError: as ``TopicAdmin.ensure_all``, or as ``TopicAdmin.look_up``.
        """
        if self._rules.enabled:
            self._admin.ensure_all({topic: self._rules.settings_for(topic) for topic in topics})
        else:
            self._admin.look_up(list(topics))
