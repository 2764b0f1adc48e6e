"""The connections to brokers, each with a thread: every request gets a result."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from typing import NoReturn

import pytest
from fake_broker import FakeBroker, Peer
from rowtide_stack.ports import free_port

from rowtide.connector.delivery.kafka.native_producer import translation
from rowtide.connector.delivery.kafka.native_producer.brokers import Brokers, Result
from rowtide.connector.delivery.kafka.native_producer.connection.errors import ConnectionFailed
from rowtide.connector.delivery.kafka.native_producer.connection.settings import ConnectionSettings, addresses
from rowtide.connector.delivery.kafka.native_producer.machine.messages import GetMetadata, Metadata, Outgoing
from rowtide.connector.delivery.kafka.native_producer.wire.messages.cluster import MetadataAnswer

LOOK_UP = GetMetadata(())
NO_TOPICS = MetadataAnswer(throttle_time_ms=0, brokers=(), cluster_id="test", controller_id=1, topics=())


@contextmanager
def any_broker(servers: str, clock: Callable[[], float] = time.monotonic) -> Iterator[Callable[[], Result]]:
    """Sends a request to one of the brokers, and waits for the result."""
    results: SimpleQueue[Result] = SimpleQueue()
    settings = ConnectionSettings(addresses(servers), connect_timeout=20, request_timeout=20)
    brokers = Brokers(settings, None, "1.0", 1000, lambda _outgoing, result: results.put(result), clock)

    def ask() -> Result:
        brokers.send(Outgoing(1, None, LOOK_UP))
        return results.get(timeout=60)

    yield ask
    brokers.close()


def look_ups(peer: Peer) -> None:
    peer.opened()
    while True:
        peer.answer(NO_TOPICS)


def fail(*_: object) -> NoReturn:
    raise OSError(24, "Too many open files")


def test_without_file_descriptors_a_request_is_lost_and_may_be_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeBroker(look_ups) as broker, any_broker(broker.address) as ask:
        with monkeypatch.context() as patched:
            patched.setattr(socket, "socketpair", fail)
            lost = ask()
        assert isinstance(lost, ConnectionFailed)
        assert str(lost) == "no socket can be opened: Too many open files"
        assert ask() == Metadata({})


def test_an_unexpected_error_is_the_result_of_its_request(monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeBroker(look_ups) as broker, any_broker(broker.address) as ask:
        with monkeypatch.context() as patched:
            patched.setattr(translation, "request", fail)
            assert isinstance(ask(), OSError)
        assert ask() == Metadata({})


def test_another_broker_is_asked_after_a_while() -> None:
    """One that is cut off from the others would name the leaders of before for ever."""
    now = 0.0
    with FakeBroker(look_ups) as first, FakeBroker(look_ups) as second:
        with any_broker(f"{first.address},{second.address}", lambda: now) as ask:
            for seconds in (0.0, 59.0, 60.0, 119.0, 120.0):
                now = seconds
                assert ask() == Metadata({})
        assert [len(peer.requests) for peer in (*first.peers, *second.peers)] == [3, 2, 3]


def test_the_other_brokers_are_tried_if_one_cannot_be_reached() -> None:
    with FakeBroker(look_ups) as broker, any_broker(f"127.0.0.1:{free_port()},{broker.address}") as ask:
        assert ask() == Metadata({})
