"""What a table must look like after a batch, and what rows get in columns that they did not have.

A batch may hold records of several schemas, because of ``ALTER TABLE``. Every record is read with its own schema, then
all are brought to one list of columns: those of the table, then those that the batch adds. In MySQL a new column has
a value in every row at once, its default, although no record says so; so have rows here. A dropped column stays, and
is null in rows written later.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from rowtide.spark_consumers.columns.conversion import Column
from rowtide.spark_consumers.columns.spark_types import cast, common_type, literal, quote
from rowtide.spark_consumers.errors import TypeConflictError
from rowtide.spark_consumers.messages.versions import KeyVersion, ValueVersion

Columns = tuple[tuple[str, str], ...]
"""Names and types, in order."""


@dataclass(frozen=True, slots=True)
class Evolution:
    """From the columns that a table has to those that it needs.

    Attributes:
        before: the table's columns, ``None`` if there is no table.
        after: the columns it needs.
        fills: SQL of the new values of rows that were there before, by column.
        notes: what the user should know.
    """

    before: Columns | None
    after: Columns
    fills: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def added(self) -> Columns:
        """Columns that the table does not have yet; none for a new table."""
        known = {name.lower() for name, _ in self.before or ()}
        return tuple(column for column in self.after if column[0].lower() not in known) if self.before else ()

    @property
    def widened(self) -> tuple[tuple[str, str, str], ...]:
        """Name, old and new type of columns that change their type."""
        old = {name.lower(): kind for name, kind in self.before or ()}
        return tuple((name, old[name.lower()], new) for name, new in self.after if old.get(name.lower(), new) != new)


def evolve(
    table: str,
    before: Columns | None,
    keys: Sequence[KeyVersion],
    values: Sequence[ValueVersion],
    last_known: Sequence[str] | None,
    extra: Columns = (),
) -> Evolution:
    """Plan the columns of a table after a batch.

    Args:
        table: its name, for errors.
        before: its columns now.
        keys: the batch's key schemas.
        values: the batch's row schemas, oldest first.
        last_known: the columns of the newest row schema of earlier batches, ``None`` if there was none.
        extra: columns that the table has beside those of the records.

    Raises:
        TypeConflictError: a column's old and new type have no common type.
    """
    types: dict[str, tuple[str, str]] = {name.lower(): (name, kind) for name, kind in before or ()}
    # A new table has its columns in the order of the newest schema; dropped ones follow.
    ordered = [*reversed(values)] if before is None else [*values]
    for columns in [version.columns for version in ordered] + [key.columns for key in keys]:
        for column in columns:
            name, old = types.get(column.name.lower(), (column.name, column.type))
            common = common_type(old, column.type)
            if common is None:
                raise TypeConflictError(table, name, old, column.type)
            types[column.name.lower()] = (name, common)
    after = tuple({**types, **{name.lower(): (name, kind) for name, kind in extra}}.values())
    fills = _fills(before, dict(types), values, last_known)
    return Evolution(before, after, fills, tuple(_renames(table, values, last_known)))


def _fills(
    before: Columns | None,
    types: dict[str, tuple[str, str]],
    values: Sequence[ValueVersion],
    last_known: Sequence[str] | None,
) -> dict[str, str]:
    """Rows from before this batch get the default of each column that came since, once."""
    if before is None or last_known is None:
        return {}
    existing = {name.lower() for name, _ in before}
    known = {name.lower() for name in last_known}
    fills = {}
    for version in values:
        for column in version.columns:
            name, kind = types[column.name.lower()]
            # A column that comes back after it was dropped holds values of its former life.
            if name.lower() not in known and (column.default != "NULL" or name.lower() in existing):
                fills[name] = cast(column.default, column.type, kind)
        known = {column.name.lower() for column in version.columns}
    return fills


def _renames(table: str, values: Sequence[ValueVersion], last_known: Sequence[str] | None) -> list[str]:
    lists = ([list(last_known)] if last_known is not None else []) + [[c.name for c in v.columns] for v in values]
    notes = []
    for old, new in pairwise(lists):
        gone = [name for name in old if name not in new]
        come = [name for name in new if name not in old]
        if len(old) == len(new) and gone:
            pairs = ", ".join(f"{a} and {b}" for a, b in zip(gone, come, strict=True) if old.index(a) == new.index(b))
            if pairs:
                notes.append(
                    f"{table}: a column disappeared where another one appeared ({pairs}). If it was renamed, rows that "
                    f"have not changed since keep their value under the old name"
                )
    return notes


def row_expression(
    evolution: Evolution, versions: Sequence[ValueVersion], index: int, row: str, snapshot: str, keys: dict[str, str]
) -> str:
    """SQL of a row in the table's columns, from a row of one version.

    Args:
        evolution: of the table.
        versions: the batch's row schemas, oldest first.
        index: which of them the row has.
        row: SQL of the struct that ``from_json`` read.
        snapshot: SQL of "comes from a snapshot".
        keys: SQL of the key's columns by lower-case name; they take precedence.
    """
    parts = []
    for name, kind in evolution.after:
        value = keys.get(name.lower()) or _column_value(versions, index, name, kind, row, snapshot)
        parts.append(f"{literal(name)}, {value}")
    return f"named_struct({', '.join(parts)})"


def _column_value(versions: Sequence[ValueVersion], index: int, name: str, kind: str, row: str, snapshot: str) -> str:
    column = versions[index].column(name)
    if column is not None:
        return convert(column, f"{row}.{quote(column.name)}", snapshot, kind)
    later = (version.column(name) for version in versions[index + 1 :])
    added = next((found for found in later if found is not None), None)
    return cast(added.default, added.type, kind) if added else f"CAST(NULL AS {kind})"


def convert(column: Column, value: str, snapshot: str, kind: str) -> str:
    """SQL of a value in the table's type, from the SQL of the value read."""
    return cast(column.expression(value, snapshot), column.type, kind)
