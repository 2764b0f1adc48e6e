"""The producer's identity and its transactions: decides which requests go to the coordinator, and when.

Without a transactional id, any broker provides an identity, and nothing else is needed. With one::

    NEW ──id──► READY ──begin──► OPEN ──commit──► COMMITTING ──ended──► READY
                  ▲               └─────abort───► ABORTING ───ended──► READY, or RENEWING
                  └────────────────────id─────────────────────────────────┘

Version 1 of transactions: partitions are added to the transaction before their first batch, and one epoch has many
transactions. A lost request to the coordinator may still arrive after the transaction has ended, and would count for
the next one; a dropped batch leaves a gap in the sequence numbers. In both cases, the epoch is therefore raised.
Version 2 (KIP-890) raises the epoch at the end of every transaction, and adds partitions with their batches.

The coordinator forgets an identity that is not used for ``transactional.id.expiration.ms``, a week by default. The
first transaction after that is aborted without it, which gives a new identity.
"""

import enum
from collections.abc import Collection

from rowtide.connector.kafka_producer.machine.backoff import Backoff, Retry
from rowtide.connector.kafka_producer.machine.codes import COORDINATION, Reaction
from rowtide.connector.kafka_producer.machine.failures import (
    Failure,
    RetriedProblem,
    by_reaction,
    reason,
    unusable,
    worst,
)
from rowtide.connector.kafka_producer.machine.messages import (
    AddPartitionsToTxn,
    AddPartitionsToTxnAnswer,
    EndTxn,
    EndTxnAnswer,
    FindCoordinator,
    FindCoordinatorAnswer,
    InitProducerId,
    InitProducerIdAnswer,
    ProducerIdentity,
    Request,
    TopicPartition,
)
from rowtide.connector.kafka_producer.wire.error_codes import ErrorCode

_CONCURRENT = Backoff(first_s=0.02, longest_s=1.0)
"""The markers of the transaction before are being written, which takes milliseconds."""


class State(enum.Enum):
    """The state of the producer."""

    NEW = enum.auto()
    READY = enum.auto()
    OPEN = enum.auto()
    COMMITTING = enum.auto()
    ABORTING = enum.auto()
    RENEWING = enum.auto()


class _Event(enum.Enum):
    IDENTIFIED = enum.auto()
    BEGIN = enum.auto()
    COMMIT = enum.auto()
    ABORT = enum.auto()
    ENDED = enum.auto()
    ENDED_UNSETTLED = enum.auto()


_NEXT = {
    (State.NEW, _Event.IDENTIFIED): State.READY,
    (State.READY, _Event.BEGIN): State.OPEN,
    (State.OPEN, _Event.COMMIT): State.COMMITTING,
    (State.OPEN, _Event.ABORT): State.ABORTING,
    (State.COMMITTING, _Event.ABORT): State.ABORTING,
    (State.COMMITTING, _Event.ENDED): State.READY,
    (State.COMMITTING, _Event.ENDED_UNSETTLED): State.RENEWING,
    (State.ABORTING, _Event.ENDED): State.READY,
    (State.ABORTING, _Event.ENDED_UNSETTLED): State.RENEWING,
    (State.RENEWING, _Event.IDENTIFIED): State.READY,
}

_WHAT = {
    InitProducerId: "get a producer id",
    FindCoordinator: "find the coordinator of the transactions",
    AddPartitionsToTxn: "add partitions to the transaction",
    EndTxn: "end the transaction",
}


class TransactionStateError(RuntimeError):
    """A call that the state of the transaction does not allow."""


