"""Writes the records of a row event, in batches of a bounded size."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from rowtide.connector.pipeline.captured_tables import CapturedTable, DerivedRows
from rowtide.connector.pipeline.cascades import DERIVED_HEADER
from rowtide.connector.pipeline.stream_state import StreamState
from rowtide.connector.protocol.events.classes import Rows, RowsKind
from rowtide.connector.records.batch import MoreOutputs, Outputs, Steps, joined
from rowtide.connector.records.codecs.builder import Codec
from rowtide.connector.records.codecs.rows import EventContext
from rowtide.connector.records.settings import PipelineSettings
from rowtide.envelope.converters.json import processing_times
from rowtide.envelope.source import stream_snapshot_marker


class RowWriter:
    """Makes the batches of row events.

    Args:
        settings: of the records.
        state: of the stream; the rows are counted in it.
        clock: for the processing times, in ns since the epoch.
    """

    def __init__(
        self,
        settings: PipelineSettings,
        state: StreamState,
        clock: Callable[[], int],
    ) -> None:
        self._settings = settings
        self._state = state
        self._clock = clock
        self._marker = stream_snapshot_marker(settings.values.json_format, exact=settings.exact_values)

    def write(self, event: Rows, captured: CapturedTable, skip: int, derived: Sequence[DerivedRows] = ()) -> Steps:
        """Write the records of an event.

        Args:
            event: the row event.
            captured: its table.
            skip: rows that were written before the start.
            derived: the changes that follow from its rows. Their records precede those of the same rows, in one batch.

        Returns:
            Its outputs, or steps that make a batch each.

        Raises:
            ValueError: the images do not match the structure.
        """
        codec = captured.codec
        rows = codec.rows(event)
        images = 2 if event.kind is RowsKind.UPDATE else 1
        total = len(rows) // images
        if skip >= total:
            return ()
        context = self._context(captured)
        assert context.position is not None
        most = codec.batch_rows(event, total, context.position)
        children = [(one, one.child.codec.rows(one.event)) for one in derived]
        if total - skip > most:
            return self._batches(event, codec, rows, skip, context, most, children)
        self._state.progress.rows(total - 1, total)
        return self._batch(event, codec, rows, skip, context, children)

    def _batch(
        self, event: Rows, codec: Codec, rows: Sequence[Any], skip: int, context: EventContext, children: "_Children"
    ) -> Outputs:
        """Return the outputs of a part of the rows: one batch at most, none if all rows are skipped."""
        offset = self._state.batch_offset
        if not children:
            batch = codec.batch(event, rows, skip, context, offset)
            return () if batch is None else self._state.outputs(batch)
        made = []
        for one, images in children:
            child = self._context(one.child)
            assert child.position is not None
            child = child._replace(
                headers=[*child.headers, (DERIVED_HEADER, one.cause.encode())],
                position=child.position._replace(derived=one.cause),
            )
            made.append(one.child.codec.batch(one.event, images[: len(rows)], skip, child, offset))
        made.append(codec.batch(event, rows, skip, context, offset))
        batches = [batch for batch in made if batch is not None]
        return self._state.outputs(joined(batches)) if batches else ()

    def _batches(
        self,
        event: Rows,
        codec: Codec,
        rows: Sequence[Any],
        skip: int,
        context: EventContext,
        most: int,
        children: "_Children",
    ) -> MoreOutputs:
        """Write at most ``most`` rows in each step."""
        images = 2 if event.kind is RowsKind.UPDATE else 1
        total = len(rows) // images
        while True:
            stop = min(skip + most, total)
            self._state.progress.rows(stop - 1, total)
            made = self._batch(event, codec, rows[: stop * images], skip, context, children)
            if stop == total:
                return made
            yield made
            skip = stop

    def _context(self, captured: CapturedTable) -> EventContext:
        """Return the parts that the event adds to the records of its rows."""
        progress, monitor, now = self._state.progress, self._state.monitor, self._clock()
        in_transaction = monitor is not None and monitor.id is not None
        ts_us = progress.change_micros()
        return EventContext(
            captured.source.prefix(ts_us, self._marker, progress.server_id, progress.gtid, progress.file, progress.pos),
            captured.source.suffix(progress.thread, progress.query),
            processing_times(now),
            self._settings.headers,
            partial(monitor.blocks, str(captured.table.id)) if monitor and in_transaction else None,
            progress.source_position(ts_us, now),
        )


_Children = Sequence[tuple[DerivedRows, Sequence[Any]]]
"""The changes that follow from the rows of an event, and their decoded rows."""
