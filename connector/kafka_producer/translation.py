"""Translates between the state machine's requests and answers, and those of Kafka's protocol. Pure."""

from collections.abc import Iterable
from itertools import groupby
from typing import Any

from rowtide.connector.kafka_producer.machine import messages
from rowtide.connector.kafka_producer.wire.apis import INIT_PRODUCER_ID, BrokerVersions
from rowtide.connector.kafka_producer.wire.error_codes import ErrorCode
from rowtide.connector.kafka_producer.wire.errors import MalformedAnswer
from rowtide.connector.kafka_producer.wire.messages import cluster, produce, transactions
from rowtide.connector.kafka_producer.wire.messages.topic_batches import Stored, TopicBatches
from rowtide.connector.kafka_producer.wire.primitives import NO_TOPIC_ID
from rowtide.connector.kafka_producer.wire.schema import NEVER, Request

_LAST_WITH_NAMES = 12
"""The last version of Produce in which topics are named."""
_LAST_PRODUCE_OF_TRANSACTIONS_V1 = 11
"""Since version 12 of Produce, the broker adds partitions to the transaction itself (KIP-890)."""
_LAST_END_OF_TRANSACTIONS_V1 = 4
"""Since version 5 of EndTxn, the broker raises the epoch, whatever the cluster's transaction.version is (KIP-890)."""
_FIRST_THAT_RAISES_EPOCHS = 3
"""The first version of InitProducerId with the current id and epoch (KIP-360)."""


def request(sent: messages.Request, timeout_ms: int) -> tuple[Request[Any], int]:
    """Return a request of the protocol, and the highest version in which it may be sent.

    Args:
        sent: the machine's request.
        timeout_ms: how long the broker may wait for the replicas (``request.timeout.ms``).
    """
    match sent:
        case messages.Produce():
            return _produce(sent, timeout_ms), _highest_produce(sent)
        case messages.GetMetadata():
            topics = tuple(cluster.MetadataTopicName(name=topic) for topic in sent.topics)
            return cluster.MetadataRequest(topics=topics), NEVER
        case messages.InitProducerId():
            producer = sent.current or messages.NO_PRODUCER
            return (
                transactions.InitProducerIdRequest(
                    transactional_id=sent.transactional_id or None,
                    transaction_timeout_ms=sent.timeout_ms,
                    producer_id=producer.producer_id,
                    producer_epoch=producer.epoch,
                ),
                NEVER,
            )
        case messages.FindCoordinator():
            return cluster.FindCoordinatorRequest.for_id(sent.transactional_id), NEVER
        case messages.AddPartitionsToTxn():
            by_topic = groupby(sorted(sent.partitions), key=lambda partition: partition.topic)
            added = tuple(
                transactions.TransactionTopic(name=topic, partitions=tuple(one.partition for one in found))
                for topic, found in by_topic
            )
            return (
                transactions.AddPartitionsToTxnRequest(
                    transactional_id=sent.transactional_id,
                    producer_id=sent.producer.producer_id,
                    producer_epoch=sent.producer.epoch,
                    topics=added,
                ),
                NEVER,
            )
        case messages.EndTxn():
            return (
                transactions.EndTxnRequest(
                    transactional_id=sent.transactional_id,
                    producer_id=sent.producer.producer_id,
                    producer_epoch=sent.producer.epoch,
                    committed=sent.commit,
                ),
                NEVER if sent.implicit else _LAST_END_OF_TRANSACTIONS_V1,
            )


def _highest_produce(sent: messages.Produce) -> int:
    if sent.transactional_id and not sent.implicit:
        return _LAST_PRODUCE_OF_TRANSACTIONS_V1
    return NEVER if all(batch.topic_id for batch in sent.batches) else _LAST_WITH_NAMES


def _produce(sent: messages.Produce, timeout_ms: int) -> TopicBatches | produce.ProduceRequest:
    by_topic: dict[str, list[messages.SentBatch]] = {}
    for batch in sent.batches:
        by_topic.setdefault(batch.topic, []).append(batch)
    if len(by_topic) == len(sent.batches):
        return TopicBatches(sent.transactional_id or None, timeout_ms, sent.batches)
    return produce.ProduceRequest(
        transactional_id=sent.transactional_id or None,
        timeout_ms=timeout_ms,
        topic_data=tuple(
            produce.TopicData(
                name=topic,
                topic_id=batches[0].topic_id or NO_TOPIC_ID,
                partition_data=tuple(
                    produce.PartitionData(index=batch.partition, records=batch.data) for batch in batches
                ),
            )
            for topic, batches in by_topic.items()
        ),
    )


