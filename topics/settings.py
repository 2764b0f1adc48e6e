"""Settings of new topics by name: Kafka Connect's ``topic.creation`` groups."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from rowtide.topics.java_regex import Pattern, compile_java

BROKER_DEFAULT = -1
"""The broker's default, for the number of partitions and the replication factor."""


@dataclass(frozen=True, slots=True)
class TopicSettings:
    """The settings of a new topic.

    Attributes:
        partitions: number of partitions, or ``BROKER_DEFAULT``.
        replication_factor: number of replicas, or ``BROKER_DEFAULT``.
        config: Kafka's topic configuration, such as ``cleanup.policy``.
    """

    partitions: int = BROKER_DEFAULT
    replication_factor: int = BROKER_DEFAULT
    config: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TopicGroup:
    """A group of topics with their own settings.

    Attributes:
        name: the group's name.
        include: expressions for the topics' names; they match the whole name and are case-sensitive.
        exclude: expressions for topics that do not belong to the group although they are included.
        settings: the settings of the group, completed with the defaults.
    """

    name: str
    include: tuple[Pattern, ...]
    exclude: tuple[Pattern, ...]
    settings: TopicSettings

    def has(self, topic: str) -> bool:
        """Return whether a topic belongs to the group."""
        return any(pattern.fullmatch(topic) for pattern in self.include) and not any(
            pattern.fullmatch(topic) for pattern in self.exclude
        )


@dataclass(frozen=True, slots=True)
class TopicCreation:
    """The rules for the settings of new topics.

    Attributes:
        enabled: whether topics are created (``topic.creation.enable``).
        default: settings of topics in no group.
        groups: in order; the first group that has the topic applies.
    """

    enabled: bool = True
    default: TopicSettings = TopicSettings()
    groups: tuple[TopicGroup, ...] = ()

    def settings_for(self, topic: str) -> TopicSettings:
        """Return the settings of a new topic."""
        return next((group.settings for group in self.groups if group.has(topic)), self.default)


def topic_patterns(text: str) -> tuple[Pattern, ...]:
    """Parse ``topic.creation.<group>.include``: comma-separated regular expressions.

    Raises:
        InvalidPatternError: an expression is invalid.
    """
    return tuple(compile_java(item.strip()) for item in text.split(",") if item.strip())
