"""Requests and answers with their headers, and the cutting of a connection's bytes into answers."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowtide.connector.kafka_producer.wire.apis import API_VERSIONS, METADATA
from rowtide.connector.kafka_producer.wire.errors import MalformedAnswer, NotEncodable
from rowtide.connector.kafka_producer.wire.frames import (
    FrameReader,
    SentRequest,
    decode_answer,
    encode_request,
)
from rowtide.connector.kafka_producer.wire.messages.cluster import MetadataAnswer, MetadataRequest
from rowtide.connector.kafka_producer.wire.messages.opening import ApiRange, ApiVersionsAnswer
from rowtide.connector.kafka_producer.wire.messages.produce import (
    PartitionData,
    ProduceRequest,
    TopicData,
)
from tests.support.kafka.wire import answer_bytes

EMPTY = MetadataAnswer(throttle_time_ms=0, brokers=(), cluster_id=None, controller_id=-1, topics=())


def produce(records: bytes | bytearray) -> ProduceRequest:
    partition = PartitionData(index=0, records=records)
    return ProduceRequest(timeout_ms=1, topic_data=(TopicData(name="orders", partition_data=(partition,)),))


def test_the_header_of_a_request() -> None:
    _, parts = encode_request(MetadataRequest(topics=()), 8, 77, "rowtide")
    assert b"".join(parts) == b"\0\0\0\x18" + b"\0\3\0\x08\0\0\0\x4d\0\7rowtide" + b"\0\0\0\0\0\0\0"
    _, parts = encode_request(MetadataRequest(topics=()), 12, 77, None)
    assert b"".join(parts) == b"\0\0\0\x0f" + b"\0\3\0\x0c\0\0\0\x4d\xff\xff\0" + b"\1\0\0\0"


def test_record_batches_are_not_copied() -> None:
    records = bytearray(b"r" * 1000)
    _, parts = encode_request(produce(records), 12, 1, None)
    assert [part for part in parts if part is records]
    assert int.from_bytes(parts[0][:4], "big") == sum(map(len, parts)) - 4


@pytest.mark.parametrize("version", [2, 14])
def test_a_version_that_rowtide_does_not_have(version: int) -> None:
    with pytest.raises(NotEncodable, match=f"request 5 of version {version}: the version is not one of 3 to 13"):
        encode_request(produce(b""), version, 5, None)


def test_a_request_that_does_not_fit_names_itself() -> None:
    with pytest.raises(NotEncodable, match=r"Metadata request 5 of version 4: MetadataRequest\.include_topic"):
        encode_request(MetadataRequest(topics=(), include_topic_authorized_operations=True), 4, 5, None)


def test_a_request_of_more_than_two_gibibytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rowtide.connector.kafka_producer.wire.frames._LONGEST_REQUEST", 100)
    encode_request(produce(b"r" * 40), 12, 1, None)
    with pytest.raises(NotEncodable, match="bytes are longer than a request may be"):
        encode_request(produce(b"r" * 100), 12, 1, None)


@pytest.mark.parametrize("version", [8, 12])
def test_an_answer(version: int) -> None:
    sent = SentRequest(METADATA, version, 9)
    assert decode_answer(sent, answer_bytes(sent, EMPTY)) == EMPTY


def test_an_answer_to_another_request() -> None:
    sent, other = SentRequest(METADATA, 12, 9), SentRequest(METADATA, 12, 8)
    expected = "the response to Metadata request 9 of version 12 is malformed: it has the correlation id 8"
    with pytest.raises(MalformedAnswer, match=expected):
        decode_answer(sent, answer_bytes(other, EMPTY))


def test_tagged_fields_in_the_header_of_an_answer_are_skipped() -> None:
    sent = SentRequest(METADATA, 12, 9)
    plain = answer_bytes(sent, EMPTY)
    assert decode_answer(sent, plain[:4] + b"\1\x05\2ab" + plain[5:]) == EMPTY


def test_an_unsupported_version_is_answered_in_the_form_of_version_0() -> None:
    answer = ApiVersionsAnswer(error=35, api_keys=(ApiRange(api_key=18, min_version=0, max_version=2),))
    content = answer_bytes(SentRequest(API_VERSIONS, 0, 9), answer)
    assert decode_answer(SentRequest(API_VERSIONS, 4, 9), content) == answer
    refused = ApiVersionsAnswer(error=42, api_keys=())
    sent = SentRequest(API_VERSIONS, 4, 9)
    assert decode_answer(sent, answer_bytes(sent, refused)) == refused


@given(st.lists(st.binary(min_size=4, max_size=200_000), min_size=1, max_size=3), st.data())
def test_frames_are_cut_from_any_pieces(frames: list[bytes], data: st.DataObject) -> None:
    stream = memoryview(b"".join(len(frame).to_bytes(4, "big") + frame for frame in frames))
    reader = FrameReader(200_000)
    found = []
    while stream:
        space = reader.space()
        size = min(data.draw(st.integers(1, 100_000)), len(space), len(stream))
        space[:size] = stream[:size]
        stream = stream[size:]
        frame = reader.received(size)
        if frame is not None:
            found.append(bytes(frame))
    assert found == frames


@pytest.mark.parametrize("size", [-1, 0, 3, 1001, 0x48545450, 0x7FFFFFFF])
def test_a_length_outside_the_limits(size: int) -> None:
    reader = FrameReader(1000)
    reader.space()[:] = size.to_bytes(4, "big", signed=True)
    with pytest.raises(MalformedAnswer, match=f"a response of {size} bytes is announced"):
        reader.received(4)


def test_a_length_alone_allocates_nothing() -> None:
    reader = FrameReader(1 << 30)
    tracemalloc.start()
    try:
        reader.space()[:] = (1 << 30).to_bytes(4, "big")
        reader.received(4)
        for _ in range(3):
            assert reader.received(len(reader.space())) is None
        assert tracemalloc.get_traced_memory()[1] < 2 << 20
    finally:
        tracemalloc.stop()
