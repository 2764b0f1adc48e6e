"""The captured tables of a stream: from a TABLE_MAP to the table, its codec and its ``source`` block.

Codecs are large, and take longer to build than a row to decode. A codec is built for the first row of a table, and is
valid until the structure of the table changes. The most recently used ones are kept, even across connections.
"""

import logging
from collections.abc import Callable, MutableSet, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

from rowtide.connector.errors import SchemaError
from rowtide.connector.pipeline.cascades import Cascades
from rowtide.connector.pipeline.resume_position import Progress
from rowtide.connector.pipeline.structures.lookup import CurrentStructures, Structures
from rowtide.connector.protocol.events.classes import Rows
from rowtide.connector.protocol.events.table_structure import TableStructure
from rowtide.connector.records.batch import Batch, HistoryEntry, MoreOutputs, Steps
from rowtide.connector.records.codecs.builder import Codec, Codecs
from rowtide.connector.records.codecs.recently_used import RecentlyUsed
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.records.settings import PipelineSettings
from rowtide.connector.records.topic_conflicts import TopicOwners
from rowtide.envelope.source import SourceTemplate
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.model import Table, TableId
from rowtide.topics.filters import CapturedNames

log = logging.getLogger(__name__)


MAX_COLUMNS = 50_000
"""Columns of all cached codecs together. A codec needs about 5 KB for each of its columns."""
_MAX_IGNORED = 50_000
"""Names of tables that are cached because they are not captured."""
_MAX_REPORTED = 1000
"""Names of helper tables that are not reported again."""


@dataclass(frozen=True, slots=True)
class CapturedTable:
    """A table with everything that makes records of its rows.

    Attributes:
        structure: the TABLE_MAP.
        table: the structure.
        codec: from row images to records.
        source: the fields of the ``source`` block that are the same for all rows.
    """

    structure: TableStructure
    table: Table
    codec: Codec
    source: SourceTemplate


class Lookup(NamedTuple):
    """The result of a lookup for a TABLE_MAP.

    Attributes:
        table: the table; ``None`` if it is not captured, or its rows are skipped.
        entries: the history entries of a structure that was repaired; they are outputs before the rows.
        problem: why its rows are skipped.
    """

    table: CapturedTable | None
    entries: Sequence[HistoryEntry] = ()
    problem: SchemaError | None = None


NOT_CAPTURED = Lookup(None)


class DerivedRows(NamedTuple):
    """Changes that follow from a row event by a foreign key.

    Attributes:
        child: their table.
        event: the changes, one for each row of the row event.
        cause: the action that makes them, such as ``ON DELETE CASCADE of shop.orders``.
    """

    child: CapturedTable
    event: Rows
    cause: str


class RowObserver(Protocol):
    """Receives the row events of one table, and the changes of all tables, for an incremental snapshot."""

    @property
    def watched(self) -> TableId | None:
        """The table whose row events it receives."""
        ...

    def observe(self, event: Rows, structure: TableStructure, table: Table) -> None:
        """Note that the records of a row event of the watched table were made, outside of XA transactions."""
        ...

    def emitted(self, topic: str) -> None:
        """Note that records of an XA transaction were emitted to a topic."""
        ...

    def omitted(self, table: TableId | None) -> None:
        """Note that a row event is skipped, because it cannot be handled; ``None`` if it may have changed any table."""
        ...

    def changed(self, table: TableId) -> None:
        """Note that a statement has created, changed, renamed, dropped or truncated a table."""
        ...

    def renamed(self, former: TableId, now: TableId) -> None:
        """Note that a statement has given a table another name, and :meth:`changed` was called for both names."""
        ...