class Transactions:
    """The identity of a producer, and its transactions.

    Args:
        transactional_id: ``""`` without transactions.
        timeout_ms: ``transaction.timeout.ms``.
        backoff: between attempts.
        problem: receives errors that are retried.

    Attributes:
        state: the state of the producer.
        producer: its identity, once there is one.
        implicit: whether brokers add partitions to the transaction themselves (version 2).
    """

    def __init__(self, transactional_id: str, timeout_ms: int, backoff: Backoff, problem: RetriedProblem) -> None:
        self.state = State.NEW
        self.producer: ProducerIdentity | None = None
        self.implicit = False
        self._problem = problem
        self._id = transactional_id
        self._timeout_ms = timeout_ms
        self._coordinator: int | None = None
        self._raises_epochs = False
        self._added: set[TopicPartition] = set()
        self._started = False
        self._joined = False
        self._unsettled = False
        self._end_unknown = False
        self._forgotten = False
        self._retry = Retry(backoff)
        self._concurrent = Retry(_CONCURRENT)

    def begin(self) -> None:
        """Open a transaction."""
        if not self._id:
            raise TransactionStateError("a transaction without a transactional id")
        self._go(_Event.BEGIN)
        self._added.clear()
        self._started = self._joined = self._unsettled = self._end_unknown = self._forgotten = False

    def commit(self) -> None:
        """Commit the open transaction once all its batches are acknowledged."""
        self._go(_Event.COMMIT)

    def abort(self) -> None:
        """Abort the open transaction.

        Raises:
            TransactionStateError: its commit may have succeeded.
        """
        if self._end_unknown:
            raise TransactionStateError("the commit of the transaction was sent, and may have succeeded")
        self._go(_Event.ABORT)

    def _go(self, event: _Event) -> None:
        following = _NEXT.get((self.state, event))
        if following is None:
            raise TransactionStateError(f"{event.name} in state {self.state.name}")
        self.state = following

    def may_add(self) -> bool:
        """Return whether batches may be queued."""
        return not self._id or self.state is State.OPEN

    def may_send(self, partition: TopicPartition) -> bool:
        """Return whether a batch for a partition may be sent."""
        if self.producer is None or (self._id and self.state not in (State.OPEN, State.COMMITTING)):
            return False
        return not self._id or self.implicit or partition in self._added

    def sent(self) -> None:
        """Note that batches are sent, which begins a transaction of version 2 at the broker."""
        if self.implicit:
            self._started = self._joined = True

    def unsettle(self) -> None:
        """Note that a possibly stored batch was dropped or split, so the next sequence number is unknown."""
        self._unsettled = True

    def refused(self, code: int) -> None:
        """Note that a partition is not added to the transaction, or a batch is refused, with a code."""
        if code == ErrorCode.INVALID_PRODUCER_ID_MAPPING:
            self._forgotten = self._raises_epochs  # older versions of Kafka give no new identity for a known one

    def next_request(
        self, sendable: Collection[TopicPartition], now: float, *, drained: bool
    ) -> tuple[int | None, Request] | None:
        """Return the next request and its broker (``None`` for any).

        Args:
            sendable: the partitions that have batches and a leader.
            now: the time.
            drained: whether no batch is queued or in flight.
        """
        if not self._id:
            return (None, InitProducerId("", self._timeout_ms)) if self.producer is None and self._due(now) else None
        if self.state is State.ABORTING and drained and self._forgotten:
            self._go(_Event.ENDED_UNSETTLED)  # the coordinator has no transaction of a forgotten identity
        elif self.state in (State.COMMITTING, State.ABORTING) and drained and not self._started:
            self._ended()  # there is nothing to end at the coordinator
        request = self._wanted(sendable, drained=drained) if self._due(now) else None
        if request is None:
            return None
        if self._coordinator is None:
            return None, FindCoordinator(self._id)
        return self._coordinator, request

    def _due(self, now: float) -> bool:
        return now >= max(self._retry.at, self._concurrent.at)

    @property
    def next_attempts(self) -> list[float]:
        """Return the times at which ``next_request`` may have something to do."""
        return [self._retry.at, self._concurrent.at]

    def _wanted(self, sendable: Collection[TopicPartition], *, drained: bool) -> Request | None:
        match self.state, self.producer:
            case (State.NEW, _) | (_, None):
                return InitProducerId(self._id, self._timeout_ms)
            case State.RENEWING, producer:
                return InitProducerId(self._id, self._timeout_ms, producer)
            case ((State.OPEN | State.COMMITTING), producer) if not drained:
                missing = () if self.implicit else tuple(sorted(set(sendable) - self._added))
                return AddPartitionsToTxn(self._id, producer, missing) if missing else None
            case ((State.COMMITTING | State.ABORTING), producer) if drained:
                return EndTxn(self._id, producer, self.state is State.COMMITTING, self.implicit)
        return None

    def sending(self, request: Request) -> None:
        """Note that a request of ``next_request`` is sent."""
        match request:
            case AddPartitionsToTxn():
                self._started = True
            case EndTxn(commit=True):
                self._end_unknown = True

    def lost(self, request: Request, now: float) -> None:
        """Note that a request was not answered; it may have been carried out."""
        self._retry.failed(now)
        self._coordinator = None
        if isinstance(request, AddPartitionsToTxn | EndTxn):
            self._unsettled = True

    def identified(self, request: InitProducerId, answer: InitProducerIdAnswer, now: float) -> Failure | None:
        """Process the answer to ``InitProducerId``."""
        if answer.error != ErrorCode.NONE:
            return self._refused(request, answer.error, now)
        if answer.producer.producer_id < 0 or answer.producer == request.current:
            return unusable(f"the broker gave producer id and epoch {tuple(answer.producer)}, which are not new")
        self._succeeded()
        self.producer = answer.producer
        self.implicit = bool(self._id) and answer.transactions_v2
        self._raises_epochs = answer.raises_epochs
        self._go(_Event.IDENTIFIED)
        return None

    def found(self, request: FindCoordinator, answer: FindCoordinatorAnswer, now: float) -> Failure | None:
        """Process the answer to ``FindCoordinator``."""
        if answer.error != ErrorCode.NONE:
            return self._refused(request, answer.error, now)
        self._coordinator = answer.broker
        return None

    def added(self, request: AddPartitionsToTxn, answer: AddPartitionsToTxnAnswer, now: float) -> Failure | None:
        """Process the answer to ``AddPartitionsToTxn``."""
        if answer.errors.keys() != set(request.partitions):
            return unusable("the broker's answer about a transaction has other partitions than the request")
        done = {partition for partition, error in answer.errors.items() if error == ErrorCode.NONE}
        self._added |= done
        self._joined = self._joined or bool(done)
        for error in answer.errors.values():
            self.refused(error)
        refused = [self._refused(request, error, now) for error in set(answer.errors.values()) - {ErrorCode.NONE}]
        if not refused:
            self._succeeded()
        failures = [failure for failure in refused if failure is not None]
        return worst(failures) if failures else None

    def ended(self, request: EndTxn, answer: EndTxnAnswer, now: float) -> Failure | None:
        """Process the answer to ``EndTxn``."""
        nothing_to_abort = not request.commit and not self._joined and answer.error == ErrorCode.INVALID_TXN_STATE
        if request.commit and answer.error == ErrorCode.INVALID_TXN_STATE:
            return unusable(
                f"cannot commit the transaction: {reason(answer.error)}. Kafka has aborted it, because it was open for "
                f"longer than transaction.timeout.ms={self._timeout_ms}, or because another instance has started with "
                f"transactional.id {self._id!r}"
            )
        if answer.error != ErrorCode.NONE and not nothing_to_abort:
            failure = self._refused(request, answer.error, now)
            if failure is not None and failure.abortable:
                self._end_unknown = False
            return failure
        self._succeeded()
        if self.implicit:
            if answer.producer is None or answer.producer == request.producer:
                return unusable("the broker has ended a transaction without a new epoch")
            self.producer = answer.producer
        return self._ended()

    def _ended(self) -> Failure | None:
        self._end_unknown = False
        renew = self._unsettled and self._started and not self.implicit
        self._go(_Event.ENDED_UNSETTLED if renew else _Event.ENDED)
        if renew and not self._raises_epochs:
            return unusable("a transaction was interrupted, and this version of Kafka cannot raise a producer's epoch")
        return None

    def _succeeded(self) -> None:
        self._retry.succeeded()
        self._concurrent.succeeded()

    def _refused(self, request: Request, error: int, now: float) -> Failure | None:
        reaction = COORDINATION.get(error, Reaction.FAIL)
        if reaction is Reaction.ABORTABLE and self.state not in (State.OPEN, State.COMMITTING):
            reaction = Reaction.FAIL  # there is nothing to abort, or the abort itself has failed
        if error == ErrorCode.INVALID_PRODUCER_ID_MAPPING and not isinstance(request, AddPartitionsToTxn):
            reaction = Reaction.FAIL  # an earlier attempt to commit may have succeeded
        if reaction is Reaction.FENCED and self._forgotten:
            reaction = Reaction.FAIL  # by another instance, or by a new identity whose answer was lost
        if reaction not in (Reaction.RETRY, Reaction.REFRESH):
            return by_reaction(_WHAT[type(request)], error, reaction, self._id)
        self._problem.text = f"cannot {_WHAT[type(request)]}: {reason(error)}"
        if error == ErrorCode.CONCURRENT_TRANSACTIONS:
            self._concurrent.failed(now)
        else:
            self._retry.failed(now)
        if reaction is Reaction.REFRESH:
            self._coordinator = None
        return None
