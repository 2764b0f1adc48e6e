"""A sink in memory."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from rowtide.connector.delivery.sink import SynchronousSink
from rowtide.connector.records.batch import Batch, Message
from rowtide.connector.records.offset import SourceOffset


@dataclass
class InMemorySink(SynchronousSink):
    """A sink that keeps everything in lists, for tests.

    Attributes:
        transactional: whether messages appear in ``records`` at the commit, instead of immediately.
        records: topic, partition (of the batch) and message.
        offsets: all committed offsets.
        problem: the reason why messages are being retried.
        opened: the number of calls of ``open``.
        closed: whether ``close`` was called.
        failures: errors that the next calls of ``send`` and ``commit`` raise, in order; with ``None``, a call succeeds.
    """

    transactional: bool = False
    records: list[tuple[str, int, Message]] = field(default_factory=list)
    offsets: list[SourceOffset] = field(default_factory=list)
    problem: str | None = None
    opened: int = 0
    closed: bool = False
    failures: list[BaseException | None] = field(default_factory=list)
    _pending: list[tuple[str, int, Message]] = field(default_factory=list)

    def open(self) -> None:
        """Count the call."""
        self.opened += 1

    def send(self, batches: Sequence[Batch]) -> None:
        """Add the messages."""
        self._fail()
        self._pending += [(batch.topic, batch.partition, message) for batch in batches for message in batch.messages]
        if not self.transactional:
            self._publish()

    def commit(self, offset: SourceOffset, timeout: float | None = None) -> bool:
        """Publish the open transaction and add the offset."""
        self._fail()
        self._publish()
        self.offsets.append(offset)
        return True

    def rollback(self) -> None:
        """Drop the open transaction."""
        self._pending.clear()

    def interrupt(self) -> None:
        """Do nothing: no call blocks."""

    def close(self) -> None:
        """Drop the open transaction."""
        self._pending.clear()
        self.closed = True

    def _publish(self) -> None:
        self.records += self._pending
        self._pending.clear()

    def _fail(self) -> None:
        failure = self.failures.pop(0) if self.failures else None
        if failure is not None:
            raise failure
