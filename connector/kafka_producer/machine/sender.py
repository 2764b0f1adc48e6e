"""The state machine that delivers record batches to Kafka: idempotent, in order, with acks=all. Pure.

::

    add ──► queue of each partition ──► requests ──► (surroundings: connections) ──► answered, lost, malformed
                                                                                        │
                             acknowledged, failure ◄────────────────────────────────────┘

The surroundings send each request and report it back once. The rules:

* One request to a broker, and one batch of a partition, is in flight.
* A batch keeps its bytes and sequence numbers until the broker acknowledges it; nothing later of its partition is
  sent before.
* Temporary errors are retried with a delay, forever unless ``delivery_timeout_s`` is set.
* A batch that is too large is split. Anything else is a failure: nothing more is sent or acknowledged. The
  producer is then replaced, and delivery resumes from the stored offset, or the transaction is aborted.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from rowtide.connector.kafka_producer.machine.backoff import Backoff
from rowtide.connector.kafka_producer.machine.cluster import Cluster
from rowtide.connector.kafka_producer.machine.codes import PRODUCE, Reaction
from rowtide.connector.kafka_producer.machine.failures import (
    Failure,
    RetriedProblem,
    batch_rejected,
    by_reaction,
    expired,
    malformed_answer,
    reason,
    records_lost,
    worst,
)
from rowtide.connector.kafka_producer.machine.in_flight import InFlight, Sent
from rowtide.connector.kafka_producer.machine.messages import (
    AddPartitionsToTxn,
    AddPartitionsToTxnAnswer,
    Answer,
    Batch,
    EndTxn,
    EndTxnAnswer,
    FindCoordinator,
    FindCoordinatorAnswer,
    GetMetadata,
    InitProducerId,
    InitProducerIdAnswer,
    Metadata,
    Outgoing,
    Produce,
    ProduceAnswer,
    ProducedBatch,
    SentBatch,
    TopicPartition,
)
from rowtide.connector.kafka_producer.machine.partition_queue import PartitionQueue
from rowtide.connector.kafka_producer.machine.transactions import (
    State,
    Transactions,
    TransactionStateError,
)
from rowtide.connector.kafka_producer.wire.error_codes import ErrorCode

_NOW = float("-inf")
_NEVER = float("inf")


@dataclass(frozen=True, slots=True)
class SenderSettings:
    """The settings for sending batches.

    Attributes:
        transactional_id: ``transactional.id``; ``""`` without transactions.
        transaction_timeout_ms: ``transaction.timeout.ms``.
        request_bytes: further batches are added to a request up to this many bytes.
        retry: the delays between attempts (``retry.backoff.ms``).
        reconnect: the delays between connections to a broker (``reconnect.backoff.ms``).
        metadata_max_age_s: ``metadata.max.age.ms``.
        missing_topic_s: the time after which a topic that no broker has does not exist.
        delivery_timeout_s: ``delivery.timeout.ms``; ``None`` to retry forever.
    """

    transactional_id: str = ""
    transaction_timeout_ms: int = 60_000
    request_bytes: int = 1_048_576
    retry: Backoff = field(default_factory=Backoff)
    reconnect: Backoff = field(default_factory=lambda: Backoff(first_s=0.05))
    metadata_max_age_s: float = 300.0
    missing_topic_s: float = 30.0
    delivery_timeout_s: float | None = None


class Sender:
    """Delivers batches. Times are seconds of a monotonic clock.

    Args:
        settings: the settings for sending batches.

    Attributes:
        failure: the reason why nothing more is sent.
        problem: the last error that was retried, which the caller may reset.
        waiting: the number of records that are not acknowledged.
    """

    def __init__(self, settings: SenderSettings) -> None:
        self.failure: Failure | None = None
        self.problem = RetriedProblem()
        self.waiting = 0
        self._settings = settings
        self._transactions = Transactions(
            settings.transactional_id, settings.transaction_timeout_ms, settings.retry, self.problem
        )
        self._cluster = Cluster(settings.retry, settings.metadata_max_age_s, settings.missing_topic_s, self.problem)
        self._queues: dict[TopicPartition, PartitionQueue] = {}
        self._waiting: dict[TopicPartition, PartitionQueue] = {}
        self._wanted: set[str] = set()
        self._in_flight = InFlight(settings.reconnect)
        self._acknowledged: list[Batch] = []
        self._closed = False
        self._due_at = _NOW

    @property
    def state(self) -> State:
        """The state of the transaction; ``READY`` without transactions, once there is a producer id."""
        return self._transactions.state

    @property
    def producer_id(self) -> int | None:
        """The id that Kafka gave the producer; ``None`` before."""
        producer = self._transactions.producer
        return None if producer is None else producer.producer_id

    def partitions(self, topic: str) -> int | None:
        """Return the number of partitions of a topic; ``None`` if it is unknown, and is then looked up."""
        found = self._cluster.partitions(topic)
        if found is None and topic not in self._wanted:
            self._wanted.add(topic)
            self._due_at = _NOW
        return found

    def available(self, topic: str) -> list[int]:
        """Return the partitions of a topic that have a leader."""
        return self._cluster.available(topic)

    def add(self, batch: Batch, now: float) -> None:
        """Queue a batch after those of its partition.

        Raises:
            KafkaProducerError: delivery has failed.
            TransactionStateError: no transaction is open.
        """
        self._check()
        if not self._transactions.may_add():
            raise TransactionStateError(f"a batch in state {self.state.name}")
        partition = TopicPartition(batch.topic, batch.partition)
        queue = self._queues.get(partition)
        if queue is None:
            queue = self._queues[partition] = PartitionQueue(partition, self._settings.retry)
        if not queue:
            self._due_at = min(self._due_at, self._due_with(partition, now))
        queue.add(batch, now)
        self._waiting[partition] = queue
        self.waiting += batch.count

    def _due_with(self, partition: TopicPartition, now: float) -> float:
        """Return the time at which a partition with its first batch may need work."""
        leader = self._cluster.leader(partition)
        if leader is None or not self._transactions.may_send(partition) or self._in_flight.is_idle(leader, now):
            return _NOW
        return min(self._in_flight.next_attempt(leader), now + (self._settings.delivery_timeout_s or _NEVER))

    def begin(self) -> None:
        """Open a transaction. The state must be ``READY``."""
        self._check()
        self._transactions.begin()
        self._due_at = _NOW

    def commit(self) -> None:
        """Commit the open transaction once all its batches are acknowledged. It is committed in state ``READY``.

        Raises:
            KafkaProducerError: a batch of the transaction has failed.
        """
        self._check()
        self._transactions.commit()
        self._due_at = _NOW

    def abort(self) -> None:
        """Drop all batches, forget their failure, and abort the open transaction. It is aborted in state ``READY``.

        Raises:
            KafkaProducerError: the producer can no longer be used.
            TransactionStateError: no transaction is open, or its commit may have succeeded.
        """
        if self.failure is not None and self._halted:
            raise self.failure.error
        if self.failure is None or self.state is not State.READY:  # a failure before the first batch aborts nothing
            self._transactions.abort()
        self.failure = None
        self._wanted.clear()
        self._due_at = _NOW
        for queue in list(self._waiting.values()):
            self._drop(queue)

    def close(self) -> None:
        """Send nothing more."""
        self._closed = True

    def _check(self) -> None:
        if self.failure is not None:
            raise self.failure.error

    @property
    def _halted(self) -> bool:
        if self.failure is None:
            return self._closed
        return self._closed or not (self.failure.abortable and self._settings.transactional_id)

    def acknowledged(self) -> list[Batch]:
        """Return the batches that were acknowledged since the last call."""
        done, self._acknowledged = self._acknowledged, []
        return done

    def requests(self, now: float) -> list[Outgoing]:
        """Return the requests to send now. Call it after every other call, and at ``wake_up``.

        All partitions with batches are checked only if a change may allow sending one of them: the
        cost of a batch must not grow with the number of partitions that wait for a busy broker.
        """
        if self._closed or self.failure is not None or now < self._due_at:
            return []
        self._expire(now)
        if self.failure is not None:
            return []
        ready = {partition: queue for partition, queue in self._waiting.items() if self._is_ready(queue, now)}
        found = self._coordinate(ready, now)
        if self._waiting or self._wanted:
            found += self._look_up(now)
        if ready:
            found += self._produce(ready.values(), now)
        self._due_at = self._next_due(now)
        return found

    def wake_up(self, now: float) -> float | None:
        """Return the next time to call ``requests``; ``None`` if only other calls can make it return something."""
        if self._closed or self.failure is not None or self._due_at == _NEVER:
            return None
        return max(self._due_at, now)

    def _next_due(self, now: float) -> float:
        times = self._transactions.next_attempts
        if self._waiting or self._wanted or self.state is not State.READY:
            times += self._in_flight.next_attempts
            times += self._cluster.next_look_up({partition.topic for partition in self._waiting} | self._wanted)
            times += [queue.retry.at for queue in self._waiting.values()]
        limit = self._settings.delivery_timeout_s
        if limit is not None:
            times += [queue.first_added_at + limit for queue in self._waiting.values()]
        return min((time for time in times if time > now), default=_NEVER)

    def _expire(self, now: float) -> None:
        limit = self._settings.delivery_timeout_s
        if limit is None:
            return
        for queue in self._waiting.values():
            if now >= queue.first_added_at + limit:
                self._fail([expired(queue.first, limit, self.problem.text, self._settings.transactional_id)])

    def _is_ready(self, queue: PartitionQueue, now: float) -> bool:
        return not queue.in_flight and now >= queue.retry.at and self._cluster.leader(queue.partition) is not None

    def _coordinate(self, ready: Iterable[TopicPartition], now: float) -> list[Outgoing]:
        found = self._transactions.next_request(tuple(ready), now, drained=not self._waiting)
        if found is None or not self._in_flight.is_idle(found[0], now):
            return []
        self._transactions.sending(found[1])
        return [self._in_flight.send(*found)]

    def _look_up(self, now: float) -> list[Outgoing]:
        request = self._cluster.look_up(self._waiting, self._wanted, now)
        may_send = self._in_flight.is_idle(None, now)
        return [self._in_flight.send(None, request)] if request is not None and may_send else []

    def _produce(self, ready: Iterable[PartitionQueue], now: float) -> Iterable[Outgoing]:
        by_leader: dict[int, list[PartitionQueue]] = {}
        for queue in ready:
            leader = self._cluster.leader(queue.partition)
            may_send = leader is not None and self._transactions.may_send(queue.partition)
            if leader is not None and may_send and self._in_flight.is_idle(leader, now):
                by_leader.setdefault(leader, []).append(queue)
        for leader, queues in by_leader.items():
            taken, size = 0, 0
            for queue in queues:
                size += queue.first.size
                if taken and size > self._settings.request_bytes:
                    break
                taken += 1
            yield self._in_flight.send(leader, self._request(queues[:taken]), tuple(queues[:taken]))

    def _request(self, queues: list[PartitionQueue]) -> Produce:
        producer, transactional_id = self._transactions.producer, self._settings.transactional_id
        assert producer is not None
        batches = []
        for queue in queues:
            topic, partition = queue.partition
            data = queue.send(producer, transactional=bool(transactional_id))
            batches.append(SentBatch(topic, self._cluster.topic_id(topic), partition, data))
            self._waiting[queue.partition] = self._waiting.pop(queue.partition)  # the others come first next time
        self._transactions.sent()
        return Produce(transactional_id, self._transactions.implicit, tuple(batches))

    def answered(self, number: int, answer: Answer, now: float) -> None:
        """Process the answer to a request."""
        sent = self._in_flight.answered(number)
        self._due_at = _NOW
        if self._halted:
            return
        transactions, failures = self._transactions, list[Failure | None]()
        match sent.request, answer:
            case Produce(), ProduceAnswer():
                self._in_flight.throttle(sent.broker, now + answer.throttle_s)
                failures += self._produced(sent, answer, now)
            case GetMetadata() as request, Metadata():
                failures += self._cluster.update(request, answer, self._waiting, now)
                self._wanted -= {topic for topic in self._wanted if self._cluster.partitions(topic) is not None}
            case InitProducerId() as request, InitProducerIdAnswer():
                failures.append(transactions.identified(request, answer, now))
            case FindCoordinator() as request, FindCoordinatorAnswer():
                failures.append(transactions.found(request, answer, now))
            case AddPartitionsToTxn() as request, AddPartitionsToTxnAnswer():
                failures.append(transactions.added(request, answer, now))
                self._forget_missing(answer)
            case EndTxn() as request, EndTxnAnswer():
                failures.append(transactions.ended(request, answer, now))
            case _:
                failures.append(malformed_answer(sent, f"a {type(answer).__name__}"))
        self._fail([failure for failure in failures if failure is not None])

    def lost(self, number: int, why: str, now: float) -> None:
        """Note that a request was not answered or could not be sent: no connection, or a time-out.

        It may have been carried out.

        The connection must be closed, so that a late answer is not mistaken for that of another request.
        """
        sent = self._in_flight.lost(number, now)
        self._due_at = _NOW
        if self._halted:
            return
        self.problem.text = why
        match sent.request:
            case Produce():
                if sent.broker is not None:
                    self._cluster.suspect(sent.broker)
                for queue in sent.queues:
                    self._postpone(queue, now)
            case GetMetadata():
                self._cluster.lost(now)
            case request:
                self._transactions.lost(request, now)

    def malformed(self, number: int, why: str) -> None:
        """Note that the answer to a request cannot be decoded, so it is unknown what was stored."""
        sent = self._in_flight.answered(number)
        if not self._halted:
            self._fail([malformed_answer(sent, why)])

    def _fail(self, failures: list[Failure]) -> None:
        if self.state in (State.ABORTING, State.RENEWING):  # the batches are dropped
            failures = [failure for failure in failures if not failure.abortable]
        if failures:
            self.failure = worst(failures if self.failure is None else [self.failure, *failures])

    def _forget_missing(self, answer: AddPartitionsToTxnAnswer) -> None:
        for partition, error in answer.errors.items():
            if error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and partition in self._waiting:
                self._cluster.forget_leader(partition)

    def _produced(self, sent: Sent, answer: ProduceAnswer, now: float) -> list[Failure | None]:
        answers = {TopicPartition(batch.topic, batch.partition): batch for batch in answer.batches}
        if len(answers) != len(answer.batches) or answers.keys() != {queue.partition for queue in sent.queues}:
            return [malformed_answer(sent, "other partitions than in the request")]
        return [self._batch_answered(queue, answers[queue.partition], now) for queue in sent.queues]

    def _batch_answered(self, queue: PartitionQueue, answer: ProducedBatch, now: float) -> Failure | None:
        reaction = PRODUCE.get(answer.error, Reaction.FAIL)
        if reaction is Reaction.SUCCESS or (reaction is Reaction.DUPLICATE and queue.resent):
            return self._acknowledge(queue, answer.base_offset)
        batch, what = queue.first, f"send a batch to topic {answer.topic!r}, partition {answer.partition}"
        if self.state is State.ABORTING and reaction is not Reaction.FAIL:
            self._postpone(queue, now)
        elif reaction in (Reaction.RETRY, Reaction.REFRESH):
            self.problem.text = f"cannot {what}: {reason(answer.error, answer.message)}"
            if reaction is Reaction.REFRESH:
                self._cluster.forget_leader(queue.partition)
            self._postpone(queue, now)
        elif reaction is Reaction.SPLIT and queue.split():
            self._transactions.unsettle()  # an earlier attempt may have stored the whole batch
        else:
            lost = answer.error == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and queue.follows
            self._postpone(queue, now)
            self._transactions.refused(answer.error)
            if lost:
                return self._lost(queue)
            if reaction in (Reaction.SPLIT, Reaction.REFUSED):
                return batch_rejected(batch, answer)
            return by_reaction(what, answer.error, reaction, self._settings.transactional_id, answer.message)
        return None

    def _acknowledge(self, queue: PartitionQueue, base_offset: int) -> Failure | None:
        batch = queue.acknowledge(base_offset)
        if batch is None:
            return self._lost(queue)
        self._acknowledged.append(batch)
        self.waiting -= batch.count
        if not queue:
            del self._waiting[queue.partition]
        return None

    def _lost(self, queue: PartitionQueue) -> Failure:
        return records_lost(queue.partition, abortable=self.state is not State.ABORTING)

    def _postpone(self, queue: PartitionQueue, now: float) -> None:
        queue.postpone(now)
        if self.state is State.ABORTING:
            self._drop(queue)

    def _drop(self, queue: PartitionQueue) -> None:
        if queue.unsettled and not queue.in_flight:
            self._transactions.unsettle()
        self.waiting -= queue.drop()
        if not queue:
            del self._waiting[queue.partition]
