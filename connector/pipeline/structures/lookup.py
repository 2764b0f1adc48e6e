"""Finds the structure with which a table's rows are decoded: the schema history's, checked against each new TABLE_MAP.

Where the two contradict each other, the TABLE_MAP is right. With ``binlog_row_metadata=FULL`` the structure is rebuilt
from it. Otherwise it is taken from the server's SHOW CREATE TABLE, if the server can prove that it already held at the
rows. The repaired structure is written to the schema history. Without a repair the rows cannot be decoded, unless the
two only differ in the maximum length of values.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from rowtide.connector.errors import ColumnCountMismatch, ProtocolError, SchemaError, StructureUncertain, UnknownTable
from rowtide.connector.pipeline.structures.comparison import contradictions, structure_text, table_text
from rowtide.connector.pipeline.structures.repair import Repair, repair_from_statement, repair_from_table_map
from rowtide.connector.protocol.events.table_structure import BinlogType, TableStructure
from rowtide.connector.records.batch import HistoryEntry
from rowtide.connector.records.change import SourcePosition
from rowtide.connector.records.codecs.recently_used import RecentlyUsed
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.records.settings import PipelineSettings
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.errors import SchemaHistoryError
from rowtide.schema_history.model import Table, TableId
from rowtide.schema_history.store.history_record import history_record
from rowtide.schema_history.structure.tables import ROW_HASH, row_hashes

log = logging.getLogger(__name__)

_RETRY_LOOKUP_NS = 30 * 1_000_000_000
"""How long a failed lookup on the server is not repeated: there may be a great many rows that are omitted."""
_FAILED_LOOKUPS = 1000
"""How many failed lookups are kept."""
_UNKNOWN_WAY_OUT = (
    "Restart with snapshot.mode=recovery to read all structures again, or set inconsistent.schema.handling.mode=warn "
    "to skip such rows"
)
_WRONG_WAY_OUT = (
    "Restart with snapshot.mode=recovery if no structure has changed since this position, otherwise once with "
    "snapshot.mode=always for a new snapshot. Or set inconsistent.schema.handling.mode=warn to skip such rows"
)


class CurrentStructures(Protocol):
    """Looks up current structures on the server."""

    def statement(self, table: TableId, since: SourcePosition) -> str:
        """Return the text of SHOW CREATE TABLE, if the table already had that structure at the position.

        Raises:
            StructureUncertain: that cannot be proved.
        """
        ...

    def is_view(self, name: TableId) -> bool | None:
        """Return whether a name is that of a view now; ``None`` if the account sees neither a table nor a view."""
        ...


class Structures:
    """Finds a table's structure for a TABLE_MAP, and repairs it where the two contradict each other.

    Args:
        settings: of the pipeline.
        tables: the structures of the schema history; repaired structures are put there.
        clock: nanoseconds since the epoch.
        current: the server, if there is one.
        way_out: what to do about rows without a structure, for messages; by default for a connector.
        looks_up: whether tables are usually unknown before their first rows, which is then not worth a warning.
    """

    def __init__(
        self,
        settings: PipelineSettings,
        tables: Tables,
        clock: Callable[[], int],
        current: CurrentStructures | None = None,
        way_out: str | None = None,
        *,
        looks_up: bool = False,
    ) -> None:
        self._way_out = way_out
        self._unknown_level = logging.DEBUG if looks_up else logging.WARNING
        self._settings = settings
        self._tables = tables
        self._clock = clock
        self._current = current
        self._failed_lookups: RecentlyUsed[TableStructure, tuple[int, str]] = RecentlyUsed(_FAILED_LOOKUPS)

    def checked(
        self, structure: TableStructure, position: SourcePosition, offset: Callable[[], SourceOffset]
    ) -> tuple[Table, list[HistoryEntry]]:
        """Return the table, and the history entries of its repair, which must be written before the rows.

        Args:
            structure: the TABLE_MAP.
            position: of the rows.
            offset: returns the resume position.

        Raises:
            UnknownTable, ColumnCountMismatch, SchemaError: no structure fits the rows.
        """
        table = self._tables.table(structure.database, structure.table)
        if table is not None and (fitted := with_row_hashes(table, structure)) is not table:
            self._tables.put(fitted)
            table = fitted
        found = [] if table is None else contradictions(structure, table)
        if table is not None and not found:
            return table, []
        wrong = "; ".join(map(str, found)) or "it is unknown"
        reasons: list[str] = []
        for source, make in (
            ("its rows' TABLE_MAP", self._from_table_map),
            ("the server's SHOW CREATE TABLE", self._from_server),
        ):
            try:
                repair = make(structure, table, position)
            except (SchemaHistoryError, StructureUncertain, SchemaError, ProtocolError, ValueError) as error:
                reasons.append(f"{source} cannot replace it: {error}")
                continue
            if repair is not None:
                log.log(
                    logging.WARNING if found else self._unknown_level,
                    "the structure of %s %s and is taken from %s; %s (at %s:%d)",
                    repair.table.id, f"did not fit its rows ({wrong})" if found else "is not known here", source,
                    "the table was changed without an event in the binlog" if found else "the schema history lacks it",
                    position.file, position.pos,
                )  # fmt: skip
                return self._recorded(repair, offset())
        if table is None or not all(contradiction.harmless for contradiction in found):
            raise _error(structure, table, wrong, reasons, self._way_out)
        log.warning(
            "the structure of %s differs from that of its rows (%s), but decodes them correctly (at %s:%d)",
            table.id, wrong, position.file, position.pos,
        )  # fmt: skip
        return table, []

    def _from_table_map(
        self, structure: TableStructure, table: Table | None, _position: SourcePosition
    ) -> Repair | None:
        if not structure.full:
            return None
        return _fitting(structure, repair_from_table_map(structure, table, self._tables.server))

    def _from_server(self, structure: TableStructure, table: Table | None, position: SourcePosition) -> Repair | None:
        if self._current is None:
            return None
        now = self._clock()
        failed_at, reason = self._failed_lookups.get(structure) or (None, "")
        if failed_at is not None and now - failed_at < _RETRY_LOOKUP_NS:
            raise StructureUncertain(reason)
        try:
            text = self._current.statement(TableId(structure.database, structure.table), position)
            return _fitting(structure, repair_from_statement(structure, table, text, self._tables.server))
        except (SchemaHistoryError, StructureUncertain, ValueError) as error:
            self._failed_lookups.put(structure, (now, str(error)))
            raise

    def _recorded(self, repair: Repair, offset: SourceOffset) -> tuple[Table, list[HistoryEntry]]:
        self._tables.put(repair.table)
        settings, position, now = self._settings, offset.to_map(), self._clock() // 1_000_000
        comments = settings.rules.values.include_schema_comments
        texts = [
            history_record(change, settings.topic_prefix, position, now, comments=comments) for change in repair.changes
        ]
        return repair.table, [HistoryEntry(text) for text in texts]


def with_row_hashes(table: Table, structure: TableStructure) -> Table:
    """Return the table with as many hidden hash columns as the TABLE_MAP has, if that many of its keys may have one.

    MariaDB keeps a UNIQUE key that is too long for an index, or that is declared USING HASH, as a hash of its columns.
    The hash is a hidden column, which row events show after all others. Every statement that rebuilds the table (ALTER
    TABLE, OPTIMIZE TABLE, CREATE TABLE ... LIKE) rebuilds its keys, most of those declared USING HASH then without a
    hash. The statements do not show which, so the TABLE_MAP decides.
    """
    others = tuple(column for column in table.hidden if not column.name.startswith(ROW_HASH))
    count = len(structure.columns) - len(table.columns) - len(others)
    if count == len(table.hidden) - len(others) or not 0 <= count <= sum(index.hashed for index in table.indexes):
        return table
    hidden = structure.columns[len(structure.columns) - count :]
    if any(c.type != BinlogType.LONGLONG or not (c.name or ROW_HASH).startswith(ROW_HASH) for c in hidden):
        return table
    return replace(table, hidden=others + row_hashes(count))


def _fitting(structure: TableStructure, repair: Repair) -> Repair:
    left = contradictions(structure, repair.table)
    if left:
        raise ValueError("it does not fit either: " + "; ".join(map(str, left)))
    return repair


def _error(
    structure: TableStructure, table: Table | None, wrong: str, reasons: Sequence[str], way_out: str | None
) -> SchemaError:
    name = f"{structure.database}.{structure.table}"
    why = "".join(f" {reason[0].upper()}{reason[1:]}." for reason in reasons)
    if table is None:
        return UnknownTable(
            f"rows of table {name}, which is not in the schema history.{why} {way_out or _UNKNOWN_WAY_OUT}"
        )
    out = (
        f"The row events have {structure_text(structure)}, the schema history {table_text(table)}. The table was "
        "changed without an event in the binlog (SET sql_log_bin=0?), or the schema history is incomplete."
        f"{why} {way_out or _WRONG_WAY_OUT}"
    )
    if not structure.full:
        out += ". With binlog_row_metadata=FULL on the server, the structure could be taken from the row events"
    if len(structure.columns) != len(table.row_columns):
        return ColumnCountMismatch(
            f"table {name}: the row events have {len(structure.columns)} columns, the schema history has "
            f"{len(table.row_columns)}. {out}"
        )
    return SchemaError(f"table {name} differs from its structure in the schema history: {wrong}. {out}")
