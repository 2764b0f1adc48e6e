"""Replays binlog files as Canal's entries (``rowtide replay --format canal``)."""

import base64
import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from rowtide.canal.entries.entry import Entry
from rowtide.canal.entries.flat_message import flat_message
from rowtide.canal.entries.pipeline import EntryBatch, EntryPipeline, Output
from rowtide.connector.engine.replay import ReadPrepared, replay_through
from rowtide.connector.pipeline.pipeline import Clock
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.records.settings import PipelineSettings
from rowtide.connector.source.temporary_file import temporary_file
from rowtide.schema_history.catalog.tables import Tables
from rowtide.topics.filters import TableFilter


def entries(
    folder: Path,
    settings: PipelineSettings,
    start: SourceOffset | None = None,
    *,
    gtids: bool = False,
    clock: Clock = time.time_ns,
) -> Iterator[Entry]:
    """Return the entries of all tables in the binlog files of a folder.

    Args:
        folder: where the files are; in the order of their numbers.
        settings: what to do with rows and statements that cannot be handled.
        start: the position from which entries are returned; ``None`` for all.
        gtids: ``canal.instance.gtidon``.
        clock: the clock for times in the schema history.

    Raises:
        ConnectorError: an event cannot be handled.
        OffsetError: the start is not in the files, or files are missing.
    """
    settings = replace(settings, tables=TableFilter(ignore_builtin=False))

    executed = "" if start is None else start.gtids or ""

    def make(tables: Tables, offset: SourceOffset, _packets: ReadPrepared) -> EntryPipeline:
        offset = replace(offset, gtids=executed)  # as in Canal, not with those of PREVIOUS_GTIDS
        return EntryPipeline(settings, tables, offset, clock, gtids=gtids, temporary_file=temporary_file)

    steps: Iterator[list[Output]] = replay_through(make, folder, settings, start)
    return (
        entry for outputs in steps for output in outputs if isinstance(output, EntryBatch) for entry in output.entries
    )


def entry_line(entry: Entry, number: int, ts: int) -> str:
    """Return an entry as one line of JSON: its type, its bytes in base64, and its FlatMessages.

    Args:
        entry: the entry.
        number: ``id`` of the FlatMessage.
        ts: ``ts`` of the FlatMessage, in milliseconds since the epoch.
    """
    flat = flat_message(entry, number, ts)
    fields = {
        "entryType": entry.type.name,
        "entry": base64.b64encode(entry.encoded()).decode(),
        "flat": [] if flat is None else [flat],
    }
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")) + "\n"
