"""Connections to a broker on this host that answers, is slow, is silent, or breaks off."""

from __future__ import annotations

import random
import secrets
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rowtide_stack.ports import free_port
from rowtide_stack.servers.tls import TlsFiles

from rowtide.connector.delivery.kafka.tls import tls_context
from rowtide.connector.kafka_producer.connection.connection import Connection
from rowtide.connector.kafka_producer.connection.errors import ConnectionFailed, Interrupted
from rowtide.connector.kafka_producer.connection.settings import (
    Address,
    ConnectionSettings,
    TlsSettings,
    addresses,
)
from rowtide.connector.kafka_producer.wire.errors import (
    AuthenticationFailed,
    MalformedAnswer,
    NotEncodable,
    UnsupportedBroker,
)
from rowtide.connector.kafka_producer.wire.frames import encode_request
from rowtide.connector.kafka_producer.wire.messages.cluster import MetadataAnswer, MetadataRequest
from rowtide.connector.kafka_producer.wire.messages.opening import (
    ApiRange,
    ApiVersionsAnswer,
    SaslAuthenticateAnswer,
    SaslHandshakeAnswer,
)
from rowtide.connector.kafka_producer.wire.messages.produce import (
    PartitionData,
    ProduceAnswer,
    ProduceRequest,
    TopicData,
)
from rowtide.connector.kafka_producer.wire.messages.transactions import InitProducerIdRequest
from rowtide.connector.kafka_producer.wire.sasl import Password
from rowtide.connector.kafka_producer.wire.schema import Request
from tests.support.kafka.fake_broker import VERSIONS, FakeBroker, Peer
from tests.support.kafka.wire import answer_bytes

REQUEST = MetadataRequest(topics=())
ANSWER = MetadataAnswer(throttle_time_ms=0, brokers=(), cluster_id="test", controller_id=1, topics=())
SETTINGS = ConnectionSettings(bootstrap=(), client_id="rowtide", connect_timeout=20, request_timeout=20)
HANDSHAKE = SaslHandshakeAnswer(error=0, mechanisms=("PLAIN",))
PASSWORD = Password("PLAIN", "alice", "secret")


def accepted(lifetime_ms: int = 0) -> SaslAuthenticateAnswer:
    return SaslAuthenticateAnswer(error=0, error_message=None, auth_bytes=b"", session_lifetime_ms=lifetime_ms)


def produce(*batches: bytes) -> ProduceRequest:
    partitions = tuple(PartitionData(index=index, records=batch) for index, batch in enumerate(batches))
    return ProduceRequest(timeout_ms=1, topic_data=(TopicData(name="orders", partition_data=partitions),))


@contextmanager
def connected(
    serve: Callable[[Peer], object], settings: ConnectionSettings = SETTINGS, clock: Callable[[], float] | None = None
) -> Iterator[Connection]:
    """An open connection to a broker."""
    with FakeBroker(serve) as broker:
        more = {} if clock is None else {"clock": clock}
        connection = Connection(addresses(broker.address), settings, None, "1.0", **more)
        connection.open()
        yield connection
        connection.close()


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> TlsFiles:
    return TlsFiles.make(tmp_path_factory.mktemp("tls"))