def answer(sent: messages.Request, received: Any, versions: BrokerVersions) -> messages.Answer:
    """Return an answer for the machine.

    Args:
        sent: the request.
        received: the answer of the protocol.
        versions: of the broker that has answered.

    Raises:
        MalformedAnswer: it does not answer the request.
    """
    match sent, received:
        case messages.Produce(), Stored():
            return _stored(sent, received)
        case messages.Produce(), produce.ProduceAnswer():
            return _produced(sent, received)
        case messages.GetMetadata(), cluster.MetadataAnswer():
            return messages.Metadata({name: _topic(topic) for topic in received.topics if (name := topic.name)})
        case messages.InitProducerId(), transactions.InitProducerIdAnswer():
            producer = messages.ProducerIdentity(received.producer_id, received.producer_epoch)
            return messages.InitProducerIdAnswer(
                received.error,
                producer,
                versions.transactions_v2,
                versions.version(INIT_PRODUCER_ID) >= _FIRST_THAT_RAISES_EPOCHS,
            )
        case messages.FindCoordinator(), cluster.FindCoordinatorAnswer():
            found = received.coordinator(sent.transactional_id)
            if found is None:
                raise MalformedAnswer("FindCoordinator: the response has no coordinator of the transactional id")
            return messages.FindCoordinatorAnswer(found.error, found.node_id)
        case messages.AddPartitionsToTxn(), transactions.AddPartitionsToTxnAnswer():
            return messages.AddPartitionsToTxnAnswer(
                {
                    messages.TopicPartition(topic.name, partition.partition_index): partition.error
                    for topic in received.results_by_topic
                    for partition in topic.results_by_partition
                }
            )
        case messages.EndTxn(), transactions.EndTxnAnswer():
            has_next = received.producer_id >= 0
            following = messages.ProducerIdentity(received.producer_id, received.producer_epoch) if has_next else None
            return messages.EndTxnAnswer(received.error, following)
    raise MalformedAnswer(f"{type(received).__name__} is not the response to {type(sent).__name__}")


def brokers(received: Any) -> Iterable[tuple[int, str, int]]:
    """Yield the ids, hosts and ports of brokers that an answer names."""
    if isinstance(received, cluster.MetadataAnswer):
        for broker in received.brokers:
            yield broker.node_id, broker.host, broker.port
    elif isinstance(received, cluster.FindCoordinatorAnswer):
        if received.node_id >= 0:
            yield received.node_id, received.host, received.port
        for coordinator in received.coordinators:
            if coordinator.node_id >= 0:
                yield coordinator.node_id, coordinator.host, coordinator.port


def _topic(topic: cluster.TopicMetadata) -> messages.TopicMetadata:
    partitions = {
        partition.partition_index: messages.PartitionMetadata(
            partition.error, partition.leader_id, partition.leader_epoch
        )
        for partition in topic.partitions
    }
    topic_id = None if topic.topic_id == NO_TOPIC_ID else topic.topic_id
    return messages.TopicMetadata(topic.error, topic_id, partitions)


def _stored(sent: messages.Produce, received: Stored) -> messages.ProduceAnswer:
    names = {batch.topic_id: batch.topic for batch in sent.batches if batch.topic_id}
    found = [
        messages.ProducedBatch(
            topic if isinstance(topic, str) else names.get(topic, ""), partition, ErrorCode.NONE, offset
        )
        for topic, partition, offset in received.batches
    ]
    return messages.ProduceAnswer(found, received.throttle_time_ms / 1000)


def _produced(sent: messages.Produce, received: produce.ProduceAnswer) -> messages.ProduceAnswer:
    names = {batch.topic_id: batch.topic for batch in sent.batches if batch.topic_id}
    found = [
        messages.ProducedBatch(
            topic.name or names.get(topic.topic_id, ""),
            partition.index,
            partition.error,
            partition.base_offset,
            partition.error_message or "",
            tuple(record.batch_index for record in partition.record_errors),
        )
        for topic in received.responses
        for partition in topic.partition_responses
    ]
    return messages.ProduceAnswer(found, received.throttle_time_ms / 1000)
