"""Kafka Connect's ``RegexRouter``, which changes topics by their names, ``Filter``, and the predicates."""

from dataclasses import dataclass, replace

from rowtide.envelope.transforms.options import Options
from rowtide.envelope.transforms.record import ConnectRecord
from rowtide.topics.java_regex import Pattern, Replacement


def routed_name(topic: str, pattern: Pattern, replacement: Replacement) -> str | None:
    """Return the new name of a topic, ``None`` if the pattern does not match the whole old name.

    As in Java, only the first match is then replaced, which may be a part of the name.
    """
    return replacement.replace_first(topic) if pattern.fullmatch(topic) else None


@dataclass(frozen=True, slots=True)
class RegexRouter:
    """``org.apache.kafka.connect.transforms.RegexRouter``."""

    pattern: Pattern
    replacement: Replacement

    @classmethod
    def from_options(cls, options: Options) -> "RegexRouter":
        """Read ``regex`` and ``replacement``."""
        pattern = options.pattern("regex")
        return cls(pattern, options.replacement("replacement", pattern))

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        """Return the record in its new topic."""
        topic = routed_name(record.topic, self.pattern, self.replacement)
        return record if topic is None else replace(record, topic=topic)


@dataclass(frozen=True, slots=True)
class Filter:
    """``org.apache.kafka.connect.transforms.Filter``: drops every record that its predicate selects."""

    @classmethod
    def from_options(cls, _options: Options) -> "Filter":
        """Read no options."""
        return cls()

    def apply(self, _record: ConnectRecord) -> None:
        """Drop the record."""
        return


@dataclass(frozen=True, slots=True)
class RecordIsTombstone:
    """Selects records with a null value."""

    @classmethod
    def from_options(cls, _options: Options) -> "RecordIsTombstone":
        """Read no options."""
        return cls()

    def test(self, record: ConnectRecord) -> bool:
        """Return whether the value is null."""
        return record.value is None


@dataclass(frozen=True, slots=True)
class HasHeaderKey:
    """Selects records with a header of this name."""

    name: str

    @classmethod
    def from_options(cls, options: Options) -> "HasHeaderKey":
        """Read ``name``."""
        return cls(options.required_text("name"))

    def test(self, record: ConnectRecord) -> bool:
        """Return whether the record has such a header."""
        return any(header.name == self.name for header in record.headers)


@dataclass(frozen=True, slots=True)
class TopicNameMatches:
    """Selects records whose whole topic name matches a regular expression."""

    pattern: Pattern

    @classmethod
    def from_options(cls, options: Options) -> "TopicNameMatches":
        """Read ``pattern``."""
        return cls(options.pattern("pattern"))

    def test(self, record: ConnectRecord) -> bool:
        """Return whether the topic's name matches."""
        return self.pattern.fullmatch(record.topic) is not None
