"""Writes the outputs of a snapshot to the schema history and the event store."""

import contextlib
import logging
import threading
from collections.abc import Iterable

from rowtide.connector.delivery.event_store import EventStore, StoreClosed
from rowtide.connector.records.batch import Batch, HistoryEntry, Output
from rowtide.connector.records.offset import describe
from rowtide.connector.snapshot.initial import Snapshot
from rowtide.schema_history.store.history_store import SchemaHistoryStore

log = logging.getLogger(__name__)


def take_snapshot(snapshot: Snapshot, history: SchemaHistoryStore, store: EventStore, stop: threading.Event) -> None:
    """Take a snapshot, and send a notification of its abort if it is incomplete because ``stop`` was set, or it failed.

    Raises:
        StoreClosed: the consumer has ended.
        SnapshotError, TopicClash, DatabaseUnreachableError: as :meth:`Snapshot.outputs`.
    """
    complete = False
    try:
        with contextlib.closing(snapshot.outputs()) as outputs:
            complete = write_snapshot(outputs, history, store, stop)
    finally:
        if complete:
            log.info("the snapshot is complete; its position is %s", describe(snapshot.offset))
        else:
            if stop.is_set():
                then = "reads the missing rows" if snapshot.continues else "takes it again from the beginning"
                log.info("the snapshot was interrupted; the next start %s", then)
            for batch in snapshot.aborted():
                with contextlib.suppress(StoreClosed):  # delivery has ended, and says why
                    store.put([batch])


def write_snapshot(
    outputs: Iterable[Output], history: SchemaHistoryStore, store: EventStore, stop: threading.Event
) -> bool:
    """Write the outputs of a snapshot to the schema history and the event store.

    An output after ``stop`` is dropped, so the snapshot remains after the last output before it. The final outputs are
    still written, because there is nothing left to interrupt.

    The history is complete before the store receives the first offset from which a start streams: that of the completed
    snapshot, or one with a list of the remaining tables.

    Returns:
        Whether everything was written; false if ``stop`` was set before.
    """
    with contextlib.ExitStack() as buffering:
        buffering.enter_context(history.buffered())
        complete = False
        for output in outputs:
            complete = complete or (isinstance(output, Batch) and output.offset.snapshot is None)
            if stop.is_set() and not complete:
                return False
            if isinstance(output, HistoryEntry):
                history.append(output.text)
                continue
            if complete or output.offset.continues_snapshot:
                buffering.close()
            store.put([output])
    return True
