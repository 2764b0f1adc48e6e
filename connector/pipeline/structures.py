"""The structure with which a table's rows are read: the history's, compared with every new TABLE_MAP.

Where the two contradict each other, the TABLE_MAP is right. With ``binlog_row_metadata=FULL`` the structure is made
anew from it; otherwise from the server's SHOW CREATE TABLE, if there is a server and it can say that this is what held
at the rows. Either is written to the schema history. If neither can be, the rows cannot be read, unless the two only
differ in how long values may be.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from rowtide.connector.errors import ColumnCountMismatch, ProtocolError, SchemaError, UnknownTable
from rowtide.connector.pipeline.row_hashes import with_hashes_of_rows
from rowtide.connector.pipeline.structure_comparison import contradictions, structure_text, table_text
from rowtide.connector.pipeline.structure_repair import Repair, repaired, restated
from rowtide.connector.protocol.events.table_structure import TableStructure
from rowtide.connector.records.batch import HistoryEntry
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.records.settings import PipelineSettings
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.errors import SchemaHistoryError
from rowtide.schema_history.model import Table, TableId
from rowtide.schema_history.store.record import history_record

log = logging.getLogger(__name__)

_ASK_AGAIN_NS = 30 * 1_000_000_000
"""How long a server's refusal holds: rows that are left out meanwhile come in great numbers."""


class StructureUnsure(Exception):
    """What a server tells of a table now may not be what held at rows further back; the message says why."""


@dataclass(frozen=True, slots=True)
class RowsPlace:
    """Where rows stand in the binlog.

    Attributes:
        file: binlog file.
        pos: start of their event, or of something in front of it.
        timestamp: when their statement began, in seconds since the epoch.
    """

    file: str
    pos: int
    timestamp: int


class CurrentStructures(Protocol):
    """A server that can be asked for structures of now."""

    def statement(self, table: TableId, since: RowsPlace) -> str:
        """The text of SHOW CREATE TABLE, if the table had that structure at the place too.

        Raises:
            StructureUnsure: that cannot be said.
        """
        ...


class Structures:
    """Gives a table's structure for a TABLE_MAP.

    Args:
        settings: of the pipeline.
        tables: what the history tells; repaired structures are put there.
        clock: nanoseconds since the epoch.
        current: the server, if there is one to ask.
    """

    def __init__(
        self,
        settings: PipelineSettings,
        tables: Tables,
        clock: Callable[[], int],
        current: CurrentStructures | None = None,
    ) -> None:
        self._settings = settings
        self._tables = tables
        self._clock = clock
        self._current = current
        self._refused: dict[TableStructure, tuple[int, str]] = {}

    def checked(
        self, structure: TableStructure, place: RowsPlace, offset: Callable[[], SourceOffset]
    ) -> tuple[Table, list[HistoryEntry]]:
        """The table, and what the history has to record first.

        Args:
            structure: the TABLE_MAP.
            place: of the rows.
            offset: gives the restart point.

        Raises:
            UnknownTable, ColumnCountMismatch, SchemaError: there is no structure that fits, and none can be had.
        """
        table = self._tables.table(structure.database, structure.table)
        if table is not None and (fitted := with_hashes_of_rows(table, structure)) is not table:
            self._tables.put(fitted)
            table = fitted
        found = [] if table is None else contradictions(structure, table)
        if table is not None and not found:
            return table, []
        wrong = "; ".join(map(str, found)) or "it is not known"
        reasons: list[str] = []
        for source, make in (("its rows' TABLE_MAP", self._of_map), ("the server's SHOW CREATE TABLE", self._of_now)):
            try:
                repair = make(structure, table, place)
            except (SchemaHistoryError, StructureUnsure, SchemaError, ProtocolError, ValueError) as error:
                reasons.append(f"{source} cannot take its place: {error}")
                continue
            if repair is not None:
                log.warning(
                    "the structure of %s was not that of its rows (%s) and is taken from %s; it was changed where the "
                    "binlog does not show it (at %s:%d)",
                    repair.table.id, wrong, source, place.file, place.pos,
                )  # fmt: skip
                return self._taken(repair, offset())
        if table is None or not all(contradiction.harmless for contradiction in found):
            raise _error(structure, table, wrong, reasons)
        log.warning(
            "the structure of %s is not quite that of its rows (%s), which can be read all the same (at %s:%d)",
            table.id, wrong, place.file, place.pos,
        )  # fmt: skip
        return table, []

    def _of_map(self, structure: TableStructure, table: Table | None, _place: RowsPlace) -> Repair | None:
        if not structure.full:
            return None
        return _fitting(structure, repaired(structure, table, self._tables.server))

    def _of_now(self, structure: TableStructure, table: Table | None, place: RowsPlace) -> Repair | None:
        if self._current is None:
            return None
        now = self._clock()
        asked, reason = self._refused.get(structure, (None, ""))
        if asked is not None and now - asked < _ASK_AGAIN_NS:
            raise StructureUnsure(reason)
        try:
            text = self._current.statement(TableId(structure.database, structure.table), place)
            return _fitting(structure, restated(structure, table, text, self._tables.server))
        except (SchemaHistoryError, StructureUnsure, ValueError) as error:
            self._refused[structure] = now, str(error)
            raise

    def _taken(self, repair: Repair, offset: SourceOffset) -> tuple[Table, list[HistoryEntry]]:
        self._tables.put(repair.table)
        settings, place, now = self._settings, offset.to_map(), self._clock() // 1_000_000
        comments = settings.rules.values.include_schema_comments
        texts = [
            history_record(change, settings.topic_prefix, place, now, comments=comments) for change in repair.changes
        ]
        return repair.table, [HistoryEntry(text) for text in texts]


def _fitting(structure: TableStructure, repair: Repair) -> Repair:
    left = contradictions(structure, repair.table)
    if left:
        raise ValueError("it does not fit either: " + "; ".join(map(str, left)))
    return repair


def _error(structure: TableStructure, table: Table | None, wrong: str, reasons: Sequence[str]) -> SchemaError:
    name = f"{structure.database}.{structure.table}"
    why = "".join(f" {reason[0].upper()}{reason[1:]}." for reason in reasons)
    if table is None:
        return UnknownTable(
            f"rows of table {name}, whose structure is not in the schema history.{why} Restart with "
            "snapshot.mode=recovery to read all structures again, or set inconsistent.schema.handling.mode=warn to "
            "leave such rows out"
        )
    out = (
        f"The row events have {structure_text(structure)}, the schema history {table_text(table)}. The table was "
        "changed where the binlog does not show it (SET sql_log_bin=0?), or the schema history is incomplete."
        f"{why} Restart with snapshot.mode=recovery if no structure has changed since this place, else once with "
        "snapshot.mode=always for a new snapshot; or set inconsistent.schema.handling.mode=warn to leave such rows "
        "out"
    )
    if not structure.full:
        out += ". With binlog_row_metadata=FULL on the server the structure would be taken from the row events"
    if len(structure.columns) != len(table.row_columns):
        return ColumnCountMismatch(
            f"table {name}: the row events have {len(structure.columns)} columns, the schema history knows "
            f"{len(table.row_columns)}. {out}"
        )
    return SchemaError(f"table {name} is not as the schema history knows it: {wrong}. {out}")
