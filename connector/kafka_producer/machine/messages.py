"""The types that the state machine exchanges with its surroundings: batches, requests to brokers, and answers.

The types contain the data that the machine needs, independently of protocol versions. Times are seconds of a monotonic
clock.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol


class TopicPartition(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int


class ProducerIdentity(NamedTuple):
    """A producer's identity. Sequence numbers start at 0 with every new id or epoch."""

    producer_id: int
    epoch: int


NO_PRODUCER = ProducerIdentity(-1, -1)


class Batch(Protocol):
    """A closed batch of records for one partition.

    Attributes:
        topic: the topic's name.
        partition: the partition's number.
        count: number of records.
        size: bytes in a request.
    """

    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def count(self) -> int: ...
    @property
    def size(self) -> int: ...

    def numbered(self, producer_id: int, epoch: int, base_sequence: int, *, transactional: bool) -> bytes | memoryview:
        """Return the bytes with these producer fields and their checksum.

        This is called once, because retries send the same bytes.
        """
        ...

    def split(self) -> "Sequence[Batch]":
        """Return two batches or more with the same records in the same order.

        This is only called if there are several records.
        """
        ...

    def record(self, index: int | None) -> tuple[bytes | None, int]:
        """Return key and size (bytes of key and value) of a record; ``None`` means the largest one."""
        ...


class InitProducerId(NamedTuple):
    """Request a producer id; with a transactional id, fence older instances and end their transactions.

    Attributes:
        transactional_id: ``""`` without transactions.
        timeout_ms: ``transaction.timeout.ms``.
        current: the producer whose epoch is raised; ``None`` for a producer that starts.
    """

    transactional_id: str
    timeout_ms: int
    current: ProducerIdentity | None = None


class FindCoordinator(NamedTuple):
    """Look up the broker that coordinates the transactions of a transactional id."""

    transactional_id: str


class GetMetadata(NamedTuple):
    """Look up ids, partitions and leaders of topics, without creating any."""

    topics: tuple[str, ...]


class AddPartitionsToTxn(NamedTuple):
    """Add partitions to the open transaction (transactions of version 1)."""

    transactional_id: str
    producer: ProducerIdentity
    partitions: tuple[TopicPartition, ...]


class EndTxn(NamedTuple):
    """Commit or abort the open transaction.

    Attributes:
        transactional_id: of the transaction.
        producer: its producer.
        commit: whether to commit it.
        implicit: whether the answer raises the epoch (transactions of version 2).
    """

    transactional_id: str
    producer: ProducerIdentity
    commit: bool
    implicit: bool = False


class SentBatch(NamedTuple):
    """A batch in a request.

    Attributes:
        topic: the topic's name.
        topic_id: its id; ``None`` if the brokers have none.
        partition: the partition's number.
        data: the bytes of the batch.
    """

    topic: str
    topic_id: bytes | None
    partition: int
    data: bytes | memoryview


class Produce(NamedTuple):
    """Append batches, at most one for each partition, with acks=all.

    Attributes:
        transactional_id: ``""`` without transactions.
        implicit: the broker adds the partitions to the transaction itself (transactions of version 2).
        batches: at least one.
    """

    transactional_id: str
    implicit: bool
    batches: tuple[SentBatch, ...]


Request = InitProducerId | FindCoordinator | GetMetadata | AddPartitionsToTxn | EndTxn | Produce


class Outgoing(NamedTuple):
    """A request to send.

    Every request must be reported back once, with its number: as ``answered``, ``lost`` or ``malformed``.

    Attributes:
        number: unique within the machine.
        broker: the broker's id; ``None`` for any broker.
        request: the request to send.
    """

    number: int
    broker: int | None
    request: Request


class InitProducerIdAnswer(NamedTuple):
    """The producer's new identity.

    Attributes:
        error: Kafka's code.
        producer: id and epoch.
        transactions_v2: whether the cluster has transactions of version 2 (KIP-890): ``transaction.version`` >= 2.
        raises_epochs: whether the coordinator can raise the epoch of a running producer (version 3 of the request).
    """

    error: int
    producer: ProducerIdentity = NO_PRODUCER
    transactions_v2: bool = False
    raises_epochs: bool = True


class FindCoordinatorAnswer(NamedTuple):
    """The coordinator's id."""

    error: int
    broker: int = -1


class PartitionMetadata(NamedTuple):
    """A partition's leader.

    Attributes:
        error: Kafka's code.
        leader: the broker's id, -1 if there is none.
        leader_epoch: increases with every election; -1 if the answer does not have it.
    """

    error: int
    leader: int
    leader_epoch: int = -1


class TopicMetadata(NamedTuple):
    """A topic's id and partitions.

    Attributes:
        error: Kafka's code.
        topic_id: its id; ``None`` if the broker has none.
        partitions: by number.
    """

    error: int
    topic_id: bytes | None
    partitions: Mapping[int, PartitionMetadata]


class Metadata(NamedTuple):
    """The topics that were looked up, by name."""

    topics: Mapping[str, TopicMetadata]


class AddPartitionsToTxnAnswer(NamedTuple):
    """Kafka's code for each partition."""

    errors: Mapping[TopicPartition, int]


class EndTxnAnswer(NamedTuple):
    """The end of a transaction.

    Attributes:
        error: Kafka's code.
        producer: the identity for the next transaction (transactions of version 2), else ``None``.
    """

    error: int
    producer: ProducerIdentity | None = None


class ProducedBatch(NamedTuple):
    """The answer for one batch.

    Attributes:
        topic: the topic's name.
        partition: the partition's number.
        error: Kafka's code.
        base_offset: the offset of the first record; -1 if it is unknown.
        message: the broker's explanation.
        rejected: the indices of records that the broker refuses, if it names them.
    """

    topic: str
    partition: int
    error: int
    base_offset: int = -1
    message: str = ""
    rejected: tuple[int, ...] = ()


class ProduceAnswer(NamedTuple):
    """The answers for all batches of a request.

    Attributes:
        batches: one for each batch.
        throttle_s: the seconds during which to send the broker nothing, because a quota is exceeded (KIP-219).
    """

    batches: Sequence[ProducedBatch]
    throttle_s: float = 0.0


Answer = (
    InitProducerIdAnswer | FindCoordinatorAnswer | Metadata | AddPartitionsToTxnAnswer | EndTxnAnswer | ProduceAnswer
)
