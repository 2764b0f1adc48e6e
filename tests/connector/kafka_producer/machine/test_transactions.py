"""The rules of transactions, one at a time."""

from __future__ import annotations

import json

import pytest

from rowtide.connector.kafka_producer.errors import (
    AccessDenied,
    KafkaProducerError,
    ProducerFailed,
    ProducerFenced,
    RecordRejected,
    TopicMissing,
    TopicReplaced,
    TransactionAborted,
)
from rowtide.connector.kafka_producer.machine import Sender, SenderSettings
from rowtide.connector.kafka_producer.machine.messages import (
    AddPartitionsToTxn,
    AddPartitionsToTxnAnswer,
    EndTxn,
    EndTxnAnswer,
    FindCoordinator,
    FindCoordinatorAnswer,
    InitProducerId,
    InitProducerIdAnswer,
    Outgoing,
    Produce,
    ProducerIdentity,
    TopicPartition,
)
from rowtide.connector.kafka_producer.machine.transactions import State, TransactionStateError
from rowtide.connector.kafka_producer.wire.error_codes import ErrorCode
from tests.support.kafka.simulated_kafka import SimulatedKafka, producer_of
from tests.support.kafka.simulated_network import SimulatedNetwork

A0, A1, OFFSETS = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("offsets", 0)
VERSIONS = pytest.mark.parametrize("version", [1, 2])


def network(version: int = 1, kafka: SimulatedKafka | None = None, **settings: object) -> SimulatedNetwork:
    """A producer whose state is ``READY``."""
    if kafka is None:
        kafka = SimulatedKafka(version=version)
        kafka.create("a", 2)
        kafka.create("offsets", 1)
    sender = Sender(SenderSettings(transactional_id="rowtide-shop-0", **settings))  # type: ignore[arg-type]
    net = SimulatedNetwork(sender, kafka)
    net.settle()
    assert sender.state is State.READY
    return net


def transaction(net: SimulatedNetwork, *partitions: TopicPartition, commit: bool = True) -> None:
    """A whole transaction with a batch for each partition."""
    net.sender.begin()
    for partition in partitions:
        net.add(partition, 2)
    if commit:
        net.sender.commit()
    net.settle()
    if not commit:
        net.sender.abort()
        net.settle()
    assert net.sender.state is State.READY


def step(net: SimulatedNetwork, kind: type[object]) -> Outgoing:
    """Go on until a request of a kind is sent; returns it, and the test answers or loses it."""
    for _ in range(100):
        net.collect()
        for number, outgoing in list(net.requests.items()):
            if isinstance(outgoing.request, kind):
                return outgoing
            net.deliver(number)
            net.answer(number)
        net.wait(0.05)
    raise AssertionError(f"no {kind.__name__} is sent")


def begun(net: SimulatedNetwork, *, count: int = 1) -> SimulatedNetwork:
    """The network after the begin of a transaction and its first batch."""
    net.sender.begin()
    net.add(A0, count)
    return net


def failure(net: SimulatedNetwork) -> KafkaProducerError:
    """Why the sender has failed."""
    assert net.sender.failure is not None
    return net.sender.failure.error


def abort(net: SimulatedNetwork) -> None:
    """Abort the transaction."""
    net.sender.abort()
    net.settle()
    assert net.sender.failure is None


def assert_usable(net: SimulatedNetwork, *records: int) -> None:
    """Another transaction is committed, and consumers see these records."""
    transaction(net, A0)
    assert seen(net, A0) == list(records)


def seen(net: SimulatedNetwork, partition: TopicPartition) -> list[int]:
    """What consumers see that read committed records."""
    log = net.kafka.log(partition)
    assert log is not None
    return log.committed()


@VERSIONS
def test_consumers_see_a_transaction_once_it_is_committed(version: int) -> None:
    net = network(version)
    net.sender.begin()
    records = net.add(A0, 2), net.add(OFFSETS, 1)
    net.settle()
    assert net.sender.waiting == 0
    assert seen(net, A0) == seen(net, OFFSETS) == []
    net.sender.commit()
    net.settle()
    assert net.sender.state is State.READY
    assert (seen(net, A0), seen(net, OFFSETS)) == records


