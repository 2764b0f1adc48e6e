"""The threads of the brokers: one request at a time each, connections that ended, and results for every request."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain, repeat
from queue import SimpleQueue
from typing import NoReturn

import pytest
from rowtide_stack.ports import free_port

from rowtide.connector.kafka_producer import translation
from rowtide.connector.kafka_producer.brokers import Brokers, Result
from rowtide.connector.kafka_producer.connection.connection import Connection
from rowtide.connector.kafka_producer.connection.errors import ConnectionFailed
from rowtide.connector.kafka_producer.connection.settings import ConnectionSettings, addresses
from rowtide.connector.kafka_producer.machine.messages import (
    GetMetadata,
    Metadata,
    Outgoing,
    Produce,
)
from rowtide.connector.kafka_producer.wire.errors import MalformedAnswer
from rowtide.connector.kafka_producer.wire.messages.cluster import Broker, MetadataAnswer
from tests.support.kafka.fake_broker import FakeBroker, Peer

PATIENCE = 60.0
Results = SimpleQueue[tuple[Outgoing, Result]]


def metadata(*found: tuple[int, int]) -> MetadataAnswer:
    """An answer with brokers on these ports."""
    known = tuple(Broker(node_id=node, host="127.0.0.1", port=port, rack=None) for node, port in found)
    return MetadataAnswer(throttle_time_ms=0, brokers=known, cluster_id="test", controller_id=1, topics=())


def outgoing(number: int, broker: int | None = None) -> Outgoing:
    return Outgoing(number, broker, GetMetadata(()))


@contextmanager
def brokers_of(*bootstrap: str, timeout: float = PATIENCE) -> Iterator[tuple[Brokers, Results]]:
    """The brokers after these addresses, and the results."""
    results: Results = SimpleQueue()
    settings = ConnectionSettings(
        addresses(",".join(bootstrap)), client_id="rowtide", connect_timeout=timeout, request_timeout=timeout
    )
    made = Brokers(settings, None, "1.0", 1000, lambda outgoing, result: results.put((outgoing, result)))
    yield made, results
    made.close()


def answering(answer: Callable[[], MetadataAnswer], times: int = 1000) -> Callable[[Peer], None]:
    """A broker that answers so many requests of a connection, and closes it then."""

    def serve(peer: Peer) -> None:
        peer.opened()
        for _ in range(times):
            peer.answer(answer())

    return serve


def result(results: Results) -> Result:
    return results.get(timeout=PATIENCE)[1]


@contextmanager
def any_broker(servers: str, clock: Callable[[], float] = time.monotonic) -> Iterator[Callable[..., Result]]:
    """Sends a request to a broker, by default to any, and waits for the result."""
    results: SimpleQueue[Result] = SimpleQueue()
    settings = ConnectionSettings(addresses(servers), connect_timeout=20, request_timeout=20)
    brokers = Brokers(settings, None, "1.0", 1000, lambda _outgoing, result: results.put(result), clock)

    def ask(broker: int | None = None) -> Result:
        brokers.send(outgoing(1, broker))
        return results.get(timeout=60)

    yield ask
    brokers.close()


def fail(*_: object) -> NoReturn:
    raise OSError(24, "Too many open files")


def test_without_file_descriptors_a_request_is_lost_and_may_be_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeBroker(answering(metadata)) as broker, any_broker(broker.address) as ask:
        with monkeypatch.context() as patched:
            patched.setattr(socket, "socketpair", fail)
            lost = ask()
        assert isinstance(lost, ConnectionFailed)
        assert str(lost) == "no socket can be opened: Too many open files"
        assert ask() == Metadata({})


def test_an_unexpected_error_is_the_result_of_its_request(monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeBroker(answering(metadata)) as broker, any_broker(broker.address) as ask:
        with monkeypatch.context() as patched:
            patched.setattr(translation, "request", fail)
            assert isinstance(ask(), OSError)
        assert ask() == Metadata({})


def test_another_broker_is_asked_after_a_while() -> None:
    """One that is cut off from the others would name the leaders of before for ever."""
    now = 0.0
    with FakeBroker(answering(metadata)) as first, FakeBroker(answering(metadata)) as second:
        with any_broker(f"{first.address},{second.address}", lambda: now) as ask:
            for seconds in (0.0, 9.0, 10.0, 19.0, 20.0):
                now = seconds
                assert ask() == Metadata({})
        assert [len(peer.requests) for peer in (*first.peers, *second.peers)] == [3, 2, 3]


def test_the_other_brokers_are_tried_if_one_cannot_be_reached() -> None:
    with FakeBroker(answering(metadata)) as broker, any_broker(f"127.0.0.1:{free_port()},{broker.address}") as ask:
        assert ask() == Metadata({})


def test_requests_to_a_broker_share_a_connection() -> None:
    with FakeBroker(answering(metadata)) as broker, brokers_of(broker.address) as (made, results):
        for number in range(3):
            made.send(outgoing(number))
            assert results.get(timeout=PATIENCE) == (outgoing(number), Metadata({}))
        assert len(broker.peers) == 1


def test_a_broker_is_connected_to_at_the_address_in_the_metadata() -> None:
    with FakeBroker(answering(metadata)) as second, FakeBroker(answering(lambda: metadata((7, second.port)))) as first:
        with brokers_of(first.address) as (made, results):
            made.send(outgoing(0))
            result(results)
            made.send(outgoing(1, 7))
            assert result(results) == Metadata({})
        assert (len(first.peers), len(second.peers)) == (1, 1)


def test_a_connection_that_the_broker_has_closed_is_replaced_without_an_error() -> None:
    """As after ``connections.max.idle.ms``."""
    with FakeBroker(answering(metadata, 1)) as broker, brokers_of(broker.address) as (made, results):
        for number in range(4):
            made.send(outgoing(number))
            assert result(results) == Metadata({})
            while broker.peers[-1].socket.fileno() >= 0:
                threading.Event().wait(0.001)
        assert len(broker.peers) == 4


def test_a_broker_without_an_address_is_a_lost_request() -> None:
    with brokers_of("127.0.0.1:1") as (made, results):
        made.send(outgoing(0, 3))
        found = result(results)
        assert isinstance(found, ConnectionFailed)
        assert str(found) == "broker 3 has no address"


def test_a_request_that_is_not_answered_is_lost_and_the_next_one_connects_again() -> None:
    lives = [0, 1000]

    def serve(peer: Peer) -> None:
        peer.opened()
        for _ in range(lives.pop(0)):
            peer.answer(metadata())
        if not peer.requests[1:]:
            peer.read()

    with FakeBroker(serve) as broker, brokers_of(broker.address) as (made, results):
        made.send(outgoing(0))
        assert isinstance(result(results), ConnectionFailed)
        made.send(outgoing(1))
        assert result(results) == Metadata({})


def test_a_malformed_answer_names_the_broker() -> None:
    def serve(peer: Peer) -> None:
        peer.opened()
        peer.send(peer.read().correlation_id.to_bytes(4, "big") + b"\xff")

    with FakeBroker(serve) as broker, brokers_of(broker.address) as (made, results):
        made.send(outgoing(0))
        found = result(results)
        assert isinstance(found, MalformedAnswer)
        assert broker.address in str(found)


def test_closing_ends_the_threads_and_interrupts_what_they_do() -> None:
    reached = threading.Event()

    def serve(peer: Peer) -> None:
        peer.opened().read()
        reached.set()
        peer.read()

    with FakeBroker(serve) as broker, brokers_of(broker.address) as (made, results):
        made.send(outgoing(0))
        assert reached.wait(PATIENCE)
        threads = [thread for thread in threading.enumerate() if thread.name == "kafka-broker-any"]
        made.close()
        for thread in threads:
            thread.join(PATIENCE)
            assert not thread.is_alive()
        assert results.empty()


@pytest.mark.parametrize(("idle", "connections"), [(539.0, 1), (540.0, 2)])
def test_a_connection_that_was_idle_for_long_is_replaced(idle: float, connections: int) -> None:
    """A firewall may have forgotten it: the next request would be lost, after its whole timeout."""
    now = 0.0
    with FakeBroker(answering(metadata)) as broker:
        cluster = answering(lambda: metadata((7, broker.port)))
        with FakeBroker(cluster) as first, any_broker(first.address, lambda: now) as ask:
            ask()
            for seconds in (0.0, 300.0, 300.0 + idle):
                now = seconds
                assert ask(7) == Metadata({})
        assert len(broker.peers) == connections


def test_closing_before_a_connection_is_made_leaves_no_socket_open(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = threading.Event()
    connection_close = Connection.close

    def close(connection: Connection) -> None:
        connection_close(connection)
        closed.set()

    monkeypatch.setattr(Connection, "close", close)
    settings = ConnectionSettings(addresses("127.0.0.1:1"))
    made: list[Brokers] = []

    def clock() -> float:  # of the thread, before it connects
        made[0].close()
        return 0.0

    made.append(Brokers(settings, None, "1.0", 1000, lambda _outgoing, _result: None, clock))
    made[0].send(outgoing(0))
    assert closed.wait(PATIENCE)


def test_a_broker_that_has_moved_is_connected_at_its_new_address() -> None:
    """What is at the old address now may be another broker, which refuses all batches."""
    with FakeBroker(answering(metadata)) as old, FakeBroker(answering(metadata)) as new:
        ports = chain((old.port,), repeat(new.port))
        cluster = answering(lambda: metadata((7, next(ports))))
        with FakeBroker(cluster) as first, brokers_of(first.address) as (made, results):
            for broker in (None, 7, 7, None, 7, 7):
                made.send(outgoing(0, broker))
                assert result(results) == Metadata({})
        assert [len(peer.requests) for peer in (*old.peers, *new.peers)] == [3, 3]


@pytest.mark.parametrize(
    ("answer_s", "replicas_ms", "waited_s"), [(20.0, 15_000, 20.0), (20.0, 30_000, 40.0), (20.0, 100, 20.0)]
)
def test_the_time_for_an_answer_is_not_a_sum(answer_s: float, replicas_ms: int, waited_s: float) -> None:
    """A broker that vanished would be noticed long after both limits."""
    waited: list[float | None] = []

    class Silent(Connection):
        def __init__(self) -> None:
            """Connect to nothing."""

        def call(self, *_request: object, timeout: float | None = None, **_more: object) -> NoReturn:
            waited.append(timeout)
            raise ConnectionFailed("it did not respond in time")

    settings = ConnectionSettings(addresses("127.0.0.1:9"), request_timeout=answer_s)
    brokers = Brokers(settings, None, "1.0", replicas_ms, lambda *_: None)
    for request in (Produce("", False, ()), GetMetadata(())):
        with pytest.raises(ConnectionFailed):
            brokers.exchange(Silent(), Outgoing(1, None, request))
    assert waited == [waited_s, answer_s]
