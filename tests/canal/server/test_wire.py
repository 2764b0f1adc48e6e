"""The server's answers are those of Canal's real server, byte for byte, to all requests that were recorded."""

from __future__ import annotations

import pytest

from rowtide.canal.server.authentication import Credentials
from rowtide.canal.server.destination import Destination
from rowtide.canal.server.packets import frame, packet_of, success
from rowtide.canal.server.session import Answer, CanalSession, SessionClosed, perform
from tests.support.canal.wire import Recording, comparable, recorded_destination, recordings

LENGTH = 4
RECORDINGS = {recording.name: recording for recording in recordings()}

_OURS = b"error 400: com.alibaba.otter.canal.server.exception.CanalServerException: "
DIFFERENT = {
    b"error 400: java.lang.NullPointerException: Cannot": _OURS + b"destination:nope should start first",
    b"error 400: com.alibaba.otter.canal.server.exception.CanalServerException: java.lang.IndexOutOfBounds": _OURS
    + b"the fetch size is -5; it must not be negative",
    b"error 400: com.google.protobuf.InvalidProtocolBufferException: While parsing": b"error 400: "
    b"com.google.protobuf.InvalidProtocolBufferException: the message ends within a number",
}
"""How internal errors of Canal begin, and our answers instead, which give the reason."""


def expected(recorded: bytes) -> bytes:
    answer = comparable(recorded)
    return next((ours for theirs, ours in DIFFERENT.items() if answer.startswith(theirs)), answer)


class Client:
    """One connection of a recording, repeated."""

    def __init__(self, recording: Recording, name: str, destination: Destination) -> None:
        greeting = recording.connections[name].greeting
        self.session = CanalSession(
            Credentials(*recording.credentials), greeting[-8:], "[id: 0x00000000, /a:1 => /b:2]"
        )
        self.destinations = {destination.name: destination}
        self.closed: SessionClosed | None = None
        assert self.session.greeting() == frame(greeting)

    def send(self, content: bytes) -> list[bytes]:
        answers: list[Answer] = []
        for found in self.session.receive(frame(content)):
            if isinstance(found, SessionClosed):
                self.closed = found
            elif isinstance(found, Answer):
                answers.append(found)
            else:
                answer = perform(found, self.session, self.destinations)
                answers += [] if answer is None else [answer]
        return [answer[LENGTH:] for answer in answers]


@pytest.mark.parametrize("name", RECORDINGS)
def test_answers_as_recorded(name: str) -> None:
    recording = RECORDINGS[name]
    destination = recorded_destination(recording.counts_entries)
    clients = {key: Client(recording, key, destination) for key in recording.connections}
    answers: dict[str, list[bytes]] = {key: [] for key in clients}
    for key, number in recording.order:
        answers[key] += clients[key].send(recording.connections[key].exchanges[number][0])
    for key, client in clients.items():
        recorded = [answer for _, answers in recording.connections[key].exchanges for answer in answers]
        if client.closed is SessionClosed.REFUSED:
            assert recorded.pop() == success()  # 1.1.7 admits the client nevertheless
        assert [comparable(answer) for answer in answers[key]] == [expected(answer) for answer in recorded]


def test_every_different_answer_is_recorded() -> None:
    connections = [connection for recording in RECORDINGS.values() for connection in recording.connections.values()]
    recorded = [comparable(answer) for c in connections for _, answers in c.exchanges for answer in answers]
    assert all(any(answer.startswith(theirs) for answer in recorded) for theirs in DIFFERENT)


def test_a_frame_that_is_not_a_packet_ends_the_connection() -> None:
    recording = RECORDINGS["errors"]
    client = Client(recording, "1", recorded_destination(counts_entries=False))
    assert client.send(b"\xff\xff\xff\xff\xff") == []
    assert client.closed is SessionClosed.MALFORMED


def test_packets_of_the_recordings_are_read() -> None:
    kinds = {packet_of(c.exchanges[0][0])[0] for r in RECORDINGS.values() for c in r.connections.values()}
    assert kinds == {2, 4}
