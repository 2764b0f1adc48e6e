"""A ring of batches with three cursors, put, get and ack, after Canal's memory event store; without locks or waiting.

The cursors are sequence numbers that only grow; they start at -1. ``ack <= get <= put`` always holds. Batches between
ack and get are taken, and become unread after a rollback; batches between get and put are unread.

Deliberate differences from Canal: a batch larger than the ring is accepted when the ring is empty (Canal blocks); a
rollback restores every counter; acknowledged entries are always freed; sequence numbers have no limit.
"""

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

INIT_SEQUENCE = -1
"""The cursors before the first batch."""
_FIRST_SLOTS = 1024
"""Slots of a new ring. The maximum number would take 0.5 MB with the default of ``max.queue.size``."""


class Storable(Protocol):
    """An element of a ring: a batch of messages for a sink, or an entry for Canal's clients."""

    @property
    def events(self) -> int:
        """The number of messages in it."""

    @property
    def size(self) -> int:
        """The number of bytes in it."""

    @property
    def ts_ms(self) -> int:
        """When the source changed the rows, in milliseconds since the epoch; 0 if unknown."""


Stored = TypeVar("Stored", bound=Storable)


class BatchRing(Generic[Stored]):
    """A bounded queue of batches with acknowledgement and rollback.

    Args:
        slots: the maximum number of batches, a power of two. Memory is allocated when it is needed.
        max_events: the maximum number of unread messages.
        max_bytes: the maximum number of bytes of keys and values, taken or not.

    Raises:
        ValueError: a limit is not positive, or ``slots`` is not a power of two.
    """

    def __init__(self, slots: int, max_events: int, max_bytes: int) -> None:
        if slots < 1 or slots & (slots - 1):
            raise ValueError(f"slots must be a power of 2, not {slots}")
        if max_events < 1 or max_bytes < 1:
            raise ValueError(f"limits must be positive, not {max_events} events and {max_bytes} bytes")
        self._entries: list[Stored | None] = [None] * min(slots, _FIRST_SLOTS)
        self._mask = len(self._entries) - 1
        self._slots = slots
        self.max_events = max_events
        self.max_bytes = max_bytes
        self.put_sequence = self.get_sequence = self.ack_sequence = INIT_SEQUENCE
        self._put_events = self._get_events = self._ack_events = 0
        self._put_bytes = self._get_bytes = self._ack_bytes = 0

    @property
    def held(self) -> int:
        """Batches that are not acknowledged yet."""
        return self.put_sequence - self.ack_sequence

    @property
    def held_events(self) -> int:
        """Messages that are not acknowledged yet."""
        return self._put_events - self._ack_events

    @property
    def unread_events(self) -> int:
        """Messages that are not taken yet."""
        return self._put_events - self._get_events

    @property
    def held_bytes(self) -> int:
        """Bytes that are not acknowledged yet."""
        return self._put_bytes - self._ack_bytes

    @property
    def unread_bytes(self) -> int:
        """Bytes that are not taken yet."""
        return self._put_bytes - self._get_bytes

    @property
    def unread(self) -> int:
        """Batches that are not taken yet."""
        return self.put_sequence - self.get_sequence

    @property
    def oldest_ts_ms(self) -> int:
        """``ts_ms`` of the oldest batch that is not acknowledged; 0 if there is none, or it has no time."""
        return self._at(self.ack_sequence + 1).ts_ms if self.held else 0

    @property
    def given_share(self) -> float:
        """The share of the limits that is taken and not acknowledged: 0 for nothing, 1 or more for all of it."""
        return max(
            (self._get_bytes - self._ack_bytes) / self.max_bytes,
            (self.get_sequence - self.ack_sequence) / self._slots,
        )

    def has_room(self, batch: Stored) -> bool:
        """Return whether ``put`` would accept this batch: it fits, or the ring is empty."""
        held = self.put_sequence - self.ack_sequence
        if held == 0:
            return True
        return (
            held < self._slots
            and self._put_bytes - self._ack_bytes + batch.size <= self.max_bytes
            and (
                self.put_sequence == self.get_sequence
                or self._put_events - self._get_events + batch.events <= self.max_events
            )
        )

    def put(self, batch: Stored) -> int:
        """Append a batch and return its sequence number.

        Raises:
            OverflowError: there is no space; ask ``has_room`` first.
        """
        if not self.has_room(batch):
            raise OverflowError("the ring is full")
        if self.put_sequence - self.ack_sequence > self._mask:
            self._double()
        sequence = self.put_sequence + 1
        self._entries[sequence & self._mask] = batch
        self._put_events += batch.events
        self._put_bytes += batch.size
        self.put_sequence = sequence
        return sequence

    def get(self, max_events: int) -> list[Stored]:
        """Take the next batches in order, up to ``max_events`` messages, but at least one batch if there is any."""
        room = max_events

        def fits(batch: Stored) -> bool:
            nonlocal room
            room -= batch.events
            return room >= 0

        return self.get_while(fits)

    def get_while(self, fits: Callable[[Stored], bool]) -> list[Stored]:
        """Take the next batches in order, up to the first one that does not fit.

        Args:
            fits: called once for each batch, in order, until it returns ``False``.
        """
        taken: list[Stored] = []
        for sequence in range(self.get_sequence + 1, self.put_sequence + 1):
            batch = self._at(sequence)
            if not fits(batch) and taken:
                break
            taken.append(batch)
            self.get_sequence = sequence
            self._get_events += batch.events
            self._get_bytes += batch.size
        return taken

    def ack(self, sequence: int) -> None:
        """Free every batch up to and including ``sequence``; a batch that is already freed is not an error.

        Raises:
            ValueError: ``sequence`` was not taken yet.
        """
        if sequence > self.get_sequence:
            raise ValueError(f"cannot acknowledge {sequence}: only {self.get_sequence} was handed out")
        for number in range(self.ack_sequence + 1, sequence + 1):
            batch = self._at(number)
            self._ack_events += batch.events
            self._ack_bytes += batch.size
            self._entries[number & self._mask] = None
        self.ack_sequence = max(self.ack_sequence, sequence)

    def rollback(self) -> int:
        """Make all taken but unacknowledged batches unread again, and return their number."""
        back = self.get_sequence - self.ack_sequence
        self.get_sequence = self.ack_sequence
        self._get_events = self._ack_events
        self._get_bytes = self._ack_bytes
        return back

    def _double(self) -> None:
        """Double the slots of a full ring."""
        mask = self._mask * 2 + 1
        entries: list[Stored | None] = [None] * (mask + 1)
        for sequence in range(self.ack_sequence + 1, self.put_sequence + 1):
            entries[sequence & mask] = self._at(sequence)
        self._entries, self._mask = entries, mask

    def _at(self, sequence: int) -> Stored:
        batch = self._entries[sequence & self._mask]
        assert batch is not None, f"slot of {sequence} is empty"
        return batch
