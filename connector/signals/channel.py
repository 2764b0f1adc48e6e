"""Polls the channels of signals, each in its own thread."""

import logging
import threading
from collections.abc import Callable, Iterable
from typing import Protocol

from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.signals.inbox import ReceivedSignal, SignalInbox, position_of

log = logging.getLogger(__name__)

_JOIN_S = 1.0


class ChannelFailed(Exception):
    """A channel cannot currently be read. The message names it and says what to do; the next poll tries again."""


class PolledChannel(Protocol):
    """A channel that is polled for signals."""

    @property
    def name(self) -> str:
        """``kafka`` or ``file``."""
        ...

    def poll(self) -> Iterable[ReceivedSignal]:
        """Return the signals that have arrived since the last poll.

        Raises:
            ChannelFailed: the channel cannot be read.
        """
        ...

    def stored(self, position: object) -> None:
        """Note that the signals up to a position are carried out, and that this is stored: they need not be kept.

        Raises:
            ChannelFailed: this cannot be recorded in the channel; the next call tries again.
        """
        ...

    def close(self) -> None:
        """Release the channel's resources."""
        ...


class ChannelThread:
    """Polls a channel.

    Args:
        channel: the channel; the thread closes it.
        inbox: receives its signals.
        interval_s: seconds between two polls.
        last_stored: returns the last stored offset.
    """

    def __init__(
        self,
        channel: PolledChannel,
        inbox: SignalInbox,
        interval_s: float,
        last_stored: Callable[[], SourceOffset | None],
    ) -> None:
        self._channel = channel
        self._inbox = inbox
        self._interval = interval_s
        self._last_stored = last_stored
        self._problem = ""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"rowtide-signals-{channel.name}", daemon=True)

    def start(self) -> None:
        """Start polling."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread: after this returns, it puts nothing more into the inbox."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join(_JOIN_S)

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                self._poll()
                self._stop.wait(self._interval)
        finally:
            self._channel.close()

    def _poll(self) -> None:
        try:
            for received in self._channel.poll():
                while self._inbox.is_full and not self._stop.wait(self._interval):
                    pass  # the channel keeps the signals that follow
                if self._stop.is_set():
                    return
                self._inbox.put(received)
            self._channel.stored(position_of(self._channel.name, self._last_stored()))
            self._problem = ""
        except ChannelFailed as error:
            if str(error) != self._problem:  # once, not at each poll
                log.warning("signals cannot be read: %s", error)
            self._problem = str(error)
        except Exception:
            log.exception("signal channel %s has failed; the next poll tries again", self._channel.name)
