"""The proof: sums of two sides, and where they differ. Nothing here touches a server."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

__all__ = ["ColumnSum", "Difference", "TableSum", "compare", "from_json", "to_json"]


@dataclass(frozen=True, slots=True)
class ColumnSum:
    """What is compared of a column: how many values are null, and the sum of all values' digests."""

    nulls: int
    digest: int


@dataclass(frozen=True, slots=True)
class TableSum:
    """What is compared of a table."""

    rows: int
    columns: Mapping[str, ColumnSum]


Sums = Mapping[str, TableSum]
"""By the tables' names."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that is not the same on both sides."""

    where: str
    what: str
    mysql: object
    spark: object

    def __str__(self) -> str:
        return f"{self.where}: {self.what} is {self.mysql} in MySQL and {self.spark} in Spark"


def compare(mysql: Sums, spark: Sums) -> list[Difference]:
    """All differences of two sides; an empty list is the proof. No tables at all prove nothing.

    Raises:
        ValueError: MySQL's side is empty.
    """
    if not mysql or not any(table.rows for table in mysql.values()):
        raise ValueError("there is nothing to compare: MySQL's side has no rows")
    return list(_tables(mysql, spark))


def _tables(mysql: Sums, spark: Sums) -> Iterator[Difference]:
    for name in sorted({*mysql, *spark}):
        one, other = mysql.get(name), spark.get(name)
        if one is None or other is None:
            yield Difference(name, "the table", *("missing" if side is None else "there" for side in (one, other)))
            continue
        if one.rows != other.rows:
            yield Difference(name, "the number of rows", one.rows, other.rows)
        yield from _columns(name, one, other)


def _columns(table: str, one: TableSum, other: TableSum) -> Iterator[Difference]:
    for name in sorted({*one.columns, *other.columns}):
        where = f"{table}.{name}"
        first, second = one.columns.get(name), other.columns.get(name)
        if first is None or second is None:
            yield Difference(where, "the column", *("missing" if side is None else "there" for side in (first, second)))
            continue
        if first.nulls != second.nulls:
            yield Difference(where, "the number of nulls", first.nulls, second.nulls)
        if first.digest != second.digest:
            yield Difference(where, "the checksum", first.digest, second.digest)


def to_json(sums: Sums) -> dict[str, object]:
    """Sums as JSON can carry them."""
    return {
        name: {"rows": table.rows, "columns": {c: [s.nulls, str(s.digest)] for c, s in table.columns.items()}}
        for name, table in sums.items()
    }


def from_json(value: Mapping[str, Mapping[str, object]]) -> dict[str, TableSum]:
    """The sums that `to_json` was given."""
    found = {}
    for name, table in value.items():
        rows, columns = table["rows"], table["columns"]
        assert isinstance(rows, int)
        assert isinstance(columns, dict)
        found[name] = TableSum(rows, {c: ColumnSum(nulls, int(digest)) for c, (nulls, digest) in columns.items()})
    return found
