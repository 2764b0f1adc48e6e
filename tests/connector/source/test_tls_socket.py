"""What is received through TLS, in which pieces, and how a connection ends."""

from __future__ import annotations

import os
import socket
import ssl
import threading
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rowtide_stack.servers.tls import TlsFiles

from rowtide.connector.source.connection.tls_socket import TlsSocket
from tests.support.network.tls_sockets import tls_sockets

_RECORD = 1 << 14


def received(sock: TlsSocket, size: int = 100) -> bytes:
    buffer = bytearray(size)
    return bytes(buffer[: sock.recv_into(memoryview(buffer))])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tls")


@pytest.mark.parametrize("size", [1, 5, 8, 100])
def test_all_records_that_have_arrived_are_received_at_once(folder: Path, size: int) -> None:
    with tls_sockets(folder) as (server, client):
        for record in (b"abc", b"def", b"gh"):
            server.sendall(record)
        assert received(client, size) == b"abcdefgh"[:size]


def test_what_has_no_room_comes_with_the_next_call(folder: Path) -> None:
    with tls_sockets(folder) as (server, client):
        server.sendall(b"abcdef")
        assert not client.pending()
        assert received(client, 4) == b"abcd"
        assert client.pending()
        assert received(client, 4) == b"ef"
        assert not client.pending()


def test_a_record_of_which_only_a_part_has_arrived_does_not_delay_the_others(folder: Path) -> None:
    with tls_sockets(folder) as (server, client):
        client.settimeout(3600)
        server.sendall(b"abc")
        with closing(socket.socket(fileno=server.detach())) as raw:
            raw.sendall(b"\x17\x03\x03\x00\x40half")  # a record of 64 bytes begins
            assert received(client) == b"abc"


@settings(max_examples=25, deadline=None)
@given(sizes=st.lists(st.integers(1, 3 * _RECORD), min_size=1, max_size=30), room=st.integers(1, 5 * _RECORD))
def test_every_byte_is_received_in_order(folder: Path, sizes: list[int], room: int) -> None:
    data = os.urandom(sum(sizes))
    with tls_sockets(folder) as (server, client):

        def send() -> None:
            at = 0
            for size in sizes:
                server.sendall(data[at : at + size])
                at += size
            server.shutdown(socket.SHUT_RDWR)

        thread = threading.Thread(target=send)
        thread.start()
        found = bytearray()
        while piece := received(client, room):
            found += piece
        thread.join()
    assert found == data


@pytest.mark.parametrize("size", [0, 1, 5 * _RECORD + 1])
def test_every_byte_is_sent(folder: Path, size: int) -> None:
    data = os.urandom(size)
    with tls_sockets(folder) as (server, client):

        def send() -> None:
            client.sendall(data)
            client.shutdown(socket.SHUT_RDWR)

        thread = threading.Thread(target=send)
        thread.start()
        found = bytearray()
        while piece := server.recv(1 << 20):
            found += piece
        thread.join()
    assert found == data


def test_a_message_of_tls_that_needs_an_answer_delays_nothing(folder: Path) -> None:
    with tls_sockets(folder) as (server, client):
        client.settimeout(10)
        assert server.version() == "TLSv1.3"  # which sends tickets after the handshake
        for _ in range(3):
            server.sendall(b"question")
            assert received(client) == b"question"
            client.sendall(b"answer")
            assert server.recv(100) == b"answer"


def test_the_end_of_tls_comes_after_the_last_bytes(folder: Path) -> None:
    with tls_sockets(folder) as (server, client):
        server.sendall(b"abc")
        server.setblocking(False)
        with pytest.raises(ssl.SSLWantReadError):  # it would wait for the client's answer
            server.unwrap()
        assert [received(client) for _ in range(3)] == [b"abc", b"", b""]


def test_the_end_of_the_connection_comes_after_the_last_bytes(folder: Path) -> None:
    with tls_sockets(folder) as (server, client):
        server.sendall(b"abc")
        server.shutdown(socket.SHUT_RDWR)
        assert [received(client) for _ in range(3)] == [b"abc", b"", b""]


def test_an_error_comes_after_the_last_bytes(folder: Path) -> None:
    with tls_sockets(folder) as (server, client):
        server.sendall(b"abc")
        with closing(socket.socket(fileno=server.detach())) as raw:
            raw.sendall(b"\x17\x03\x03\x00\x20" + bytes(32))  # a record that cannot be decrypted
            assert received(client) == b"abc"
            for _ in range(2):
                with pytest.raises(ssl.SSLError):
                    received(client)


def test_silence_ends_at_the_time_limit_and_can_be_waited_out(folder: Path) -> None:
    with tls_sockets(folder) as (server, client):
        client.settimeout(0.01)
        for _ in range(2):
            with pytest.raises(TimeoutError):
                received(client)
        server.sendall(b"abc")
        client.settimeout(10)
        assert received(client) == b"abc"


def test_another_thread_ends_a_call_that_waits(folder: Path) -> None:
    with tls_sockets(folder) as (_server, client):
        thread = threading.Thread(target=client.shutdown, args=(socket.SHUT_RDWR,))
        thread.start()
        assert received(client) == b""
        thread.join()


def test_a_certificate_that_is_not_trusted_is_refused(folder: Path) -> None:
    files = TlsFiles.make(folder)
    accepting = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    accepting.load_cert_chain(files.folder / "server.pem", files.folder / "server.key")
    alerts: list[ssl.SSLError] = []
    server, client = socket.socketpair()

    def accept() -> None:
        with pytest.raises(ssl.SSLError) as raised, closing(accepting.wrap_socket(server, server_side=True)) as tls:
            tls.recv(1)
        alerts.append(raised.value)

    with closing(server), closing(client):
        thread = threading.Thread(target=accept)
        thread.start()
        with pytest.raises(ssl.SSLCertVerificationError):
            TlsSocket(client, ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), "localhost")
        thread.join()
    assert "UNKNOWN_CA" in alerts[0].reason


def test_a_server_that_ends_the_handshake_is_reported() -> None:
    server, client = socket.socketpair()
    server.close()
    with closing(client), pytest.raises(OSError):  # noqa: PT011 - any error of the system or of TLS
        TlsSocket(client, ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), "localhost")


def test_a_buffered_reader_takes_its_bytes(folder: Path) -> None:
    with tls_sockets(folder) as (server, client), client.makefile("rb") as reader:
        server.sendall(b"abcdef")
        assert [reader.read(4), reader.read(2)] == [b"abcd", b"ef"]
        client.settimeout(0.01)
        with pytest.raises(TimeoutError, match="no answer for 0 s"):
            reader.read(1)
    with tls_sockets(folder) as (_server, client), pytest.raises(ValueError, match="'wb'"):
        client.makefile("wb")