def server_context(files: TlsFiles) -> ssl.SSLContext:
    """The context of a broker that requests a certificate of the client."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.folder / "server.pem", files.folder / "server.key")
    context.load_verify_locations(files.ca)
    context.verify_mode = ssl.CERT_OPTIONAL
    return context


def forever(answer: Any) -> Callable[[Peer], None]:
    """A broker that gives the same answer to all requests."""

    def serve(peer: Peer) -> None:
        peer.opened()
        while True:
            peer.answer(answer)

    return serve


def test_a_request_and_its_answer() -> None:
    with connected(forever(ANSWER)) as connection:
        for _ in range(3):
            assert connection.call(REQUEST) == ANSWER


@pytest.mark.parametrize("encrypted", [False, True], ids=["plain", "TLS"])
@pytest.mark.parametrize("ends_by", ["close", "reset", "stray bytes"])
def test_the_end_of_a_connection_between_two_requests(files: TlsFiles, ends_by: str, *, encrypted: bool) -> None:
    end, ended = threading.Event(), threading.Event()

    def serve(peer: Peer) -> None:
        peer.opened().answer(ANSWER)
        end.wait()
        if ends_by == "stray bytes":
            peer.socket.sendall(b"?")
            ended.wait()
        elif ends_by == "reset":
            peer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    context = tls_context(TlsSettings(ca_location=str(files.ca))) if encrypted else None
    with FakeBroker(serve, server_context(files) if encrypted else None) as broker:
        connection = Connection(addresses(broker.address), SETTINGS, context, "1.0")
        assert connection.is_over()
        connection.open()
        assert connection.call(REQUEST) == ANSWER
        assert not connection.is_over()
        end.set()
        while not connection.is_over():
            time.sleep(0.001)
        ended.set()
        connection.close()
        assert connection.is_over()


def test_the_limit_of_a_version() -> None:
    found = []

    def serve(peer: Peer) -> None:
        peer.opened()
        while True:
            sent = peer.read()
            found.append(sent.version)
            peer.send(answer_bytes(sent, ProduceAnswer(responses=(), throttle_time_ms=0)))

    with connected(serve) as connection:
        connection.call(produce(), at_most=11)
        connection.call(produce())
    assert found == [11, 13]


@pytest.mark.parametrize("count", [1, 3, 200])
@pytest.mark.parametrize("encrypted", [False, True])
def test_large_requests(files: TlsFiles, count: int, *, encrypted: bool) -> None:
    batches = [random.Random(index).randbytes(2_000_000 // count) for index in range(count)]

    def serve(peer: Peer) -> None:
        peer.opened()
        peer.answer(ProduceAnswer(responses=(), throttle_time_ms=0))

    context = tls_context(TlsSettings(ca_location=str(files.ca))) if encrypted else None
    with FakeBroker(serve, server_context(files) if encrypted else None) as broker:
        settings = replace(SETTINGS, send_buffer=100_000)  # so that no system call takes a whole batch
        connection = Connection(addresses(broker.address), settings, context, "1.0")
        connection.open()
        assert connection.call(produce(*batches), at_most=12).responses == ()
        connection.close()
        _, parts = encode_request(produce(*batches), 12, 2, "rowtide")
        assert broker.peers[0].body == b"".join(parts)[4:]


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_an_answer_in_pieces(size: int) -> None:
    def serve(peer: Peer) -> None:
        frame = answer_bytes(peer.opened().read(), replace(ANSWER, cluster_id="c" * 3000))
        content = len(frame).to_bytes(4, "big") + frame
        for at in range(0, len(content), size):
            peer.socket.sendall(content[at : at + size])

    with connected(serve) as connection:
        assert connection.call(REQUEST).cluster_id == "c" * 3000


def test_the_first_address_that_can_be_reached() -> None:
    with FakeBroker(forever(ANSWER)) as broker:
        bootstrap = addresses(f"127.0.0.1:{free_port()},{broker.address}")
        connection = Connection(bootstrap, SETTINGS, None, "1.0")
        connection.open()
        assert connection.address == bootstrap[1]
        assert connection.call(REQUEST) == ANSWER
        connection.close()


def test_no_address_can_be_reached() -> None:
    first, second = (Address("127.0.0.1", free_port()) for _ in range(2))
    connection = Connection([first, second], SETTINGS, None, "1.0")
    refused = "it cannot be reached: Connection refused"
    with pytest.raises(ConnectionFailed, match=f"broker {first}: {refused}; broker {second}: {refused}"):
        connection.open()


@pytest.mark.parametrize("host", ["no-such-host.invalid", "x" * 70])
def test_a_host_that_does_not_exist(host: str) -> None:
    connection = Connection([Address(host, 1)], SETTINGS, None, "1.0")
    with pytest.raises(ConnectionFailed, match="its host name cannot be looked up"):
        connection.open()


@pytest.mark.parametrize(
    "content", [b"", b"HTTP/1.1 503 Service Unavailable\r\n\r\n", b"\x15\x03\x03\0\2", b"\0\0\0\5\0"]
)
def test_something_else_than_kafka(content: bytes) -> None:
    with FakeBroker(lambda peer: (peer.read(), peer.socket.sendall(content))) as broker:
        connection = Connection(addresses(broker.address), SETTINGS, None, "1.0")
        with pytest.raises(ConnectionFailed, match=f"broker {broker.address}: .*check that security.protocol"):
            connection.open()


def test_a_broker_that_breaks_off() -> None:
    def serve(peer: Peer) -> None:
        peer.send(answer_bytes(peer.opened().read(), ANSWER)[:-3])

    with connected(lambda peer: peer.opened().read()) as connection:
        with pytest.raises(ConnectionFailed, match=r"broker 127\.0\.0\.1:\d+: it closed the connection"):
            connection.call(REQUEST)
        with pytest.raises(ConnectionFailed, match="it is not connected"):
            connection.call(REQUEST)
    with connected(serve) as connection, pytest.raises(MalformedAnswer, match="the response to Metadata request 2 of"):
        connection.call(REQUEST)


def test_an_answer_to_another_request() -> None:
    def serve(peer: Peer) -> None:
        sent = peer.opened().read()
        peer.send(answer_bytes(sent._replace(correlation_id=99), ANSWER))
        peer.answer(ANSWER)

    with connected(serve) as connection:
        with pytest.raises(MalformedAnswer, match=r"broker 127\.0\.0\.1:\d+: the response to .* the correlation id 99"):
            connection.call(REQUEST)
        with pytest.raises(ConnectionFailed, match="it is not connected"):  # a later answer could be read as this one
            connection.call(REQUEST)


def test_an_answer_that_is_too_long() -> None:
    answer, settings = replace(ANSWER, cluster_id="c" * 9000), replace(SETTINGS, longest_answer=9000)
    problem = r"the limit \(receive\.message\.max\.bytes\) is 9000"
    with connected(forever(answer), settings) as connection, pytest.raises(MalformedAnswer, match=problem):
        connection.call(REQUEST)


def silent(peer: Peer) -> None:
    """A broker that reads, and does not answer."""
    while True:
        peer.read()


def test_a_broker_that_does_not_answer() -> None:
    settings = replace(SETTINGS, connect_timeout=0.05)
    with FakeBroker(silent) as broker:
        connection = Connection(addresses(broker.address), settings, None, "1.0")
        with pytest.raises(ConnectionFailed, match="it did not respond in time"):
            connection.open()
    for timeout, default in ((0.05, 20), (None, 0.05)):
        settings = replace(SETTINGS, request_timeout=default)
        with (
            connected(lambda peer: silent(peer.opened()), settings) as connection,
            pytest.raises(ConnectionFailed, match="it did not respond in time"),
        ):
            connection.call(REQUEST, timeout=timeout)


@pytest.mark.parametrize(
    ("request_", "kind", "problem"),
    [
        (REQUEST, UnsupportedBroker, "the broker does not support the API Metadata"),
        (
            InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1, producer_id=1),
            NotEncodable,
            r"InitProducerIdRequest\.producer_id does not exist in this version",
        ),
    ],
)
def test_requests_that_cannot_be_sent(request_: Request[Any], kind: type[Exception], problem: str) -> None:
    def serve(peer: Peer) -> None:
        peer.answer(ApiVersionsAnswer(error=0, api_keys=(ApiRange(api_key=22, min_version=0, max_version=1),)))
        peer.read()

    with connected(serve) as connection, pytest.raises(kind, match=rf"broker 127\.0\.0\.1:\d+: .*{problem}"):
        connection.call(request_)


def interrupted(connection: Connection, act: Callable[[], object], when: threading.Event) -> None:
    """Interrupt what another thread does."""

    def interrupt() -> None:
        when.wait()
        connection.interrupt()

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(Interrupted):
        act()
    thread.join()


def test_interrupt_while_waiting_for_an_answer() -> None:
    came = threading.Event()

    def serve(peer: Peer) -> None:
        peer.opened().read()
        came.set()
        peer.read()

    with connected(serve) as connection:
        interrupted(connection, lambda: connection.call(REQUEST), came)


def test_interrupt_while_sending() -> None:
    came, end = threading.Event(), threading.Event()

    def serve(peer: Peer) -> None:
        peer.opened().socket.recv(1)
        came.set()
        end.wait()

    with connected(serve) as connection:
        interrupted(connection, lambda: connection.call(produce(bytes(50_000_000))), came)
        end.set()


@pytest.mark.parametrize("encrypted", [False, True])
def test_interrupt_while_opening(*, encrypted: bool) -> None:
    came, end = threading.Event(), threading.Event()

    def serve(peer: Peer) -> None:
        peer.socket.recv(1)
        came.set()
        end.wait()

    context = tls_context(TlsSettings(verify=False)) if encrypted else None
    with FakeBroker(serve) as broker:
        connection = Connection(addresses(broker.address), SETTINGS, context, "1.0")
        interrupted(connection, connection.open, came)
        end.set()


@contextmanager
def unresponsive() -> Iterator[Address]:
    """The address of a server that accepts no connections: its queue of new ones is full."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener, socket.socket() as first:
        place = listener.getsockname()
        first.connect(place)
        yield Address(*place)


