"""The coordinator has forgotten the transactional id, which was not used for long."""

from __future__ import annotations

import pytest

from rowtide.connector.kafka_producer.errors import KafkaProducerError, ProducerFailed, TransactionAborted
from rowtide.connector.kafka_producer.machine import Sender, SenderSettings
from rowtide.connector.kafka_producer.machine.messages import EndTxn, InitProducerId, TopicPartition
from rowtide.connector.kafka_producer.machine.transactions import State
from tests.support.kafka.simulated_kafka import SimulatedKafka
from tests.support.kafka.simulated_network import SimulatedNetwork

A0, B0 = TopicPartition("a", 0), TopicPartition("b", 0)


@pytest.fixture(params=[1, 2])
def net(request: pytest.FixtureRequest) -> SimulatedNetwork:
    """A producer that has committed a transaction, whose transactional id was forgotten then."""
    kafka = SimulatedKafka(version=request.param)
    kafka.create("other", 2)  # so that the two partitions have different leaders
    kafka.create("a", 1)
    kafka.create("b", 2)
    kafka.topics["b"].logs[0].leader = 1
    net = SimulatedNetwork(Sender(SenderSettings(transactional_id="rowtide-shop-0")), kafka)
    net.settle()
    commit(net)
    kafka.forget()
    return net


def commit(net: SimulatedNetwork) -> None:
    """A transaction with a record for each of two partitions."""
    net.sender.begin()
    net.add(A0, 1)
    net.add(B0, 1)
    net.sender.commit()
    net.settle()


def seen(net: SimulatedNetwork) -> list[list[int]]:
    """What consumers see that read committed records."""
    logs = [net.kafka.log(A0), net.kafka.log(B0)]
    return [log.committed() for log in logs if log is not None]


def failure(net: SimulatedNetwork) -> KafkaProducerError:
    assert net.sender.failure is not None
    return net.sender.failure.error


def test_the_transaction_is_aborted_and_the_next_one_has_a_new_identity(net: SimulatedNetwork) -> None:
    commit(net)
    assert isinstance(failure(net), TransactionAborted)
    assert seen(net) == [[0], [1]]
    net.sender.abort()
    net.collect()
    assert not any(isinstance(outgoing.request, EndTxn) for outgoing in net.requests.values())
    net.settle()
    assert net.sender.failure is None
    for _ in range(2):
        commit(net)
        assert net.sender.state is State.READY
    assert seen(net) == [[0, 4, 6], [1, 5, 7]]


def test_an_instance_that_was_started_meanwhile_is_not_fenced(net: SimulatedNetwork) -> None:
    other = SimulatedNetwork(Sender(SenderSettings(transactional_id="rowtide-shop-0")), net.kafka)
    other.settle()
    commit(net)
    assert isinstance(failure(net), TransactionAborted)
    net.sender.abort()
    net.settle()
    assert isinstance(failure(net), ProducerFailed)
    commit(other)
    assert other.sender.failure is None


def test_a_new_identity_whose_answer_is_lost_ends_only_the_producer(net: SimulatedNetwork) -> None:
    """The connector starts again then."""
    commit(net)
    net.sender.abort()
    for _ in range(100):
        net.collect()
        found = [one for one in net.requests.values() if isinstance(one.request, InitProducerId)]
        if found:
            net.kafka.process(found[0].broker, found[0].request)
            net.lose(found[0].number, later=False)
            break
        net.wait(0.05)
    net.settle()
    assert isinstance(failure(net), ProducerFailed)


def test_a_commit_that_is_not_known_any_more_may_have_succeeded(net: SimulatedNetwork) -> None:
    commit(net)
    net.sender.abort()
    net.settle()
    net.sender.begin()
    net.add(A0, 1)
    net.settle()
    net.kafka.coordination_error = lambda request: 49 if isinstance(request, EndTxn) else 0
    net.sender.commit()
    net.settle()
    assert isinstance(failure(net), ProducerFailed)
