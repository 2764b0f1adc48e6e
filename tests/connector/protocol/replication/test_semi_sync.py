"""Semi-synchronous streams: the header of packets, and the positions that are acknowledged."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from rowtide.connector.errors import RemoteProtocolError
from rowtide.connector.protocol.decoder import EventDecoder
from rowtide.connector.protocol.header import ARTIFICIAL, EventType
from rowtide.connector.protocol.replication.request import StreamRequest
from rowtide.connector.protocol.replication.semi_sync import Acknowledgement, SemiSyncStream
from rowtide.connector.protocol.replication.session import ReplicationSession, State, packet
from tests.support.mysql.replication_recorder import REPLICA, Recording

RECORDED = Path(__file__).parent / "recorded_semi_sync"


def event(kind: EventType, log_pos: int, body: bytes = b"") -> bytes:
    return struct.pack("<IBIIIH", 0, kind, 1, 19 + len(body), log_pos, 0) + body


def rotate(file: str, position: int = 4) -> bytes:
    return b"\x00\xef\x00" + event(EventType.ROTATE, 0, struct.pack("<Q", position) + file.encode())


def asked(log_pos: int, kind: EventType = EventType.XID, size: int = 8) -> bytes:
    return b"\x00\xef\x01" + event(kind, log_pos, bytes(size))


def test_the_acknowledgement_names_the_end_of_the_event_in_the_current_file() -> None:
    stream = SemiSyncStream()
    stream.event(rotate("binlog.000041", 900))
    assert stream.requested is None
    assert stream.event(asked(1000)) == asked(1000)[3:]
    assert stream.requested == ("binlog.000041", 1000)
    stream.event(rotate("binlog.000042"))
    stream.event(asked(500))
    assert stream.requested == ("binlog.000042", 500)


def test_positions_beyond_4_gib_are_counted_on() -> None:
    stream = SemiSyncStream()
    stream.event(rotate("binlog.000041"))
    for log_pos in (2**31, 2**32 - 10, 70, 2**31):
        stream.event(asked(log_pos))
    assert stream.requested == ("binlog.000041", 2**32 + 2**31)


def test_events_without_a_position_leave_it() -> None:
    """MariaDB 11.4 sends the events within a transaction without one."""
    stream = SemiSyncStream()
    stream.event(rotate("binlog.000041"))
    stream.event(b"\x00\xef\x00" + event(EventType.MARIADB_GTID, 640))
    stream.event(b"\x00\xef\x00" + event(EventType.TABLE_MAP, 0, bytes(22)))
    stream.event(asked(808))
    assert stream.requested == ("binlog.000041", 808)


def test_a_position_that_goes_back_does_not_acknowledge_what_is_ahead() -> None:
    stream = SemiSyncStream()
    stream.event(rotate("binlog.000041", 5000))
    stream.event(b"\x00\xef\x00" + event(EventType.QUERY, 4000))
    stream.event(asked(4000))
    assert stream.requested == ("binlog.000041", 5000)
    artificial = struct.pack("<IBIIIH", 0, EventType.MARIADB_GTID_LIST, 1, 23, 9000, ARTIFICIAL) + bytes(4)
    stream.event(b"\x00\xef\x00" + artificial)
    stream.event(asked(6000))
    assert stream.requested == ("binlog.000041", 6000)


def heartbeat(log_pos: int) -> bytes:
    return b"\x00\xef\x00" + event(EventType.HEARTBEAT, log_pos, b"binlog.000041")


def test_a_heartbeat_behind_transactions_that_are_not_sent_is_acknowledged_once() -> None:
    stream = SemiSyncStream()
    stream.event(rotate("binlog.000041"))
    stream.event(heartbeat(700))
    assert stream.requested == ("binlog.000041", 700)
    stream.requested = None
    stream.event(heartbeat(700))
    assert stream.requested is None
    stream.event(asked(800))
    stream.requested = None
    stream.event(heartbeat(800))
    assert stream.requested is None, "it is acknowledged, or will be"


@pytest.mark.parametrize("payload", [b"\x00" + event(EventType.XID, 100, bytes(8)), b"\x00\xef\x01" + bytes(18)])
def test_a_packet_without_the_header_is_refused(payload: bytes) -> None:
    with pytest.raises(RemoteProtocolError, match="lacks the header of semi-synchronous replication"):
        SemiSyncStream().event(payload)


def test_the_packet_of_an_acknowledgement() -> None:
    assert Acknowledgement("binlog.000041", 0x0102).payload().hex() == "ef0201000000000000" + b"binlog.000041".hex()


def recorded(path: Path) -> tuple[list[bytes], list[bytes]]:
    """Replay a recording; returns the events and the acknowledgements that the client sent."""
    recording = Recording.read(path)
    session = ReplicationSession(recording.request)
    out, found, acknowledgements = session.start(), [], []
    for way, data in recording.pieces:
        if way == ">":
            assert out == data
            if data[4] == 0xEF:
                acknowledgements.append(data)
            out = b""
            continue
        for byte in data:
            space = session.space()
            space[0] = byte
            space.release()
            found += session.received(1)
        if requested := session.requested_acknowledgement():
            session.acknowledge(requested)
        out += session.to_send()
    return found, acknowledgements


@pytest.mark.parametrize("path", sorted(RECORDED.glob("*.txt")), ids=lambda path: path.stem)
def test_a_recorded_session_is_reproduced_byte_by_byte(path: Path) -> None:
    found, acknowledgements = recorded(path)
    decoder = EventDecoder()
    names = [decoder.decode(one).header.type_name for one in found]
    assert names.count("XID") == 2
    assert len(acknowledgements) == 4  # CREATE DATABASE, CREATE TABLE, and two transactions


def test_both_servers_are_recorded() -> None:
    assert [path.stem for path in sorted(RECORDED.glob("*.txt"))] == ["mariadb", "mysql"]


def test_a_server_without_the_plugin_sends_an_ordinary_stream() -> None:
    request = StreamRequest(REPLICA, "b.1", semi_sync=True)
    session = ReplicationSession(request)
    session.start()
    ok, denied = b"\x00\x00\x00\x02\x00\x00\x00", b"\xff\xcb\x04#42000Access denied"
    for payload in (ok, ok, ok, denied, ok, denied):
        data = packet(payload)
        space = session.space()
        space[: len(data)] = data
        space.release()
        session.received(len(data))
    assert session.state is State.STREAMING
    assert not session.semi_sync
    assert session.to_send()[-len(request.dump()) :] == request.dump()
    assert session.requested_acknowledgement() is None
