"""Settings of new topics: Kafka Connect's ``topic.creation`` groups, as a pure function of the topic's name."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from rowtide.topics.java_regex import compile_java

BROKER_DEFAULT = -1
"""For partitions and copies: what the broker is configured to give."""


@dataclass(frozen=True, slots=True)
class TopicSettings:
    """How a topic is created.

    Attributes:
        partitions: or ``BROKER_DEFAULT``.
        replication_factor: or ``BROKER_DEFAULT``.
        config: settings such as ``cleanup.policy``, in Kafka's words.
    """

    partitions: int = BROKER_DEFAULT
    replication_factor: int = BROKER_DEFAULT
    config: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TopicGroup:
    """Topics with settings of their own.

    Attributes:
        name: the group's name.
        include: the topics' names; each expression must match the whole name, with regard to case.
        exclude: of those, the ones that do not belong to it.
        settings: the group's, completed by the default's.
    """

    name: str
    include: tuple[re.Pattern[str], ...]
    exclude: tuple[re.Pattern[str], ...]
    settings: TopicSettings

    def has(self, topic: str) -> bool:
        """Whether a topic belongs to the group."""
        return any(pattern.fullmatch(topic) for pattern in self.include) and not any(
            pattern.fullmatch(topic) for pattern in self.exclude
        )


@dataclass(frozen=True, slots=True)
class TopicCreation:
    """Which settings a topic gets.

    Attributes:
        enabled: whether topics are created at all (``topic.creation.enable``).
        default: for topics of no group.
        groups: asked in this order; the first that has the topic decides.
    """

    enabled: bool = True
    default: TopicSettings = TopicSettings()
    groups: tuple[TopicGroup, ...] = ()

    def settings_for(self, topic: str) -> TopicSettings:
        """The settings of a new topic."""
        return next((group.settings for group in self.groups if group.has(topic)), self.default)


def topic_patterns(text: str) -> tuple[re.Pattern[str], ...]:
    """Read ``topic.creation.<group>.include``: regular expressions between commas.

    Raises:
        InvalidPatternError: an expression is not valid.
    """
    return tuple(compile_java(item.strip()) for item in text.split(",") if item.strip())
