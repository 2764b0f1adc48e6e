"""Time travel: the changes of one table between two points of archived binlog files (``rowtide replay --table``).

Structures at the start come from the schema history if the configuration has one, and otherwise from the statements
before the start. Statements after the start are applied where they are in the binlog.
"""

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from rowtide.connector.config import Configuration
from rowtide.connector.engine.decoding.forms import Form, RecordForm
from rowtide.connector.engine.pipeline_settings import pipeline_settings, run_id
from rowtide.connector.engine.replay import ReadPrepared, ReplayPipeline, replay_pipeline, replay_through
from rowtide.connector.engine.wiring import history_source
from rowtide.connector.errors import EngineError, OffsetError, ProtocolError, UnknownTable
from rowtide.connector.records.batch import Batch
from rowtide.connector.records.change import Change
from rowtide.connector.records.offset import PreparedXa, SourceOffset
from rowtide.connector.records.settings import PipelineSettings
from rowtide.connector.source.search.binlog_search import xa_prepared_before
from rowtide.connector.source.search.places import FolderFiles
from rowtide.connector.source.search.positions import (
    PositionNotFound,
    end_of,
    find_gtid,
    find_gtids,
    is_inside_transaction,
    one_gtid,
)
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.position.binlog_position import BinlogPosition, parse_gtids
from rowtide.schema_history.recovery.recover import recover
from rowtide.schema_history.store.history_record import parse_record
from rowtide.topics.filters import Patterns, Selection, TableFilter

_FILE_AND_POSITION = re.compile(r"(?P<file>.*\.\d+):(?P<pos>\d+)")
_FIRST_EVENT = 4

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Section:
    """A section of binlog files.

    Attributes:
        start: the beginning of its first transaction.
        end: no transaction that begins at this file and position, or later, belongs to it; ``None`` for all.
    """

    start: SourceOffset
    end: tuple[str, int] | None


def find_section(folder: Path, first: str | None, last: str | None) -> Section:
    """Find the transactions between two points.

    Args:
        folder: the binlog files, such as a mirror.
        first: a GTID: from this transaction on, inclusive. A GTID set: from the first transaction that is not in it. Or
            ``file:position``. ``None`` for the first transaction of the files.
        last: a GTID: up to this transaction, inclusive. A GTID set: up to the first transaction that is not in it,
            exclusive. ``file:position``: the transactions that begin before it. ``None`` for the end.

    Raises:
        OffsetError: the files do not have a point, the second one is before the first one, or files are missing.
    """
    files = FolderFiles(folder)
    start = SourceOffset(files.names[0], _FIRST_EVENT) if first is None else _point(files, first, "start")
    if last is None:
        return Section(start, None)
    end = _point(files, last, "end")
    after = 1 if _is_gtid(last) else 0
    if (files.names.index(end.file), end.pos + after) < (files.names.index(start.file), start.pos):
        raise OffsetError(
            f"the end {last} ({end.file}:{end.pos}) is before the start {first} ({start.file}:{start.pos}): swap them"
        )
    return Section(start, (end.file, end.pos + after))


def _is_gtid(text: str) -> bool:
    """Return whether a point is one transaction, and not a set or a position."""
    try:
        one_gtid(text)
    except ValueError:
        return False
    return True


def _point(files: FolderFiles, text: str, name: str) -> SourceOffset:
    match = _FILE_AND_POSITION.fullmatch(text)
    if match is not None:
        if match["file"] not in files.names:
            raise OffsetError(
                f"the {name} is in {match['file']}, but the files are {files.names[0]} to {files.names[-1]}"
            )
        offset = SourceOffset(match["file"], max(int(match["pos"]), _FIRST_EVENT))
        if name == "start" and is_inside_transaction(files, offset.file, offset.pos):
            raise OffsetError(
                f"the start {text} is inside a transaction: give the position where it begins, or its GTID (rowtide "
                "position finds both)"
            )
        if offset.file == files.names[-1] and offset.pos > (whole := end_of(files).pos):
            raise OffsetError(f"the {name} {text} is after the end of the files, {offset.file}:{whole}")
        return offset
    try:
        found = find_gtid(files, text) if _is_gtid(text) else find_gtids(files, parse_gtids(text))
    except PositionNotFound as error:
        raise OffsetError(f"the {name} {text} is not in the files: {error}") from None
    except ValueError as error:
        raise OffsetError(
            f"the {name} {text!r} is not a GTID, a GTID set or a position such as binlog.000042:1234: {error}"
        ) from None
    return SourceOffset(found.file, found.pos, found.gtids)


