"""A simulated Kafka for the producer's state machine: brokers, leaders, topics, and the coordinator of transactions.

It does to each request what Kafka 4 does, at once, and keeps no clock. Faults are made by tests: requests that are
lost, late or repeated are given to ``process`` not at all, later, or twice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from rowtide.connector.kafka_producer.machine.messages import (
    AddPartitionsToTxn,
    AddPartitionsToTxnAnswer,
    Answer,
    EndTxn,
    EndTxnAnswer,
    FindCoordinator,
    FindCoordinatorAnswer,
    GetMetadata,
    InitProducerId,
    InitProducerIdAnswer,
    Metadata,
    PartitionMetadata,
    Produce,
    ProduceAnswer,
    ProducedBatch,
    ProducerIdentity,
    Request,
    SentBatch,
    TopicMetadata,
    TopicPartition,
)
from rowtide.connector.kafka_producer.wire.error_codes import ErrorCode
from tests.support.kafka.simulated_log import Log


@dataclass
class Topic:
    """A topic since it was created."""

    topic_id: bytes | None
    logs: list[Log]


@dataclass
class Coordinated:
    """The coordinator's entry of the transactional id. ``ended`` is the result of the last transaction."""

    producer: ProducerIdentity
    previous: ProducerIdentity | None = None
    partitions: set[TopicPartition] = field(default_factory=set)
    ongoing: bool = False
    ended: bool | None = None


