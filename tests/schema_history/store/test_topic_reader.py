"""A topic is read without waiting for more messages than it has."""

from collections import deque
from typing import Any, ClassVar

import pytest
from confluent_kafka import KafkaError

from rowtide.schema_history.store import topic_reader
from rowtide.schema_history.store.topic_reader import Extent, TopicReader, new_extents


class Received:
    """A message, or the report of the end of a partition."""

    def __init__(self, offset: int, error: KafkaError | None = None) -> None:
        self._offset = offset
        self._error = error

    def error(self) -> KafkaError | None:
        return self._error

    def offset(self) -> int:
        return self._offset

    def partition(self) -> int:
        return 0

    def key(self) -> bytes:
        return b"k"

    def value(self) -> bytes:
        return str(self._offset).encode()

    def timestamp(self) -> tuple[int, int]:
        return 1, 0

    def headers(self) -> None:
        return None


class QueuedMessages:
    """A consumer whose messages are there already. Waiting until it has a number of them is an error."""

    waiting: ClassVar[deque[Received]] = deque()

    def __init__(self, settings: dict[str, Any]) -> None:
        self.settings = settings

    def assign(self, _partitions: object) -> None:
        """The test decides what comes."""

    def poll(self, _timeout: float) -> Received:
        return self.waiting.popleft()

    def consume(self, number: int, timeout: float) -> list[Received]:
        assert timeout == 0, f"waits until there are {number} messages"
        return [self.waiting.popleft() for _ in range(min(number, len(self.waiting)))]

    def close(self) -> None:
        """Nothing is open."""


def test_a_topic_is_read_without_waiting_for_more(monkeypatch: pytest.MonkeyPatch) -> None:
    end = Received(5, KafkaError(KafkaError._PARTITION_EOF))
    monkeypatch.setattr(topic_reader, "Consumer", QueuedMessages)
    # The last offsets are those of an aborted transaction and its marker, so the end is reported by an error.
    monkeypatch.setattr(QueuedMessages, "waiting", deque([Received(0), Received(1), Received(2), end]))
    records = list(TopicReader({}, {}).read("t", {0: Extent(0, 5)}))
    assert [(record.offset, record.value) for record in records] == [(0, b"0"), (1, b"1"), (2, b"2")]
    assert not QueuedMessages.waiting


@pytest.mark.parametrize(
    ("seen", "now", "added"),
    [
        ({0: Extent(0, 5)}, {0: Extent(0, 5)}, {0: Extent(5, 5)}),
        ({0: Extent(0, 5)}, {0: Extent(2, 9)}, {0: Extent(5, 9)}),
        ({0: Extent(0, 5)}, {0: Extent(0, 5), 1: Extent(0, 1)}, {0: Extent(5, 5), 1: Extent(0, 1)}),
        ({0: Extent(0, 5)}, {0: Extent(7, 9)}, {0: Extent(7, 9)}),
        ({0: Extent(0, 5)}, {0: Extent(0, 2)}, {0: Extent(0, 2)}),
    ],
)
def test_following_continues_after_the_last_offset(
    seen: dict[int, Extent], now: dict[int, Extent], added: dict[int, Extent]
) -> None:
    assert new_extents(seen, now) == added
