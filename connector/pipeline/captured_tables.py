"""The captured tables of a stream: from a TABLE_MAP to the table, its codec and its ``source`` block."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rowtide.connector.errors import SchemaError
from rowtide.connector.pipeline.resume_position import Progress
from rowtide.connector.pipeline.structures import RowsPosition, Structures
from rowtide.connector.protocol.events.table_structure import TableStructure
from rowtide.connector.records.batch import Output
from rowtide.connector.records.codecs.builder import Codec, Codecs
from rowtide.connector.records.codecs.rows import EventContext
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.records.settings import PipelineSettings
from rowtide.envelope.source import SourceTemplate, stream_snapshot_marker
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.model import Table

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CapturedTable:
    """A table with everything that makes records of its rows.

    Attributes:
        table: the structure.
        codec: from row images to records.
        source: the fields of the ``source`` block that are the same for all rows.
    """

    table: Table
    codec: Codec
    source: SourceTemplate


class CapturedTables:
    """Looks up the captured table for a TABLE_MAP, and caches the result until the table's structure changes.

    Args:
        settings: which tables are captured, and what to do with rows whose structure is not known.
        tables: every table's structure.
        structures: compares structures with TABLE_MAPs and repairs them.
        codecs: makes codecs.
    """

    def __init__(self, settings: PipelineSettings, tables: Tables, structures: Structures, codecs: Codecs) -> None:
        self._settings = settings
        self._tables = tables
        self._structures = structures
        self._codecs = codecs
        self._found: dict[TableStructure, CapturedTable | None] = {}

    def find(
        self, structure: TableStructure, progress: Progress, offset: Callable[[], SourceOffset], out: list[Output]
    ) -> CapturedTable | None:
        """The table, or ``None`` if it is not captured or its rows are left out.

        Args:
            structure: the TABLE_MAP.
            progress: the position of the rows.
            offset: returns the resume position, for the schema history.
            out: receives the history entries of a structure that was repaired.

        Raises:
            SchemaError: the structure does not fit the rows (``inconsistent.schema.handling.mode=fail``).
            TopicClash: the topic belongs to another table.
        """
        table = self._tables.table(structure.database, structure.table)
        try:
            found = self._found[structure]
            if found is None or found.table is table:
                return found
        except KeyError:
            pass
        settings, found = self._settings, None
        if settings.tables.captures(structure.database, structure.table):
            position = RowsPosition(progress.file, progress.pos, progress.timestamp or 0)
            try:
                table, entries = self._structures.checked(structure, position, offset)
                out += entries
                codec = self._codecs.codec(structure, table)
            except SchemaError as error:
                if settings.inconsistent_schema == "fail":
                    raise
                if settings.inconsistent_schema == "warn":
                    log.warning("rows are left out: %s (at %s:%d)", error, progress.file, progress.pos)
                return None  # not cached: a later statement may make the table known
            source = SourceTemplate(settings.connector, settings.topic_prefix, table.id.database, table.id.table)
            found = CapturedTable(table, codec, source)
        self._found[structure] = found
        return found


def event_context(
    settings: PipelineSettings,
    progress: Progress,
    now: int,
    source: SourceTemplate,
    transactions: Callable[[int], Sequence[str]] | None,
) -> EventContext:
    """What a row event adds to the records of its rows.

    Args:
        settings: converters and headers.
        progress: the position of the event.
        now: the connector's clock, in ns since the epoch.
        source: of the table.
        transactions: returns the next ``"transaction":…`` fields, if transaction metadata is on.
    """
    micros, ts_us = now // 1000, progress.change_micros()
    return EventContext(
        source.prefix(
            ts_us,
            stream_snapshot_marker(settings.values.json_format),
            progress.server_id,
            progress.gtid,
            progress.file,
            progress.pos,
        ),
        source.suffix(progress.thread, progress.query),
        f'"ts_ms":{micros // 1000},"ts_us":{micros},"ts_ns":{now}',
        settings.headers,
        transactions,
        progress.source_position(ts_us, now),
    )
