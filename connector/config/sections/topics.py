"""The sections about names and settings of topics; pure."""

import re
from collections.abc import Mapping
from typing import TypeVar

from rowtide.connector.config.catalogue import connect, connection, topics
from rowtide.connector.config.catalogue.property import Property
from rowtide.connector.config.model import (
    TopicsConfig,
)
from rowtide.connector.config.sections.property_reader import PropertyReader
from rowtide.topics.java_regex import InvalidPatternError, Replacement, compile_java
from rowtide.topics.naming import NameParts, Routing, StandardNaming
from rowtide.topics.settings import TopicCreation, TopicGroup, TopicSettings, topic_patterns

T = TypeVar("T")


def topics_config(reader: PropertyReader) -> TopicsConfig:
    """Return the names and settings of topics."""
    strategy = reader[topics.NAMING_STRATEGY].rpartition(".")[2]
    heartbeat = reader[topics.HEARTBEAT_PREFIX]
    if not reader.is_set(topics.HEARTBEAT_PREFIX):
        heartbeat = reader[topics.HEARTBEAT_PREFIX_OLD] or heartbeat
    return TopicsConfig(
        **reader.declared(TopicsConfig),
        naming=StandardNaming(
            prefix=reader[connection.TOPIC_PREFIX],
            parts=NameParts.TABLE if strategy.startswith("Schema") else NameParts.DATABASE_AND_TABLE,
            unicode="Unicode" in strategy,
            delimiter=reader[topics.DELIMITER],
            heartbeat_prefix=heartbeat,
            heartbeat_name=reader[topics.HEARTBEAT_NAME],
            transaction_suffix=reader[topics.TRANSACTION],
            routing=_routing(reader, strategy),
        ),
        creation=_creation(reader),
        notification_topic=_notification_topic(reader),
        log_notifications="log" in reader[topics.NOTIFICATION_CHANNELS],
    )


def _notification_topic(reader: PropertyReader) -> str | None:
    channels, topic = reader[topics.NOTIFICATION_CHANNELS], reader[topics.NOTIFICATION_TOPIC]
    for channel in channels:
        if channel not in ("sink", "log", "jmx"):
            reader.problem(topics.NOTIFICATION_CHANNELS.name, f"may hold sink, log and jmx, not {channel!r}")
    if "sink" not in channels:
        return None
    if topic is None:
        reader.problem(topics.NOTIFICATION_TOPIC.name, "is required, since the channel sink is enabled")
    return topic


def _routing(reader: PropertyReader, strategy: str) -> Routing | None:
    only_regex = (topics.REGEX, topics.REPLACEMENT, topics.KEY_FIELD_REGEX, topics.KEY_FIELD_REPLACEMENT)
    if "Regex" not in strategy:
        for property_ in only_regex:
            if reader.is_set(property_):
                reader.problem(property_.name, f"has no effect with {strategy}; use DefaultRegexTopicNamingStrategy")
        return None
    topic = _replacement(reader, topics.REGEX, topics.REPLACEMENT, required=True)
    key = _replacement(reader, topics.KEY_FIELD_REGEX, topics.KEY_FIELD_REPLACEMENT, required=False)
    if topic is None:
        return None
    return Routing(topic, key, reader[topics.KEY_FIELD_NAME], reader[topics.KEY_UNIQUENESS])


def _replacement(
    reader: PropertyReader, regex: Property[str | None], text: Property[str | None], *, required: bool
) -> Replacement | None:
    pattern, replacement = reader[regex], reader[text]
    if pattern is None or replacement is None:
        if required or pattern != replacement:
            for property_ in (regex, text):
                if reader[property_] is None and not reader.is_set(property_):
                    other = text if property_ is regex else regex
                    why = (
                        f"when {topics.NAMING_STRATEGY.name} is a Regex strategy" if required else f"with {other.name}"
                    )
                    reader.problem(property_.name, f"is required {why}")
        return None
    try:
        return Replacement(replacement, compile_java(pattern))
    except ValueError as error:
        reader.problem(text.name, str(error))
        return None


def _creation(reader: PropertyReader) -> TopicCreation:
    default = _topic_settings(reader, "default", {})
    groups: list[TopicGroup] = []
    for name in reader[connect.CREATION_GROUPS]:
        options = reader.with_prefix(f"topic.creation.{name}.")
        try:
            groups.append(
                TopicGroup(
                    name,
                    topic_patterns(options.pop("include", "")),
                    topic_patterns(options.pop("exclude", "")),
                    _topic_settings(
                        reader,
                        name,
                        {"replication.factor": default.replication_factor, "partitions": default.partitions},
                    ),
                )
            )
        except InvalidPatternError as error:
            reader.problem(f"topic.creation.{name}.include", str(error))
        if not reader.properties.get(f"topic.creation.{name}.include", "").strip():
            reader.problem(
                f"topic.creation.{name}.include", f"is required, since {connect.CREATION_GROUPS.name} names the group"
            )
    known = {"default", "enable", "groups", *reader[connect.CREATION_GROUPS]}
    for name in reader.properties:
        if name.startswith("topic.creation.") and name.count(".") > 2 and name.split(".")[2] not in known:
            reader.problem(
                name, f"has no effect unless {connect.CREATION_GROUPS.name} names the group {name.split('.')[2]!r}"
            )
    return TopicCreation(reader[connect.TOPIC_CREATION], default, tuple(groups))


def _topic_settings(reader: PropertyReader, group: str, inherited: Mapping[str, int]) -> TopicSettings:
    prefix = f"topic.creation.{group}."
    options = reader.with_prefix(prefix)
    numbers = {"replication.factor": 32767, "partitions": 2**31 - 1}
    found: dict[str, int] = {}
    for name, most in numbers.items():
        text = options.pop(name, "").strip()
        found[name] = inherited.get(name, -1)
        if text:
            if re.fullmatch(r"-1|[1-9][0-9]*", text) and int(text) <= most:
                found[name] = int(text)
            else:
                reader.problem(prefix + name, f"must be positive, or -1 for the broker's default, not {text!r}")
    options.pop("include", None)
    options.pop("exclude", None)
    return TopicSettings(found["partitions"], found["replication.factor"], options)
