"""The requests and answers of the state machine, in Kafka's protocol."""

from __future__ import annotations

import pytest

from rowtide.connector.kafka_producer.machine.messages import (
    EndTxn,
    Produce,
    ProduceAnswer,
    ProducedBatch,
    ProducerIdentity,
    SentBatch,
)
from rowtide.connector.kafka_producer.translation import answer, request
from rowtide.connector.kafka_producer.wire.apis import BrokerVersions
from rowtide.connector.kafka_producer.wire.errors import MalformedAnswer
from rowtide.connector.kafka_producer.wire.messages import produce
from rowtide.connector.kafka_producer.wire.messages.topic_batches import Stored
from rowtide.connector.kafka_producer.wire.schema import NEVER

VERSIONS = BrokerVersions({}, {})
PRODUCER = ProducerIdentity(7, 3)
BATCH = SentBatch("orders", bytes(range(16)), 0, b"")


@pytest.mark.parametrize(("implicit", "at_most"), [(False, 11), (True, NEVER)])
def test_without_transactions_of_version_2_brokers_add_no_partitions_themselves(implicit: bool, at_most: int) -> None:
    assert request(Produce("shop", implicit, (BATCH,)), 1000)[1] == at_most


@pytest.mark.parametrize(("implicit", "at_most"), [(False, 4), (True, NEVER)])
def test_without_transactions_of_version_2_the_end_raises_no_epoch(implicit: bool, at_most: int) -> None:
    """A broker of Kafka 4 raises it for version 5 in every cluster, and the next transaction would be fenced."""
    assert request(EndTxn("shop", PRODUCER, commit=True, implicit=implicit), 1000)[1] == at_most


def test_batches_of_a_topic_are_sent_together_in_their_order() -> None:
    other = SentBatch("items", bytes(16 * [9]), 4, b"c")
    batches = (BATCH._replace(data=b"a"), other, BATCH._replace(partition=2, data=b"b"))
    sent, at_most = request(Produce("", False, batches), 1500)
    found = [(topic.name, topic.topic_id, topic.partition_data) for topic in sent.topic_data]
    assert [(name, topic_id) for name, topic_id, _ in found] == [
        ("orders", BATCH.topic_id),
        ("items", other.topic_id),
    ]
    records = [[(each.index, each.records) for each in data] for _, _, data in found]
    assert records == [[(0, b"a"), (2, b"b")], [(4, b"c")]]
    assert (sent.transactional_id, sent.timeout_ms, at_most) == (None, 1500, NEVER)


def test_a_topic_without_an_id_is_sent_by_its_name() -> None:
    assert request(Produce("", False, (BATCH, BATCH._replace(topic="old", topic_id=None))), 1)[1] == 12


@pytest.mark.parametrize("by_id", [True, False])
def test_answers_are_about_the_batches_that_were_sent(by_id: bool) -> None:
    partition = produce.PartitionResult(
        index=0,
        error=87,
        base_offset=-1,
        log_append_time_ms=-1,
        error_message="no key",
        record_errors=(produce.RecordError(batch_index=3, batch_index_error_message=None),),
    )
    topic = produce.TopicResult(
        name="" if by_id else "orders",
        topic_id=BATCH.topic_id if by_id else bytes(16),
        partition_responses=(partition,),
    )
    received = produce.ProduceAnswer(responses=(topic,), throttle_time_ms=250)
    expected = ProduceAnswer([ProducedBatch("orders", 0, 87, -1, "no key", (3,))], 0.25)
    assert answer(Produce("", False, (BATCH,)), received, VERSIONS) == expected


def test_the_answer_that_all_batches_are_stored() -> None:
    named = BATCH._replace(topic="old", topic_id=None)
    received = Stored([(bytes(range(16)), 0, 40), ("old", 0, 0), (bytes(16), 0, 1)], 250)
    expected = [ProducedBatch("orders", 0, 0, 40), ProducedBatch("old", 0, 0, 0), ProducedBatch("", 0, 0, 1)]
    assert answer(Produce("", False, (BATCH, named)), received, VERSIONS) == ProduceAnswer(expected, 0.25)


def test_an_answer_to_another_request_is_malformed() -> None:
    received = produce.ProduceAnswer(responses=(), throttle_time_ms=0)
    with pytest.raises(MalformedAnswer, match="ProduceAnswer is not the response to EndTxn"):
        answer(EndTxn("shop", PRODUCER, commit=True), received, VERSIONS)