@VERSIONS
def test_an_aborted_transaction_is_never_seen_and_the_next_one_is(version: int) -> None:
    net = network(version)
    transaction(net, A0)
    before = seen(net, A0)
    transaction(net, A0, OFFSETS, commit=False)
    assert seen(net, A0) == before
    assert_usable(net, 0, 1, 6, 7)


def test_version_1_adds_partitions_before_their_first_batch_and_keeps_the_epoch() -> None:
    net = network(1)
    producers = []
    for _ in range(2):
        net.sender.begin()
        net.add(A0, 1)
        added = step(net, AddPartitionsToTxn)
        assert added.broker == net.kafka.coordinator
        assert added.request == AddPartitionsToTxn("rowtide-shop-0", added.request.producer, (A0,))  # type: ignore[union-attr]
        assert not any(isinstance(outgoing.request, Produce) for outgoing in net.requests.values())
        produce = step(net, Produce).request
        assert isinstance(produce, Produce)
        assert not produce.implicit
        producers.append(producer_of(produce.batches[0]))
        net.sender.commit()
        net.settle()
    assert producers[0] == producers[1]


def test_version_2_adds_partitions_with_their_batches_and_raises_the_epoch() -> None:
    net = network(2)
    batches = []
    for _ in range(2):
        net.sender.begin()
        net.add(A0, 1)
        produce = step(net, Produce).request
        assert isinstance(produce, Produce)
        assert produce.implicit
        batches.append(json.loads(bytes(produce.batches[0].data)))
        net.sender.commit()
        net.settle()
    (first_id, first_epoch, *first), (second_id, second_epoch, *second) = batches
    assert (second_id, second_epoch) == (first_id, first_epoch + 1)
    assert first[0] == second[0] == 0, "sequence numbers start again"


@VERSIONS
@pytest.mark.parametrize("commit", [True, False])
def test_nothing_is_asked_of_the_coordinator_for_an_empty_transaction(version: int, commit: bool) -> None:
    net = network(version)
    net.sender.begin()
    if commit:
        net.sender.commit()
    else:
        net.sender.abort()
    net.collect()
    assert net.under_way() == []
    assert net.sender.state is State.READY


@VERSIONS
def test_a_commit_waits_for_all_batches(version: int) -> None:
    net = begun(network(version))
    net.add(A0, 1)
    net.sender.commit()
    ended = step(net, EndTxn)
    assert net.sender.waiting == 0
    assert isinstance(ended.request, EndTxn)
    assert ended.request == EndTxn("rowtide-shop-0", ended.request.producer, commit=True, implicit=version == 2)


@VERSIONS
def test_after_a_refused_record_only_an_abort_is_possible(version: int) -> None:
    net = network(version)
    transaction(net, A0)
    net.kafka.largest = 0
    begun(net)
    net.add(OFFSETS, 1)
    net.settle()
    assert isinstance(failure(net), RecordRejected)
    with pytest.raises(RecordRejected):
        net.sender.commit()
    net.kafka.largest = 100
    net.wait(100)
    assert net.under_way() == []
    abort(net)
    transaction(net, A0, OFFSETS)
    assert seen(net, A0) == [0, 1, 4, 5]
    assert seen(net, OFFSETS) == [6, 7]


@VERSIONS
def test_a_batch_that_fails_after_the_call_of_commit_prevents_it(version: int) -> None:
    net = begun(network(version))
    net.sender.commit()
    net.kafka.produce_error = lambda _: ErrorCode.TRANSACTION_ABORTABLE
    net.settle()
    assert isinstance(failure(net), TransactionAborted)
    net.kafka.produce_error = lambda _: ErrorCode.NONE
    abort(net)
    assert_usable(net, 1, 2)


def test_an_epoch_is_raised_after_batches_were_dropped() -> None:
    net = begun(network(1))
    produce = step(net, Produce)
    net.kafka.process(produce.broker, produce.request)
    net.lose(produce.number, later=False)
    net.sender.abort()
    init = step(net, InitProducerId)
    assert isinstance(init.request, InitProducerId)
    assert isinstance(produce.request, Produce)
    assert init.request.current == producer_of(produce.request.batches[0])
    net.settle()
    assert_usable(net, 1, 2)


