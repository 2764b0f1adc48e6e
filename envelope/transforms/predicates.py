"""Kafka Connect's predicates (``org.apache.kafka.connect.transforms.predicates``)."""

from dataclasses import dataclass

from rowtide.envelope.transforms.options import Options
from rowtide.envelope.transforms.record import ConnectRecord
from rowtide.topics.java_regex import Pattern


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
