"""No event is lost: when the offset file cannot be written, after a fail-over, and when something is damaged."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from rowtide.databus.client import AsyncClient, Client, ClientSettings
from rowtide.databus.client import client as client_module
from rowtide.databus.client import start as start_module
from rowtide.databus.client.dump import DumpReader
from rowtide.databus.client.offset_file import ClientProgress, load
from rowtide.databus.client.start import DumpStart, find_start
from rowtide.databus.client.topic import EventTopic
from rowtide.databus.discovery import DumpDescriptor
from rowtide.databus.errors import DumpError, OffsetFileError, OverflowOffset, TopicError, UnreadableMessage
from rowtide.databus.events import Event, Position, RowsEvent
from rowtide.schema_history.store.topic_reader import Extent, StoredRecord
from tests.support.databus.messages import message
from tests.support.mysql.dump_server import dump_server

FILE = "binlog.000003"
Sent = tuple[bytes, bytes]


class _Message:
    def __init__(self, offset: int, sent: Sent) -> None:
        self._offset, self._sent = offset, sent

    def offset(self) -> int:
        return self._offset

    def key(self) -> bytes:
        return self._sent[0]

    def value(self) -> bytes:
        return self._sent[1]


class _Topic(EventTopic):
    """A topic in memory."""

    def __init__(self, sent: Sequence[Sent], low: int = 0) -> None:
        super().__init__("t", {})
        self._sent, self._low = sent, low
        self._next = -1
        self.fails = 0

    def extent(self) -> Extent:
        if self.fails:
            self.fails -= 1
            raise TopicError("Kafka does not answer")
        return Extent(self._low, len(self._sent))

    def _records(self, begin: int, end: int) -> Iterator[StoredRecord]:
        for offset in range(begin, end):
            yield StoredRecord(0, offset, 0, *self._sent[offset])

    def read_from(self, offset: int) -> None:
        self._next = offset

    @property
    def ended(self) -> bool:
        return self._next == len(self._sent)

    def poll(self, timeout: float) -> _Message | None:  # type: ignore[override]
        assert self._next >= 0
        if self._next >= len(self._sent):
            return None
        self._next += 1
        return _Message(self._next - 1, self._sent[self._next - 1])


@pytest.fixture
def settings(tmp_path: Path) -> ClientSettings:
    return ClientSettings(("b:1",), "t", tmp_path / "state" / "Repl.info", master_name=FILE, master_pos=100)


@pytest.fixture
def of(monkeypatch: pytest.MonkeyPatch) -> list[Sent]:
    """The messages of the topic."""
    sent: list[Sent] = []
    monkeypatch.setattr(client_module, "EventTopic", lambda _name, _kafka: _Topic(sent))
    return sent


def number(event: Event) -> str:
    assert isinstance(event.event, RowsEvent)
    return (event.event.rows[0][0] or b"").decode()


def rest(client: Client) -> list[str]:
    """The rows of all events to the end of the topic."""
    topic, found = client._topic, []
    assert isinstance(topic, _Topic)
    while True:
        try:
            found.append(number(client.get_event(0.0)))
        except TimeoutError:
            if topic.ended:
                return found


def test_an_event_that_cannot_be_saved_on_get_comes_again(settings: ClientSettings, of: list[Sent]) -> None:
    of += [message(FILE, 100, 1), message(FILE, 200, 2)]
    with Client(replace(settings, save_on_get=True)) as client:
        for _ in range(2):
            with pytest.raises(OffsetFileError):  # there is no folder
                client.get_event(0.0)
        settings.offset_file.parent.mkdir()
        assert rest(client) == ["1", "2"]


def test_an_acknowledgement_that_was_not_saved_can_be_repeated(settings: ClientSettings, of: list[Sent]) -> None:
    of += [message(FILE, 100, 1)]
    with Client(settings) as client:
        event = client.get_event(0.0)
        with pytest.raises(OffsetFileError):
            client.ack(event)
        settings.offset_file.parent.mkdir()
        client.ack(event)
    assert load(settings.offset_file) == ClientProgress(Position(FILE, 100), 0)


def test_an_event_of_an_earlier_client_acknowledges_nothing_after_it(settings: ClientSettings, of: list[Sent]) -> None:
    of += [message(FILE, 100 * place, place) for place in range(1, 6)]
    settings.offset_file.parent.mkdir()
    with Client(settings) as client:
        first, second, third = (client.get_event(0.0) for _ in range(3))
        client.ack(first)
    with Client(settings) as client:
        assert number(client.get_event(0.0)) == number(second)
        client.get_event(0.0)
        client.get_event(0.0)
        client.ack(third)
    assert load(settings.offset_file) == ClientProgress(third.header.position, third.offset or 0)


def test_equal_positions_with_other_rows_are_no_repeats(settings: ClientSettings, of: list[Sent]) -> None:
    """Behind RESET BINARY LOGS AND GTIDS, or a fail-over to a server whose files have the same names."""
    of += [message(FILE, 100, 1), message(FILE, 200, 2), message(FILE, 200, 2), message(FILE, 100, 3)]
    with Client(settings) as client:
        assert rest(client) == ["1", "2", "3"]
    settings.offset_file.parent.mkdir()
    settings.offset_file.write_text(ClientProgress(Position(FILE, 200), 1).encoded())
    with Client(settings) as client:
        assert rest(client) == ["3"]


def from_dump(monkeypatch: pytest.MonkeyPatch, port: int, pos: int, offset: int) -> None:
    start = DumpStart(DumpDescriptor("f", Position("binlog.000009", pos), offset), "127.0.0.1", port)
    monkeypatch.setattr(client_module, "find_start", lambda _settings, _topic: start)


DUMP = [b"PONG\n" + message(FILE, 0, 0)[1] + b'\n{"End":true,"Rows":1}\n']


def test_events_of_another_server_after_a_dump_are_not_before_it(
    settings: ClientSettings, of: list[Sent], monkeypatch: pytest.MonkeyPatch
) -> None:
    of += [message("binlog.000009", pos, pos) for pos in (100, 200, 300)]
    of += [message("binlog.000002", pos, pos + 1) for pos in (100, 200)]
    with dump_server(DUMP) as (port, _):
        from_dump(monkeypatch, port, 400, 1)
        with Client(settings) as client:
            assert rest(client) == ["0", "101", "201"]


@pytest.mark.parametrize("restart", [False, True])
def test_events_of_another_server_from_the_end_of_a_dump_on_are_not_dropped(
    restart: bool, settings: ClientSettings, of: list[Sent], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The dump at 000009:400 has the events of 000003. The second one was published while the dump was begun."""
    of += [message("binlog.000003", 100, 100), message("binlog.000003", 200, 300)]
    of += [message("binlog.000005", pos, pos + 1) for pos in (100, 200)]
    settings.offset_file.parent.mkdir()
    with dump_server([DUMP[0].replace(b"}\n", b',"Offset":2}\n')]) as (port, _):
        from_dump(monkeypatch, port, 400, 1)
        with Client(settings) as client:
            row = client.get_event(5)
            client.ack(row)
            assert number(row) == "0"
            if not restart:
                assert rest(client) == ["101", "201"]
                return
            with pytest.raises(TimeoutError):  # the end of the dump
                client.get_event(0.0)
    monkeypatch.undo()
    progress = load(settings.offset_file)
    assert progress == ClientProgress(Position("binlog.000009", 400), 1, inclusive=True, dump_end=2)
    monkeypatch.setattr(client_module, "EventTopic", lambda _name, _kafka: _Topic(of))
    with Client(settings) as client:
        assert rest(client) == ["101", "201"]


