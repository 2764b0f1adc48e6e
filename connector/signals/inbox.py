"""The inbox: signals that wait for the reader's thread, which carries them out between two transactions."""

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rowtide.connector.errors import SignalError
from rowtide.connector.pipeline.pipeline import Pipeline
from rowtide.connector.records.batch import Output
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.signals.receiver import SignalReceiver
from rowtide.connector.signals.signal import Signal

_FIELD = "rowtide_signal_"
_MOST = 1000
"""Signals that wait, at most: none is carried out during an initial snapshot."""


@dataclass(frozen=True, slots=True)
class ReceivedSignal:
    """A signal that has arrived through a channel.

    Attributes:
        signal: the signal, or the error of its message.
        channel: the name of the channel.
        position: the position after it, at which the channel continues after a restart, as a JSON value; ``None`` for a
            channel that never repeats signals.
    """

    signal: Signal | SignalError
    channel: str
    position: str | int | None = None


class SignalInbox:
    """Signals in the order of their arrival. Any thread may add signals; the reader's thread carries them out.

    The position of a channel is stored with the offset after the signal's effect, so a signal is carried out once, even
    after a crash.

    Attributes:
        held: whether the signals wait for the next run, because one before them has ended the run.
    """

    def __init__(self) -> None:
        self._received: deque[ReceivedSignal] = deque()
        self.held = False

    def put(self, received: ReceivedSignal) -> None:
        """Add a signal."""
        self._received.append(received)

    @property
    def is_full(self) -> bool:
        """Whether too many signals are waiting to add another one."""
        return len(self._received) >= _MOST

    @property
    def due(self) -> bool:
        """Whether a signal waits for this run."""
        return bool(self._received) and not self.held

    def run(self, pipeline: Pipeline) -> Iterator[Output]:
        """Carry out the signals that wait, and return their outputs."""
        assert isinstance(pipeline.signals, SignalReceiver)
        while self.due:
            one, progress = self._received.popleft(), pipeline.progress
            outputs = pipeline.signals.message(one.signal, one.channel, progress, pipeline.offset())
            if one.position is not None:
                progress.carried = {**(progress.carried or {}), _FIELD + one.channel: one.position}
            yield from outputs

    def forget_positioned(self) -> None:
        """Drop the signals of channels with positions, which the next run reads again from the stored position."""
        kept = []
        while self._received:  # other threads may put signals, so it is not iterated
            one = self._received.popleft()
            if one.position is None:
                kept.append(one)
        self._received.extendleft(reversed(kept))


def position_of(channel: str, stored: SourceOffset | None) -> Any:
    """Return the stored position of a channel; ``None`` if there is none."""
    carried: Mapping[str, Any] = (stored and stored.carried) or {}
    return carried.get(_FIELD + channel)