def test_a_connection_that_is_not_accepted() -> None:
    with unresponsive() as address:
        connection = Connection([address], replace(SETTINGS, connect_timeout=0.05), None, "1.0")
        with pytest.raises(ConnectionFailed, match="it did not respond in time"):
            connection.open()


def test_interrupt_while_connecting() -> None:
    now = threading.Event()
    now.set()
    with unresponsive() as address:
        connection = Connection([address], SETTINGS, None, "1.0")
        interrupted(connection, connection.open, now)


def test_interrupt_before() -> None:
    with FakeBroker(forever(ANSWER)) as broker:
        connection = Connection(addresses(broker.address), SETTINGS, None, "1.0")
        connection.interrupt()
        with pytest.raises(Interrupted):
            connection.open()
        connection.interrupt()  # of a closed one has no effect


def test_a_login() -> None:
    def serve(peer: Peer) -> None:
        peer.opened()
        peer.answer(HANDSHAKE)
        peer.answer(accepted())
        peer.answer(ANSWER)

    with connected(serve, replace(SETTINGS, credentials=PASSWORD)) as connection:
        assert connection.call(REQUEST) == ANSWER


def test_a_refused_login() -> None:
    refused = SaslAuthenticateAnswer(error=58, error_message="no such user", auth_bytes=b"")

    def serve(peer: Peer) -> None:
        peer.opened()
        peer.answer(HANDSHAKE)
        peer.answer(refused)

    with FakeBroker(serve) as broker:
        bootstrap = addresses(f"{broker.address},{broker.address}")
        connection = Connection(bootstrap, replace(SETTINGS, credentials=PASSWORD), None, "1.0")
        with pytest.raises(AuthenticationFailed, match=f"broker {broker.address}: .* no such user"):
            connection.open()
        assert (
            len(broker.peers) == 1
        )  # the next broker would refuse it too, and accounts are locked after some attempts


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_an_error_in_a_login_closes_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_size: int) -> str:
        raise OSError("no random numbers")

    monkeypatch.setattr(secrets, "token_urlsafe", broken)
    with FakeBroker(Peer.opened) as broker:
        connection = Connection(addresses(broker.address), replace(SETTINGS, credentials=PASSWORD), None, "1.0")
        with pytest.raises(OSError, match="no random numbers"):
            connection.open()
        with pytest.raises(ConnectionFailed, match="it is not connected"):
            connection.call(REQUEST)


