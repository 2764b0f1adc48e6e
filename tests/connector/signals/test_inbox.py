"""Signals of other channels: carried out between transactions, their channel's position stored with their effect."""

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field

import pytest

from rowtide.connector.errors import SignalError
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.signals import inbox as inbox_module
from rowtide.connector.signals.channel import ChannelFailed, ChannelThread
from rowtide.connector.signals.inbox import ReceivedSignal, SignalInbox, position_of
from rowtide.connector.signals.signal import Signal
from rowtide.connector.signals.signalling import KEPT, RecentNotifications, Signalling


def received(name: str, position: int | None = None) -> ReceivedSignal:
    return ReceivedSignal(Signal(name, "log", {}, "kafka"), "kafka", position)


def test_what_has_a_position_is_forgotten_at_the_end_of_a_run() -> None:
    inbox = SignalInbox()
    for one in (received("a", 1), received("b"), received("c", 2)):
        inbox.put(one)
    inbox.forget_positioned()
    assert inbox.due
    inbox.forget_positioned()
    assert list(inbox._received) == [received("b")]


def test_a_signal_that_comes_at_the_end_of_a_run_stays() -> None:
    inbox = SignalInbox()

    class Late(ReceivedSignal):
        """While its position is read, another thread puts a signal."""

        def __getattribute__(self, name: str) -> object:
            if name == "position":
                inbox.put(received("b"))
            return super().__getattribute__(name)

    inbox.put(Late(Signal("a", "log", {}, "http"), "http"))
    inbox.forget_positioned()
    assert [str(one.signal.id) for one in inbox._received if isinstance(one.signal, Signal)] == ["a", "b"]


def test_the_position_of_a_channel_is_in_the_offset() -> None:
    stored = SourceOffset("b.1", 4, carried={"rowtide_signal_kafka": 7})
    assert (position_of("kafka", stored), position_of("file", stored), position_of("kafka", None)) == (7, None, None)


def test_a_call_is_checked_at_once() -> None:
    signalling = Signalling()
    assert signalling.send({"id": "a", "type": "log"}, "in-process") == "a"
    assert len(signalling.send({"type": "log"}, "http")) == 36
    with pytest.raises(SignalError, match="the type of signal"):
        signalling.send({"id": "a"}, "http")


def test_the_last_notifications_are_kept() -> None:
    recent = RecentNotifications()
    for number in range(KEPT + 5):
        recent.add({"id": str(number % 2), "number": number})
    assert len(recent.all()) == KEPT
    assert recent.all()[0]["number"] == 5
    assert {one["number"] % 2 for one in recent.all("1")} == {1}


@dataclass
class Channel:
    """A channel of this test."""

    polls: list[list[ReceivedSignal] | Exception]
    name: str = "kafka"
    positions: list[object] = field(default_factory=list)
    done: threading.Event = field(default_factory=threading.Event)
    closed: threading.Event = field(default_factory=threading.Event)

    def poll(self) -> Iterable[ReceivedSignal]:
        if not self.polls:
            self.done.set()
            return []
        found = self.polls.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    def stored(self, position: object) -> None:
        self.positions.append(position)

    def close(self) -> None:
        self.closed.set()


def test_a_channel_is_polled_until_it_is_stopped(caplog: pytest.LogCaptureFixture) -> None:
    failing = ChannelFailed("no topic")
    channel = Channel([[received("a", 1)], failing, failing, ValueError("odd"), [received("b", 2)]])
    inbox, stored = SignalInbox(), SourceOffset("b.1", 4, carried={"rowtide_signal_kafka": 7})
    thread = ChannelThread(channel, inbox, 0.001, lambda: stored)
    thread.start()
    assert channel.done.wait(120)
    thread.stop()
    assert channel.closed.wait(120)
    assert [one.position for one in inbox._received] == [1, 2]
    assert channel.positions[:2] == [7, 7]
    assert [message for message in caplog.messages if "no topic" in message] == ["signals cannot be read: no topic"]
    assert any("signal channel kafka has failed" in message for message in caplog.messages)


def test_a_channel_waits_while_the_inbox_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbox_module, "_MOST", 2)
    signalling = Signalling()
    channel = Channel([[received(str(number), number) for number in range(3)]])
    thread = ChannelThread(channel, signalling.inbox, 0.001, lambda: None)
    thread.start()
    while not signalling.inbox.is_full:
        channel.done.wait(0.001)
    with pytest.raises(SignalError, match="too many signals are waiting"):
        signalling.send({"type": "log"}, "http")
    assert not channel.done.is_set()
    assert signalling.inbox._received.popleft().position == 0
    assert channel.done.wait(120)
    assert [one.position for one in signalling.inbox._received] == [1, 2]
    thread.stop()


def test_a_channel_that_waits_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbox_module, "_MOST", 1)
    inbox, channel = SignalInbox(), Channel([[received("a", 1), received("b", 2)]])
    thread = ChannelThread(channel, inbox, 0.001, lambda: None)
    thread.start()
    while not inbox.is_full:
        channel.closed.wait(0.001)
    thread.stop()
    assert channel.closed.wait(120)
    assert len(inbox._received) == 1