def test_an_epoch_is_raised_after_a_batch_was_split_that_may_be_stored() -> None:
    net = network(1)
    net.kafka.held_back = lambda _: True
    begun(net, count=2)
    produce = step(net, Produce)
    net.deliver(produce.number)
    net.answer(produce.number)
    net.kafka.largest = 1
    produce = step(net, Produce)
    net.deliver(produce.number)
    _, answer = net.answers.pop(produce.number)
    net.sender.answered(produce.number, answer, net.now)  # and nothing is sent before the abort
    net.kafka.held_back, net.kafka.largest = lambda _: False, 100
    abort(net)
    assert_usable(net, 2, 3)


def test_an_abort_waits_for_batches_in_flight() -> None:
    net = begun(network(1))
    net.add(A0, 1)
    produce = step(net, Produce)
    net.sender.abort()
    net.wait(10)
    assert list(net.requests) == [produce.number]
    net.settle()
    assert net.sender.state is State.READY
    assert net.sender.waiting == 0


@VERSIONS
@pytest.mark.parametrize("code", [None, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, ErrorCode.MESSAGE_TOO_LARGE])
def test_a_batch_that_was_in_flight_at_an_abort_is_not_sent_again(version: int, code: int | None) -> None:
    net = begun(network(version), count=2)
    produce = step(net, Produce)
    net.sender.abort()
    net.kafka.held_back = lambda _: code == ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    net.kafka.largest = 1 if code == ErrorCode.MESSAGE_TOO_LARGE else 100
    net.deliver(produce.number)
    if code is None:
        net.lose(produce.number, later=False)
    else:
        net.answer(produce.number)
    assert net.sender.waiting == 0
    assert not any(isinstance(outgoing.request, Produce) for outgoing in net.requests.values())
    net.kafka.held_back, net.kafka.largest = lambda _: False, 100
    net.settle()
    assert_usable(net, 2, 3)


@VERSIONS
def test_a_loss_of_records_that_is_seen_during_an_abort_ends_the_producer(version: int) -> None:
    kafka = SimulatedKafka(version=version, topic_ids=False)
    for name in ("a", "offsets"):
        kafka.create(name, 2)
    net = network(kafka=kafka)
    transaction(net, A0)
    begun(net)
    produce = step(net, Produce)
    net.sender.abort()
    kafka.delete("a")
    kafka.create("a", 2)
    net.deliver(produce.number)
    net.answer(produce.number)
    assert isinstance(failure(net), TopicReplaced)
    with pytest.raises(TopicReplaced):
        net.sender.abort()


def test_a_gap_behind_acknowledged_records_that_is_seen_during_an_abort_ends_the_producer() -> None:
    net = network(1)
    transaction(net, A0)
    begun(net)
    produce = step(net, Produce)
    net.sender.abort()
    net.kafka.produce_error = lambda _: ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    net.deliver(produce.number)
    net.answer(produce.number)
    assert isinstance(failure(net), TopicReplaced)


@VERSIONS
def test_a_commit_without_an_answer_is_repeated_and_cannot_be_aborted(version: int) -> None:
    net = begun(network(version))
    net.sender.commit()
    ended = step(net, EndTxn)
    net.kafka.process(ended.broker, ended.request)
    net.lose(ended.number, later=False)
    with pytest.raises(TransactionStateError, match="may have succeeded"):
        net.sender.abort()
    assert step(net, EndTxn).request == ended.request
    net.settle()
    assert_usable(net, 0, 1, 2)


@VERSIONS
def test_a_commit_that_arrives_late_does_not_commit_the_next_transaction(version: int) -> None:
    net = begun(network(version))
    net.sender.commit()
    ended = step(net, EndTxn)
    net.lose(ended.number, later=True)
    net.settle()
    begun(net)
    net.settle()
    net.arrive_late(0)
    assert seen(net, A0) == [0]
    net.sender.commit()
    net.settle()
    assert seen(net, A0) == [0, 1]


def test_an_abort_of_a_transaction_that_never_began_at_the_coordinator_succeeds() -> None:
    net = network(1)
    transaction(net, A0)
    begun(net)
    net.lose(step(net, AddPartitionsToTxn).number, later=False)
    abort(net)
    assert_usable(net, 0, 1, 3, 4)


