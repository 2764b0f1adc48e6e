"""What happens if an event fails: the state to return to, and rows that are omitted."""

import logging

from rowtide.connector.errors import ProtocolError
from rowtide.connector.pipeline.resume_position import Progress
from rowtide.connector.pipeline.transaction_metadata import TransactionMonitor
from rowtide.connector.pipeline.xa_transactions import XaTransactions
from rowtide.connector.records.offset import SourceOffset
from rowtide.envelope.settings import FailureMode

log = logging.getLogger(__name__)


def leave_out(problem: ProtocolError, mode: FailureMode) -> None:
    """Handle missing or undecodable rows.

    Args:
        problem: the problem.
        mode: ``event.processing.failure.handling.mode``.

    Raises:
        ProtocolError: the problem, with ``fail``.
    """
    if mode == "fail":
        raise problem
    if mode == "warn":
        log.warning("skipped because of event.processing.failure.handling.mode=warn: %s", problem)


class ReturnPoint:
    """The state before a step, to which the pipeline returns if the step fails: a restart makes its outputs again.

    It is what the step changes and resume positions are made from.

    Args:
        progress: the position in the stream.
        xa: the XA transactions.
        monitor: of the transaction, if transaction metadata is on.
    """

    __slots__ = ("_counts", "_monitor", "_point", "_progress", "_unfinished", "_xa")

    def __init__(self, progress: Progress, xa: XaTransactions, monitor: TransactionMonitor | None) -> None:
        self._progress, self._point = progress, progress.resume_point()
        self._xa, self._unfinished = xa, xa.state
        self._monitor, self._counts = monitor, None if monitor is None else monitor.state()

    def offset(self) -> SourceOffset:
        """The resume position of this state, without regard to XA transactions."""
        now, monitor = self._progress.resume_point(), self._monitor
        self._progress.return_to(self._point)
        if monitor is not None and self._counts is not None:
            monitor.return_to(self._counts)  # no record has what was counted since
        offset = self._progress.offset(None if monitor is None else monitor.offset_fields())
        self._progress.return_to(now)
        return offset

    def restore(self) -> None:
        """Return to this state."""
        self._progress.return_to(self._point)
        self._xa.state = self._unfinished
        if self._monitor is not None and self._counts is not None:
            self._monitor.return_to(self._counts)
