"""The state of a stream: its position, its XA transactions, and the transaction that records are counted in."""

from typing import NamedTuple

from rowtide.connector.pipeline.resume_position import Progress, ResumePoint
from rowtide.connector.pipeline.transaction_metadata import MonitorState, TransactionMonitor
from rowtide.connector.pipeline.xa_transactions import XaState, XaTransactions
from rowtide.connector.records.batch import Batch
from rowtide.connector.records.offset import SourceOffset


class SavedState(NamedTuple):
    """The parts of the state that a step changes, and from which resume positions are made."""

    point: ResumePoint
    xa: XaState
    counts: MonitorState | None


class StreamState:
    """The parts of the state that a step of the pipeline changes. If the step fails, the state before it is restored.

    Attributes:
        progress: the position in the stream.
        xa: the XA transactions.
        monitor: of the transaction, if transaction metadata is on.
    """

    __slots__ = ("monitor", "progress", "xa")

    def __init__(self, progress: Progress, xa: XaTransactions, monitor: TransactionMonitor | None) -> None:
        self.progress = progress
        self.xa = xa
        self.monitor = monitor

    def offset(self) -> SourceOffset:
        """Return the current resume position."""
        return self.xa.offset(self.plain_offset())

    def plain_offset(self) -> SourceOffset:
        """Return the resume position without regard to XA transactions."""
        return self.progress.offset(None if self.monitor is None else self.monitor.offset_fields())

    def batch_offset(self) -> SourceOffset:
        """Return the offset of records of the current event; XA transactions give theirs the final one at their end."""
        plain = self.plain_offset()
        return plain if self.xa.is_open else self.xa.offset(plain)

    def outputs(self, *batches: Batch) -> tuple[Batch, ...]:
        """Return batches, unless they belong to an open XA transaction, which holds them until it ends."""
        if not self.xa.is_open:
            return batches
        for batch in batches:
            self.xa.hold(batch)
        return ()

    def saved(self) -> SavedState:
        """Return the state for :meth:`restore`."""
        return SavedState(
            self.progress.resume_point(), self.xa.state, None if self.monitor is None else self.monitor.state()
        )

    def restore(self, saved: SavedState) -> None:
        """Return to an earlier state, because the outputs since then are dropped."""
        self._return_to(saved)
        self.xa.state = saved.xa

    def offset_before(self, saved: SavedState) -> SourceOffset:
        """Drop the counts since an earlier state, and return its resume position without regard to XA transactions."""
        now = self.progress.resume_point()
        self._return_to(saved)  # no record has the counts since then
        offset = self.plain_offset()
        self.progress.return_to(now)
        return offset

    def _return_to(self, saved: SavedState) -> None:
        self.progress.return_to(saved.point)
        if self.monitor is not None and saved.counts is not None:
            self.monitor.return_to(saved.counts)
