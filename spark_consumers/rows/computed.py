"""The columns that a table has in addition to those of MySQL, computed from each row (``--compute``).

Expressions know the columns of MySQL by the names with which the table was built, as a filter does. They may use
columns that the table does not have (``--columns``): images of rows have these, and lose them before they are written.
"""

from collections.abc import Collection, Mapping, Sequence

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from rowtide.spark_consumers.columns.spark_types import common_type, quote
from rowtide.spark_consumers.errors import ComputedColumnsError, SettingsError
from rowtide.spark_consumers.jvm.driver import java_session
from rowtide.spark_consumers.rows.changes import BatchSchemas
from rowtide.spark_consumers.rows.evolution import Columns, Evolution
from rowtide.spark_consumers.rows.row_filter import elements, lost, names_in_filter, require_expression, unusable
from rowtide.spark_consumers.state import Computed

_NOT_STORED = ("void", "interval")
"""How the names of types begin that tables cannot have."""


def require_same_computed(table: str, found: Computed | None, wanted: Mapping[str, str]) -> None:
    """Require that a table was built with the computed columns of this run.

    Raises:
        ComputedColumnsError: it was built with others.
    """
    stored = {} if found is None else found.expressions
    if stored != wanted:
        raise ComputedColumnsError(table, stored, wanted)


def used_columns(spark: SparkSession, table: str, found: Computed) -> dict[str, set[str]]:
    """Return the columns that each expression uses, with their present names in lower case.

    Raises:
        SettingsError: Spark cannot parse an expression.
    """
    parser, used = java_session(spark).sessionState().sqlParser(), {}
    for name, sql in found.expressions.items():
        try:
            parsed = parser.parseExpression(sql)
        except PySparkException as error:
            raise unusable(table, _option(name), sql, error) from error
        leaves = [leaf for leaf in elements(parsed.collectLeaves()) if _kind(leaf) == "UnresolvedAttribute"]
        given = {str(leaf.nameParts().head()).lower() for leaf in leaves}
        used[name] = {found.names.get(one, one).lower() for one in given}
    return used


def with_computed_columns(
    spark: SparkSession,
    table: str,
    evolution: Evolution,
    found: Computed,
    columns: Columns,
    structures: Sequence[Collection[str]],
    *,
    is_new: bool,
) -> Evolution:
    """Return an evolution with the computed columns, whose types are those of the expressions.

    Args:
        spark: a session.
        table: its name, for errors.
        evolution: of the table.
        found: the expressions.
        columns: of MySQL's table that they may use.
        structures: see :func:`require_expression`.
        is_new: see :func:`require_expression`.

    Raises:
        SettingsError: an expression cannot be used.
    """
    kinds, used, known = dict(evolution.after), used_columns(spark, table, found), {one.lower() for one, _ in columns}
    for name, sql in found.expressions.items():
        for column in sorted(used[name] - known):
            if any(column in structure for structure in structures):
                raise lost(table, _option(name), sql, column)
        kind = require_expression(
            spark, table, _option(name), sql, found, columns, structures, is_condition=False, is_new=is_new
        )
        if kind.startswith(_NOT_STORED):
            raise SettingsError(f"table {table}: {_option(name)}{sql} has the type {kind}: convert it by CAST")
        kinds[name] = common_type(kinds.get(name, kind), kind) or kinds[name]
    return evolution.with_columns(kinds)


def with_computed(frame: DataFrame, schemas: BatchSchemas, image: str = "", no_row: str = "false") -> DataFrame:
    """Return rows with their computed columns, and without the columns that only these need.

    Args:
        frame: of rows, or of changes.
        schemas: of the batch.
        image: the struct of a row in a change; empty if the frame has rows.
        no_row: SQL of whether a row of the frame has no values of MySQL.
    """
    if schemas.computed is None or not schemas.has_rows:
        return frame
    row = f"_rowtide_all.{quote(image)}" if image else "_rowtide_all"
    columns = schemas.source_columns
    seen = names_in_filter(columns, schemas.computed)
    given = (f"{row}.{quote(name)} AS {quote(one)}" for name, one in zip(columns, seen, strict=True))
    staged = frame.selectExpr("struct(*) AS _rowtide_all", f"{no_row} AS _rowtide_none").selectExpr(
        "_rowtide_all", "_rowtide_none", *given
    )
    values = []
    for name, kind in schemas.evolution.after:
        value = F.col(f"{row}.{quote(name)}")
        if (sql := schemas.computed.expressions.get(name)) is not None:
            value = F.when(~F.col("_rowtide_none"), F.expr(sql).cast(kind))
        values.append(value.alias(name))
    if image:
        values = [F.when(F.col(row).isNotNull(), F.struct(*values)).alias(image)]
    images = {image} if image else {name for name, _ in schemas.evolution.images}
    others = [F.col(f"_rowtide_all.{quote(name)}") for name in frame.columns if name not in images]
    return staged.select(*others, *values)


def _option(name: str) -> str:
    return f"--compute {name}="


def _kind(expression: object) -> str:
    return str(expression.getClass().getSimpleName())  # type: ignore[attr-defined] # of Java
