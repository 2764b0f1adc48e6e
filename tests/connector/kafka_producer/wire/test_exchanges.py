"""Exchanges with Kafka 4.3.1, recorded with ``tests/support/kafka/exchange_recorder.py``."""

from __future__ import annotations

from typing import Any

import pytest

from rowtide.connector.kafka_producer.wire.apis import APIS, BrokerVersions
from rowtide.connector.kafka_producer.wire.error_codes import ErrorCode
from rowtide.connector.kafka_producer.wire.frames import decode_answer, encode_request
from rowtide.connector.kafka_producer.wire.messages.cluster import (
    FindCoordinatorAnswer,
    MetadataAnswer,
)
from rowtide.connector.kafka_producer.wire.messages.produce import ProduceAnswer, ProduceRequest
from rowtide.connector.kafka_producer.wire.messages.transactions import (
    AddPartitionsToTxnAnswer,
    EndTxnAnswer,
)
from rowtide.connector.kafka_producer.wire.primitives import NO_TOPIC_ID
from rowtide.connector.kafka_producer.wire.schema import codec, read_all
from tests.support.kafka.wire import EXCHANGES, Exchange

_HEADER = 2 + 2 + 4 + 2 + len("rowtide")

ERRORS = {
    "versions that the broker does not have": "UNSUPPORTED_VERSION",
    "metadata": "NONE UNKNOWN_TOPIC_OR_PARTITION",
    "metadata by id": "NONE UNKNOWN_TOPIC_ID",
    "metadata of an invalid name": "NONE INVALID_TOPIC_EXCEPTION",
    "produce with a gap": "OUT_OF_ORDER_SEQUENCE_NUMBER",
    "produce to a missing topic": "UNKNOWN_TOPIC_OR_PARTITION",
    "produce to an unknown topic id": "UNKNOWN_TOPIC_ID",
    "produce to a missing partition": "UNKNOWN_TOPIC_OR_PARTITION",
    "produce a batch that is too large": "MESSAGE_TOO_LARGE",
    "produce a damaged batch": "CORRUPT_MESSAGE",
    "produce with an earlier epoch": "INVALID_PRODUCER_EPOCH",
    "produce records without keys to a compacted topic": "INVALID_RECORD",
    "coordinator that is not available": "COORDINATOR_NOT_AVAILABLE",
    "add partitions of a missing topic": "OPERATION_NOT_ATTEMPTED UNKNOWN_TOPIC_OR_PARTITION",
    "produce in a transaction without its partition": "NOT_ENOUGH_REPLICAS TRANSACTION_ABORTABLE",
    "produce of a fenced producer": "INVALID_PRODUCER_EPOCH",
    "commit of a fenced producer": "INVALID_PRODUCER_EPOCH PRODUCER_FENCED",
    "producer id of a fenced producer": "PRODUCER_FENCED",
    "producer id with a timeout that is too long": "INVALID_TRANSACTION_TIMEOUT",
    "PLAIN with a wrong password": "NONE SASL_AUTHENTICATION_FAILED",
    "SCRAM-SHA-256 with a wrong password": "NONE SASL_AUTHENTICATION_FAILED",
    "SCRAM-SHA-512 with a wrong password": "NONE SASL_AUTHENTICATION_FAILED",
    "SCRAM-SHA-256 with an unknown user": "NONE SASL_AUTHENTICATION_FAILED",
    "SCRAM-SHA-512 with an unknown user": "NONE SASL_AUTHENTICATION_FAILED",
    "OAUTHBEARER with an expired token": "NONE SASL_AUTHENTICATION_FAILED",
    "an unknown mechanism": "UNSUPPORTED_SASL_MECHANISM",
}
"""The errors in the answers to each exchange; the others have none."""


def answers(name: str) -> list[Any]:
    """The answers of the exchanges with a name."""
    return [decode_answer(exchange.sent, exchange.answer) for exchange in EXCHANGES if exchange.name == name]


def errors(answer: Any) -> set[int]:
    """The error codes of an answer."""
    if isinstance(answer, ProduceAnswer):
        return {partition.error for topic in answer.responses for partition in topic.partition_responses}
    if isinstance(answer, AddPartitionsToTxnAnswer):
        return {partition.error for topic in answer.results_by_topic for partition in topic.results_by_partition}
    if isinstance(answer, MetadataAnswer):
        partitions = {partition.error for topic in answer.topics for partition in topic.partitions}
        return {answer.error, *(topic.error for topic in answer.topics), *partitions} if answer.topics else {0}
    if isinstance(answer, FindCoordinatorAnswer):
        found = answer.coordinator("payments")
        return {found.error} if found else {-1}
    return {answer.error}


