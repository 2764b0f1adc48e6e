"""The sender's rules, one at a time."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest

from rowtide.connector.kafka_producer.errors import (
    AccessDenied,
    BrokerUnavailable,
    KafkaProducerError,
    ProducerFailed,
    RecordRejected,
    Rejection,
    TopicMissing,
    TopicReplaced,
)
from rowtide.connector.kafka_producer.machine import Sender, SenderSettings
from rowtide.connector.kafka_producer.machine.cluster import Cluster
from rowtide.connector.kafka_producer.machine.codes import PRODUCE, Reaction
from rowtide.connector.kafka_producer.machine.messages import (
    EndTxnAnswer,
    GetMetadata,
    InitProducerIdAnswer,
    Metadata,
    Outgoing,
    PartitionMetadata,
    Produce,
    ProduceAnswer,
    ProducedBatch,
    TopicMetadata,
    TopicPartition,
)
from rowtide.connector.kafka_producer.wire.error_codes import ErrorCode, code_text
from tests.support.kafka.simulated_kafka import SimulatedKafka
from tests.support.kafka.simulated_log import Records
from tests.support.kafka.simulated_network import SimulatedNetwork

A0, A1, A2, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("a", 2), TopicPartition("b", 0)


def network(*, topic_ids: bool = True, settings: SenderSettings | None = None) -> SimulatedNetwork:
    """A cluster of three brokers with a topic ``a``, whose partitions have one leader each, and a topic ``b``."""
    kafka = SimulatedKafka(topic_ids=topic_ids)
    kafka.create("a", 3)
    kafka.create("b", 1)
    return SimulatedNetwork(Sender(settings or SenderSettings()), kafka)


def ready(net: SimulatedNetwork, *partitions: TopicPartition) -> SimulatedNetwork:
    """The network after a first batch for each partition."""
    for partition in partitions:
        net.add(partition, 1)
    net.settle()
    assert net.sender.failure is None
    return net


def produces(net: SimulatedNetwork) -> list[Outgoing]:
    """The batches that are under way."""
    return [outgoing for outgoing in net.requests.values() if isinstance(outgoing.request, Produce)]


def first_look_up(net: SimulatedNetwork) -> int:
    """Go on until topics are looked up; returns the number of the request."""
    net.collect()
    net.deliver(1)
    net.answer(1)
    (number,) = net.requests
    assert isinstance(net.requests[number].request, GetMetadata)
    return number


def add_and_take(net: SimulatedNetwork, partition: TopicPartition, count: int = 1) -> Outgoing:
    """Give a batch to the sender; returns the request with it, which the test answers."""
    net.add(partition, count)
    net.collect()
    (outgoing,) = produces(net)
    return net.requests.pop(outgoing.number)


def answer(net: SimulatedNetwork, outgoing: Outgoing, code: int, offset: int = -1, **more: object) -> None:
    """Answer a request with one batch."""
    assert isinstance(outgoing.request, Produce)
    (batch,) = outgoing.request.batches
    produced = ProducedBatch(batch.topic, batch.partition, code, offset, **more)  # type: ignore[arg-type]
    net.sender.answered(outgoing.number, ProduceAnswer([produced]), net.now)
    net.collect()


def error(net: SimulatedNetwork) -> KafkaProducerError:
    """Why the sender has failed; nothing is sent after it."""
    assert net.sender.failure is not None
    net.now += 1000
    assert net.sender.requests(net.now) == []
    assert net.sender.wake_up(net.now) is None
    with pytest.raises(type(net.sender.failure.error)):
        net.sender.add(Records("a", 0, (1,)), net.now)
    with pytest.raises(type(net.sender.failure.error)):
        net.sender.abort()
    return net.sender.failure.error


def data(outgoing: Outgoing) -> list[bytes]:
    """The bytes of the batches of a request."""
    assert isinstance(outgoing.request, Produce)
    return [bytes(batch.data) for batch in outgoing.request.batches]


def test_batches_arrive_once_and_in_order() -> None:
    net = network()
    for _ in range(5):
        for partition in (A0, A1, B0):
            net.add(partition, 2)
    net.settle()
    net.check()
    assert net.acknowledged == net.added
    assert net.sender.waiting == 0


def test_a_request_has_batches_of_several_partitions_up_to_its_size_and_the_others_come_first_next_time() -> None:
    kafka = SimulatedKafka(brokers=1)
    kafka.create("a", 3)
    net = ready(SimulatedNetwork(Sender(SenderSettings(request_bytes=20)), kafka), A0, A1, A2)
    for partition in (A0, A1, A2):
        net.add(partition, 1)
        net.add(partition, 1)
    seen: list[list[int]] = []
    while net.sender.waiting:
        net.collect()
        (outgoing,) = produces(net)
        assert isinstance(outgoing.request, Produce)
        seen.append([batch.partition for batch in outgoing.request.batches])
        net.deliver(outgoing.number)
        net.answer(outgoing.number)
    assert seen == [[0, 1], [2, 0], [1, 2]]


def test_the_cost_of_a_batch_does_not_grow_with_the_partitions_that_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Partitions are looked at once for each answer, and not for each batch that is added meanwhile."""
    count = 300
    kafka = SimulatedKafka(brokers=1)
    kafka.create("a", count)
    partitions = [TopicPartition("a", number) for number in range(count)]
    net = ready(SimulatedNetwork(Sender(SenderSettings()), kafka), *partitions)
    looked_at: list[TopicPartition] = []
    leader = Cluster.leader
    monkeypatch.setattr(Cluster, "leader", lambda self, which: looked_at.append(which) or leader(self, which))
    for _ in range(3):
        for partition in partitions:
            net.add(partition, 1)
            net.collect()
    net.settle()
    assert net.sender.waiting == 0
    assert len(looked_at) <= 20 * count


