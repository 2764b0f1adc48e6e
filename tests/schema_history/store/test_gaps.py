"""Missing records in a topic are distinguished from the gaps in offsets that transactions leave."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from rowtide.schema_history.store.history_store import TrimmedHistory, json_object
from rowtide.schema_history.store.kafka import KafkaSchemaHistory
from rowtide.schema_history.store.topic_reader import Extent, StoredRecord, TopicReader


class Log(TopicReader):
    """A partition with committed and aborted records at some offsets."""

    def __init__(self, low: int, high: int, committed: list[int], aborted: list[int]) -> None:
        super().__init__({}, {})
        self.extent = Extent(low, high)
        self.committed = committed
        self.aborted = aborted

    def extents(self, topic: str) -> dict[int, Extent] | None:
        return {0: self.extent}

    def read(self, topic: str, extents: Mapping[int, Extent], *, committed: bool = True) -> Iterator[StoredRecord]:
        for offset in sorted(self.committed if committed else self.committed + self.aborted):
            if extents[0].low <= offset < extents[0].high:
                yield StoredRecord(0, offset, -1, None, b"{}")


@pytest.mark.parametrize(
    ("committed", "aborted", "lost"),
    [
        ([0, 1, 2, 5], [], ""),  # two markers of transactions
        ([0, 1, 9], [3, 4, 5, 6], ""),  # an aborted transaction
        ([3, 4], [0, 1], ""),
        ([1, 2], [], "first record has offset 1"),
        ([7], [], "first record has offset 7"),
        ([0, 1, 7, 8], [], "none from offset 2 to 6"),
        ([0, 9], [1, 2, 6], "none from offset 1 to 8"),
    ],
)
def test_gaps(committed: list[int], aborted: list[int], lost: str) -> None:
    history = KafkaSchemaHistory("h", {}, {}, {})
    history._reader = Log(0, 10, committed, aborted)
    if lost:
        with pytest.raises(TrimmedHistory, match=lost):
            list(history.replay(json_object))
        # what is there is given all the same: it may be that all was written anew after the gap
        assert [stored.at for stored in history.texts() if stored.lost is None] == committed
    else:
        assert len(list(history.replay(json_object))) == len(committed)


def test_a_trimmed_history_is_reported_even_if_its_start_is_not_read() -> None:
    history = KafkaSchemaHistory("h", {}, {}, {})
    history._reader = Log(2, 4, [2, 3], [])
    assert [stored.lost is not None for stored in history.texts(3)] == [True, False]
