"""The proxy of the campaign, between a client and an echo server on the loopback interface."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator

import pytest

from tests.chaos.network import Direction, Link


def echo(listener: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=answer, args=(connection,), daemon=True).start()


def answer(connection: socket.socket) -> None:
    with connection, contextlib.suppress(OSError):
        while data := connection.recv(65536):
            connection.sendall(data)


@pytest.fixture
def link() -> Iterator[Link]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=echo, args=(listener,), daemon=True).start()
        with Link("127.0.0.1", listener.getsockname()[1]) as opened:
            yield opened
        listener.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def client(link: Link) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", link.port), timeout=10) as connection:
        yield connection


def exchange(connection: socket.socket, data: bytes) -> bytes:
    connection.sendall(data)
    return receive(connection, len(data))


def receive(connection: socket.socket, count: int) -> bytes:
    received = b""
    while len(received) < count and (data := connection.recv(count - len(received))):
        received += data
    return received


def silent(connection: socket.socket) -> bool:
    connection.settimeout(0.2)
    try:
        return connection.recv(1) is None
    except TimeoutError:
        return True
    finally:
        connection.settimeout(10)


def test_bytes_pass_in_both_directions(link: Link) -> None:
    with client(link) as one, client(link) as other:
        assert exchange(one, b"a" * 200_000) == b"a" * 200_000
        assert exchange(other, b"b") == b"b"


@pytest.mark.parametrize("way", Direction)
def test_a_connection_is_cut_behind_a_byte(link: Link, way: Direction) -> None:
    with client(link) as one, client(link) as other:
        link.cut_after(5, way, reset=False)
        assert exchange(one, b"abc") == b"abc"
        one.sendall(b"defgh")
        received = b""
        while data := one.recv(10):
            received += data
        assert received == (b"de" if way is Direction.TO_CLIENT else received[:2])
        assert link.cuts == 1
        assert exchange(other, b"x") == b"x"


def test_a_cut_can_be_a_reset(link: Link) -> None:
    with client(link) as one:
        link.cut_after(2, Direction.TO_SERVER, reset=True)
        one.sendall(b"abc")
        with pytest.raises(ConnectionResetError):
            receive(one, 10)


def test_all_connections_are_reset(link: Link) -> None:
    with client(link) as one:
        assert exchange(one, b"a") == b"a"
        link.reset()
        with pytest.raises(ConnectionResetError):
            one.recv(1)
    with client(link) as one:
        assert exchange(one, b"a") == b"a"


@pytest.mark.parametrize("way", Direction)
def test_frozen_bytes_arrive_later(link: Link, way: Direction) -> None:
    with client(link) as one:
        link.freeze(way)
        one.sendall(b"abc")
        assert silent(one)
        link.heal()
        assert receive(one, 3) == b"abc"


@pytest.mark.parametrize("way", Direction)
def test_a_lost_connection_stays_silent_and_new_ones_work(link: Link, way: Direction) -> None:
    with client(link) as one:
        assert exchange(one, b"a") == b"a"
        link.lose(way)
        one.sendall(b"b")
        assert silent(one)
        link.heal()
        assert silent(one)
        with client(link) as other:
            assert exchange(other, b"c") == b"c"


def test_a_slow_link_passes_everything_in_small_parts(link: Link) -> None:
    with client(link) as one:
        link.slow(100_000)
        one.sendall(b"a" * 20_000)
        assert len(one.recv(20_000)) < 20_000
        link.heal()
        assert exchange(one, b"b")


def test_connections_are_refused_until_the_link_is_healed(link: Link) -> None:
    with client(link) as one:
        link.refuse()
        with pytest.raises(ConnectionResetError):
            one.recv(1)
    with pytest.raises(ConnectionRefusedError), client(link):
        pass
    link.heal()
    with client(link) as one:
        assert exchange(one, b"a") == b"a"


def test_a_delayed_connection_is_silent_at_first(link: Link) -> None:
    link.delay_accept(0.5)
    with client(link) as one:
        one.sendall(b"a")
        assert silent(one)
        assert one.recv(1) == b"a"


def test_a_redirected_link_reaches_another_server(link: Link) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other, client(link) as one:
        assert exchange(one, b"a") == b"a"
        link.redirect("127.0.0.1", other.getsockname()[1])
        with pytest.raises(ConnectionResetError):
            one.recv(1)
        with client(link) as again:
            again.sendall(b"b")
            reached, _ = other.accept()
            with reached:
                assert reached.recv(1) == b"b"
