"""Replaces records that are too large for Kafka (``rowtide.large.records``).

A record is too large if a batch of this record alone would be larger, before compression, than ``max.request.size`` of
the producer or ``max.message.bytes`` of its topic. So the result is the same each time the record is read. The
replacement happens in the delivery thread before a record is sent, so that the order in the topic is kept.
"""

import hashlib
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from rowtide.connector.config.choices import LargeRecordsMode as Mode
from rowtide.connector.delivery.claim_check_folder import ClaimCheckFolder
from rowtide.connector.kafka_producer.batches.python_records import estimated_size
from rowtide.connector.records.batch import Batch, Message
from rowtide.connector.records.dead_letters import (
    REASON_HEADER,
    TOPIC_HEADER,
    DeadLetters,
    Reason,
    identified,
    parts,
    text_of,
)
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.rows.messages import message_bytes
from rowtide.envelope.claim_check import ClaimCheck
from rowtide.envelope.json.without_before import without_before

log = logging.getLogger(__name__)

WITHOUT_BEFORE_HEADER = "rowtide.large.record"
"""The header of an update without the row before it."""

_PART_HEADERS = 100
"""The maximum number of additional bytes of a part of a dead letter: two headers."""

_MOST_LENGTHS = 10
"""Bytes of the lengths of a key and of a value."""

_Replacement = Callable[[Batch, Message, int], tuple[list[Message], list[Batch]]]
"""Returns the messages and batches to send instead of a message of a batch, each of at most the given size in bytes."""