def test_a_batch_that_is_larger_than_a_request_may_be_is_sent_alone() -> None:
    net = ready(network(settings=SenderSettings(request_bytes=5)), A0)
    net.add(A0, 3)
    net.settle()
    assert net.sender.waiting == 0


def test_nothing_of_a_partition_is_sent_while_a_batch_of_it_is_in_flight_or_waits_for_its_retry() -> None:
    net = ready(network(), A0)
    outgoing = add_and_take(net, A0)
    net.add(A0, 1)
    net.collect()
    assert produces(net) == []
    answer(net, outgoing, ErrorCode.NOT_ENOUGH_REPLICAS)
    assert produces(net) == []
    net.wait(0.1)
    (again,) = produces(net)
    assert data(again) == data(outgoing)


def test_a_retry_after_a_lost_answer_repeats_the_same_bytes() -> None:
    net = ready(network(), A0)
    outgoing = add_and_take(net, A0, 3)
    net.sender.lost(outgoing.number, "timed out", net.now)
    net.settle()
    assert net.sender.problem.text == "timed out"
    assert net.acknowledged == net.added
    again = add_and_take(net, A0)
    assert json.loads(data(again)[0])[2] == json.loads(data(outgoing)[0])[2] + 3


def test_delays_double_up_to_the_longest_and_start_again_after_a_success() -> None:
    net = ready(network(), A0)
    outgoing = add_and_take(net, A0)
    waits: list[float] = []
    for _ in range(6):
        answer(net, outgoing, ErrorCode.NOT_ENOUGH_REPLICAS)
        wake_up = net.sender.wake_up(net.now)
        assert wake_up is not None
        waits.append(round(wake_up - net.now, 3))
        net.wait(wake_up - net.now)
        (outgoing,) = produces(net)
        net.requests.clear()
    assert waits == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0]
    net.requests[outgoing.number] = outgoing
    net.settle()
    answer(net, add_and_take(net, A0), ErrorCode.NOT_ENOUGH_REPLICAS)
    assert net.sender.wake_up(net.now) == pytest.approx(net.now + 0.1)


def test_a_broker_that_throttles_the_producer_gets_nothing_until_it_is_over() -> None:
    net = ready(network(), A0, A1)
    outgoing = add_and_take(net, A0)
    answered = net.kafka.process(outgoing.broker, outgoing.request)
    assert isinstance(answered, ProduceAnswer)
    net.sender.answered(outgoing.number, answered._replace(throttle_s=5.0), net.now)
    net.add(A0, 1)
    net.collect()
    assert produces(net) == []
    assert add_and_take(net, A1).broker == 1
    assert net.sender.wake_up(net.now) == net.now + 5
    net.wait(5)
    assert [outgoing.broker for outgoing in produces(net)] == [0]


