"""Begins the scan of a table: the key by which it is divided, and the key from which it starts."""

from rowtide.connector.records.settings import PipelineSettings
from rowtide.connector.records.topic_conflicts import TopicOwners
from rowtide.connector.snapshot.changes import snapshot_table
from rowtide.connector.snapshot.chunks.key_ranges import chunk_ranges, row_key
from rowtide.connector.snapshot.incremental.keys.requested_keys import RequestedKeys
from rowtide.connector.snapshot.incremental.keys.row_keys import RowKeys
from rowtide.connector.snapshot.incremental.read_chunks.attempts import Attempts
from rowtide.connector.snapshot.incremental.scan import Scan
from rowtide.connector.snapshot.incremental.state import IncrementalTable
from rowtide.schema_history.model import Table


class NoUsableKey(Exception):
    """A table cannot be cut into chunks; the message says why."""


def new_scan(
    table: IncrementalTable, structure: Table, settings: PipelineSettings, topics: TopicOwners, attempts: Attempts
) -> Scan:
    """Return a scan of a table after its last chunk, or from its beginning if its key has changed since the chunk.

    Args:
        table: the table to read.
        structure: the table's structure in the stream.
        settings: of the records.
        topics: the owners of topics.
        attempts: decides how to read its first chunk.

    Raises:
        NoUsableKey: the table has no key, its types cannot be compared, or the requested rows cannot be read by it.
    """
    try:
        key, ranges = chunk_ranges(structure, table.surrogate_key)
    except ValueError as error:
        raise NoUsableKey(str(error)) from None
    same_key = table.key in (None, key.signature)
    form = snapshot_table(structure, settings, custom_query=False)
    row_keys = RowKeys(structure, (row_key(structure) or key).columns, settings, topics)
    try:
        requested = None
        if table.keys:
            others = topics.topics() - {form.topic}
            requested = RequestedKeys(table.key_names, table.keys, structure, form, row_keys, others)
    except ValueError as error:
        raise NoUsableKey(f"its rows cannot be read by their keys: {error}") from None
    return Scan(
        structure,
        form,
        key,
        ranges,
        row_keys,
        table.condition or "" if requested is None else requested.condition,
        attempts.size,
        attempts.limit,
        attempts.delays,
        attempts.held,
        requested,
        last=table.last if same_key else None,
        lower=table.lower if same_key else None,
    )