@VERSIONS
def test_a_second_instance_fences_the_first_one(version: int) -> None:
    net = begun(network(version))
    net.settle()
    second = network(kafka=net.kafka)
    net.add(A0, 1)
    net.settle()
    assert isinstance(failure(net), ProducerFenced)
    with pytest.raises(ProducerFenced):
        net.sender.abort()
    transaction(second, A0)
    assert seen(net, A0) == [0, 1]


@VERSIONS
def test_an_expired_transaction_fences_its_producer(version: int) -> None:
    net = begun(network(version))
    net.settle()
    net.kafka.expire()
    net.sender.commit()
    net.settle()
    assert isinstance(failure(net), ProducerFenced)
    assert seen(net, A0) == []


@VERSIONS
def test_a_commit_that_comes_after_kafka_has_aborted_the_transaction_says_why(version: int) -> None:
    """Kafka 4 takes the commit of an expired transaction for a repeated one, because its epoch is the last but one."""
    net = begun(network(version))
    net.settle()
    net.sender.commit()
    net.collect()
    (number,) = net.requests
    assert isinstance(net.requests[number].request, EndTxn)
    net.sender.answered(number, EndTxnAnswer(ErrorCode.INVALID_TXN_STATE), net.now)
    assert net.sender.failure is not None
    failure = net.sender.failure.error
    assert isinstance(failure, ProducerFailed)
    for part in ("INVALID_TXN_STATE", "transaction.timeout.ms=60000", "another instance", "transactional.id"):
        assert part in str(failure)
    assert not net.sender.failure.abortable


def test_a_coordinator_that_died_is_looked_for_again() -> None:
    net = network(1)
    net.kafka.down.add(0)
    net.kafka.coordinator = 1
    net.sender.begin()
    net.add(A1, 1)
    net.sender.commit()
    net.settle()
    assert net.sender.state is State.READY
    assert seen(net, A1) == [0]


def test_a_coordinator_that_moved_is_looked_for_again() -> None:
    net = network(1)
    net.kafka.coordinator = 2
    assert_usable(net, 0, 1)


def test_a_broker_that_cannot_raise_epochs_is_an_error_once_it_is_needed() -> None:
    kafka = SimulatedKafka()
    kafka.create("a", 1)
    net = SimulatedNetwork(Sender(SenderSettings(transactional_id="rowtide-shop-0")), kafka)
    init = step(net, InitProducerId)
    answer = kafka.process(init.broker, init.request)
    assert isinstance(answer, InitProducerIdAnswer)
    del net.requests[init.number]
    net.sender.answered(init.number, InitProducerIdAnswer(0, answer.producer, raises_epochs=False), net.now)
    begun(net)
    produce = step(net, Produce)
    net.lose(produce.number, later=False)
    net.sender.abort()
    net.settle()
    assert "cannot raise" in str(failure(net))


def test_partitions_of_a_deleted_topic_are_not_added_for_ever() -> None:
    net = network(1)
    transaction(net, A0)
    net.kafka.delete("a")
    begun(net)
    start = net.now
    net.settle()
    assert net.now < start + 60, "not before the metadata is old"
    assert isinstance(failure(net), TopicMissing)


def test_an_instance_that_starts_waits_until_the_transaction_of_the_one_before_has_ended() -> None:
    net = begun(network(1))
    net.settle()
    second = SimulatedNetwork(Sender(SenderSettings(transactional_id="rowtide-shop-0")), net.kafka)
    step(second, InitProducerId)
    second.deliver(min(second.requests))
    second.answer(min(second.answers))
    assert second.sender.state is State.NEW
    assert "CONCURRENT_TRANSACTIONS" in str(second.sender.problem.text)
    second.settle()
    assert second.sender.state is State.READY


@pytest.mark.parametrize(
    "code", [ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, ErrorCode.CLUSTER_AUTHORIZATION_FAILED]
)
def test_missing_permissions_for_transactions_are_named(code: int) -> None:
    net = SimulatedNetwork(Sender(SenderSettings(transactional_id="rowtide-shop-0")), SimulatedKafka())
    net.collect()
    assert net.requests[1].request == FindCoordinator("rowtide-shop-0")
    net.sender.answered(1, FindCoordinatorAnswer(code), net.now)
    assert isinstance(failure(net), AccessDenied)