def test_a_batch_that_comes_while_its_idle_broker_throttles_the_producer_is_sent_behind_that_time() -> None:
    net = ready(network(), A0)
    outgoing = add_and_take(net, A0)
    answered = net.kafka.process(outgoing.broker, outgoing.request)
    assert isinstance(answered, ProduceAnswer)
    net.sender.answered(outgoing.number, answered._replace(throttle_s=5.0), net.now)
    assert net.sender.requests(net.now) == []
    assert net.sender.wake_up(net.now) is None
    net.add(A0, 1)
    assert net.sender.wake_up(net.now) == net.now + 5
    net.wait(5)
    assert [outgoing.broker for outgoing in produces(net)] == [0]


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.UNKNOWN_PRODUCER_ID,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.TRANSACTION_ABORTABLE,
        2,
        -1,
        9999,
    ],
)
def test_any_other_code_ends_the_producer_and_nothing_is_acknowledged_behind_it(code: int) -> None:
    net = ready(network(), A0, A1)
    first = add_and_take(net, A0)
    other = add_and_take(net, A1)
    answer(net, first, code)
    answer(net, other, ErrorCode.NONE, 100)
    assert net.sender.acknowledged() == []
    failure = error(net)
    assert isinstance(failure, ProducerFailed)
    assert "topic 'a', partition 0" in str(failure)
    assert code_text(code) in str(failure)


