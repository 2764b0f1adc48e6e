"""Deletes by foreign keys that the server does not log (``rowtide.cascaded.changes=derive``).

Before MySQL 9.6, and in MariaDB, the storage engine carries out ON DELETE and ON UPDATE: the binlog has the change of
the parent only (MySQL's bug 32506). The change of the child is derived if it follows from that: with ON DELETE
CASCADE and a primary key of the child that consists of the foreign key's columns, a deleted parent has at most one
child, whose key is known. The columns must have types in which equal values have the same bytes. A collation may call
different texts equal: the derived key could be that of no row, and the child's row would stay. All else is refused.

Row events say whether the session checked foreign keys, and since MySQL 9.6 whether the changes are logged.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from rowtide.connector.errors import SchemaError
from rowtide.connector.pipeline.structures.comparison import expected_layouts
from rowtide.connector.protocol.byte_reader import ByteReader
from rowtide.connector.protocol.events.classes import Rows, RowsKind
from rowtide.connector.protocol.events.table_structure import MappedColumn, TableStructure
from rowtide.connector.rows.layouts import column_layout
from rowtide.connector.rows.partial_update import expand_images, image_values
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.model import Column, Constraint, Reference, Table, TableId
from rowtide.schema_history.structure.tables import ENGINES_WITH_FOREIGN_KEYS
from rowtide.schema_history.structure.type_names import INTEGERS
from rowtide.topics.filters import CapturedNames

DERIVED_HEADER = "rowtide.derived"
"""The header of a derived record: the action that made the change, such as ``ON DELETE CASCADE of shop.orders``."""

_NOT_CHECKED, _LOGGED = 2, 16
"""Flags of row events: ``foreign_key_checks=0``, and foreign keys above the storage engine."""
_ACTIONS = frozenset({"CASCADE", "SET NULL", "SET DEFAULT"})
_SAME_BYTES = frozenset(
    {"decimal", "date", "time", "datetime", "timestamp", "year", "bit", "binary", "varbinary", "uuid", "inet4", "inet6"}
)
_WAYS_OUT = (
    "MySQL logs such changes since 9.6; before it and in MariaDB, let the application or a trigger change the rows, or "
    "set rowtide.cascaded.changes=ignore and let rowtide verify --repair find the differences"
)


class Derived(NamedTuple):
    """The delete of a child that follows from that of its parent.

    Attributes:
        child: the table.
        places: for each column of its primary key, in the order of its columns: its place, and that of the parent's
            column.
        cause: the action that deletes it.
        problem: why it cannot be derived; ``None`` if it can.
    """

    child: Table
    places: tuple[tuple[int, int], ...]
    cause: str
    problem: str | None = None


class Cascades:
    """The changes by the foreign keys of captured tables that are not logged.

    Args:
        tables: every table's structure.
        names: which tables are captured.
    """

    def __init__(self, tables: Tables, names: CapturedNames) -> None:
        self._tables = tables
        self._names = names
        self._changes = -1
        self._deletes: dict[TableId, list[Derived]] = {}
        self._updates: dict[TableId, list[tuple[tuple[int, ...], str]]] = {}
        self._unread: dict[TableId, str] = {}
        self._renamed: set[TableId] = set()
        self._unknown: list[str] = []

    def problems(self) -> list[str]:
        """Return why changes of captured tables cannot be derived, without those that need an update of a key."""
        self._refresh()
        derived = (one for found in self._deletes.values() for one in found)
        return [*self._unknown, *self._unread.values(), *(one.problem for one in derived if one.problem is not None)]

    def constraints(self) -> Iterator[tuple[Table, Constraint]]:
        """Yield the captured tables with the foreign keys that change their rows."""
        for child in self._captured():
            for key in child.constraints:
                if key.reference is not None and not _ACTIONS.isdisjoint(
                    (key.reference.on_delete, key.reference.on_update)
                ):
                    yield child, key

    def referenced(self, reference: Reference) -> Sequence[str]:
        """Return the columns that a foreign key references."""
        parent = self._tables.table(reference.table.database, reference.table.table)
        return reference.columns or (() if parent is None else parent.primary_key)

    def concerns(self, structure: TableStructure) -> bool:
        """Return whether the changes of a table may change others."""
        self._refresh()
        table = self._tables.table_id(structure.database, structure.table)
        return any(table in found for found in (self._deletes, self._updates, self._unread, self._renamed))

    def renamed(self, former: TableId, now: TableId) -> None:
        """Note that a table was renamed. The foreign keys of its children follow it, and the history does not."""
        referenced = (key.reference.table for _, key in self.constraints() if key.reference is not None)
        if former in self._renamed or any(
            former == self._tables.table_id(table.database, table.table) for table in referenced
        ):
            self._renamed |= {former, now}

    def column_renamed(self, table: TableId) -> None:
        """Note that a column of a table was renamed."""
        self.renamed(table, table)

    def refuse_unread(self, event: Rows, structure: TableStructure) -> None:
        """Refuse changes of a table that is not captured and has children that are.

        Raises:
            SchemaError: the event has such a change.
        """
        if event.kind is RowsKind.WRITE or event.flags & (_NOT_CHECKED | _LOGGED):
            return
        self._refresh()
        problem = self._unread.get(self._tables.table_id(structure.database, structure.table))
        if problem is not None:
            raise SchemaError(problem)

    def derived(
        self, event: Rows, structure: TableStructure, table: Table
    ) -> list[tuple[Derived, TableStructure, Rows]]:
        """Return the deletes that follow from a row event: each as an event of the child, with as many rows.

        Raises:
            SchemaError: the event has a change whose consequences cannot be derived.
        """
        if event.kind is RowsKind.WRITE or event.flags & (_NOT_CHECKED | _LOGGED):
            return []
        self._refresh()
        found = self._deletes.get(table.id, [])
        renamed = self._renamed.intersection((table.id, *(one.child.id for one in found)))
        if renamed:
            raise SchemaError(
                f"the changes that foreign keys make after those of {table.id} cannot be derived: "
                f"{min(map(str, renamed))}, or a column of it, was renamed, and the schema history does "
                "not follow foreign keys. Restart with "
                "rowtide.cascaded.changes=ignore and snapshot.mode=recovery once, and then with derive"
            )
        if event.kind is RowsKind.UPDATE:
            self._refuse_key_changes(event, structure, table)
            return []
        for one in found:
            if one.problem is not None:
                raise SchemaError(one.problem)
        children = [(one, _child_structure(one, structure)) for one in found]
        return [(one, mapped, _child_event(one, mapped, structure, event)) for one, mapped in children]

    def _refuse_key_changes(self, event: Rows, structure: TableStructure, table: Table) -> None:
        references = self._updates.get(table.id)
        if not references:
            return
        layouts = [column_layout(column.type, column.metadata) for column in structure.columns]
        present = _present(event.columns, structure), _present(event.columns_after, structure)
        data, start, end = event.buffer, event.start, event.end
        if event.partial:
            data = expand_images(data, start, end, layouts, *present, needs_documents=False)
            start, end = 0, len(data)
        reader = ByteReader(data, start, end)
        while reader.remaining():
            before, after = (dict(image_values(reader, layouts, image)) for image in present)
            for places, problem in references:
                if any(
                    present[1][place] and (not present[0][place] or before.get(place) != after.get(place))
                    for place in places
                ):
                    raise SchemaError(problem)

    def _captured(self) -> Iterator[Table]:
        for name in self._tables.names():
            if self._names.captures(name.database, name.table):
                table = self._tables.table(name.database, name.table)
                if table is not None:
                    yield table

    def _refresh(self) -> None:
        if self._changes == self._tables.changes:
            return
        self._changes = self._tables.changes
        self._unknown = [
            f"the foreign keys of {table.id} are not known, because the schema history has no statement for it: "
            "restart with snapshot.mode=recovery"
            for table in self._captured()
            if not table.complete
        ]
        self._unread, self._updates = {}, {}
        direct: dict[TableId, list[Derived]] = {}
        for child, key in self.constraints():
            reference = key.reference
            assert reference is not None
            parent = self._tables.table(reference.table.database, reference.table.table)
            if parent is None or not self._names.captures(parent.id.database, parent.id.table):
                name = self._tables.table_id(reference.table.database, reference.table.table)
                self._unread[name] = _problem(child, key, f"{name} is not captured")
                continue
            if parent.engine.upper() not in ENGINES_WITH_FOREIGN_KEYS:
                continue  # it was made so without foreign_key_checks, and does nothing to its children
            columns = reference.columns or parent.primary_key
            if reference.on_update in _ACTIONS:
                text = _problem(child, key, "a referenced key was changed, and its rows are not known", "UPDATE")
                self._updates.setdefault(parent.id, []).append((_places(parent, columns), text))
            if reference.on_delete in _ACTIONS and child.id != parent.id:
                direct.setdefault(parent.id, []).append(_derived(child, key, parent, columns))
            elif reference.on_delete in _ACTIONS:
                problem = _problem(child, key, "the table references itself")
                direct.setdefault(parent.id, []).append(Derived(child, (), "", problem))
        self._deletes = {parent: list(_with_descendants(direct, parent)) for parent in direct}


def _derived(child: Table, key: Constraint, parent: Table, columns: Sequence[str]) -> Derived:
    """Return the delete of a child by a foreign key, or why it cannot be derived."""
    reference = key.reference
    assert reference is not None
    places = tuple(sorted(zip(_places(child, key.columns), _places(parent, columns), strict=False)))
    problem = None
    if reference.on_delete != "CASCADE":
        problem = "the other columns of the rows that it changes are not known"
    elif child.kind != "BASE TABLE":
        problem = f"it is {child.kind}"
    elif parent.kind != "BASE TABLE":  # DELETE HISTORY has row events, and leaves the children
        problem = f"{parent.id} is {parent.kind}"
    elif len(places) != len(key.columns) or len(key.columns) != len(columns):
        problem = f"{parent.id} has no columns {', '.join(columns)}"
    elif set(_places(child, child.primary_key)) != {place for place, _ in places}:
        own = ", ".join(child.primary_key) or "none"
        problem = f"its primary key ({own}) is not the foreign key ({', '.join(key.columns)}): its rows are not known"
    else:
        for place, referenced in places:
            column, other = child.row_columns[place], parent.row_columns[referenced]
            if other.nullable:
                problem = f"{parent.id}.{other.name} may be NULL"
            elif not _equal_bytes(column, other):
                problem = f"values of {column.name} ({column.column_type}) that are equal may have different bytes"
    cause = f"ON DELETE {reference.on_delete} of {parent.id}"
    return Derived(child, places, cause, None if problem is None else _problem(child, key, problem))


def _problem(child: Table, key: Constraint, why: str, event: str = "DELETE") -> str:
    reference = key.reference
    assert reference is not None
    if event == "DELETE" and reference.on_delete not in _ACTIONS:
        event = "UPDATE"
    action = reference.on_update if event == "UPDATE" else reference.on_delete
    return (
        f"rowtide.cascaded.changes=derive: the changes of {child.id} by ON {event} {action} of {reference.table} "
        f"(foreign key {key.name}) cannot be derived: {why}. {_WAYS_OUT}"
    )


def _equal_bytes(column: Column, other: Column) -> bool:
    """Return whether equal values of both columns have the same bytes in row images."""
    if column.data_type in INTEGERS:
        return column.data_type == other.data_type and column.unsigned == other.unsigned
    return column.data_type in _SAME_BYTES and column.column_type == other.column_type


def _places(table: Table, names: Sequence[str]) -> tuple[int, ...]:
    places = {column.name.lower(): place for place, column in enumerate(table.row_columns)}
    return tuple(places[name.lower()] for name in names if name.lower() in places)


def _with_descendants(
    direct: Mapping[TableId, Sequence[Derived]], parent: TableId, seen: frozenset[TableId] = frozenset()
) -> Iterator[Derived]:
    """Yield the deletes that follow from a delete, children before their parents, each once."""
    done: set[tuple[TableId, tuple[tuple[int, int], ...]]] = set()
    for one in direct.get(parent, ()):
        known = dict(one.places)
        if one.problem is None and one.child.id not in seen:
            for next_one in _with_descendants(direct, one.child.id, seen | {parent}):
                places = tuple((place, known[other]) for place, other in next_one.places if other in known)
                if len(places) < len(next_one.places) and next_one.problem is None:
                    problem = f"{next_one.cause}: the referenced columns of {one.child.id} are not known. {_WAYS_OUT}"
                    yield next_one._replace(problem=f"the changes of {next_one.child.id} cannot be derived: {problem}")
                elif (next_one.child.id, places) not in done:
                    done.add((next_one.child.id, places))
                    yield next_one._replace(places=places)
        if (one.child.id, one.places) not in done:
            done.add((one.child.id, one.places))
            yield one


def _present(bitmap: bytes, structure: TableStructure) -> list[bool]:
    return [bool(bitmap[place >> 3] >> (place & 7) & 1) for place in range(len(structure.columns))]


def _child_structure(one: Derived, parent: TableStructure) -> TableStructure:
    """Return the TABLE_MAP of a child with the parent's columns as its key."""
    taken = dict(one.places)
    columns = []
    for place, column in enumerate(one.child.row_columns):
        if place in taken:
            columns.append(replace(parent.columns[taken[place]], nullable=False, name=None))
            continue
        layouts = expected_layouts(column)
        if not layouts:
            raise SchemaError(f"the layout of column {one.child.id}.{column.name} ({column.column_type}) is not known")
        columns.append(MappedColumn(*max(layouts), nullable=True))
    return TableStructure(one.child.id.database, one.child.id.table, tuple(columns))


def _child_event(one: Derived, child: TableStructure, parent: TableStructure, event: Rows) -> Rows:
    """Return the deletes of the child's rows, each with the columns of the primary key only."""
    present = _present(event.columns, parent)
    for _, place in one.places:
        if not present[place]:
            raise SchemaError(
                f"a deleted row of {parent.database}.{parent.table} lacks column {place + 1}, which {one.child.id} "
                "references: a session changed rows with binlog_row_image=MINIMAL. Let all sessions use FULL or NOBLOB"
            )
    layouts = [column_layout(column.type, column.metadata) for column in parent.columns]
    reader, images = ByteReader(event.buffer, event.start, event.end), bytearray()
    while reader.remaining():
        values = dict(image_values(reader, layouts, present))
        images += bytes((len(one.places) + 7) // 8)
        for _, place in one.places:
            value, layout = values[place], layouts[place]
            images += value if layout.fixed else len(value).to_bytes(layout.size, "little") + value
    bitmap = sum(1 << place for place, _ in one.places).to_bytes((len(child.columns) + 7) // 8, "little")
    return event._replace(
        column_count=len(child.columns), columns=bitmap, columns_after=bitmap, extra=b"", buffer=bytes(images), start=0,
        end=len(images),
    )  # fmt: skip
