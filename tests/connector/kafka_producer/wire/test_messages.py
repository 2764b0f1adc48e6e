"""The bytes of messages: against Kafka's own classes, and against bytes that are not messages."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowtide.connector.kafka_producer.wire.apis import APIS, Api
from rowtide.connector.kafka_producer.wire.errors import MalformedAnswer, NotEncodable
from rowtide.connector.kafka_producer.wire.frames import decode_answer
from rowtide.connector.kafka_producer.wire.messages.cluster import (
    Coordinator,
    FindCoordinatorAnswer,
    FindCoordinatorRequest,
    MetadataRequest,
    MetadataTopicName,
)
from rowtide.connector.kafka_producer.wire.messages.opening import SaslAuthenticateRequest
from rowtide.connector.kafka_producer.wire.messages.transactions import InitProducerIdRequest
from rowtide.connector.kafka_producer.wire.primitives import Codec
from rowtide.connector.kafka_producer.wire.schema import codec, read_all
from tests.support.kafka.wire import EXCHANGES, WrittenByKafka, random_messages, written, written_by_kafka

GOLDEN = list(written_by_kafka())
VERSIONS = [(api, version) for api in APIS for version in range(api.lowest, api.highest + 1)]


def answer_codec(api: Api, version: int) -> Codec:
    return codec(api.answer, version, flexible=api.flexible(version))


@pytest.mark.parametrize("golden", GOLDEN, ids=str)
def test_the_same_bytes_as_kafka(golden: WrittenByKafka) -> None:
    assert written(golden.codec, golden.message) == golden.content
    assert read_all(golden.codec, golden.content) == golden.message


def test_every_version_is_compared() -> None:
    found = {(golden.api, golden.version, golden.is_request) for golden in GOLDEN}
    assert found == {(api, version, request) for api, version in VERSIONS for request in (False, True)}


@given(st.data())
def test_what_is_written_is_read(data: st.DataObject) -> None:
    api, version = data.draw(st.sampled_from(VERSIONS))
    kind = data.draw(st.sampled_from([api.request, api.answer]))
    message = data.draw(random_messages(kind, version))
    made = codec(kind, version, flexible=api.flexible(version))
    assert read_all(made, written(made, message)) == message


@pytest.mark.parametrize("golden", [golden for golden in GOLDEN if not golden.is_request], ids=str)
def test_every_truncated_answer_is_malformed(golden: WrittenByKafka) -> None:
    for size in range(len(golden.content)):
        with pytest.raises(MalformedAnswer):
            read_all(golden.codec, golden.content[:size])
    with pytest.raises(MalformedAnswer, match="1 bytes follow its end"):
        read_all(golden.codec, golden.content + b"\0")


@given(st.sampled_from(VERSIONS), st.binary(max_size=200))
def test_random_bytes_are_malformed_or_an_answer(which: tuple[Api, int], content: bytes) -> None:
    made = answer_codec(*which)
    try:
        message = read_all(made, content)
    except MalformedAnswer:
        return
    assert read_all(made, written(made, message)) == message


@given(st.sampled_from(EXCHANGES), st.data())
def test_a_damaged_answer_is_malformed_or_another_answer(exchange: Any, data: st.DataObject) -> None:
    damaged = bytearray(exchange.answer)
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    try:
        answer = decode_answer(exchange.sent, damaged)
    except MalformedAnswer as error:
        assert str(exchange.sent) in str(error)  # noqa: PT017 - both outcomes are right
    else:
        assert isinstance(answer, exchange.sent.api.answer)


@pytest.mark.parametrize(("api", "version"), VERSIONS, ids=str)
def test_lengths_do_not_make_it_allocate(api: Api, version: int) -> None:
    made = answer_codec(api, version)
    tracemalloc.start()
    try:
        for fill in (b"\x7f", b"\xff", b"\x07", b"\x00"):
            for at in range(12):  # so that a length of almost 2 GiB stands at every place
                content = bytes(at) + fill * 40
                try:
                    read_all(made, content)
                except MalformedAnswer:
                    continue
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_a_field_that_the_version_does_not_have() -> None:
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1, producer_id=7, producer_epoch=0)
    assert written(codec(InitProducerIdRequest, 3, flexible=True), request)
    with pytest.raises(NotEncodable, match=r"InitProducerIdRequest\.producer_id does not exist in this version"):
        written(codec(InitProducerIdRequest, 2, flexible=True), request)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        (None, "null is not a value of this version"),
        ("x" * 32768, "a string of 32768 bytes is longer than 32767"),
        ("ä" * 16384, "a string of 32768 bytes is longer than 32767"),
    ],
)
@pytest.mark.parametrize("flexible", [False, True])
def test_a_text_that_does_not_fit(name: str | None, problem: str, *, flexible: bool) -> None:
    request = MetadataRequest(topics=(MetadataTopicName(name=name),))
    with pytest.raises(NotEncodable, match=f"MetadataRequest.topics: MetadataTopicName.name: {problem}"):
        written(codec(MetadataRequest, 9, flexible=flexible), request)


def test_a_number_that_does_not_fit() -> None:
    request = InitProducerIdRequest(transactional_id="a", transaction_timeout_ms=1 << 31)
    with pytest.raises(NotEncodable, match=r"InitProducerIdRequest\.transaction_timeout_ms: 2147483648"):
        written(codec(InitProducerIdRequest, 0, flexible=False), request)


def test_a_topic_id_that_is_none() -> None:
    request = MetadataRequest(topics=(MetadataTopicName(name="orders", topic_id=b"short"),))
    with pytest.raises(NotEncodable, match=r"MetadataTopicName\.topic_id: 5 bytes are not a UUID"):
        written(codec(MetadataRequest, 12, flexible=True), request)


def test_secrets_are_not_shown() -> None:
    assert "secret" not in repr(SaslAuthenticateRequest(auth_bytes=b"\0alice\0secret"))


def test_unknown_tagged_fields_are_skipped() -> None:
    made = answer_codec(*next((api, 4) for api in APIS if api.name == "ApiVersions"))
    content = b"\0\0\1\0\0\0\0" + b"\2" + b"\3\1\1" + b"\x63\3abc"
    assert read_all(made, content).zk_migration_ready
    with pytest.raises(MalformedAnswer, match="1 bytes follow its end"):  # the known one has another length
        read_all(made, b"\0\0\1\0\0\0\0" + b"\1" + b"\3\2\1\0")


@pytest.mark.parametrize("version", [1, 3, 4, 6])
def test_one_coordinator_in_every_version(version: int) -> None:
    made = codec(FindCoordinatorRequest, version, flexible=version >= 3)
    assert b"payments" in written(made, FindCoordinatorRequest.for_id("payments"))


def test_the_coordinator_of_an_answer() -> None:
    expected = Coordinator(key="a", node_id=1, host="h", port=2, error=0, error_message=None)
    old = FindCoordinatorAnswer(throttle_time_ms=0, node_id=1, host="h", port=2)
    new = FindCoordinatorAnswer(throttle_time_ms=0, coordinators=(expected,))
    assert old.coordinator("a") == new.coordinator("a") == expected
    refused = FindCoordinatorAnswer(throttle_time_ms=0, error=15).coordinator("a")
    assert refused is not None
    assert refused.error == 15
    assert new.coordinator("b") is None
    assert FindCoordinatorAnswer(throttle_time_ms=0).coordinator("a") is None
