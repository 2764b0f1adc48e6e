"""What a buffered reader gets of a socket."""

import io
import socket
import ssl
from contextlib import closing
from pathlib import Path

import pytest
from tls_sockets import tls_sockets

from rowtide.connector.source.connection.socket_reader import SocketReader


def reader(sock: socket.socket) -> io.BufferedReader:
    def check(_silent_s: float) -> None:
        raise TimeoutError("silent")

    return io.BufferedReader(SocketReader(sock, check))


@pytest.mark.parametrize("size", [1, 5, 8, 100])
def test_all_records_that_have_arrived_are_read_at_once(tmp_path: Path, size: int) -> None:
    with tls_sockets(tmp_path) as (server, client):
        client.settimeout(10)
        for record in (b"abc", b"def", b"gh"):
            server.sendall(record)
        assert reader(client).read1(size) == b"abcdefgh"[:size]


def test_what_a_read_has_no_room_for_comes_with_the_next_one(tmp_path: Path) -> None:
    with tls_sockets(tmp_path) as (server, client), closing(SocketReader(client, print)) as source:
        server.sendall(b"abcdef")
        buffer = bytearray(4)
        assert [(source.readinto(buffer), bytes(buffer)) for _ in range(2)] == [(4, b"abcd"), (2, b"efcd")]


def test_a_record_of_which_only_a_part_has_arrived_does_not_delay_the_others(tmp_path: Path) -> None:
    with tls_sockets(tmp_path) as (server, client):
        client.settimeout(3600)
        server.sendall(b"abc")
        with closing(socket.socket(fileno=server.detach())) as raw:
            raw.sendall(b"\x17\x03\x03\x00\x40half")  # a record of 64 bytes begins
            assert reader(client).read1(100) == b"abc"
            assert client.gettimeout() == 3600


def test_the_end_of_the_connection_comes_behind_the_last_bytes(tmp_path: Path) -> None:
    with tls_sockets(tmp_path) as (server, client):
        client.settimeout(10)
        server.sendall(b"abc")
        server.shutdown(socket.SHUT_RDWR)
        source = reader(client)
        assert [source.read1(100), source.read1(100)] == [b"abc", b""]


def test_an_error_comes_behind_the_last_bytes(tmp_path: Path) -> None:
    with tls_sockets(tmp_path) as (server, client):
        client.settimeout(10)
        server.sendall(b"abc")
        with closing(socket.socket(fileno=server.detach())) as raw:
            raw.sendall(b"\x17\x03\x03\x00\x20" + bytes(32))  # a record that cannot be decrypted
            source = reader(client)
            assert source.read1(100) == b"abc"
            with pytest.raises(ssl.SSLError):
                source.read1(100)


def test_silence_is_checked(tmp_path: Path) -> None:
    with tls_sockets(tmp_path) as (_, client):
        client.settimeout(0.01)
        with pytest.raises(TimeoutError, match="silent"):
            reader(client).read1(100)
