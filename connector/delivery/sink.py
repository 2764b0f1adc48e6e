"""The protocol of sinks, to which delivery sends batches, and a sink in memory.

A sink preserves the order of messages. Messages are durable once ``commit`` has returned true for an offset after
them: then all are acknowledged, and the offset is stored.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from rowtide.connector.records.batch import Batch
from rowtide.connector.records.offset import SourceOffset


class Sink(Protocol):
    """Takes batches in order and stores offsets after them."""

    @property
    def transactional(self) -> bool:
        """Whether messages become visible only together with the offset, so that a rollback can discard them."""
        ...

    @property
    def problem(self) -> str | None:
        """The reason why messages are being retried: the last error since the last commit, if there was one."""
        ...

    def open(self) -> None:
        """Prepare to send. A transactional sink fences older instances, so read the stored offset only afterwards.

        Raises:
            DeliveryError: Kafka rejects the connection, or does not respond.
        """
        ...

    def send(self, batches: Sequence[Batch]) -> None:
        """Send messages. This may block (back-pressure), but does not wait for acknowledgements.

        Raises:
            TransactionAborted: call ``rollback``, then send everything since the last commit again.
            DeliveryError: the sink cannot continue.
        """
        ...

    def poll(self) -> None:
        """Process delivery reports. Call this as soon as there is nothing to send, and then regularly.

        Raises:
            TransactionAborted: as ``send``.
            DeliveryError: the sink cannot continue.
        """
        ...

    def call_when_due(self, call: Callable[[], None]) -> bool:
        """Have ``call`` called, in any thread, when there is something to poll for.

        Returns:
            Whether the sink does so. Even then, ``poll`` must be called now and then.
        """
        ...

    def waiting(self) -> int:
        """Return the number of unacknowledged messages.

        It is 0 in a transactional sink, where a commit waits for all of them.
        """
        ...

    def commit(self, offset: SourceOffset, timeout: float | None = None) -> bool:
        """Wait until all messages are acknowledged, and store the offset, in the same transaction if there is one.

        Args:
            offset: the offset of the last batch sent.
            timeout: seconds to wait for acknowledgements; ``None`` for no limit.

        Returns:
            Whether the offset is stored; false if the timeout expired first.

        Raises:
            TransactionAborted: as ``send``.
            DeliveryError: the sink cannot continue.
        """
        ...

    def rollback(self) -> None:
        """Discard the messages since the last commit. Without transactions, this does nothing.

        Raises:
            DeliveryError: the sink cannot continue.
        """
        ...

    def interrupt(self) -> None:
        """Make calls blocked in another thread raise ``DeliveryInterrupted`` soon."""
        ...

    def close(self) -> None:
        """Release all resources; unacknowledged messages are dropped."""
        ...


class SynchronousSink:
    """The base of sinks that work only in ``send`` and ``commit``."""

    def poll(self) -> None:
        """Do nothing: there are no background reports."""

    def call_when_due(self, call: Callable[[], None]) -> bool:
        """Return true: nothing is ever due."""
        return True

    def waiting(self) -> int:
        """Return 0: nothing waits outside of the sink."""
        return 0
