"""Transforms that change topics by their names, and the one that drops records."""

import re
from dataclasses import dataclass, replace

from rowtide.envelope.transforms.options import Options
from rowtide.envelope.transforms.record import ConnectRecord
from rowtide.topics.java_regex import Replacement


def routed_name(topic: str, pattern: re.Pattern[str], replacement: Replacement) -> str | None:
    """A topic's new name, ``None`` if the pattern does not match the whole of the old one.

    Java tests the whole name but then replaces the first part of it that matches, which may be less.
    """
    return replacement.replace_first(topic) if pattern.fullmatch(topic) else None


@dataclass(frozen=True, slots=True)
class RegexRouter:
    """``org.apache.kafka.connect.transforms.RegexRouter``."""

    pattern: re.Pattern[str]
    replacement: Replacement

    @classmethod
    def from_options(cls, options: Options) -> "RegexRouter":
        """Options ``regex`` and ``replacement``."""
        pattern = options.pattern("regex")
        return cls(pattern, options.replacement("replacement", pattern))

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        """The record in its new topic."""
        topic = routed_name(record.topic, self.pattern, self.replacement)
        return record if topic is None else replace(record, topic=topic)


@dataclass(frozen=True, slots=True)
class Filter:
    """``org.apache.kafka.connect.transforms.Filter``: drops every record that its predicate lets through to it."""

    @classmethod
    def from_options(cls, _options: Options) -> "Filter":
        """It has no options."""
        return cls()

    def apply(self, _record: ConnectRecord) -> None:
        """Nothing is left."""
        return