def test_a_duplicate_is_a_success_only_if_the_batch_was_sent_before() -> None:
    net = ready(network(), A0)
    outgoing = add_and_take(net, A0)
    net.kafka.process(outgoing.broker, outgoing.request)
    answer(net, outgoing, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
    net.wait(1)
    (again,) = produces(net)
    net.requests.clear()
    answer(net, again, ErrorCode.DUPLICATE_SEQUENCE_NUMBER)
    assert net.acknowledged == net.added
    answer(net, add_and_take(net, A0), ErrorCode.DUPLICATE_SEQUENCE_NUMBER)
    assert isinstance(error(net), ProducerFailed)


def test_a_batch_that_is_too_large_is_split_before_anything_later_of_its_partition() -> None:
    net = ready(network(), A0)
    net.kafka.largest = 2
    net.add(A0, 5)
    net.add(A0, 1)
    net.settle()
    net.check()
    assert net.acknowledged == net.added
    log = net.kafka.log(A0)
    assert log is not None
    assert [len(entry.records) for entry in log.entries] == [1, 2, 1, 2, 1]
    assert [entry.sequence for entry in log.entries] == [0, 1, 3, 4, 6]


def test_a_record_that_is_too_large_alone_is_named() -> None:
    net = ready(network(), A0)
    net.kafka.largest = 0
    net.add(A0, 2)
    net.settle()
    failure = error(net)
    assert isinstance(failure, RecordRejected)
    assert (failure.topic, failure.key, failure.size, failure.rejection) == ("a", b"1", 10, Rejection.TOO_LARGE)
    for part in ("topic 'a'", "10 bytes", "MESSAGE_TOO_LARGE"):
        assert part in str(failure)


def test_a_refused_record_is_named_with_the_brokers_explanation() -> None:
    net = ready(network(), A0)
    outgoing = add_and_take(net, A0, 3)
    answer(net, outgoing, ErrorCode.INVALID_RECORD, message="compacted topic", rejected=(2,))
    failure = error(net)
    assert isinstance(failure, RecordRejected)
    assert (failure.key, failure.rejection) == (b"3", Rejection.INVALID)
    assert "INVALID_RECORD (compacted topic)" in str(failure)


def test_missing_permissions_are_named() -> None:
    net = ready(network(), A0)
    answer(net, add_and_take(net, A0), ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    failure = error(net)
    assert isinstance(failure, RecordRejected)
    assert failure.rejection is Rejection.DENIED
    net = network()
    net.collect()
    net.sender.answered(1, InitProducerIdAnswer(ErrorCode.CLUSTER_AUTHORIZATION_FAILED), net.now)
    assert isinstance(error(net), AccessDenied)


def test_missing_permissions_for_a_topic_are_named_before_anything_is_sent() -> None:
    net = network()
    net.add(B0, 1)
    number = first_look_up(net)
    denied = TopicMetadata(ErrorCode.TOPIC_AUTHORIZATION_FAILED, None, {})
    net.sender.answered(number, Metadata({"b": denied}), net.now)
    failure = error(net)
    assert isinstance(failure, AccessDenied)
    assert "topic 'b'" in str(failure)


def test_nothing_is_sent_before_there_is_a_producer_id() -> None:
    net = network()
    net.add(A0, 1)
    net.collect()
    net.sender.answered(1, InitProducerIdAnswer(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS), net.now)
    net.requests.clear()
    net.collect()
    (look_up,) = net.requests.values()
    net.deliver(look_up.number)
    net.answer(look_up.number)
    assert net.requests == {}
    net.settle()
    assert net.acknowledged == net.added


class WholeBatch(Records):
    """A batch that has one part only."""

    def split(self) -> list[Records]:
        return [self]


class LossyBatch(Records):
    """A batch whose parts are not the whole."""

    def split(self) -> list[Records]:
        return [replace(part, records=part.records[:1]) for part in super().split()]


@pytest.mark.parametrize("kind", [WholeBatch, LossyBatch])
def test_a_batch_whose_parts_are_not_the_whole_is_refused(kind: type[Records]) -> None:
    net = ready(network(), A0)
    net.sender.add(kind("a", 0, (1, 2, 3, 4)), net.now)
    net.kafka.largest = 1
    net.settle()
    assert isinstance(error(net), RecordRejected)


@pytest.mark.parametrize(
    "batches",
    [
        [],
        [ProducedBatch("a", 1, 0, 7)],
        [ProducedBatch("a", 0, 0, 7), ProducedBatch("a", 0, 0, 7)],
        [ProducedBatch("a", 0, 0, 7), ProducedBatch("b", 0, 0, 7)],
    ],
)
def test_an_answer_about_other_batches_ends_the_producer(batches: Sequence[ProducedBatch]) -> None:
    net = ready(network(), A0)
    outgoing = add_and_take(net, A0)
    net.sender.answered(outgoing.number, ProduceAnswer(batches), net.now)
    assert net.sender.acknowledged() == []
    assert "Produce to broker 0" in str(error(net))


def test_an_answer_to_another_request_or_without_meaning_ends_the_producer() -> None:
    net = ready(network(), A0)
    outgoing = add_and_take(net, A0)
    net.sender.answered(outgoing.number, EndTxnAnswer(ErrorCode.NONE), net.now)
    assert isinstance(error(net), ProducerFailed)
    net = ready(network(), A0)
    net.sender.malformed(add_and_take(net, A0).number, "truncated")
    assert "truncated" in str(error(net))


def test_a_gap_behind_acknowledged_records_is_reported_as_their_loss() -> None:
    """After the election of a replica that was not in sync, the leader lacks the records before the batch."""
    net = network()
    for _ in range(3):
        ready(net, A0)
    log = net.kafka.log(A0)
    assert log is not None
    del log.entries[1:]
    net.add(A0, 1)
    net.settle()
    failure = error(net)
    assert isinstance(failure, TopicReplaced)
    assert "lost acknowledged records of partition 0" in str(failure)
    assert net.sender.acknowledged() == []


def test_a_gap_before_the_first_acknowledged_record_is_not_a_loss() -> None:
    net = network()
    net.add(A0, 1)
    net.collect()
    while not produces(net):
        number = min(net.requests)
        net.deliver(number)
        net.answer(number)
    (outgoing,) = produces(net)
    net.requests.clear()
    answer(net, outgoing, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    assert isinstance(error(net), ProducerFailed)


@pytest.mark.parametrize("code", [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.REQUEST_TIMED_OUT])
def test_a_refusal_by_a_former_leader_is_followed_by_a_look_up_before_the_next_attempt(code: ErrorCode) -> None:
    net = ready(network(), A0)
    log = net.kafka.log(A0)
    assert log is not None
    log.elect(2, keep=True)
    answer(net, add_and_take(net, A0), code)
    net.wait(1)
    (look_up,) = net.requests.values()
    assert look_up.request == GetMetadata(("a",))
    net.deliver(look_up.number)
    net.answer(look_up.number)
    assert [outgoing.broker for outgoing in produces(net)] == [2]
    net.settle()
    assert net.acknowledged == net.added


def test_a_batch_is_not_sent_to_a_new_leader_while_it_is_in_flight_to_the_old_one() -> None:
    net = ready(network(), A0)
    outgoing = add_and_take(net, A0)
    log = net.kafka.log(A0)
    assert log is not None
    log.elect(2, keep=True)
    net.wait(400)
    net.add(A0, 1)
    for number in list(net.requests):
        net.deliver(number)
        net.answer(number)
    net.wait(400)
    assert produces(net) == []
    net.sender.lost(outgoing.number, "timed out", net.now)
    net.settle()
    assert net.acknowledged == net.added


def test_a_partition_is_looked_up_whose_leader_was_missing_when_it_had_no_batches() -> None:
    net = network()
    log = net.kafka.log(A1)
    assert log is not None
    log.elect(-1, keep=True)
    ready(net, A0)
    log.elect(2, keep=True)
    start = net.now
    net.add(A1, 1)
    net.settle()
    assert net.acknowledged == net.added
    assert net.now < start + 10, "not before the metadata is old"


@pytest.mark.parametrize("code", [code for code, what in PRODUCE.items() if what in (Reaction.RETRY, Reaction.REFRESH)])
def test_a_batch_with_an_error_that_passes_is_not_acknowledged_until_it_is_stored(code: int) -> None:
    net = ready(network(), A0)
    before = list(net.acknowledged[A0])
    answer(net, add_and_take(net, A0), code)
    assert net.acknowledged[A0] == before
    assert net.sender.problem.text == f"cannot send a batch to topic 'a', partition 0: {code_text(code)}"
    net.settle()
    net.check()
    assert net.acknowledged == net.added


def test_batches_go_to_the_new_leader_after_the_old_one_has_died() -> None:
    net = ready(network(), A0, A1)
    start = net.now
    net.kafka.down.add(0)
    net.add(A0, 1)
    net.add(A1, 1)
    log = net.kafka.log(A0)
    assert log is not None
    log.elect(1, keep=False)
    net.settle()
    assert net.acknowledged == net.added
    assert net.now < start + 10, "not before the metadata is old"


def test_a_partition_without_a_leader_waits() -> None:
    net = ready(network(), A0)
    log = net.kafka.log(A0)
    assert log is not None
    log.elect(-1, keep=True)
    net.add(A0, 1)
    for _ in range(40):
        net.collect()
        for number in list(net.requests):
            net.deliver(number)
            net.answer(number)
        net.wait(0.5)
    assert net.sender.failure is None
    assert net.sender.problem.text == "partition 0 of topic 'a' has no leader"
    log.elect(1, keep=True)
    net.settle()
    assert net.acknowledged == net.added


def test_a_leader_of_an_earlier_election_is_not_taken() -> None:
    net = ready(network(), A0)
    log = net.kafka.log(A0)
    assert log is not None
    log.elect(2, keep=True)
    net.add(A0, 1)
    net.settle()
    answer(net, add_and_take(net, A0), ErrorCode.NOT_LEADER_OR_FOLLOWER)
    (look_up,) = net.requests.values()
    net.requests.clear()
    known = net.kafka.metadata(GetMetadata(("a",))).topics["a"]
    older = TopicMetadata(ErrorCode.NONE, known.topic_id, {0: PartitionMetadata(ErrorCode.NONE, 0, 0)})
    net.sender.answered(look_up.number, Metadata({"a": older}), net.now)
    net.wait(1)
    assert produces(net) == []
    net.settle()
    assert net.acknowledged == net.added


@pytest.mark.parametrize("seen", [True, False])
def test_a_topic_that_is_missing_for_long_is_an_error_that_names_it(seen: bool) -> None:
    net = ready(network(), B0) if seen else network()
    net.kafka.delete("b")
    net.add(B0, 1)
    start = net.now
    net.settle()
    assert net.now >= start + 30
    failure = error(net)
    assert isinstance(failure, TopicMissing)
    assert failure.topic == "b"


def test_a_topic_that_lagging_brokers_do_not_list_for_a_while_is_not_an_error() -> None:
    net = network()
    for _ in range(2):
        topic = net.kafka.topics.pop("b")
        net.add(B0, 1)
        for _ in range(20):
            net.collect()
            for number in list(net.requests):
                net.deliver(number)
                net.answer(number)
            net.wait(1)
        assert "UNKNOWN_TOPIC_OR_PARTITION" in str(net.sender.problem.text)
        net.kafka.topics["b"] = topic
        net.settle()
        assert net.acknowledged == net.added


def test_a_topic_that_was_created_again_is_not_sent_to() -> None:
    net = ready(network(), B0)
    net.kafka.delete("b")
    net.kafka.create("b", 1)
    net.add(B0, 1)
    net.settle()
    failure = error(net)
    assert isinstance(failure, TopicReplaced)
    assert "deleted and created again" in str(failure)
    log = net.kafka.log(B0)
    assert log is not None
    assert log.entries == []


def test_a_topic_that_was_created_again_with_fewer_partitions_is_an_error() -> None:
    net = ready(network(topic_ids=False), A2)
    net.kafka.delete("a")
    net.kafka.create("a", 1)
    net.add(A2, 1)
    net.settle()
    assert "fewer partitions" in str(error(net))


def test_offsets_that_go_back_show_that_acknowledged_records_are_lost() -> None:
    net = ready(network(topic_ids=False), B0)
    net.add(B0, 5)
    net.settle()
    net.kafka.delete("b")
    net.kafka.create("b", 1)
    done = len(net.acknowledged[B0])
    net.add(B0, 1)
    net.settle()
    assert isinstance(error(net), TopicReplaced)
    assert len(net.acknowledged[B0]) == done


def test_an_invalid_topic_is_refused() -> None:
    net = network()
    net.add(B0, 1)
    number = first_look_up(net)
    invalid = TopicMetadata(ErrorCode.INVALID_TOPIC_EXCEPTION, None, {})
    net.sender.answered(number, Metadata({"b": invalid}), net.now)
    assert "INVALID_TOPIC_EXCEPTION" in str(error(net))


def test_a_look_up_without_its_topic_ends_the_producer() -> None:
    net = network()
    assert net.sender.partitions("b") is None
    number = first_look_up(net)
    net.sender.answered(number, Metadata({}), net.now)
    assert "topic 'b'" in str(error(net))


def test_the_number_of_partitions_is_looked_up() -> None:
    net = network()
    assert net.sender.partitions("a") is None
    net.settle()
    assert net.sender.partitions("a") == 3


def test_the_partitions_with_a_leader() -> None:
    net = network()
    log = net.kafka.log(A0)
    assert log is not None
    log.elect(-1, keep=True)
    net.sender.partitions("a")
    net.settle()
    assert net.sender.available("a") == [1, 2]
    log.elect(1, keep=True)
    net.add(A0, 1)
    net.settle()
    assert net.sender.available("a") == [0, 1, 2]


def test_metadata_is_looked_up_again_when_it_is_old() -> None:
    net = ready(network(), A0)
    net.wait(301)
    net.add(A0, 1)
    net.collect()
    assert GetMetadata(("a",)) in [outgoing.request for outgoing in net.requests.values()]
    net.settle()
    assert net.acknowledged == net.added


def test_a_batch_that_is_not_acknowledged_in_time_is_an_error_if_there_is_a_limit() -> None:
    net = ready(network(settings=SenderSettings(delivery_timeout_s=60.0)), A0)
    net.kafka.down.update(range(3))
    start = net.now
    net.add(A0, 1)
    net.settle()
    assert net.now == pytest.approx(start + 60)
    failure = error(net)
    assert isinstance(failure, BrokerUnavailable)
    assert "delivery.timeout.ms=60000: connection refused" in str(failure)


def test_without_a_limit_batches_wait_for_brokers_for_ever() -> None:
    net = ready(network(), A0)
    net.kafka.down.update(range(3))
    net.add(A0, 1)
    for _ in range(500):
        net.collect()
        for number in list(net.requests):
            net.deliver(number)
        net.wait(60)
    assert net.sender.failure is None
    net.kafka.down.clear()
    net.settle()
    assert net.acknowledged == net.added


def test_a_closed_sender_sends_and_reports_nothing() -> None:
    net = ready(network(), A0)
    outgoing = add_and_take(net, A0)
    net.add(B0, 1)
    net.collect()
    (look_up,) = net.requests.values()
    net.sender.close()
    answer(net, outgoing, ErrorCode.NONE, 9)
    net.sender.lost(look_up.number, "closed", net.now)
    assert net.sender.problem.text is None
    assert net.sender.acknowledged() == []
    assert net.sender.requests(net.now + 100) == []
    assert net.sender.wake_up(net.now) is None
