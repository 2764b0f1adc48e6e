"""Where topics and transactions are: metadata, and coordinators."""

from dataclasses import dataclass

from rowtide.connector.kafka_producer.wire.primitives import NO_TOPIC_ID
from rowtide.connector.kafka_producer.wire.schema import (
    Request,
    boolean,
    int8,
    int16,
    int32,
    many,
    of,
    one,
    text,
    topic_id,
)

_UNKNOWN_OPERATIONS = -(1 << 31)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataTopicName:
    """A topic whose metadata is requested; by its id only since version 12."""

    topic_id: bytes = of(topic_id, since=10, default=NO_TOPIC_ID)
    name: str | None = of(text, null_since=10)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataRequest(Request["MetadataAnswer"]):
    """Requests the brokers and the leaders of topics.

    Attributes:
        topics: the topics; ``None`` for all.
    """

    topics: tuple[MetadataTopicName, ...] | None = of(many(one(MetadataTopicName)), null_since=1)
    allow_auto_topic_creation: bool = of(boolean, since=4, default=False)
    include_cluster_authorized_operations: bool = of(boolean, since=8, until=10, default=False)
    include_topic_authorized_operations: bool = of(boolean, since=8, default=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Broker:
    """A broker and its address."""

    node_id: int = of(int32)
    host: str = of(text)
    port: int = of(int32)
    rack: str | None = of(text, null_since=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionMetadata:
    """A partition and its leader."""

    error: int = of(int16)
    partition_index: int = of(int32)
    leader_id: int = of(int32)
    leader_epoch: int = of(int32, since=7, default=-1)
    replica_nodes: tuple[int, ...] = of(many(int32))
    isr_nodes: tuple[int, ...] = of(many(int32))
    offline_replicas: tuple[int, ...] = of(many(int32), since=5, default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicMetadata:
    """A topic and its partitions."""

    error: int = of(int16)
    name: str | None = of(text, null_since=12)
    topic_id: bytes = of(topic_id, since=10, default=NO_TOPIC_ID)
    is_internal: bool = of(boolean)
    partitions: tuple[PartitionMetadata, ...] = of(many(one(PartitionMetadata)))
    topic_authorized_operations: int = of(int32, since=8, default=_UNKNOWN_OPERATIONS)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataAnswer:
    """The brokers of the cluster, and the requested topics."""

    throttle_time_ms: int = of(int32)
    brokers: tuple[Broker, ...] = of(many(one(Broker)))
    cluster_id: str | None = of(text, null_since=0)
    controller_id: int = of(int32)
    topics: tuple[TopicMetadata, ...] = of(many(one(TopicMetadata)))
    cluster_authorized_operations: int = of(int32, since=8, until=10, default=_UNKNOWN_OPERATIONS)
    error: int = of(int16, since=13, default=0)


TRANSACTION = 1
"""The type of coordinator that a producer needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FindCoordinatorRequest(Request["FindCoordinatorAnswer"]):
    """Requests the coordinators of transactional ids.

    Attributes:
        key: the one of versions up to 3.
        coordinator_keys: those of version 4 and later.
    """

    key: str = of(text, until=3, default="", ignorable=True)
    key_type: int = of(int8, default=TRANSACTION)
    coordinator_keys: tuple[str, ...] = of(many(text), since=4, default=(), ignorable=True)

    @classmethod
    def for_id(cls, transactional_id: str) -> "FindCoordinatorRequest":
        """Return a request for one coordinator, in any version."""
        return cls(key=transactional_id, coordinator_keys=(transactional_id,))


@dataclass(frozen=True, slots=True, kw_only=True)
class Coordinator:
    """The coordinator of one transactional id."""

    key: str = of(text)
    node_id: int = of(int32)
    host: str = of(text)
    port: int = of(int32)
    error: int = of(int16)
    error_message: str | None = of(text, null_since=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class FindCoordinatorAnswer:
    """The coordinators; up to version 3 there is one, in the fields of the answer."""

    throttle_time_ms: int = of(int32)
    error: int = of(int16, until=3, default=0)
    error_message: str | None = of(text, null_since=0, until=3, default=None)
    node_id: int = of(int32, until=3, default=-1)
    host: str = of(text, until=3, default="")
    port: int = of(int32, until=3, default=-1)
    coordinators: tuple[Coordinator, ...] = of(many(one(Coordinator)), since=4, default=())

    def coordinator(self, transactional_id: str) -> Coordinator | None:
        """Return the coordinator of a transactional id, or the error; ``None`` if the answer does not have it."""
        if self.node_id < 0 and not self.error:
            return next((found for found in self.coordinators if found.key == transactional_id), None)
        return Coordinator(
            key=transactional_id,
            node_id=self.node_id,
            host=self.host,
            port=self.port,
            error=self.error,
            error_message=self.error_message,
        )
