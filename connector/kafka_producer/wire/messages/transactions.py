"""Producer ids and transactions."""

from dataclasses import dataclass

from rowtide.connector.kafka_producer.wire.schema import (
    Request,
    boolean,
    int16,
    int32,
    int64,
    many,
    of,
    one,
    text,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class InitProducerIdRequest(Request["InitProducerIdAnswer"]):
    """Requests a producer id, or a new epoch of one; with a transactional id, it fences all earlier producers.

    Attributes:
        producer_id: with ``producer_epoch``, what the producer has now, to get its next epoch; -1 at first.
    """

    transactional_id: str | None = of(text, null_since=0)
    transaction_timeout_ms: int = of(int32)
    producer_id: int = of(int64, since=3, default=-1)
    producer_epoch: int = of(int16, since=3, default=-1)


@dataclass(frozen=True, slots=True, kw_only=True)
class InitProducerIdAnswer:
    """The producer id and its epoch."""

    throttle_time_ms: int = of(int32)
    error: int = of(int16)
    producer_id: int = of(int64)
    producer_epoch: int = of(int16)


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionTopic:
    """Partitions to add to a transaction."""

    name: str = of(text)
    partitions: tuple[int, ...] = of(many(int32))


@dataclass(frozen=True, slots=True, kw_only=True)
class AddPartitionsToTxnRequest(Request["AddPartitionsToTxnAnswer"]):
    """Adds partitions to the transaction before the first batch for them (not needed by transactions of version 2)."""

    transactional_id: str = of(text)
    producer_id: int = of(int64)
    producer_epoch: int = of(int16)
    topics: tuple[TransactionTopic, ...] = of(many(one(TransactionTopic)))


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedPartition:
    """Whether a partition was added."""

    partition_index: int = of(int32)
    error: int = of(int16)


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedTopic:
    """Whether the partitions of a topic were added."""

    name: str = of(text)
    results_by_partition: tuple[AddedPartition, ...] = of(many(one(AddedPartition)))


@dataclass(frozen=True, slots=True, kw_only=True)
class AddPartitionsToTxnAnswer:
    """Whether each partition was added."""

    throttle_time_ms: int = of(int32)
    results_by_topic: tuple[AddedTopic, ...] = of(many(one(AddedTopic)))


@dataclass(frozen=True, slots=True, kw_only=True)
class EndTxnRequest(Request["EndTxnAnswer"]):
    """Commits or aborts the transaction."""

    transactional_id: str = of(text)
    producer_id: int = of(int64)
    producer_epoch: int = of(int16)
    committed: bool = of(boolean)


@dataclass(frozen=True, slots=True, kw_only=True)
class EndTxnAnswer:
    """Whether the transaction ended; since version 5, the producer id and epoch of the next one."""

    throttle_time_ms: int = of(int32)
    error: int = of(int16)
    producer_id: int = of(int64, since=5, default=-1)
    producer_epoch: int = of(int16, since=5, default=-1)