def test_a_new_login_before_the_session_ends() -> None:
    clock, peers = Clock(), []

    def serve(peer: Peer) -> None:
        peers.append(peer)
        peer.opened()
        for lifetime_ms in (10_000, 0):
            peer.answer(HANDSHAKE)
            peer.answer(accepted(lifetime_ms))
            peer.answer(ANSWER)
            if lifetime_ms:
                peer.answer(ANSWER)
        peer.answer(ANSWER)

    with connected(serve, replace(SETTINGS, credentials=PASSWORD), clock) as connection:
        for later in (0, 8, 0.6, 1e9):  # in all more than 85 % of ten seconds; then without a limit
            clock.now += later
            assert connection.call(REQUEST) == ANSWER
        login = ["SaslHandshake", "SaslAuthenticate"]
        assert peers[0].requests == ["ApiVersions", *login, "Metadata", "Metadata", *login, "Metadata", "Metadata"]


def identity(files: TlsFiles) -> TlsSettings:
    return TlsSettings(
        ca_location=str(files.ca),
        certificate_location=str(files.client_certificate),
        key_location=str(files.client_key),
    )


def test_tls(files: TlsFiles) -> None:
    names: list[Any] = []

    def serve(peer: Peer) -> None:
        assert isinstance(peer.socket, ssl.SSLSocket)
        names.append(peer.socket.getpeercert())
        peer.opened()
        peer.answer(ProduceAnswer(responses=(), throttle_time_ms=0))
        peer.answer(replace(ANSWER, cluster_id="c" * 30_000))

    with FakeBroker(serve, server_context(files)) as broker:
        connection = Connection(addresses(broker.address), SETTINGS, tls_context(identity(files)), "1.0")
        connection.open()
        assert connection.call(produce()).responses == ()
        assert connection.call(REQUEST).cluster_id == "c" * 30_000
        connection.close()
    assert names[0]["subject"] == ((("commonName", "client"),),)