def table_changes(
    config: Configuration, table: str, folder: Path, first: str | None = None, last: str | None = None
) -> Iterator[Change]:
    """Yield the changes of a table between two points, as Python values; see :func:`replay_table`."""
    settings = pipeline_settings(config, run_id(), changes=True)
    for outputs in replay_table(RecordForm(), config, settings, table, folder, first, last):
        for output in outputs:
            if isinstance(output, Batch):
                yield from output.changes


def replay_table(
    form: Form[T],
    config: Configuration,
    settings: PipelineSettings,
    table: str,
    folder: Path,
    first: str | None = None,
    last: str | None = None,
) -> Iterator[T]:
    """Yield the changes of a table between two points, in a given form.

    Args:
        form: the form.
        config: names the schema history.
        settings: the settings for records.
        table: ``database.table``, in the spelling of the server. The lists of captured tables do not matter.
        folder: as for :func:`find_section`.
        first: as for :func:`find_section`.
        last: as for :func:`find_section`.

    Raises:
        EngineError: the table is not ``database.table``.
        OffsetError: as for :func:`find_section`.
        UnknownTable: the table did not exist between the two points.
        ConnectorError: an event cannot be handled, or an XA transaction that the files do not have is committed between
            the points.
        SchemaHistoryError: the schema history cannot be read.
    """
    database, _, name = table.partition(".")
    if not database or not name:
        raise EngineError(f"{table!r} is not a table: give database.table, such as shop.orders")
    section = find_section(folder, first, last)
    settings = _only(settings, database, name)
    seen: list[Tables] = []
    existed = False

    def recorded(version: str, offset: SourceOffset) -> Tables:
        with history_source(config) as source:
            server = replace(source.server, version=version)
            position = BinlogPosition(offset.file, offset.pos, offset.gtids)
            return recover(source.store.replay(parse_record), server, position)

    make_pipeline = replay_pipeline(form, settings, time.time_ns, None, partial(_prepared, folder, section.start))

    def make(tables: Tables, offset: SourceOffset, packets: ReadPrepared) -> ReplayPipeline[T]:
        nonlocal existed
        seen.append(tables)
        existed = tables.table(database, name) is not None
        return make_pipeline(tables, offset, packets)

    has_history = config.history.topic is not None or config.history.file is not None
    yield from replay_through(make, folder, settings, section.start, section.end, recorded if has_history else None)
    if seen and not existed and seen[0].table(database, name) is None:
        known = ", ".join(sorted(map(str, seen[0].names()))[:10]) or "no tables"
        raise UnknownTable(f"there was no table {table} (database.table) between the two points; there were {known}")


def _prepared(folder: Path, start: SourceOffset, xid: str) -> PreparedXa:
    """Return the XA transaction prepared before the start; raises ``ProtocolError`` if the files lack it."""
    found = xa_prepared_before(FolderFiles(folder), xid, start)
    if found is None:
        raise ProtocolError(
            f"the rows of XA transaction {xid}, which is committed here, were prepared before the first file in "
            f"{folder}. Add the files before it, replay from a later point, or set "
            "event.processing.failure.handling.mode=warn to continue without these rows"
        )
    return found


def _only(settings: PipelineSettings, database: str, table: str) -> PipelineSettings:
    """Capture exactly one table, and nothing but its rows. Rows without a known structure are an error."""
    nothing = Selection(include=Patterns.of(()))
    databases = Selection(include=Patterns.of((re.escape(database),)))
    return replace(
        settings,
        tables=TableFilter(databases, nothing, always=frozenset({(database, table)})),
        transaction_metadata=False,
        schema_changes=False,
        only_captured_tables_ddl=False,
        only_captured_databases_ddl=False,
        inconsistent_schema="fail",
    )