@pytest.mark.parametrize(
    "exchange", [exchange for exchange in EXCHANGES if exchange.request], ids=lambda one: f"{one.name} {one.sent}"
)
def test_requests_have_the_bytes_that_the_broker_understood(exchange: Exchange) -> None:
    api, version = exchange.sent.api, min(exchange.sent.api.highest, int.from_bytes(exchange.request[2:4], "big"))
    flexible = api.flexible(version)
    request = read_all(codec(api.request, version, flexible=flexible), exchange.request[_HEADER + flexible :])
    _, parts = encode_request(request, version, exchange.sent.correlation_id, "rowtide")
    written = b"".join(parts)[4:]
    assert written[:2] + written[4:] == exchange.request[:2] + exchange.request[4:]


@pytest.mark.parametrize("name", dict.fromkeys(exchange.name for exchange in EXCHANGES))
def test_the_errors_of_answers(name: str) -> None:
    found = {ErrorCode(code).name for answer in answers(name) for code in errors(answer)}
    assert found == set(ERRORS.get(name, "NONE").split())


def test_every_version_is_recorded() -> None:
    found = {(exchange.sent.api, exchange.sent.version) for exchange in EXCHANGES}
    assert found == {(api, version) for api in APIS for version in range(api.lowest, api.highest + 1)}


def test_the_versions_of_the_broker() -> None:
    for answer in answers("versions"):
        known = BrokerVersions.of(answer)
        assert {api.name: known.version(api) for api in APIS} == {api.name: api.highest for api in APIS}
    assert known.features == {
        "group.version": 1,
        "metadata.version": 30,
        "transaction.version": 2,
        "eligible.leader.replicas.version": 1,
        "share.version": 1,
        "streams.version": 1,
    }
    assert known.transactions_v2


def test_metadata_of_the_broker() -> None:
    for answer in answers("metadata"):
        broker, (orders, missing) = answer.brokers[0], answer.topics
        assert (broker.node_id, broker.host) == (1, "127.0.0.1")
        assert (answer.cluster_id, answer.controller_id) == ("cm93dGlkZS1zdGFjay0wMQ", 1)
        assert (orders.name, missing.name) == ("orders", "missing")
        assert [
            (one.partition_index, one.leader_id, one.isr_nodes)
            for one in sorted(orders.partitions, key=lambda one: one.partition_index)
        ] == [(0, 1, (1,)), (1, 1, (1,))]
    assert orders.topic_id != NO_TOPIC_ID
    assert missing.topic_id == NO_TOPIC_ID


def test_results_of_the_broker() -> None:
    offsets = [answer.responses[0].partition_responses[0].base_offset for answer in answers("produce")]
    assert offsets == list(range(offsets[0], offsets[0] + 11))
    (again,) = answers("produce again")
    (several,) = answers("produce to several partitions")
    first = several.responses[0].partition_responses[0]
    assert again.responses[0].partition_responses[0].base_offset == first.base_offset
    found = {(topic.name, one.index) for topic in several.responses for one in topic.partition_responses}
    assert found == {("orders", 0), ("orders", 1), ("items", 0)}
    refused = answers("produce records without keys to a compacted topic")[-1].responses[0].partition_responses[0]
    assert [one.batch_index for one in refused.record_errors] == [0, 1]
    text = refused.record_errors[1].batch_index_error_message
    assert text.startswith("Compacted topic cannot accept message without key in topic partition compacted")
    assert refused.error_message.startswith("One or more records have been rejected due to 2 record errors")


def test_the_epoch_of_transactions_of_version_2_grows() -> None:
    ends = [answer for answer in answers("commit") + answers("abort") if isinstance(answer, EndTxnAnswer)]
    producers = [(end.producer_id, end.producer_epoch) for end in ends]
    assert producers[:4] == [(-1, -1)] * 4
    (commit, abort) = producers[4:]
    assert abort == (commit[0], commit[1] + 1)


def test_the_exchanges_contain_transactional_requests() -> None:
    requests = [
        read_all(codec(ProduceRequest, 11, flexible=True), exchange.request[_HEADER + 1 :])
        for exchange in EXCHANGES
        if exchange.name == "produce in a transaction"
    ]
    assert {request.transactional_id for request in requests} == {"payments"}