class LargeRecords:
    """Replaces records that are too large for Kafka with others that lose nothing.

    A record whose replacement would still be too large stays unchanged: Kafka refuses it, and the connector
    stops with that error.

    Dead letters for other reasons also get their ids here, and are divided if they are too large.

    Args:
        mode: ``rowtide.large.records``.
        largest: ``max.request.size``.
        topic_limits: looks up ``max.message.bytes`` of topics; those that may not be described are missing.
        folder: of the values, with ``claim-check``.
        dead_letters: the topic of dead letters, if there is one.
    """

    def __init__(
        self,
        mode: Mode,
        largest: int,
        topic_limits: Callable[[Sequence[str]], Mapping[str, str]],
        *,
        folder: ClaimCheckFolder | None = None,
        dead_letters: DeadLetters | None = None,
    ) -> None:
        self._largest = largest
        self._topic_limits = topic_limits
        self._limits: dict[str, int] = {}
        self._folder = folder
        self._dead_letters = dead_letters
        self._place: SourceOffset | None = None
        self._letters = 0  # at this position
        self._replacement: _Replacement | None = {
            Mode.FAIL: None,
            Mode.CLAIM_CHECK: self._claim_check,
            Mode.WITHOUT_BEFORE: self._without_before,
            Mode.DEAD_LETTER: self._dead_letter,
        }[mode]

    def look_up(self, topics: Iterable[str]) -> None:
        """Look up the limits of topics, before the first record is sent to each.

        Raises:
            TopicError: Kafka is not reachable.
        """
        names = list(topics)
        found = self._topic_limits(names)
        for name in names:
            if name not in found:
                log.warning(
                    "max.message.bytes of topic %s is not known: grant the connector's Kafka user DESCRIBE_CONFIGS on "
                    "it. Only max.request.size=%d shows which of its records are too large",
                    name,
                    self._largest,
                )
            self._limits[name] = min(self._largest, int(found.get(name, self._largest)))

    def fitting(self, batches: Sequence[Batch]) -> list[Batch]:
        """Return batches without records that are too large.

        Raises:
            ClaimCheckUnavailable: a value cannot currently be stored. Nothing is lost: call this again.
        """
        return [fitting for batch in batches for fitting in self._fitting(batch)]

    def _fitting(self, batch: Batch) -> Iterator[Batch]:
        limit = self._limits[batch.topic]
        if self._dead_letters is not None and batch.topic == self._dead_letters.topic:
            letters = [part for letter in batch.messages for part in self._parts(batch.offset, letter, limit)]
            yield batch._replace(messages=letters, size=message_bytes(letters))
            return
        overhead = _most_overhead(batch)
        if self._replacement is None or batch.size + overhead <= limit:
            yield batch
            return
        messages: list[Message] = []
        elsewhere: list[Batch] = []
        for message in batch.messages:
            key, value, _ = message
            if len(key or b"") + len(value or b"") + overhead <= limit or self._fits(message, limit):
                messages.append(message)
                continue
            replaced, batches = self._replacement(batch, message, limit)
            messages += replaced
            elsewhere += batches
        if messages:
            yield batch._replace(messages=messages, size=message_bytes(messages))
        yield from elsewhere

    def _fits(self, message: Message, limit: int) -> bool:
        return _size(message) <= limit

    def _claim_check(self, batch: Batch, message: Message, limit: int) -> tuple[list[Message], list[Batch]]:
        key, value, headers = message
        if value is None or self._folder is None:
            return [message], []
        sha256 = hashlib.sha256(value).hexdigest()
        name = f"{batch.topic}/{sha256}"
        check = ClaimCheck(self._folder.url(name), sha256, len(value))
        pointer = key, check.record_value(), [*headers, *check.headers()]
        if not self._fits(pointer, limit):  # its key or its headers are too large
            return [message], []
        self._folder.put(name, value)
        log.info("a record of topic %s with %d bytes is replaced by a claim check: %s", batch.topic, len(value), name)
        return [pointer], []

    def _without_before(self, batch: Batch, message: Message, limit: int) -> tuple[list[Message], list[Batch]]:
        key, value, headers = message
        reduced = None if key is None or value is None else without_before(value)
        if reduced is None:
            return [message], []
        smaller = key, reduced, [*headers, (WITHOUT_BEFORE_HEADER, Mode.WITHOUT_BEFORE.value.encode())]
        if not self._fits(smaller, limit):
            return [message], []
        log.info(
            "an update of topic %s with %d bytes is sent without the row before the change",
            batch.topic,
            len(value or b""),
        )
        return [smaller], []

    def _dead_letter(self, batch: Batch, message: Message, limit: int) -> tuple[list[Message], list[Batch]]:
        assert self._dead_letters is not None, "there is no topic of dead letters"
        reason = Reason(
            "KAFKA_PRODUCE",
            "org.apache.kafka.common.errors.RecordTooLargeException",
            f"the record has {_size(message)} bytes, and topic {batch.topic} takes {limit}",
        )
        return [], list(self._fitting(self._dead_letters.letter(batch, message, reason)))

    def _parts(self, offset: SourceOffset, letter: Message, limit: int) -> Iterator[Message]:
        """Yield a dead letter in as many parts as it needs, with its id."""
        self._letters = self._letters + 1 if offset == self._place else 0
        self._place = offset
        named, identity = identified(letter, offset, self._letters)
        key, value, headers = named
        given = dict(headers)
        topic = text_of(given, TOPIC_HEADER)
        log.warning(
            "%s before %s:%d is now dead letter %s: %s",
            f"a record of topic {topic}" if topic else "an event",
            offset.file,
            offset.pos,
            identity,
            text_of(given, REASON_HEADER),
        )
        room = limit - _size((key, b"", headers)) - _PART_HEADERS
        if value is None or room <= 0 or self._fits(named, limit):
            yield named
        else:
            yield from parts(named, room)


def _most_overhead(batch: Batch) -> int:
    """Return the maximum size of a record in a batch beyond its key and its value, in bytes."""
    # The records of an event share their headers.
    different = {id(headers): headers for _, _, headers in batch.messages}.values()
    return max((_size((None, None, headers)) for headers in different), default=0) + _MOST_LENGTHS


def _size(message: Message) -> int:
    key, value, headers = message
    return estimated_size((key, value, list(headers)))
