"""What a buffered reader gets of a socket."""

import io
import socket
from contextlib import closing

import pytest

from rowtide.connector.source.connection.socket_reader import SocketReader


def test_silence_is_checked_until_bytes_come() -> None:
    server, client = socket.socketpair()
    checks: list[float] = []

    def check(silent_s: float) -> None:
        checks.append(silent_s)
        if len(checks) == 2:
            server.sendall(b"abc")

    with closing(server), closing(client), io.BufferedReader(SocketReader(client, check)) as reader:
        client.settimeout(0.01)
        assert reader.read(3) == b"abc"
        assert checks == sorted(checks)
        assert len(checks) == 2


def test_what_the_check_raises_ends_the_read() -> None:
    def check(_silent_s: float) -> None:
        raise TimeoutError("silent")

    server, client = socket.socketpair()
    with closing(server), closing(client), io.BufferedReader(SocketReader(client, check)) as reader:
        client.settimeout(0.01)
        with pytest.raises(TimeoutError, match="silent"):
            reader.read1(100)
