"""The partitioning and clustering of new tables: by columns and, in Iceberg, by transforms of columns."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from rowtide.spark_consumers.columns.spark_types import literal, quote
from rowtide.spark_consumers.errors import SettingsError

_EMPTY = "rowtide: an empty text in column"
_FOUND = re.compile(rf'{_EMPTY} ("(?:[^"\\]|\\.)*")')
_TIMES = {"year": "years", "month": "months", "day": "days", "hour": "hours"}
_NUMBERED = ("bucket", "truncate")
_NAME = r"`(?P<quoted>[^`]+)`|(?P<plain>\w+)"
_EXPRESSION = re.compile(rf"(?:(?P<transform>\w+)\(\s*(?:(?P<number>\d+)\s*,\s*)?)?(?:{_NAME})\s*(?P<end>\)?)")


@dataclass(frozen=True, slots=True)
class Expression:
    """A column, or a transform of it.

    Attributes:
        column: the name.
        transform: ``years``, ``months``, ``days``, ``hours``, ``bucket`` or ``truncate``; ``None`` for the column.
        number: of buckets, or the width; ``None`` for the other transforms.
    """

    column: str
    transform: str | None = None
    number: int | None = None

    def __str__(self) -> str:
        if self.transform is None:
            return quote(self.column)
        number = "" if self.number is None else f"{self.number}, "
        return f"{self.transform}({number}{quote(self.column)})"


def expression(text: str) -> Expression:
    """Return the expression of a text, such as ``created``, ``months(created)`` or ``bucket(16, id)``.

    Raises:
        ValueError: it is not an expression.
    """
    found = _EXPRESSION.fullmatch(text.strip())
    name = (found["transform"] or "").lower() if found else ""
    transform = _TIMES.get(name, name)
    if (
        found is None
        or bool(name) != bool(found["end"])
        or (name and transform not in {*_TIMES.values(), *_NUMBERED})
        or (transform in _NUMBERED) != (found["number"] is not None and int(found["number"]) > 0)
    ):
        raise ValueError(
            f"{text}: expected a column, or one of years(column), months(column), days(column), hours(column), "
            f"bucket(16, column) and truncate(10, column)"
        )
    number = found["number"]
    return Expression(found["quoted"] or found["plain"], transform or None, None if number is None else int(number))


def require_supported(table_format: str, partition_by: Sequence[Expression], cluster_by: Sequence[Expression]) -> None:
    """Require that a format supports the partitioning and clustering.

    Raises:
        SettingsError: it does not.
    """
    for option, given in (("--partition-by", partition_by), ("--cluster-by", cluster_by)):
        if given and table_format == "parquet":
            raise SettingsError(f"{option}: Parquet tables have neither; use --format delta or iceberg")
        transforms = [one for one in given if one.transform is not None]
        if transforms and table_format == "delta":
            raise SettingsError(
                f"{option} {transforms[0]}: Delta Lake has columns only; name a column, such as one of --compute, or "
                f"use --format iceberg"
            )
    if partition_by and cluster_by and table_format == "delta":
        raise SettingsError("--partition-by and --cluster-by: a table of Delta Lake has one of them; choose one")


def require_columns(table: str, given: Sequence[Expression], columns: Sequence[str]) -> None:
    """Require that a new table has the columns by which it is partitioned or clustered.

    Raises:
        SettingsError: it lacks one.
    """
    known = {name.lower() for name in columns}
    for one in given:
        if one.column.lower() not in known:
            raise SettingsError(
                f"table {table} has no column {one.column}, which --partition-by or --cluster-by names; there are "
                f"{', '.join(columns)}. --job gives single tables their own"
            )


def without_empty_text(column: str) -> str:
    """Return SQL of a text that ends the query if it is empty."""
    name = quote(column)
    return f"IF({name} = '', raise_error({literal(f'{_EMPTY} {json.dumps(column)}')}), {name})"


def empty_text_column(text: str) -> str | None:
    """Return the column whose empty text ended a query, from its error; ``None`` if it ended for another reason."""
    found = _FOUND.search(text)
    return None if found is None else str(json.loads(found[1]))