def test_an_invalid_timeout_of_transactions_is_named() -> None:
    net = SimulatedNetwork(Sender(SenderSettings(transactional_id="rowtide-shop-0")), SimulatedKafka())
    init = step(net, InitProducerId)
    net.sender.answered(init.number, InitProducerIdAnswer(ErrorCode.INVALID_TRANSACTION_TIMEOUT), net.now)
    assert isinstance(failure(net), ProducerFailed)
    assert "INVALID_TRANSACTION_TIMEOUT" in str(failure(net))


@pytest.mark.parametrize("producer", [ProducerIdentity(-1, -1), None])
def test_an_identity_that_is_none_ends_the_producer(producer: ProducerIdentity | None) -> None:
    net = SimulatedNetwork(Sender(SenderSettings()), SimulatedKafka())
    net.collect()
    net.sender.answered(1, InitProducerIdAnswer(0, producer or ProducerIdentity(-1, 0)), net.now)
    assert isinstance(failure(net), ProducerFailed)


def test_an_answer_about_other_partitions_ends_the_producer() -> None:
    net = begun(network(1))
    added = step(net, AddPartitionsToTxn)
    net.sender.answered(added.number, AddPartitionsToTxnAnswer({A1: 0}), net.now)
    assert net.sender.failure is not None
    assert not net.sender.failure.abortable


def test_version_2_without_a_new_epoch_ends_the_producer() -> None:
    net = begun(network(2))
    net.sender.commit()
    ended = step(net, EndTxn)
    assert isinstance(ended.request, EndTxn)
    net.sender.answered(ended.number, EndTxnAnswer(0, ended.request.producer), net.now)
    assert "without a new epoch" in str(failure(net))


def test_a_refused_commit_may_be_aborted() -> None:
    net = begun(network(2))
    net.sender.commit()
    ended = step(net, EndTxn)
    del net.requests[ended.number]
    net.sender.answered(ended.number, EndTxnAnswer(ErrorCode.TRANSACTION_ABORTABLE), net.now)
    assert net.sender.failure is not None
    abort(net)
    assert_usable(net, 1, 2)


def test_an_abort_that_fails_ends_the_producer() -> None:
    net = begun(network(2))
    net.settle()
    net.sender.abort()
    ended = step(net, EndTxn)
    net.sender.answered(ended.number, EndTxnAnswer(ErrorCode.TRANSACTION_ABORTABLE), net.now)
    assert isinstance(failure(net), ProducerFailed)
    with pytest.raises(ProducerFailed):
        net.sender.abort()


@VERSIONS
def test_a_topic_that_is_missing_does_not_prevent_an_abort(version: int) -> None:
    net = begun(network(version, missing_topic_s=0.0))
    produce = step(net, Produce)
    net.sender.partitions("unknown")
    net.collect()
    net.sender.abort()
    for number in [number for number in net.requests if number != produce.number]:
        net.deliver(number)
        net.answer(number)
    assert net.sender.failure is None
    net.settle()
    assert net.sender.state is State.READY


def test_a_topic_that_is_missing_before_a_transaction_is_forgotten_by_an_abort() -> None:
    net = network(1, missing_topic_s=0.0)
    net.sender.partitions("unknown")
    net.settle()
    assert isinstance(failure(net), TopicMissing)
    net.sender.abort()
    net.wait(100)
    assert net.under_way() == []
    assert_usable(net, 0, 1)


def test_an_unacknowledged_batch_can_expire_and_its_transaction_be_aborted() -> None:
    net = network(1, delivery_timeout_s=50.0)
    net.kafka.produce_error = lambda _: ErrorCode.NOT_ENOUGH_REPLICAS
    begun(net)
    net.settle()
    assert isinstance(failure(net), TransactionAborted)
    net.kafka.produce_error = lambda _: ErrorCode.NONE
    abort(net)
    assert_usable(net, 1, 2)


def test_calls_in_the_wrong_state_are_errors() -> None:
    net = network(1)
    with pytest.raises(TransactionStateError, match="READY"):
        net.add(A0, 1)
    with pytest.raises(TransactionStateError):
        net.sender.commit()
    with pytest.raises(TransactionStateError):
        net.sender.abort()
    net.sender.begin()
    with pytest.raises(TransactionStateError):
        net.sender.begin()
    plain = SimulatedNetwork(Sender(SenderSettings()), SimulatedKafka())
    plain.settle()
    with pytest.raises(TransactionStateError, match="without a transactional id"):
        plain.sender.begin()
