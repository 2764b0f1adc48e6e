"""Record batches to store, and the results."""

from dataclasses import dataclass

from rowtide.connector.kafka_producer.wire.messages.cluster import Broker
from rowtide.connector.kafka_producer.wire.primitives import NO_TOPIC_ID, Bytes
from rowtide.connector.kafka_producer.wire.schema import (
    Request,
    int16,
    int32,
    int64,
    many,
    of,
    one,
    records,
    text,
    topic_id,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionData:
    """A record batch for a partition."""

    index: int = of(int32)
    records: Bytes | None = of(records, null_since=0, shown=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicData:
    """Record batches for partitions of a topic, which is named up to version 12 and has its id since version 13."""

    name: str = of(text, until=12, default="", ignorable=True)
    topic_id: bytes = of(topic_id, since=13, default=NO_TOPIC_ID, ignorable=True)
    partition_data: tuple[PartitionData, ...] = of(many(one(PartitionData)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ProduceRequest(Request["ProduceAnswer"]):
    """Record batches to store, one for each partition.

    Attributes:
        acks: -1 for the acknowledgement of all replicas that are in sync.
        timeout_ms: how long the broker waits for them.
    """

    transactional_id: str | None = of(text, null_since=0, default=None)
    acks: int = of(int16, default=-1)
    timeout_ms: int = of(int32)
    topic_data: tuple[TopicData, ...] = of(many(one(TopicData)))


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordError:
    """The record that made a broker refuse a batch."""

    batch_index: int = of(int32)
    batch_index_error_message: str | None = of(text, null_since=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrentLeader:
    """The leader that a partition has instead (KIP-951)."""

    leader_id: int = of(int32)
    leader_epoch: int = of(int32)


NO_LEADER = CurrentLeader(leader_id=-1, leader_epoch=-1)
"""The broker named no leader."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionResult:
    """The result for the record batch of a partition."""

    index: int = of(int32)
    error: int = of(int16)
    base_offset: int = of(int64)
    log_append_time_ms: int = of(int64)
    log_start_offset: int = of(int64, since=5, default=-1)
    record_errors: tuple[RecordError, ...] = of(many(one(RecordError)), since=8, default=())
    error_message: str | None = of(text, since=8, null_since=8, default=None)
    current_leader: CurrentLeader = of(one(CurrentLeader), since=10, tag=0, default=NO_LEADER)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicResult:
    """The results for the record batches of a topic; see :class:`TopicData`."""

    name: str = of(text, until=12, default="", ignorable=True)
    topic_id: bytes = of(topic_id, since=13, default=NO_TOPIC_ID, ignorable=True)
    partition_responses: tuple[PartitionResult, ...] = of(many(one(PartitionResult)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ProduceAnswer:
    """The result for each record batch, and the addresses of the leaders that the results name (KIP-951)."""

    responses: tuple[TopicResult, ...] = of(many(one(TopicResult)))
    throttle_time_ms: int = of(int32)
    node_endpoints: tuple[Broker, ...] = of(many(one(Broker)), since=10, tag=0, default=())
