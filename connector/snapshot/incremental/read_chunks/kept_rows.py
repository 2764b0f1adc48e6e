"""Selects the rows of a chunk to emit. Pure."""

from collections.abc import Hashable

from rowtide.connector.errors import ConnectorError
from rowtide.connector.protocol.events.classes import Rows as RowEvent
from rowtide.connector.protocol.events.table_structure import TableStructure
from rowtide.connector.rows.text_protocol_rows import Rows
from rowtide.connector.snapshot.chunks.key_ranges import row_key
from rowtide.connector.snapshot.incremental.keys.journal import Journal, Verdict
from rowtide.connector.snapshot.incremental.keys.row_keys import replaces_rows
from rowtide.connector.snapshot.incremental.scan import ReadChunk, Scan
from rowtide.schema_history.model import Table


def kept_rows(scan: Scan, read: ReadChunk, journal: Journal, since: int) -> list[Rows] | None:
    """Return the rows of each block whose key the stream has not emitted since the chunk was read.

    Args:
        scan: the table.
        read: the chunk.
        journal: the keys that the stream has emitted.
        since: the number of the journal's last event whose changes are certainly in the chunk.

    Returns:
        The rows of each block; ``None`` if the chunk must be read again, because a row cannot be distinguished, or
        because the stream has emitted an incomplete state of it.
    """
    if not journal.concerns(since):
        return [block.rows for block in read.blocks]
    keys = scan.row_keys
    may_drop = keys.exact and (scan.key.unique or row_key(scan.structure) is not None)
    reader = keys.reader(read.names)
    kept: list[Rows] = []
    for block in read.blocks:
        found = [reader.row(block.data)] if block.single else reader.rows(block.data)[0]
        rows = []
        for row, key in zip(block.rows, keys.of_rows(found), strict=True):
            verdict = journal.verdict(key, since)
            if verdict is Verdict.EMIT:
                rows.append(row)
            elif verdict is Verdict.READ_AGAIN or not may_drop:
                return None
        kept.append(rows)
    return kept


def gone_rows(scan: Scan, read: ReadChunk, journal: Journal, since: int) -> Rows | None:
    """Return the rows of requested keys that do not exist, and for which the stream has emitted nothing since the read.

    A row that was inserted while the chunk was read, or after it, is in the journal, and its records show its state.

    Args:
        scan: the table whose requested keys are read.
        read: the chunk.
        journal: the keys that the stream has emitted.
        since: the number of the journal's last event whose changes are certainly in the chunk.

    Returns:
        The rows for deletion records; ``None`` if the chunk must be read again.
    """
    requested, keys = scan.requested, scan.row_keys
    emitted = journal.keys_since(since)
    if requested is None or emitted is None:
        return None
    reader, found = keys.reader(read.names), list[Hashable]()
    for block in read.blocks:
        found += keys.of_rows([reader.row(block.data)] if block.single else reader.rows(block.data)[0])
    changed = {*map(requested.texts, emitted)}
    return [row for texts, row in requested.gone(found).items() if texts not in changed]


def record_event(
    journal: Journal, scan: Scan, event: RowEvent, structure: TableStructure, table: Table, *, skip_unchanged: bool
) -> None:
    """Record the keys of a row event whose records are emitted.

    Args:
        journal: records them.
        scan: the table that is read.
        event: the event.
        structure: its TABLE_MAP.
        table: the table's structure in the stream.
        skip_unchanged: whether updates that change nothing that is published may be omitted.
    """
    try:
        if not scan.row_keys.exact or table is not scan.structure:
            journal.record_unknown()
            return
        keys = scan.row_keys.of_event(event, structure)
    except (ConnectorError, ValueError):
        journal.record_unknown()
        return
    journal.record(keys, replaces=replaces_rows(event, skip_unchanged=skip_unchanged))
