"""Replication sessions, replayed from recordings of real servers, and the transitions between their states."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from rowtide.connector.errors import LocalProtocolError, ProtocolError, RemoteProtocolError
from rowtide.connector.protocol.decoder import EventDecoder
from rowtide.connector.protocol.events.classes import Event
from rowtide.connector.protocol.replication.commands import binlog_dump
from rowtide.connector.protocol.replication.request import StreamRequest
from rowtide.connector.protocol.replication.semi_sync import Acknowledgement
from rowtide.connector.protocol.replication.session import (
    TRANSITIONS,
    Received,
    ReplicationSession,
    Sent,
    ServerError,
    ServerIdInUse,
    State,
    StreamEnded,
    packet,
)
from tests.support.mysql.replication_recorder import REPLICA, Recording

RECORDINGS = sorted((Path(__file__).parent / "recorded").glob("*.txt"))
OK, END = b"\x00\x00\x00\x02\x00\x00\x00", b"\xfe\x00\x00\x02\x00"
DENIED = b"\xff" + (1227).to_bytes(2, "little") + b"#42000Access denied"
SYNTAX = b"\xff" + (1064).to_bytes(2, "little") + b"#42000You have an error in your SQL syntax"


def fed(session: ReplicationSession, data: bytes) -> list[bytes]:
    """Give bytes to a session, and return the events."""
    found: list[bytes] = []
    while data:
        space = session.space()
        count = min(len(space), len(data))
        space[:count] = data[:count]
        space.release()
        found += session.received(count)
        data = data[count:]
    return found


def replayed(recording: Recording, *, piece: int | None = None) -> tuple[list[bytes], ProtocolError | None, State]:
    """Replay the server's side, and compare the client's; returns the events, the end, and the last state."""
    session = ReplicationSession(recording.request)
    found: list[bytes] = []
    out = session.start()
    try:
        for way, data in recording.pieces:
            if way == ">":
                assert out == data
                out = b""
            else:
                size = piece or len(data)
                for begin in range(0, len(data), size):
                    found += fed(session, data[begin : begin + size])
                    out += session.to_send()
        session.received(0)
    except (ServerError, StreamEnded) as error:
        return found, error, session.state
    return found, None, session.state


def decoded(packets: list[bytes]) -> Iterator[Event]:
    decoder = EventDecoder()
    return map(decoder.decode, packets)


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
@pytest.mark.parametrize("piece", [None, 1, 7])
def test_a_recorded_session_is_reproduced_byte_by_byte(path: Path, piece: int | None) -> None:
    recording = Recording.read(path)
    found, end, state = replayed(recording, piece=piece)
    if path.stem.endswith("refused"):
        assert isinstance(end, ServerError)
        assert end.code == 1236
        assert state is State.REFUSED
        assert len(found) <= 1  # MariaDB sends a ROTATE first
    else:
        assert isinstance(end, StreamEnded)
        assert state is State.ENDED
        names = [event.header.type_name for event in decoded(found)]
        assert names[:2] == ["ROTATE", "FORMAT_DESCRIPTION"]
        assert sum(name.startswith("WRITE_ROWS") for name in names) == (0 if "tagged" in path.stem else 2)
        assert "\n".join(names).count("ANNOTATE") == (2 if recording.request.mariadb else 0)


def test_the_recordings_cover_both_servers_and_all_starts() -> None:
    assert [path.stem for path in RECORDINGS] == [
        "mariadb_file", "mariadb_gtids", "mariadb_refused",
        "mysql_file", "mysql_gtids", "mysql_refused", "mysql_tagged_gtids",
    ]  # fmt: skip


def answered(session: ReplicationSession, *payloads: bytes) -> list[bytes]:
    return fed(session, b"".join(map(packet, payloads)))


def at(state: State) -> ReplicationSession:
    """A session in a state, reached by the packets of a server."""
    session = ReplicationSession(StreamRequest(REPLICA, "b.1"))
    if state is State.READY:
        return session
    session.start()
    if state is State.ANSWERING:
        return session
    answered(session, OK, OK, OK)
    steps = {
        State.QUERYING: [],
        State.COLUMNS: [b"\x05"],
        State.ROWS: [b"\x05", *COLUMNS, END],
        State.STREAMING: [DENIED, OK],
        State.ENDED: [DENIED, OK, END],
        State.REFUSED: [DENIED, DENIED],
    }[state]
    with contextlib.suppress(ServerError, StreamEnded):
        answered(session, *steps)
    assert session.state is state
    return session


def column(name: str) -> bytes:
    return b"\x03def\x00\x00\x00" + bytes([len(name)]) + name.encode() + b"\x00\x0c\x2d\x00\x04\x00\x00\x00\x03"


COLUMNS = [column(name) for name in ("Server_Id", "Host", "Port", "Source_Id", "Replica_UUID")]


def row(*values: str | None) -> bytes:
    return b"".join(b"\xfb" if value is None else bytes([len(value)]) + value.encode() for value in values)


PACKETS = {Received.OK: OK, Received.END: END, Received.ERROR: DENIED, Received.DATA: COLUMNS[0]}


@pytest.mark.parametrize(("state", "kind"), [*product(State, Received)], ids=lambda part: part.name)
def test_each_packet_leads_to_the_state_of_the_table_or_is_refused(state: State, kind: Received) -> None:
    session = at(state)
    following = TRANSITIONS[state].get(kind)
    if following is None:
        error = StreamEnded if state is State.ENDED else RemoteProtocolError
        with pytest.raises(error, match=rf"begins with {PACKETS[kind][:8].hex()}|ended the replication stream"):
            answered(session, PACKETS[kind])
        assert session.state is state
        return
    payload = PACKETS[kind]
    if state is State.STREAMING and kind is Received.OK:
        payload = bytes(30)
    elif state is State.ROWS and kind in (Received.OK, Received.DATA):
        payload = row("" if kind is Received.OK else "7", "host", "0", "1", None)
    if following in (State.REFUSED, State.ENDED):
        with pytest.raises((ServerError, StreamEnded)):
            answered(session, payload)
    else:
        answered(session, payload)
    if following is State.READY:  # the next command was sent at once
        assert session.to_send()
        following = State.ANSWERING
    assert session.state is following


@pytest.mark.parametrize("state", [state for state in State if state is not State.READY], ids=lambda state: state.name)
def test_no_command_is_sent_while_another_one_is_answered(state: State) -> None:
    assert not TRANSITIONS[state].keys() & {Sent.COMMAND, Sent.QUERY, Sent.DUMP}
    with pytest.raises(LocalProtocolError, match=f"cannot be sent in state {state.name}"):
        at(state)._send((Sent.COMMAND, b""))


def test_transactions_are_acknowledged_within_a_stream_only() -> None:
    for state in State:
        session = at(state)
        session.to_send()
        session.acknowledge(Acknowledgement("b.1", 4))
        assert bool(session.to_send()) == (state is State.STREAMING)


def test_an_empty_gtid_position_is_not_a_start_by_file() -> None:
    """MariaDB then sends its binlog from its first transaction on; the file may be one of another server."""
    request = StreamRequest(REPLICA, "b.1", 777, "", mariadb=True)
    assert "SET @slave_connect_state=''" in list(request.settings())
    assert request.dump() == binlog_dump(REPLICA.server_id, "")


def looked_up(*rows: bytes, mariadb: bool = False) -> ReplicationSession:
    """A session whose server lists these replicas."""
    session = ReplicationSession(StreamRequest(REPLICA, "b.1", mariadb=mariadb))
    session.start()
    answered(session, *[OK] * (4 if mariadb else 3))
    names = COLUMNS[:-1] if mariadb else COLUMNS
    answered(session, bytes([len(names)]), *names, END, *rows, END)
    return session


OWN_ID = str(REPLICA.server_id)


def test_mysql_tells_another_replica_with_the_same_id_by_its_uuid() -> None:
    session = looked_up(row("7", "other", "0", "1", "u7"), row(OWN_ID, "db2", "0", "1", "u8"))
    assert session.state is State.ANSWERING
    assert session.same_id == replace(REPLICA, uuid="u8", host="db2", port=0)
    assert looked_up(row(OWN_ID, "elsewhere", "0", "1", REPLICA.uuid)).same_id is None
    assert looked_up(row("7", "db2", "0", "1", "u8")).same_id is None


def test_mariadb_would_disconnect_another_replica_with_the_same_id() -> None:
    with pytest.raises(ServerIdInUse, match=f"replica at db2 has the same server id {OWN_ID}"):
        looked_up(row(OWN_ID, "db2", "0", "1"), mariadb=True)
    assert looked_up(row(OWN_ID, REPLICA.host, "0", "1"), mariadb=True).same_id is None


def test_older_servers_list_their_replicas_by_the_older_statement() -> None:
    session = at(State.QUERYING)
    session.to_send()
    answered(session, SYNTAX)
    assert session.to_send() == packet(b"\x03SHOW SLAVE HOSTS")
    answered(session, DENIED)
    assert session.to_send()[4] == 0x15


def test_a_long_value_is_not_an_end_of_a_result() -> None:
    session = at(State.ROWS)
    answered(session, b"\xfe" + (300).to_bytes(8, "little") + b"x" * 300 + row("host", "0", "1", "u"))
    assert session.state is State.ROWS


def test_a_row_with_too_few_values_is_refused() -> None:
    with pytest.raises(RemoteProtocolError):
        answered(at(State.ROWS), row("7"))