def test_a_broker_that_is_not_trusted(files: TlsFiles, tmp_path: Path) -> None:
    other = TlsFiles.make(tmp_path / "other")
    with FakeBroker(forever(ANSWER), server_context(files)) as broker:
        for tls in (TlsSettings(), TlsSettings(ca_location=str(other.ca))):
            connection = Connection(addresses(broker.address), SETTINGS, tls_context(tls), "1.0")
            with pytest.raises(ConnectionFailed, match="its certificate cannot be verified: "):
                connection.open()


@pytest.mark.parametrize(("verify", "verify_host"), [(True, True), (True, False), (False, True)])
def test_the_name_of_the_host(files: TlsFiles, *, verify: bool, verify_host: bool) -> None:
    tls = TlsSettings(ca_location=str(files.ca), verify=verify, verify_host=verify_host)
    with FakeBroker(forever(ANSWER), server_context(files)) as broker:
        # another way to write 127.0.0.1, which the certificate does not have
        connection = Connection([Address("127.1", broker.port)], SETTINGS, tls_context(tls), "1.0")
        if verify and verify_host:
            with pytest.raises(ConnectionFailed, match=r"certificate is not valid for '127\.1'"):
                connection.open()
        else:
            connection.open()
            assert connection.call(REQUEST) == ANSWER
            connection.close()


def test_a_broker_without_tls(files: TlsFiles) -> None:
    with FakeBroker(lambda peer: peer.socket.recv(1)) as broker:
        connection = Connection(addresses(broker.address), SETTINGS, tls_context(identity(files)), "1.0")
        with pytest.raises(ConnectionFailed, match="the TLS handshake failed"):
            connection.open()


def test_versions_of_an_open_connection() -> None:
    with connected(forever(ANSWER)) as connection:
        assert connection.versions.ranges[VERSIONS.api_keys[0].api_key] == (3, 13)
    with pytest.raises(ConnectionFailed, match="it is not connected"):
        _ = connection.versions