class CapturedTables:
    """Looks up the captured table for a TABLE_MAP, and caches the result until the table's structure changes.

    Args:
        settings: which tables are captured, and what to do with rows whose structure is not known.
        tables: every table's structure.
        clock: nanoseconds since the epoch.
        current: the server, to look up the structure of a table whose rows do not fit the schema history.
        hidden: tables that are not captured yet, as (database, table); the caller removes them, too.

    Attributes:
        topics: the owners of topics.
        observer: receives row events, and the changes of tables.
        cascades: the changes by foreign keys that are not logged, with ``rowtide.cascaded.changes=derive``.
        on_entered: called with a table that was not captured until a statement gave it another name. The swap of an
            online schema change is not such a statement: the stream has all rows of its helper table.
    """

    def __init__(
        self,
        settings: PipelineSettings,
        tables: Tables,
        clock: Callable[[], int],
        current: CurrentStructures | None = None,
        hidden: MutableSet[tuple[str, str]] | None = None,
    ) -> None:
        self._hidden = set() if hidden is None else hidden
        self.topics = TopicOwners(settings, tables)
        self.observer: RowObserver | None = None
        self.on_entered: Callable[[TableId], None] | None = None
        self._settings = settings
        self._tables = tables
        self._current = current
        self._names = CapturedNames(settings.tables, tables.exists)
        self.cascades = Cascades(tables, self._names) if settings.derive_cascades else None
        self._children: dict[TableId, CapturedTable] = {}
        self._structures = Structures(settings, tables, clock, current)
        self._codecs = Codecs(settings, self.topics)
        self._found: RecentlyUsed[_Name, CapturedTable] = RecentlyUsed(MAX_COLUMNS)
        self._unchanged: dict[int, Lookup] = {}  # by id of the structure: since the last change of any table
        self._changes = tables.changes
        self._ignored: RecentlyUsed[_Name, bool] = RecentlyUsed(_MAX_IGNORED)
        self._helper_names: set[_Name] = set()
        self._reported: RecentlyUsed[_Name, bool] = RecentlyUsed(_MAX_REPORTED)

    def find(self, structure: TableStructure, progress: Progress, offset: Callable[[], SourceOffset]) -> "Lookup":
        """Look up the captured table.

        Args:
            structure: the TABLE_MAP.
            progress: the position of the rows.
            offset: returns the resume position, for the schema history.

        Raises:
            SchemaError: the structure does not fit the rows (``inconsistent.schema.handling.mode=fail``).
            TopicClash: the topic belongs to another table.
        """
        if self._changes != self._tables.changes:
            self._changes = self._tables.changes
            self._unchanged.clear()
        elif (unchanged := self._unchanged.get(id(structure))) is not None:
            return unchanged
        name = structure.database, structure.table
        if self._ignored.get(name) or name in self._hidden:
            return NOT_CAPTURED
        found, table = self._found.get(name), self._tables.table(*name)
        if found is not None and found.table is table:
            if found.structure is structure:
                self._unchanged[id(structure)] = unchanged = Lookup(found)
                return unchanged
            if found.structure == structure:  # after a reconnect; comparing many columns takes long
                return Lookup(self._keep(name, replace(found, structure=structure)))
        settings = self._settings
        if settings.tables.helpers.may_match(name[1]):
            self._helper_names.add(name)
        if not self._names.captures(*name):
            self._report_helper(name)
            self._ignored.put(name, True)
            return NOT_CAPTURED
        position = progress.source_position()
        entries: Sequence[HistoryEntry] = ()
        try:
            table, entries = self._structures.checked(structure, position, offset)
            return Lookup(self._built(structure, table), entries)
        except SchemaError as error:
            if settings.inconsistent_schema == "fail":
                raise
            if settings.inconsistent_schema == "warn":
                log.warning("rows are skipped: %s (at %s:%d)", error, progress.file, progress.pos)
            return Lookup(None, entries, error)  # not cached: a later statement may make the table known

    def derived(self, event: Rows, parent: CapturedTable) -> list[DerivedRows]:
        """Return the changes that follow from a row event by foreign keys, as row events of other captured tables.

        Raises:
            SchemaError: they cannot be derived.
        """
        found: list[DerivedRows] = []
        if self.cascades is None:
            return found
        for one, structure, rows in self.cascades.derived(event, parent.structure, parent.table):
            child = self._children.get(one.child.id)
            if child is None or child.table is not one.child or child.structure != structure:
                child = self._codec_of(structure, one.child)
                self._children[one.child.id] = child
            keyed = {place for place, _ in one.places}
            if not child.codec.records.key_columns or not keyed.issuperset(child.codec.records.key_columns):
                raise SchemaError(
                    f"the deletes of {one.child.id} by {one.cause} cannot be derived: the key of its records is not "
                    "its primary key (message.key.columns)"
                )
            found.append(DerivedRows(child, rows, one.cause))
        return found

    def cached(self, structure: TableStructure) -> CapturedTable | None:
        """Return the result of :meth:`find` if it is cached, otherwise ``None``."""
        name = structure.database, structure.table
        found = self._found.get(name)
        if found is None or found.table is not self._tables.table(*name) or found.structure != structure:
            return None
        return found

    def ignores(self, structure: TableStructure) -> bool:
        """Return whether the cache shows that a table is not captured."""
        return self._ignored.get((structure.database, structure.table)) is not None

    def _built(self, structure: TableStructure, table: Table) -> CapturedTable:
        return self._keep((structure.database, structure.table), self._codec_of(structure, table))

    def _codec_of(self, structure: TableStructure, table: Table) -> CapturedTable:
        codec = self._codecs.codec(structure, table)
        settings = self._settings
        source = SourceTemplate(settings.connector, settings.topic_prefix, table.id.database, table.id.table)
        return CapturedTable(structure, table, codec, source)

    def _keep(self, name: "_Name", found: CapturedTable) -> CapturedTable:
        self._unchanged.clear()  # which may have the codecs that are dropped now
        self._found.put(name, found, len(found.structure.columns))
        return found

    def _report_helper(self, name: "_Name") -> None:
        if self._reported.get(name) or not self._names.leaves_out(*name):
            return
        self._reported.put(name, True)
        log.info(
            "the rows of %s are skipped: it is a helper table of an online schema change of %s.%s "
            "(rowtide.online.schema.change.tables)",
            TableId(*name), name[0], self._names.helped(*name),
        )  # fmt: skip

    def __len__(self) -> int:
        """Return the number of tables whose codec is cached."""
        return len(self._found)

    def changed(self, table: TableId, *, exists: bool) -> None:
        """Drop the cache entries of a table that a statement created, changed, renamed or dropped.

        Whether a table is a helper table of an online schema change depends on the other tables, too.
        """
        self._unchanged.clear()
        self._found.discard((table.database, table.table))
        for name in self._helper_names:
            self._found.discard(name)
            self._ignored.discard(name)
        self._helper_names.clear()
        if exists:
            self.topics.register(table)
        else:
            self.topics.release(table)
        self.truncated(table)

    def capture(self, table: TableId) -> None:
        """Capture a table from here on, if it is hidden: its structure is that of the stream."""
        self._hidden.discard((table.database, table.table))

    def is_view(self, name: TableId) -> bool | None:
        """Return whether a name is that of a view; ``None`` if there is no server that knows."""
        return None if self._current is None else self._current.is_view(name)

    def truncated(self, table: TableId) -> None:
        """Report a table whose rows a statement has removed."""
        if self.observer is not None:
            self.observer.changed(table)

    def renamed(self, former: TableId, now: TableId) -> None:
        """Report a table that a statement has renamed."""
        if self.cascades is not None:
            self.cascades.renamed(former, now)
        if self.observer is not None:
            self.observer.renamed(former, now)
        if self.on_entered is not None and self._enters((former.database, former.table), (now.database, now.table)):
            self.on_entered(now)

    def _enters(self, former: "_Name", now: "_Name") -> bool:
        names, always = self._names, self._settings.tables.always
        if now in always or not names.captures(*now):  # rows of the signal table are not read
            return False
        return not names.captures(*former) and names.helped(*former) is None

    def observed(self, made: Steps, event: Rows, captured: CapturedTable) -> Steps:
        """Return the outputs of a row event. If the observer watches the table, it receives the event after them."""
        observer = self.observer
        if observer is None or observer.watched != captured.table.id:
            return made
        return _shown(made, event, captured, observer)

    def omitted(self, structure: TableStructure | None) -> None:
        """Tell the observer that a row event is skipped, because it cannot be handled."""
        if self.observer is None:
            return
        alone = structure is not None and (self.cascades is None or not self.cascades.concerns(structure))
        self.observer.omitted(TableId(structure.database, structure.table) if structure and alone else None)

    def emitted(self, batch: Batch) -> None:
        """Tell the observer the topics of a batch of an XA transaction."""
        if self.observer is not None:
            for piece in batch.destinations():
                self.observer.emitted(piece.topic)


def _shown(made: Steps, event: Rows, captured: CapturedTable, observer: RowObserver) -> MoreOutputs:
    last = made if isinstance(made, (list, tuple)) else (yield from made)
    observer.observe(event, captured.structure, captured.table)
    return last


_Name = tuple[str, str]
"""Database and table."""
