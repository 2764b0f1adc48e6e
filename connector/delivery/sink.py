"""The sink: where batches go, as delivery sees it. The protocol, and the form that keeps all in memory.

A sink keeps the order of what it is sent. Nothing that was sent counts until ``commit`` returned true for an offset
behind it: then every message is acknowledged and the offset is stored. The Kafka forms are in ``kafka_sink``.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from rowtide.connector.records.batch import Batch, Message
from rowtide.connector.records.offset import SourceOffset


class Sink(Protocol):
    """Takes batches in order and stores offsets behind them."""

    @property
    def transactional(self) -> bool:
        """Whether messages become visible together with the offset only, and a rollback takes them back."""
        ...

    def open(self) -> None:
        """Get ready to send. A transactional sink fences every older one here: read the stored offset after it.

        Raises:
            DeliveryError: Kafka refuses, or does not answer.
        """
        ...

    def send(self, batches: Sequence[Batch]) -> None:
        """Hand over messages; may wait (back-pressure), and does not wait for acknowledgement.

        Raises:
            TransactionAborted: a transactional sink needs ``rollback``, then all since the last commit again.
            DeliveryError: this sink cannot go on.
        """
        ...

    def poll(self) -> None:
        """Let the client report what became of messages; to be called now and then while there is nothing to send.

        Raises:
            TransactionAborted: as ``send``.
            DeliveryError: this sink cannot go on.
        """
        ...

    def waiting(self) -> int:
        """How many messages are not acknowledged yet; 0 if only a commit could tell, with transactions."""
        ...

    def commit(self, offset: SourceOffset, timeout: float | None = None) -> bool:
        """Wait until all that was sent is acknowledged and store the offset, in the same transaction if there is one.

        Args:
            offset: the offset of the last batch sent.
            timeout: seconds to wait for acknowledgements, ``None`` for as long as it takes.

        Returns:
            Whether the offset is stored; false if the time was over before everything was acknowledged.

        Raises:
            TransactionAborted: as ``send``.
            DeliveryError: this sink cannot go on.
        """
        ...

    def rollback(self) -> None:
        """Take back what was sent since the last commit; a sink without transactions cannot and does nothing.

        Raises:
            DeliveryError: this sink cannot go on.
        """
        ...

    def interrupt(self) -> None:
        """Make whatever waits in another thread raise ``DeliveryInterrupted`` soon."""
        ...

    def close(self) -> None:
        """Let go of all resources; what is not acknowledged is dropped."""
        ...


@dataclass
class InMemorySink:
    """A sink that keeps everything in lists: for tests and for looking at what the connector would send.

    Attributes:
        transactional: whether messages appear in ``records`` at commit (and vanish at rollback), or at once.
        records: topic, partition as given in the batch, message.
        offsets: every offset that was committed.
        opened: how often it was opened.
        closed: whether it was closed.
        failures: errors that the next calls of ``send`` or ``commit`` raise, in order; ``None`` lets one succeed.
    """

    transactional: bool = False
    records: list[tuple[str, int, Message]] = field(default_factory=list)
    offsets: list[SourceOffset] = field(default_factory=list)
    opened: int = 0
    closed: bool = False
    failures: list[BaseException | None] = field(default_factory=list)
    _pending: list[tuple[str, int, Message]] = field(default_factory=list)

    def open(self) -> None:
        """Count the call."""
        self.opened += 1

    def send(self, batches: Sequence[Batch]) -> None:
        """Keep the messages."""
        self._fail()
        self._pending += [(batch.topic, batch.partition, message) for batch in batches for message in batch.messages]
        if not self.transactional:
            self._publish()

    def poll(self) -> None:
        """Nothing is ever under way here."""

    def waiting(self) -> int:
        """Everything arrives at once."""
        return 0

    def commit(self, offset: SourceOffset, timeout: float | None = None) -> bool:
        """Publish the open transaction and keep the offset."""
        self._fail()
        self._publish()
        self.offsets.append(offset)
        return True

    def rollback(self) -> None:
        """Drop the open transaction."""
        self._pending.clear()

    def interrupt(self) -> None:
        """Nothing ever waits here."""

    def close(self) -> None:
        """Drop the open transaction for good."""
        self._pending.clear()
        self.closed = True

    def _publish(self) -> None:
        self.records += self._pending
        self._pending.clear()

    def _fail(self) -> None:
        failure = self.failures.pop(0) if self.failures else None
        if failure is not None:
            raise failure
