"""When a stream acknowledges transactions, and how another thread makes it do so."""

from __future__ import annotations

import logging
import queue
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from rowtide.connector.config import from_properties
from rowtide.connector.config.choices import Acknowledge
from rowtide.connector.protocol.replication.semi_sync import Acknowledgement
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.source.binlog_stream import BinlogStream
from rowtide.connector.source.connection.wakeable_socket import WakeableSocket
from tests.support.configurations import PROPERTIES
from tests.support.mysql.fake_server import FakeMySQL, Peer
from tests.support.network.tls_sockets import tls_sockets

pytestmark = pytest.mark.timeout(60)

OK, END = b"\x00\x00\x00\x02\x00\x00\x00", b"\xfe\x00\x00\x02\x00"
ROTATE, XID = 4, 16


def column(name: str) -> bytes:
    return b"\x03def\x00\x00\x00" + bytes([len(name)]) + name.encode() + b"\x00\x0c\x2d\x00\x04\x00\x00\x00\x03"


def event(kind: int, log_pos: int, body: bytes, *, acknowledge: bool = False) -> bytes:
    head = struct.pack("<IBIIIH", 0, kind, 1, 19 + len(body), log_pos, 0)
    return bytes([0, 0xEF, acknowledge]) + head + body


class SemiSyncServer:
    """A server that sends a semi-synchronous stream of what the test puts into it.

    Attributes:
        acknowledged: what the client has acknowledged.
    """

    def __init__(self, *names: str) -> None:
        self._names = names
        self._packets: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self.acknowledged: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def commit(self, log_pos: int) -> None:
        """Send the end of a transaction."""
        self._packets.put(event(XID, log_pos, bytes(8), acknowledge=True))

    def serve(self, peer: Peer) -> None:
        peer.log_in()
        peer.answer()  # until COM_REGISTER_SLAVE
        peer.send(OK)
        peer.read()
        rows = [bytes([len(name)]) + name.encode() + b"\x02ON" for name in self._names]
        for packet in (b"\x02", column("Variable_name"), column("Value"), END, *rows, END):
            peer.send(packet)
        if rows:
            assert b"rpl_semi_sync_replica" in peer.read()
            peer.send(OK)
        peer.read()
        threading.Thread(target=self._read, args=(peer,), daemon=True).start()
        rotate = event(ROTATE, 0, struct.pack("<Q", 4) + b"binlog.000007")
        peer.send(rotate if rows else rotate[:1] + rotate[3:])
        while packet := self._packets.get():
            peer.send(packet)

    def _read(self, peer: Peer) -> None:
        with suppress(OSError):
            while packet := peer.read():
                self.acknowledged.put(packet)


@contextmanager
def streaming(server: SemiSyncServer, when: Acknowledge) -> Iterator[tuple[BinlogStream, Iterator[list[bytes]]]]:
    with FakeMySQL(server.serve) as fake:
        config = from_properties({**PROPERTIES, "database.port": str(fake.port), "database.ssl.mode": "disabled"})
        stream = BinlogStream(config.database, SourceOffset("b.1", 4), mariadb=False, semi_sync=when)
        with closing(stream.events()) as pieces:
            yield stream, (piece for piece in pieces if piece)


@pytest.mark.parametrize("name", ["rpl_semi_sync_source_enabled", "rpl_semi_sync_master_enabled"])
def test_a_transaction_is_acknowledged_on_receipt(name: str) -> None:
    server = SemiSyncServer(name, "rpl_semi_sync_replica_enabled")
    with streaming(server, Acknowledge.RECEIVED) as (_, pieces):
        next(pieces)
        server.commit(500)
        assert next(pieces)[-1][4] == XID
        assert server.acknowledged.get() == Acknowledgement("binlog.000007", 500).payload()


def test_a_transaction_is_acknowledged_when_another_thread_says_so() -> None:
    server = SemiSyncServer("rpl_semi_sync_source_enabled")
    with streaming(server, Acknowledge.DELIVERED) as (stream, pieces):
        next(pieces)
        assert stream.requested_acknowledgement() is None
        server.commit(500)
        next(pieces)
        acknowledge = stream.requested_acknowledgement()
        assert acknowledge is not None
        assert stream.requested_acknowledgement() is None
        received = []

        def deliver() -> None:
            acknowledge()
            received.append(server.acknowledged.get())
            server.commit(600)

        threading.Thread(target=deliver).start()
        next(pieces)  # the reader waits for this event, which comes after the acknowledgement
        assert received == [Acknowledgement("binlog.000007", 500).payload()]


def test_a_stream_that_is_acknowledged_elsewhere_ends_when_it_is_closed() -> None:
    server = SemiSyncServer("rpl_semi_sync_source_enabled")
    with streaming(server, Acknowledge.DELIVERED) as (stream, pieces):
        next(pieces)
        threading.Timer(0.1, stream.close).start()
        assert list(pieces) == []


def test_a_server_without_semi_synchronous_replication_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING), streaming(SemiSyncServer(), Acknowledge.DELIVERED) as (_, pieces):
        next(pieces)
    assert "has no semi-synchronous replication" in caplog.text


@contextmanager
def connected() -> Iterator[tuple[socket.socket, socket.socket]]:
    server, client = socket.socketpair()
    with closing(server), closing(client):
        yield server, client


def test_another_thread_wakes_the_reader() -> None:
    with connected() as (server, client), closing(WakeableSocket(client, 3600)) as sock:
        thread = threading.Thread(target=sock.wake)
        thread.start()
        with pytest.raises(TimeoutError):
            sock.recv_into(memoryview(bytearray(9)))
        thread.join()
        buffer = bytearray(9)
        server.sendall(b"abc")
        assert sock.recv_into(memoryview(buffer)) == 3
        sock.settimeout(0)
        with pytest.raises(TimeoutError):
            sock.recv_into(memoryview(buffer))
        server.close()
        assert sock.recv_into(memoryview(buffer)) == 0
    sock.wake()  # a closed one needs no reader


def test_bytes_that_tls_has_decrypted_already_are_received_without_waiting(tmp_path: Path) -> None:
    with tls_sockets(tmp_path) as (server, client), closing(WakeableSocket(client, 3600)) as sock:
        server.sendall(b"abcdef")
        buffer = bytearray(2)
        for piece in (b"ab", b"cd", b"ef"):
            assert sock.recv_into(memoryview(buffer)) == 2
            assert buffer == piece
