"""The columns of a table after a batch, and the values of existing rows in new columns.

A batch may contain records of several schemas because of ``ALTER TABLE``. Every record is read with its own schema and
converted to one list of columns: those of the table, followed by those that the batch adds. In MySQL a new column has
its default in every existing row, without a change event; the same applies here. A dropped column stays, and is
null in rows written later.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from rowtide.spark_consumers.columns.conversion import Column
from rowtide.spark_consumers.columns.spark_types import cast, common_type, literal, quote
from rowtide.spark_consumers.errors import TypeConflictError
from rowtide.spark_consumers.messages.versions import KeyVersion, ValueVersion
from rowtide.spark_consumers.rows.alterations import Structure, alteration_notes
from rowtide.spark_consumers.rows.renames import NO_RENAMES, Renames

Columns = tuple[tuple[str, str], ...]
"""Names and types of columns, in order."""


@dataclass(frozen=True, slots=True)
class Evolution:
    """The change of a table's columns by a batch.

    Attributes:
        before: the columns before the batch, after :attr:`renames`; ``None`` if there is no table.
        after: the columns after the batch.
        fills: SQL of new values of existing rows, by column.
        notes: messages for the user.
        renames: the renames, made before all other changes.
        hidden: columns that the table does not have, and images of rows have, because computed columns use them.
    """

    before: Columns | None
    after: Columns
    fills: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    renames: Renames = NO_RENAMES
    hidden: Columns = ()

    @property
    def images(self) -> Columns:
        """The columns of images of rows."""
        return (*self.after, *self.hidden)

    def with_columns(self, kinds: Mapping[str, str]) -> "Evolution":
        """Return an evolution to these columns, with their types."""
        return replace(self, after=tuple(kinds.items()))

    def with_hidden(self, names: Collection[str]) -> "Evolution":
        """Return an evolution whose table does not have some columns, named in lower case, which images have."""
        hidden = tuple(column for column in self.after if column[0].lower() in names)
        return replace(
            self,
            after=tuple(column for column in self.after if column not in hidden),
            fills={name: value for name, value in self.fills.items() if name.lower() not in names},
            hidden=hidden,
        )

    @property
    def added(self) -> Columns:
        """Columns to add to an existing table."""
        known = {name.lower() for name, _ in self.before or ()}
        return tuple(column for column in self.after if column[0].lower() not in known) if self.before else ()

    @property
    def widened(self) -> tuple[tuple[str, str, str], ...]:
        """Name, old and new type of the columns that get another type."""
        old = {name.lower(): kind for name, kind in self.before or ()}
        return tuple((name, old[name.lower()], new) for name, new in self.after if old.get(name.lower(), new) != new)

    def projection(self) -> list[str]:
        """Return SQL of the new columns of an existing row, from its old ones."""
        old = {name.lower(): (name, kind) for name, kind in self.before or ()}
        columns = []
        for name, kind in self.after:
            known = old.get(name.lower())
            kept = cast(quote(known[0]), known[1], kind) if known else f"CAST(NULL AS {kind})"
            columns.append(f"{self.fills.get(name, kept)} AS {quote(name)}")
        return columns


def evolve(
    table: str,
    before: Columns | None,
    keys: Sequence[KeyVersion],
    values: Sequence[ValueVersion],
    last_known: Sequence[str] | None,
    extra: Columns = (),
    *,
    last_types: Sequence[str] | None = None,
    uneven: bool = False,
    renames: Renames = NO_RENAMES,
    unproven: str | None = "",
    fixed_types: bool = False,
    tolerant: bool = False,
) -> Evolution:
    """Determine the columns of a table after a batch. All schemas have the names that columns get in the table.

    Args:
        table: its name, for errors.
        before: its current columns.
        keys: the batch's key schemas.
        values: the batch's row schemas, oldest first.
        last_known: the columns of the newest row schema of earlier batches, ``None`` if there was none.
        extra: columns of the table that records do not have.
        last_types: the types of ``last_known``, ``None`` if they are not known.
        uneven: whether this batch may have older records than the ones before, as of several partitions.
        renames: of its columns.
        unproven: see :func:`~.alterations.alteration_notes`.
        fixed_types: whether existing columns keep their types.
        tolerant: whether a column keeps its type if the new one has none in common with it.

    Raises:
        TypeConflictError: the old and the new type of a column have no common type.
    """
    if before is not None:
        before = tuple((new, kind) for name, kind in before if (new := renames.new_name(name)) is not None)
    types: dict[str, tuple[str, str]] = {name.lower(): (name, kind) for name, kind in before or ()}
    fixed = {*types} if fixed_types else set()
    # A new table has its columns in the order of the newest schema; dropped ones follow.
    ordered = [*reversed(values)] if before is None else [*values]
    for columns in [version.columns for version in ordered] + [key.columns for key in keys]:
        for column in columns:
            name, old = types.get(column.name.lower(), (column.name, column.type))
            common = old if column.name.lower() in fixed else common_type(old, column.type)
            if common is None and (tolerant or fixed_types):
                common = old
            if common is None:
                raise TypeConflictError(table, name, old, column.type)
            types[column.name.lower()] = (name, common)
    after = tuple({**types, **{name.lower(): (name, kind) for name, kind in extra}}.values())
    fills = _fills(before, dict(types), values, last_known, uneven=uneven)
    structures: list[Structure] = [[(column.name, column.type) for column in version.columns] for version in values]
    if last_known is not None:
        known: Sequence[str | None] = [None] * len(last_known) if last_types is None else last_types
        structures.insert(0, list(zip(last_known, known, strict=True)))
    return Evolution(before, after, fills, tuple(alteration_notes(table, structures, unproven)), renames)


def with_fills_where(evolution: Evolution, condition: str) -> Evolution:
    """Return an evolution whose new values apply only to existing rows that meet a condition, as SQL."""
    old, new = {name.lower(): (name, kind) for name, kind in evolution.before or ()}, dict(evolution.after)
    fills = {}
    for name, value in evolution.fills.items():
        known = old.get(name.lower())
        kept = cast(quote(known[0]), known[1], new[name]) if known else f"CAST(NULL AS {new[name]})"
        fills[name] = f"IF({condition}, {value}, {kept})"
    return replace(evolution, fills=fills)


def _fills(
    before: Columns | None,
    types: dict[str, tuple[str, str]],
    values: Sequence[ValueVersion],
    last_known: Sequence[str] | None,
    *,
    uneven: bool,
) -> dict[str, str]:
    """Return the defaults that existing rows get in columns that are new in this batch."""
    if before is None or last_known is None:
        return {}
    existing = {name.lower(): kind for name, kind in before}
    known = {name.lower() for name in last_known}
    fills = {}
    for version in values:
        for column in version.columns:
            name, kind = types[column.name.lower()]
            if name.lower() in known:
                continue
            default, old = _default(column, kind), existing.get(name.lower())
            if old is not None and uneven:
                # It may be new to the records of one partition only. Null is then in rows from before it, because all
                # rows have a value in a NOT NULL column.
                if not column.optional:
                    fills[name] = f"coalesce({cast(quote(name), old, kind)}, {default})"
            elif column.default != "NULL" or old is not None:
                # A column that was dropped and added again still has its old values in the table.
                fills[name] = default
        known = {column.name.lower() for column in version.columns}
    return fills


@dataclass(frozen=True, slots=True)
class Image:
    """A row image in a parsed envelope ``e``.

    Attributes:
        name: ``before`` or ``after``.
        is_snapshot: SQL of whether the record comes from a snapshot.
    """

    name: str
    is_snapshot: str


def row_expression(
    evolution: Evolution, versions: Sequence[ValueVersion], index: int, image: Image, keys: dict[str, str]
) -> str:
    """Return SQL of a row in the table's columns, from a row image of one version.

    Args:
        evolution: of the table.
        versions: the batch's row schemas, oldest first.
        index: of the row's schema among them.
        image: the row image. For a version without a schema, ``{image.name}_fields`` is an array of its field names.
        keys: SQL of the key's columns by lower-case name; they take precedence.
    """
    following = [{column.name.lower(): column for column in version.columns} for version in versions[index:]]
    has_schema = versions[index].id is not None
    parts = []
    for name, kind in evolution.images:
        value = keys.get(name.lower()) or _column_value(following, name, kind, image, has_schema=has_schema)
        parts.append(f"{literal(name)}, {value}")
    return f"named_struct({', '.join(parts)})"


def _column_value(
    following: Sequence[Mapping[str, Column]], name: str, kind: str, image: Image, *, has_schema: bool
) -> str:
    """Return SQL of a value: that of the row, unless a later version adds the column, or adds it again.

    ``following`` are the columns of the row's version and of the later ones, by their names in lower case.
    """
    added = None
    for earlier, later in pairwise(following):
        if name.lower() not in earlier:
            added = later.get(name.lower(), added)
    if added is not None:
        return _default(added, kind)
    column = following[0].get(name.lower())
    if column is None:
        return f"CAST(NULL AS {kind})"
    value = convert(column, f"e.{image.name}.{quote(column.field)}", image.is_snapshot, kind)
    if has_schema or column.default == "NULL":
        return value
    # The supplied schema is the newest one: a message without the field was written before the column was added.
    return f"IF(array_contains({image.name}_fields, {literal(column.field)}), {value}, {_default(column, kind)})"


def _default(column: Column, kind: str) -> str:
    """Return SQL of a column's default in the table's type. A plain NULL would have its own type, ``void``."""
    return f"CAST(NULL AS {kind})" if column.default == "NULL" else cast(column.default, column.type, kind)


def convert(column: Column, value: str, snapshot: str, kind: str) -> str:
    """Return SQL of a value in the table's type, from the SQL of the value in the message."""
    return cast(column.expression(value, snapshot), column.type, kind)