@dataclass
class SimulatedKafka:
    """A cluster.

    Attributes:
        version: of transactions, 1 or 2.
        topics: those that exist.
        deleted: what was deleted.
        coordinator: the broker that coordinates transactions; -1 while there is none.
        down: brokers that do not answer.
        largest: the number of records of the largest batch (``max.message.bytes``).
        produce_error: returns a code with which a batch is refused before it is stored, or 0.
        held_back: whether a batch that the leader has stored is not replicated: the answer is an error.
        lagging: metadata as it was, from a broker that lags behind.
    """

    brokers: int = 3
    version: int = 1
    topic_ids: bool = True
    topics: dict[str, Topic] = field(default_factory=dict)
    deleted: list[tuple[str, Topic]] = field(default_factory=list)
    coordinator: int = 0
    down: set[int] = field(default_factory=set)
    largest: int = 1000
    produce_error: Callable[[SentBatch], int] = lambda _: ErrorCode.NONE
    held_back: Callable[[SentBatch], bool] = lambda _: False
    coordination_error: Callable[[Request], int] = lambda _: ErrorCode.NONE
    entry: Coordinated | None = None
    _created: int = 0
    _next_id: int = 1000

    def create(self, name: str, partitions: int) -> None:
        """Create a topic, with leaders among the brokers in turn."""
        self._created += 1
        topic_id = self._created.to_bytes(16) if self.topic_ids else None
        self.topics[name] = Topic(topic_id, [Log(number % self.brokers) for number in range(partitions)])

    def delete(self, name: str) -> None:
        """Delete a topic."""
        self.deleted.append((name, self.topics.pop(name)))

    def log(self, partition: TopicPartition) -> Log | None:
        """A partition, if it exists."""
        topic = self.topics.get(partition.topic)
        return topic.logs[partition.partition] if topic and partition.partition < len(topic.logs) else None

    def process(self, broker: int | None, request: Request) -> Answer:
        """Do what a request asks a broker for."""
        match request:
            case GetMetadata():
                return self.metadata(request)
            case FindCoordinator():
                code = ErrorCode.NONE if self.coordinator >= 0 else ErrorCode.COORDINATOR_NOT_AVAILABLE
                return FindCoordinatorAnswer(code, self.coordinator)
            case InitProducerId():
                return self._init(broker, request)
            case AddPartitionsToTxn():
                error = self._wrong_coordinator(broker, request)
                known = {partition for partition in request.partitions if self.log(partition) is not None}
                if not error and known == set(request.partitions):
                    error = self._add_partitions(request.producer, known, ErrorCode.PRODUCER_FENCED)
                elif not error:
                    missing, others = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.OPERATION_NOT_ATTEMPTED
                    return AddPartitionsToTxnAnswer(
                        {one: others if one in known else missing for one in request.partitions}
                    )
                return AddPartitionsToTxnAnswer(dict.fromkeys(request.partitions, error))
            case EndTxn():
                error = self._wrong_coordinator(broker, request)
                return EndTxnAnswer(error) if error else self._end(request)
            case Produce():
                return ProduceAnswer([self._produce(broker, request, batch) for batch in request.batches])

    def metadata(self, request: GetMetadata) -> Metadata:
        """The topics as they are now."""
        found = {}
        for name in request.topics:
            topic = self.topics.get(name)
            if topic is None:
                found[name] = TopicMetadata(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None, {})
                continue
            partitions = {
                number: PartitionMetadata(
                    ErrorCode.NONE if log.leader >= 0 else ErrorCode.LEADER_NOT_AVAILABLE, log.leader, log.leader_epoch
                )
                for number, log in enumerate(topic.logs)
            }
            found[name] = TopicMetadata(ErrorCode.NONE, topic.topic_id, partitions)
        return Metadata(found)

    def _wrong_coordinator(self, broker: int | None, request: Request) -> int:
        return ErrorCode.NOT_COORDINATOR if broker != self.coordinator else self.coordination_error(request)

    def _init(self, broker: int | None, request: InitProducerId) -> InitProducerIdAnswer:
        if not request.transactional_id:
            self._next_id += 1
            return InitProducerIdAnswer(ErrorCode.NONE, ProducerIdentity(self._next_id, 0))
        error = self._wrong_coordinator(broker, request)
        if error:
            return InitProducerIdAnswer(error)
        current = request.current
        if self.entry is None:
            self._next_id += 1
            self.entry = Coordinated(ProducerIdentity(self._next_id, -1))
            current = None
        entry = self.entry
        if current is not None and current not in (entry.producer, entry.previous):
            return InitProducerIdAnswer(ErrorCode.PRODUCER_FENCED)
        if entry.ongoing:  # is aborted with an epoch that nobody has
            entry.producer, entry.previous = _raised(entry.producer), None
            self._write_markers(commit=False)
            return InitProducerIdAnswer(ErrorCode.CONCURRENT_TRANSACTIONS)
        if current is None or current == entry.producer:
            entry.previous, entry.producer = current, _raised(entry.producer)
            entry.ended = None
        return InitProducerIdAnswer(ErrorCode.NONE, entry.producer, transactions_v2=self.version == 2)

    def forget(self) -> None:
        """Forget the transactional id, because it was not used for a long time."""
        assert self.entry is None or not self.entry.ongoing
        self.entry = None

    def expire(self) -> None:
        """Abort the open transaction, because it was open for too long."""
        if self.entry is not None and self.entry.ongoing:
            self.entry.producer, self.entry.previous = _raised(self.entry.producer), None
            self._write_markers(commit=False)

    def _add_partitions(self, producer: ProducerIdentity, partitions: set[TopicPartition], fenced: int) -> int:
        entry = self.entry
        if entry is None or entry.producer.producer_id != producer.producer_id:
            return ErrorCode.INVALID_PRODUCER_ID_MAPPING
        if entry.producer != producer:
            return fenced
        entry.ongoing = True
        entry.partitions |= partitions
        return ErrorCode.NONE

    def _end(self, request: EndTxn) -> EndTxnAnswer:
        entry = self.entry
        if entry is None or entry.producer.producer_id != request.producer.producer_id:
            return EndTxnAnswer(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        repeated = not entry.ongoing and entry.ended is request.commit
        if self.version == 2 and repeated and entry.previous == request.producer:
            return EndTxnAnswer(ErrorCode.NONE, entry.producer)
        if entry.producer != request.producer:
            return EndTxnAnswer(ErrorCode.PRODUCER_FENCED)
        if self.version == 1:
            if not entry.ongoing:
                return EndTxnAnswer(ErrorCode.NONE if repeated else ErrorCode.INVALID_TXN_STATE)
        else:
            if not entry.ongoing and request.commit:
                return EndTxnAnswer(ErrorCode.INVALID_TXN_STATE)
            entry.previous, entry.producer = entry.producer, _raised(entry.producer)
        self._write_markers(commit=request.commit)
        return EndTxnAnswer(ErrorCode.NONE, entry.producer if self.version == 2 else None)

    def _write_markers(self, *, commit: bool) -> None:
        assert self.entry is not None
        for partition in self.entry.partitions:
            log = self.log(partition)
            if log is not None:
                log.mark(self.entry.producer, commit=commit)
        self.entry.partitions = set()
        self.entry.ongoing = False
        self.entry.ended = commit

    def _produce(self, broker: int | None, request: Produce, batch: SentBatch) -> ProducedBatch:
        partition = TopicPartition(batch.topic, batch.partition)
        code, offset = self._append(broker, request, batch, partition)
        return ProducedBatch(batch.topic, batch.partition, code, offset)

    def _append(
        self, broker: int | None, request: Produce, batch: SentBatch, partition: TopicPartition
    ) -> tuple[int, int]:
        log, topic = self.log(partition), self.topics.get(batch.topic)
        if topic is not None and batch.topic_id is not None and topic.topic_id != batch.topic_id:
            return ErrorCode.UNKNOWN_TOPIC_ID, -1
        if log is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1
        if log.leader != broker:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER, -1
        error = self.produce_error(batch)
        if error:
            return error, -1
        if request.transactional_id:
            error = self._verify(request, batch, partition)
            if error:
                return error, -1
        code, offset = log.append(bytes(batch.data), needs_state=request.implicit, largest=self.largest)
        if code != ErrorCode.NONE:
            return code, offset
        if self.held_back(batch):
            return ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, -1
        log.safe = len(log.entries)
        return code, offset

    def _verify(self, request: Produce, batch: SentBatch, partition: TopicPartition) -> int:
        """Verify that a partition is in the transaction; version 2 adds it."""
        producer = producer_of(batch)
        if request.implicit:
            return self._add_partitions(producer, {partition}, ErrorCode.INVALID_PRODUCER_EPOCH)
        entry = self.entry
        if entry is None or entry.producer != producer:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        return ErrorCode.NONE if entry.ongoing and partition in entry.partitions else ErrorCode.INVALID_TXN_STATE


def producer_of(batch: SentBatch) -> ProducerIdentity:
    """The producer of a batch in a request."""
    producer_id, epoch = bytes(batch.data).decode().strip("[").split(",")[:2]
    return ProducerIdentity(int(producer_id), int(epoch))


def _raised(producer: ProducerIdentity) -> ProducerIdentity:
    return ProducerIdentity(producer.producer_id, producer.epoch + 1)
