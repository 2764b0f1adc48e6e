"""The interface between signals and snapshots on demand."""

import logging
from collections.abc import Iterable
from typing import Literal, Protocol

from rowtide.connector.records.batch import Output
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.signals.signal import Signal
from rowtide.connector.signals.snapshot_requests import RowsRequest, SnapshotRequest, StopRequest

log = logging.getLogger(__name__)

Window = Literal["open", "close", "open deleted"]


class SnapshotsOnDemand(Protocol):
    """Snapshots that signals start and control: incremental and blocking ones. :mod:`..snapshot.incremental` has them.

    All methods are called in the reader's thread, in the order of the signals, and should not wait: they change the
    pending work, and reading happens elsewhere. Signals of the signal table are executed before the records of their
    rows are made, and possibly inside a transaction; all other signals between two transactions.

    A signal is carried out once, even after a crash. The change made by a call must therefore be in every later offset:
    set ``Progress.carried`` (``SourceOffset.carried``) before the call returns. After a crash before such an offset is
    stored, the start offset does not have the change, and the signal is executed again.

    The outputs (notifications) must have the offset ``at``, which is the position before the signal.

    Raises:
        SignalError: from every method: the request cannot be carried out; the message says what is wrong and what to
            do. It is logged and sent as a notification, and nothing else happens.
    """

    def execute(self, request: SnapshotRequest, at: SourceOffset) -> Iterable[Output]:
        """Add the tables to the running snapshot, or start one (``execute-snapshot``)."""
        ...

    def reread(self, request: RowsRequest, at: SourceOffset) -> Iterable[Output]:
        """Read rows again by their keys, and delete those from the topic that do not exist."""
        ...

    def stop(self, request: StopRequest, at: SourceOffset) -> Iterable[Output]:
        """Skip tables, or abort the snapshot (``stop-snapshot``)."""
        ...

    def pause(self, signal: Signal, at: SourceOffset) -> Iterable[Output]:
        """Read no more chunks until :meth:`resume` (``pause-snapshot``)."""
        ...

    def resume(self, signal: Signal, at: SourceOffset) -> Iterable[Output]:
        """Continue reading (``resume-snapshot``)."""
        ...

    def window(self, window_id: str, kind: Window) -> None:
        """Note that the stream has passed a row that the snapshot itself wrote to the signal table.

        Args:
            window_id: the row's id, as it was written: with ``-open`` or ``-close`` at its end.
            kind: ``open`` and ``close`` for an inserted ``snapshot-window-open`` and ``snapshot-window-close`` row;
                ``open deleted`` if the open row was deleted, which closes the window of ``insert_delete``. It is also
                called for rows of other windows, such as those that are cleaned up.
        """
        ...


class NoSnapshots:
    """Takes no snapshots: for a replay of binlog files, without a server. Signals for snapshots are logged."""

    def execute(self, request: SnapshotRequest, at: SourceOffset) -> Iterable[Output]:
        """Log that the signal has no effect."""
        return _nothing(request.signal)

    def reread(self, request: RowsRequest, at: SourceOffset) -> Iterable[Output]:
        """Log that the signal has no effect."""
        return _nothing(request.signal)

    def stop(self, request: StopRequest, at: SourceOffset) -> Iterable[Output]:
        """Log that the signal has no effect."""
        return _nothing(request.signal)

    def pause(self, signal: Signal, at: SourceOffset) -> Iterable[Output]:
        """Log that the signal has no effect."""
        return _nothing(signal)

    def resume(self, signal: Signal, at: SourceOffset) -> Iterable[Output]:
        """Log that the signal has no effect."""
        return _nothing(signal)

    def window(self, window_id: str, kind: Window) -> None:
        """Do nothing."""


def _nothing(signal: Signal) -> Iterable[Output]:
    log.info("signal %r of type %s has no effect: no snapshots are taken here", signal.id, signal.type)
    return ()