def test_kafka_that_does_not_answer_at_the_end_of_a_dump(
    settings: ClientSettings, of: list[Sent], monkeypatch: pytest.MonkeyPatch
) -> None:
    of += [message("binlog.000009", 100, 1)]
    with dump_server(DUMP) as (port, _):
        from_dump(monkeypatch, port, 100, 0)
        with Client(settings) as client:
            topic = client._topic
            assert isinstance(topic, _Topic)
            topic.fails = 1
            assert number(client.get_event(5)) == "0"
            with pytest.raises(TopicError):
                client.get_event(5)
            assert rest(client) == ["1"]


@pytest.mark.parametrize(("offset", "refused"), [(4, True), (5, False), (7, False), (8, True)])
def test_a_dump_whose_events_are_not_in_the_topic_is_refused_before_it_is_read(
    offset: int, refused: bool, settings: ClientSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = DumpStart(DumpDescriptor("f", Position(FILE, 100), offset), "127.0.0.1", 1)
    monkeypatch.setattr(start_module, "_dump", lambda _settings: found)
    topic = _Topic([message(FILE, 100, 1)] * 7, low=5)
    settings = replace(settings, first_load=True, zookeeper=("z:1",), node_name="n", server_ip="i", server_port=1)
    if refused:
        with pytest.raises(OverflowOffset, match=f"after dump f begin at offset {offset}, .* from 5 to 7"):
            find_start(settings, topic)
    else:
        assert find_start(settings, topic) is found


def test_a_dump_is_saved_once_it_is_read_and_acknowledged(
    settings: ClientSettings, of: list[Sent], monkeypatch: pytest.MonkeyPatch
) -> None:
    of += [message("binlog.000009", 100, 1)]
    settings.offset_file.parent.mkdir()
    for early in (True, False):
        settings.offset_file.unlink(missing_ok=True)
        with dump_server(DUMP) as (port, _):
            from_dump(monkeypatch, port, 100, 0)
            with Client(settings) as client:
                row = client.get_event(5)
                if early:
                    client.ack(row)
                    assert load(settings.offset_file) is None
                event = client.get_event(5)
                client.ack(row)
                assert load(settings.offset_file) == ClientProgress(Position("binlog.000009", 100), 0, inclusive=True)
                client.ack(event)
                client.ack(row)
        assert load(settings.offset_file) == ClientProgress(Position("binlog.000009", 100), 0)


def test_nothing_after_a_damaged_line_of_a_dump_is_handed_over() -> None:
    line = message(FILE, 0, 1)[1] + b"\n"
    with dump_server([b"PONG\n" + line + b"{}\n" + line]) as (port, _):
        reader = DumpReader("127.0.0.1", port, "f", end_marker=False)
        assert reader.poll(5) is not None
        for _ in range(2):
            with pytest.raises(DumpError, match="the line after 1 rows is not a rows event"):
                reader.poll(5)
        reader.close()


@pytest.mark.parametrize("rows", [5, [5], {}, "", ["YQ=="]])
def test_rows_that_are_no_lists_end_the_client(rows: object, settings: ClientSettings, of: list[Sent]) -> None:
    key, value = message(FILE, 100, 1)
    of += [(key, json.dumps({**json.loads(value), "Rows": rows}).encode()), message(FILE, 200, 2)]
    with Client(settings) as client:
        for _ in range(2):
            with pytest.raises(UnreadableMessage, match="topic t, partition 0, offset 0"):
                client.get_event(0.0)


def test_calls_that_time_out_leave_nothing_behind(settings: ClientSettings, of: list[Sent]) -> None:
    of += [message(FILE, 100, 1)]

    async def run() -> None:
        async with await AsyncClient.open(settings) as client:
            assert number(await client.get_event(5)) == "1"
            for _ in range(20):
                with pytest.raises(TimeoutError):
                    await client.get_event(0.0)
            waiting = client._next
            assert waiting is not None
            callbacks = waiting._callbacks  # type: ignore[attr-defined]
            assert len(callbacks or ()) <= 1

    asyncio.run(run())
