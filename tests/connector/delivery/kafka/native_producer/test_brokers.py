"""The connections to brokers, each with a thread: every request gets a result."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from typing import NoReturn

import pytest
from fake_broker import FakeBroker, Peer

from rowtide.connector.delivery.kafka.native_producer import translation
from rowtide.connector.delivery.kafka.native_producer.brokers import Brokers, Result
from rowtide.connector.delivery.kafka.native_producer.connection.errors import ConnectionFailed
from rowtide.connector.delivery.kafka.native_producer.connection.settings import ConnectionSettings, addresses
from rowtide.connector.delivery.kafka.native_producer.machine.messages import GetMetadata, Metadata, Outgoing
from rowtide.connector.delivery.kafka.native_producer.wire.messages.cluster import MetadataAnswer

LOOK_UP = GetMetadata(())
NO_TOPICS = MetadataAnswer(throttle_time_ms=0, brokers=(), cluster_id="test", controller_id=1, topics=())


@contextmanager
def any_broker(servers: str) -> Iterator[Callable[[], Result]]:
    """Sends a request to one of the brokers, and waits for the result."""
    results: SimpleQueue[Result] = SimpleQueue()
    settings = ConnectionSettings(addresses(servers), connect_timeout=20, request_timeout=20)
    brokers = Brokers(settings, None, "1.0", 1000, lambda _outgoing, result: results.put(result))

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
