"""Requests and answers that are written and read in one step, against the codecs of the declared messages."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowtide.connector.kafka_producer.wire.apis import PRODUCE
from rowtide.connector.kafka_producer.wire.errors import MalformedAnswer, NotEncodable
from rowtide.connector.kafka_producer.wire.frames import SentRequest, decode_answer, encode_request
from rowtide.connector.kafka_producer.wire.messages.produce import (
    CurrentLeader,
    PartitionResult,
    ProduceAnswer,
    RecordError,
    TopicResult,
)
from rowtide.connector.kafka_producer.wire.messages.topic_batches import Stored, TopicBatches
from tests.support.kafka.wire import answer_bytes, random_messages

VERSIONS = range(PRODUCE.lowest, PRODUCE.highest + 1)
FLEXIBLE = [version for version in VERSIONS if PRODUCE.flexible(version)]
ID = bytes(range(16))
RESULT = PartitionResult(index=3, error=0, base_offset=1 << 40, log_append_time_ms=-1)

batches = st.tuples(
    st.text(max_size=200), st.none() | st.binary(min_size=16, max_size=16), st.integers(0, 1 << 30), st.binary()
)
requests = st.builds(
    TopicBatches,
    st.none() | st.text(max_size=200),
    st.integers(0, 1 << 30),
    st.lists(batches, min_size=1, max_size=200),
)


def topic(name: str = "orders", topic_id: bytes = ID, result: PartitionResult = RESULT) -> TopicResult:
    return TopicResult(name=name, topic_id=topic_id, partition_responses=(result,))


def answer(*topics: TopicResult, throttle_ms: int = 0) -> ProduceAnswer:
    return ProduceAnswer(responses=topics, throttle_time_ms=throttle_ms)


def outcome(sent: SentRequest, frame: bytes | bytearray) -> Any:
    """The answer, or why it is malformed."""
    try:
        return decode_answer(sent, frame)
    except MalformedAnswer as error:
        return str(error)


def as_stored(found: ProduceAnswer, version: int) -> Stored:
    """What a declared answer says of batches that are stored."""
    assert not found.node_endpoints
    stored = []
    for one in found.responses:
        (partition,) = one.partition_responses
        assert (partition.error, partition.record_errors, partition.error_message) == (0, (), None)
        stored.append((one.topic_id if version >= 13 else one.name, partition.index, partition.base_offset))
    return Stored(stored, found.throttle_time_ms)


@given(requests, st.sampled_from(VERSIONS), st.integers(0, (1 << 31) - 1), st.none() | st.text(max_size=30))
def test_the_same_bytes_as_of_the_declared_message(
    request: TopicBatches, version: int, number: int, client_id: str | None
) -> None:
    _, parts = encode_request(request, version, number, client_id)
    _, declared = encode_request(request.declared(), version, number, client_id)
    assert b"".join(parts) == b"".join(declared)


@pytest.mark.parametrize("version", VERSIONS)
def test_batches_are_not_copied(version: int) -> None:
    data = [bytearray(b"a" * 1000), bytearray(b"b")]
    _, parts = encode_request(TopicBatches(None, 1, [("t", ID, 0, data[0]), ("u", ID, 1, data[1])]), version, 1, None)
    assert [part for part in parts if any(part is one for one in data)] == data


def test_a_text_that_is_too_long() -> None:
    request = TopicBatches(None, 1, [("t" * 40_000, None, 0, b"")])
    with pytest.raises(NotEncodable, match="Produce request 7 of version 12: a string of 40000 bytes"):
        encode_request(request, 12, 7, None)


@pytest.mark.parametrize("version", FLEXIBLE)
def test_the_answer_that_all_are_stored(version: int) -> None:
    sent, _ = encode_request(TopicBatches(None, 1, [("orders", ID, 3, b"")]), version, 9, None)
    other = topic("items", bytes(16), replace(RESULT, index=0, base_offset=0))
    frame = answer_bytes(sent, answer(topic(), other, throttle_ms=70))
    names: tuple[Any, Any] = (ID, bytes(16)) if version >= 13 else ("orders", "items")
    assert decode_answer(sent, frame) == Stored([(names[0], 3, 1 << 40), (names[1], 0, 0)], 70)


@pytest.mark.parametrize("version", VERSIONS)
def test_other_requests_and_versions_have_declared_answers(version: int) -> None:
    request = TopicBatches(None, 1, [("orders", ID, 3, b"")])
    declared, _ = encode_request(request.declared(), version, 9, None)
    assert isinstance(decode_answer(declared, answer_bytes(declared, answer(topic()))), ProduceAnswer)
    sent, _ = encode_request(request, version, 9, None)
    stored = isinstance(decode_answer(sent, answer_bytes(sent, answer(topic()))), Stored)
    assert stored == PRODUCE.flexible(version)


@pytest.mark.parametrize(
    "more",
    [
        {"error": 6},
        {"error_message": ""},
        {"record_errors": (RecordError(batch_index=1, batch_index_error_message=None),)},
        {"current_leader": CurrentLeader(leader_id=2, leader_epoch=3)},
    ],
    ids=lambda more: next(iter(more)),
)
@pytest.mark.parametrize("version", [10, 12, 13])
def test_an_answer_that_says_more_is_declared(version: int, more: dict[str, Any]) -> None:
    sent = SentRequest(PRODUCE, version, 9, by_topic=True)
    frame = answer_bytes(sent, answer(topic(), topic("items", bytes(16), replace(RESULT, **more))))
    found = decode_answer(sent, frame)
    assert isinstance(found, ProduceAnswer)
    assert found == decode_answer(sent._replace(by_topic=False), frame)


@pytest.mark.parametrize("version", FLEXIBLE)
def test_every_other_bit_of_an_answer_is_read_as_the_declared_codecs_read_it(version: int) -> None:
    sent = SentRequest(PRODUCE, version, 9, by_topic=True)
    frame = answer_bytes(sent, answer(topic(), topic("items", bytes(16))))
    assert isinstance(outcome(sent, frame), Stored)
    for bit in range(8 * len(frame)):
        changed = bytearray(frame)
        changed[bit // 8] ^= 1 << bit % 8
        found, declared = outcome(sent, changed), outcome(sent._replace(by_topic=False), changed)
        assert found == (as_stored(declared, version) if isinstance(found, Stored) else declared)


@given(st.data(), st.sampled_from(FLEXIBLE))
def test_every_answer_is_read_as_the_declared_codecs_read_it(data: st.DataObject, version: int) -> None:
    results = st.builds(lambda index, offset: replace(RESULT, index=index, base_offset=offset), st.integers(0, 9),
                        st.integers(-1, 1 << 40))  # fmt: skip
    topics = st.builds(topic, st.text(max_size=20), st.binary(min_size=16, max_size=16), results)
    plain = st.lists(topics, max_size=4).map(lambda found: answer(*found))
    made = data.draw(plain | random_messages(ProduceAnswer, version))
    sent = SentRequest(PRODUCE, version, 9, by_topic=True)
    frame = bytearray(answer_bytes(sent, made))
    for at in data.draw(st.lists(st.integers(0, len(frame) - 1), max_size=2)):
        frame[at] = data.draw(st.integers(0, 255))
    changed = bytes(frame[: data.draw(st.integers(0, len(frame)) | st.just(len(frame)))]) + data.draw(
        st.binary(max_size=2)
    )
    found, declared = outcome(sent, changed), outcome(sent._replace(by_topic=False), changed)
    assert found == (as_stored(declared, version) if isinstance(found, Stored) else declared)
