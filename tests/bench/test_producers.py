"""The made messages of the benchmark of producers are as many, as large and as different as it says."""

from __future__ import annotations

import pytest

from tests.bench.producers import Work, growing


@pytest.mark.parametrize("unique", [False, True])
def test_messages_are_made_for_all_topics(unique: bool) -> None:
    batches = Work(count=12, size=1001, event=2, topics=3, unique=unique).batches("t")
    assert [batch.topic for batch in batches] == ["t-0", "t-1", "t-2"] * 2
    messages = [message for batch in batches for message in batch.messages]
    assert {len(value or b"") for _key, value, _headers in messages} == {1001}
    assert len({value for _key, value, _headers in messages}) == 12
    assert len({key for key, _value, _headers in messages}) == 12


def test_works_are_whole_events_and_use_all_topics() -> None:
    for sizes in growing().values():
        for _size, work in sizes:
            assert work.count % work.event == 0
            assert work.count >= work.event * work.topics
