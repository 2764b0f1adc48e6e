"""Which rows of a chunk are emitted. Pure."""

from rowtide.connector.rows.text_protocol_rows import Rows
from rowtide.connector.snapshot.chunks.key_ranges import row_key
from rowtide.connector.snapshot.incremental.keys.journal import Journal, Verdict
from rowtide.connector.snapshot.incremental.scan import ReadChunk, Scan


def kept_rows(scan: Scan, read: ReadChunk, journal: Journal) -> list[Rows] | None:
    """The rows of each block whose key the stream has not emitted since the chunk was read.

    Args:
        scan: the table.
        read: the chunk.
        journal: the keys that the stream has emitted.

    Returns:
        The rows of each block; ``None`` if the chunk must be read again, because a row cannot be told from others, or
        because what the stream has emitted of it is not complete.
    """
    if not journal.concerns(read.since):
        return [block.rows for block in read.blocks]
    keys = scan.row_keys
    may_drop = keys.exact and (scan.key.unique or row_key(scan.structure) is not None)
    reader = keys.reader(read.names)
    kept: list[Rows] = []
    for block in read.blocks:
        found = [reader.row(block.data)] if block.single else reader.rows(block.data)[0]
        rows = []
        for row, key in zip(block.rows, keys.of_rows(found), strict=True):
            verdict = journal.verdict(key, read.since)
            if verdict is Verdict.EMIT:
                rows.append(row)
            elif verdict is Verdict.READ_AGAIN or not may_drop:
                return None
        kept.append(rows)
    return kept
