"""The columns of MySQL's table that a table has (``--columns``).

They are chosen by the names with which the table was built. A column that is renamed later stays chosen, and another
one that gets its name does not become chosen. Pure.
"""

from collections.abc import Iterable, Sequence

from rowtide.spark_consumers.columns.conversion import Column
from rowtide.spark_consumers.errors import ProjectionError, SettingsError
from rowtide.spark_consumers.messages.versions import KeyVersion, ValueVersion
from rowtide.spark_consumers.state import ColumnNames, Projection


def of_new_table(
    table: str, given: Sequence[str], keys: Iterable[KeyVersion], values: Sequence[ValueVersion]
) -> Projection:
    """Return the columns of a new table, which may be given by names that they had in older records of its first batch.

    Args:
        table: its name, for errors.
        given: the chosen names.
        keys: the schemas of keys, which can have columns that rows lack.
        values: the schemas of rows, with the names of the table.

    Raises:
        SettingsError: no record has one of the columns.
    """
    known: dict[str, str] = {}
    for columns in [key.columns for key in keys] + [version.columns for version in values]:
        known |= {column.name.lower(): column.name for column in columns}
    names = tuple(known.values())
    for version in values:
        for column in version.columns:
            known.setdefault(column.field.lower(), column.name)
    has_rows = any(version.columns for version in values)
    if has_rows and (unknown := [name for name in given if name.lower() not in known]):
        raise SettingsError(
            f"table {table}: --columns names {', '.join(unknown)}, which its records do not have; they have "
            f"{', '.join(names)}"
        )
    return Projection(tuple(given), tuple(known.get(name.lower(), name) for name in given))


def after_renames(found: Projection, names: ColumnNames) -> Projection:
    """Return the chosen columns with the names that the schema history proves.

    Args:
        found: the columns with the names of the table's last structure, the first one of ``names``.
        names: the proven names.
    """
    now = names.of[0]
    # Names that now belong to other columns than before.
    moved = {new.lower() for of in names.of for old, new in of.items() if old != new.lower()}

    def renamed(name: str | None) -> str | None:
        if name is None or name.lower() in now:
            return name and now[name.lower()]
        return None if name.lower() in moved else name

    return Projection(found.given, tuple(map(renamed, found.current)))


def require_same_columns(table: str, found: Projection | None, wanted: Sequence[str]) -> None:
    """Require that a table was built with the columns of this run, in any order.

    Raises:
        ProjectionError: it was built with others.
    """
    given = found.given if found else ()
    if {name.lower() for name in given} != {name.lower() for name in wanted}:
        raise ProjectionError(table, given, wanted)


def chosen(columns: Iterable[Column], found: Projection | None) -> tuple[Column, ...]:
    """Return the columns that a table has."""
    return tuple(column for column in columns if found is None or found.has(column.name))


def require_key(table: str, found: Projection, keys: Iterable[KeyVersion]) -> None:
    """Require that the columns of the key are chosen.

    Raises:
        SettingsError: one of them is not.
    """
    lacking = dict.fromkeys(column.name for key in keys for column in key.columns if not found.has(column.name))
    if lacking:
        raise SettingsError(
            f"table {table}: --columns does not name {', '.join(lacking)}, which belongs to the key. The table is as "
            f"it was: name all columns of the key, and use --restart {table} if the table exists"
        )
