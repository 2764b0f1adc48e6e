"""From row images to the rows of an entry: the texts of all columns, before and after each change."""

from collections.abc import Sequence

from rowtide.canal.entries.columns import JSON_STYLE, TableColumns
from rowtide.canal.entries.entry import EntryColumn, EventType, RowChange, Values
from rowtide.connector.protocol.events.classes import Rows, RowsKind
from rowtide.connector.records.codecs.row_images import Decoder, RowImages
from rowtide.connector.records.codecs.system_versioning import CurrentRows, row_end
from rowtide.connector.rows.row_compiler import Column, value_rows
from rowtide.schema_history.model import Table

_Row = tuple[Values | None, Values | None]
_TYPES = {RowsKind.WRITE: EventType.INSERT, RowsKind.UPDATE: EventType.UPDATE, RowsKind.DELETE: EventType.DELETE}


class EntryRows(RowImages[Values]):
    """Turns the row events of one table into the rows of entries.

    Args:
        table: the structure of the table.
        columns: its columns.
        described: the columns that entries contain.
    """

    def __init__(self, table: Table, columns: TableColumns, described: Sequence[EntryColumn]) -> None:
        super().__init__(table.id, columns.compiled, (), json_style=JSON_STYLE)
        self.table = table
        self._described = described
        end = row_end(table)
        self._current = None if end is None else CurrentRows(columns.compiled, end)

    def compiled(self, columns: Sequence[Column], *layouts: Sequence[bool], carry: bool) -> Decoder[Values]:
        """Compile the function that reads the texts of images."""
        decoder: Decoder[Values] = value_rows(columns, *layouts, cached=True)  # type: ignore[assignment]
        return decoder

    def changes(self, event: Rows, skip: int) -> list[RowChange]:
        """Return the changes of an event without its first ``skip`` rows: one, or several of a system-versioned table.

        Raises:
            ValueError: the images do not match the structure.
        """
        images = self.rows(event)
        if self._current is not None:
            return self._current_changes(event, images, skip, self._current.of(event, self.present_columns))
        rows: list[_Row]
        if event.kind is RowsKind.WRITE:
            rows = [(None, image) for image in images[skip:]]
        elif event.kind is RowsKind.DELETE:
            rows = [(image, None) for image in images[skip:]]
        else:
            rows = list(zip(images[2 * skip :: 2], images[2 * skip + 1 :: 2], strict=True))
        return [self._change(_TYPES[event.kind], event, rows)] if rows else []

    def _current_changes(
        self, event: Rows, images: Sequence[Values], skip: int, current: Sequence[bool]
    ) -> list[RowChange]:
        """Return the changes of an event to the current rows of a system-versioned table."""
        made: list[RowChange] = []
        step = 2 if event.kind is RowsKind.UPDATE else 1
        for place in range(skip, len(images) // step):
            first, last = place * step, place * step + step - 1
            before = images[first] if event.kind is not RowsKind.WRITE and current[first] else None
            after = images[last] if event.kind is not RowsKind.DELETE and current[last] else None
            if before is None and after is None:
                continue
            kind = EventType.INSERT if before is None else EventType.DELETE if after is None else EventType.UPDATE
            if made and made[-1].type is kind:
                made[-1] = self._change(kind, event, [*made[-1].rows, (before, after)])
            else:
                made.append(self._change(kind, event, [(before, after)]))
        return made

    def _change(self, kind: EventType, event: Rows, rows: Sequence[_Row]) -> RowChange:
        return RowChange(kind, event.table_id, self._described, rows)
