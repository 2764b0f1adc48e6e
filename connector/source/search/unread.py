"""The rows of a transaction that a connector has not read, if it has read the transaction in part. Pure."""

from collections.abc import Callable, Collection, Iterator

from rowtide.connector.protocol import events
from rowtide.connector.protocol.decoder import EventDecoder
from rowtide.connector.protocol.event_groups import EventGroups
from rowtide.connector.protocol.events.rows import table_map_of
from rowtide.connector.protocol.events.table_structure import TableStructure
from rowtide.connector.protocol.header import GTID_TYPES, HEADER, EventType, end_of_event
from rowtide.connector.protocol.statements import is_end
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.rows.layouts import ColumnDecoding, column_layout
from rowtide.connector.rows.partial_update import expand_images
from rowtide.connector.rows.row_compiler import Column, value_rows
from rowtide.connector.source.search.positions import BinlogFiles, PositionNotFound, find_gtid

_FIRST_EVENT = 4


def unread_rows(
    files: BinlogFiles,
    stored: SourceOffset,
    captures: Callable[[str, str], bool],
    skipped_operations: Collection[str] = (),
    *,
    annotations: bool = True,
) -> int | None:
    """Return the number of unprocessed rows in the transaction of the stored position.

    Args:
        files: the binlog files, of any server that has the transaction.
        stored: a position within a transaction (``event``, ``row``).
        captures: whether the table of a database is captured; rows of other tables do not count.
        skipped_operations: operations whose rows do not count either: any of c, u, d.
        annotations: whether the connector receives MariaDB's ANNOTATE_ROWS (``include.query``), which positions then
            count.

    Returns:
        The number of rows; ``None`` if the files do not have the transaction, or it has no rows itself (``XA
        COMMIT``).

    Raises:
        ConnectorError: a file cannot be read.
    """
    if stored.within is None:
        if stored.file not in files.names:
            return None
        file, position = stored.file, stored.pos
    else:
        try:
            found = find_gtid(files, stored.within)
        except PositionNotFound:
            return None
        file, position = found.file, found.pos
    maps: dict[int, TableStructure] = {}
    seen, unread = False, 0
    for number, event in enumerate(_within(files, file, position, annotations=annotations)):
        if isinstance(event, events.TableMap):
            maps[event.table_id] = event.structure
        elif isinstance(event, events.Rows):
            seen = True
            structure = table_map_of(event, maps)
            if number < stored.event or event.kind.value in skipped_operations:
                continue
            if captures(structure.database, structure.table):
                done = stored.row if number == stored.event else 0
                unread += max(0, _row_count(event, structure) - done)
    return unread if seen else None


def _within(files: BinlogFiles, file: str, start: int, *, annotations: bool) -> Iterator[events.Event]:
    """Yield the events of the transaction at a position, starting with its BEGIN, as a position counts them."""
    decoder, groups, end, begun = EventDecoder(file), EventGroups(), _FIRST_EVENT, False
    for packet in files.events(file):
        _, kind, _, size, log_pos, _ = HEADER.unpack_from(packet)
        end = end_of_event(end, size, log_pos)
        if end - size < start:
            if kind == EventType.FORMAT_DESCRIPTION:
                decoder.decode(packet)
            continue
        if kind == EventType.MARIADB_ANNOTATE_ROWS and not annotations:
            continue
        if kind in GTID_TYPES and end - size > start:
            return
        for settled in groups.add(packet, decoder.format):
            decoded = decoder.decode(settled)
            inner = decoder.unpack(decoded) if isinstance(decoded, events.TransactionPayload) else (decoded,)
            for event in inner:
                if not begun and isinstance(event, events.Gtid):
                    continue  # positions count from the BEGIN after it
                begun = True
                yield event
                if is_transaction_end(event):
                    return


def is_transaction_end(event: events.Event) -> bool:
    """Return whether an event ends its transaction."""
    if isinstance(event, events.Query):
        return is_end(event.statement[:24].lstrip().upper())
    return isinstance(event, events.Xid | events.XaPrepare)


def _row_count(event: events.Rows, structure: TableStructure) -> int:
    layouts = [column_layout(column.type, column.metadata) for column in structure.columns]
    columns = [
        Column(layout, ColumnDecoding("bytes"), column.nullable, None)
        for layout, column in zip(layouts, structure.columns, strict=True)
    ]
    before, after = (_present(bitmap, event.column_count) for bitmap in (event.columns, event.columns_after))
    data, start, end = event.buffer, event.start, event.end
    if event.partial:
        data = expand_images(data, start, end, layouts, before, after)
        start, end = 0, len(data)
    pairs = event.kind is events.RowsKind.UPDATE
    images = len(value_rows(columns, *((before, after) if pairs else (before,)))(data, start, end))
    return images // 2 if pairs else images


def _present(bitmap: bytes, count: int) -> list[bool]:
    return [bool(bitmap[index >> 3] >> (index & 7) & 1) for index in range(count)]
