"""The rows of MySQL's table that a table has (``--where``).

A filter is a condition on a single row. It knows each column by the name with which the table was built: a column that
is renamed later keeps that name in the filter. So a filter means the same columns for the life of a table.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from rowtide.spark_consumers.columns.spark_types import quote
from rowtide.spark_consumers.errors import RowFilterError, SettingsError
from rowtide.spark_consumers.messages.versions import ValueVersion
from rowtide.spark_consumers.rows.evolution import Columns
from rowtide.spark_consumers.state import Computed, RowFilter

MATCHES = "_rowtide_matches"
"""The column that says whether a row matches."""
_Named = TypeVar("_Named", RowFilter, Computed)
_NOT_OF_A_ROW = ("Current", "Now", "LocalTimestamp")
"""How the names of Spark's expressions begin whose value depends on the time, the session or the user."""


def require_same_filter(table: str, found: RowFilter | None, wanted: str | None) -> None:
    """Require that a table was built with the filter of this run.

    Raises:
        RowFilterError: its rows are those of another one.
    """
    stored = None if found is None else found.sql
    if stored != wanted:
        raise RowFilterError(table, stored, wanted)


def after_renames(found: _Named, names: Mapping[str, str]) -> _Named:
    """Return a filter, or computed columns, after columns of the table were renamed.

    Args:
        found: the filter before.
        names: the new names of columns by their names before, in lower case.
    """
    kept = {given: names.get(current.lower(), current) for given, current in found.names.items()}
    known = {current.lower() for current in found.names.values()}
    new = {old: name for old, name in names.items() if old != name.lower() and old not in known}
    return replace(found, names={**new, **kept})


def former_names(columns: Collection[str], values: Sequence[ValueVersion]) -> dict[str, str]:
    """Return the names that the columns of a new table had in older records of its first batch.

    Args:
        columns: the names that they have now.
        values: the schemas of rows.
    """
    taken = {name.lower() for name in columns}
    former: dict[str, str] = {}
    for column in (column for version in values for column in version.columns):
        if column.field.lower() not in taken and column.field.lower() != column.name.lower():
            former.setdefault(column.field.lower(), column.name)
    return former


def names_in_filter(columns: Sequence[str], found: RowFilter | Computed) -> list[str]:
    """Return the names by which a filter, or a computed column, knows the columns of a table. Each is there once."""
    given = {current.lower(): name for name, current in found.names.items()}
    taken = {name.lower() for name in found.names}
    return [
        given.get(name.lower()) or (name if name.lower() not in taken else f"_rowtide_other_{number}")
        for number, name in enumerate(columns)
    ]


def with_match(frame: DataFrame, found: RowFilter, columns: Sequence[str], image: str = "") -> DataFrame:
    """Return a frame with the column :data:`MATCHES`.

    Args:
        frame: of rows, or of changes.
        found: the filter.
        columns: the columns of MySQL's table in the rows.
        image: the struct of a row in a change; empty if the frame has rows.
    """
    row = f"_rowtide_all.{quote(image)}" if image else "_rowtide_all"
    seen = names_in_filter(columns, found)
    fields = (f"{row}.{quote(name)} AS {quote(given)}" for name, given in zip(columns, seen, strict=True))
    return (
        frame.selectExpr("struct(*) AS _rowtide_all")
        .selectExpr("_rowtide_all", *fields)
        .select("_rowtide_all.*", F.coalesce(F.expr(found.sql), F.lit(False)).alias(MATCHES))
    )


def matching_images(changes: DataFrame, found: RowFilter, columns: Sequence[str]) -> DataFrame:
    """Return the changes of a table that has only the rows that match: other images are null.

    Args:
        changes: with the structs ``before`` and ``after``.
        found: the filter.
        columns: the columns of MySQL's table.
    """
    for image in ("before", "after"):
        matched = with_match(changes, found, columns, image)
        changes = matched.withColumn(image, F.expr(f"IF({MATCHES}, {image}, NULL)")).drop(MATCHES)
    return changes.where("before IS NOT NULL OR after IS NOT NULL")


def matching_changes(changes: DataFrame, found: RowFilter, columns: Sequence[str]) -> DataFrame:
    """Return the changes, as they are, of which at least one image matches, and all that have no images."""
    both = changes.withColumn("_rowtide_kept", F.expr("before IS NULL AND after IS NULL"))
    for image in ("before", "after"):
        kept = F.expr(f"_rowtide_kept OR ({image} IS NOT NULL AND {MATCHES})")
        both = with_match(both, found, columns, image).withColumn("_rowtide_kept", kept).drop(MATCHES)
    return both.where("_rowtide_kept").drop("_rowtide_kept")


def require_filter(
    spark: SparkSession,
    table: str,
    found: RowFilter,
    columns: Columns,
    structures: Sequence[Collection[str]],
    *,
    is_new: bool,
) -> None:
    """Require that a filter can be used: see :func:`require_expression`."""
    require_expression(
        spark, table, "--where ", found.sql, found, columns, structures, is_condition=True, is_new=is_new
    )


def require_expression(
    spark: SparkSession,
    table: str,
    option: str,
    sql: str,
    found: RowFilter | Computed,
    columns: Columns,
    structures: Sequence[Collection[str]],
    *,
    is_condition: bool,
    is_new: bool,
) -> str:
    """Require that an expression depends on a row alone, and that all rows have its columns.

    Args:
        spark: a session.
        table: its name, for errors.
        option: the option that has it, for errors.
        sql: the expression.
        found: has the names of columns in it.
        columns: of MySQL's table that it may use.
        structures: the names of the columns, in lower case, of each structure of rows, oldest first.
        is_condition: whether it is true or false.
        is_new: whether the table has no rows yet. Before its first columns are added, older rows get their defaults.

    Returns:
        Its type.

    Raises:
        SettingsError: it does not, or they have not.
    """
    names = names_in_filter([name for name, _ in columns], found)
    empty = spark.range(0).selectExpr(
        *(f"CAST(NULL AS {kind}) AS {quote(name)}" for name, (_, kind) in zip(names, columns, strict=True))
    )
    try:
        value = F.expr(sql)
        filtered: Any = empty.where(value if is_condition else value.isNull())
        kind = str(empty.select(value).schema.fields[0].dataType.simpleString())
    except PySparkException as error:
        raise unusable(table, option, sql, error, names, is_condition=is_condition) from error
    analyzed = filtered._jdf.queryExecution().analyzed()  # noqa: SLF001
    condition = analyzed.condition()
    leaves = {leaf.getClass().getSimpleName() for leaf in elements(condition.collectLeaves())}
    if (
        not analyzed.subqueries().isEmpty()
        or not condition.deterministic()
        or any(leaf.startswith(_NOT_OF_A_ROW) for leaf in leaves)
    ):
        raise SettingsError(
            f"table {table}: {option}{sql} must depend on the row alone: remove subqueries, and functions such "
            f"as current_date() and rand()"
        )
    current = {seen.lower(): name for seen, (name, _) in zip(names, columns, strict=True)}
    used = {current[column.name().lower()].lower() for column in elements(condition.references().toSeq())}
    for name in sorted(used):
        there = [name in structure for structure in structures]
        first = there.index(True) if is_new and True in there else 0
        if not all(there[first:]):
            raise lost(table, option, sql, name, is_condition=is_condition)
    return kind


def lost(table: str, option: str, sql: str, column: str, *, is_condition: bool = False) -> SettingsError:
    """Return the error for a column of an expression that not all rows have."""
    return SettingsError(
        f"table {table}: column {column}, which {option}{sql} uses, was dropped in MySQL, or is not in all records. "
        f"The table is as it was: build it again with another {'filter' if is_condition else 'expression'} "
        f"(--restart {table})"
    )


def unusable(
    table: str, option: str, sql: str, error: Exception, names: Sequence[str] = (), *, is_condition: bool = False
) -> SettingsError:
    """Return the error for an expression that Spark refuses."""
    text = " ".join(str(error).split())[:400]
    what = "a condition" if is_condition else "an expression"
    columns = f" on the columns {', '.join(names)}" if names else ""
    return SettingsError(f"table {table}: {option}{sql} cannot be used: {text}. It is {what} in Spark SQL{columns}")


def elements(sequence: Any) -> Iterator[Any]:
    """Yield the elements of a sequence of Scala."""
    return (sequence.apply(number) for number in range(sequence.size()))
