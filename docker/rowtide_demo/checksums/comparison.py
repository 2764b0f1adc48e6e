"""The checksums of tables in MySQL and in Spark, and their differences."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

__all__ = ["ColumnChecksum", "Difference", "TableChecksum", "compare", "from_json", "to_json"]


@dataclass(frozen=True, slots=True)
class ColumnChecksum:
    """The number of NULLs in a column, and the sum of the hashes of its values."""

    nulls: int
    digest: int


@dataclass(frozen=True, slots=True)
class TableChecksum:
    """The number of rows of a table, and the checksums of its columns by name."""

    rows: int
    columns: Mapping[str, ColumnChecksum]


Checksums = Mapping[str, TableChecksum]
"""Checksums by table name."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference between the two sides."""

    where: str
    what: str
    mysql: object
    spark: object

    def __str__(self) -> str:
        return f"{self.where}: {self.what} is {self.mysql} in MySQL and {self.spark} in Spark"


def compare(mysql: Checksums, spark: Checksums) -> list[Difference]:
    """Return all differences between the two sides. An empty list proves that they are equal.

    Raises:
        ValueError: MySQL has no rows, so that nothing would be compared.
    """
    if not mysql or not any(table.rows for table in mysql.values()):
        raise ValueError("there is nothing to compare: the tables in MySQL have no rows")
    return list(_tables(mysql, spark))


def _tables(mysql: Checksums, spark: Checksums) -> Iterator[Difference]:
    for name in sorted({*mysql, *spark}):
        one, other = mysql.get(name), spark.get(name)
        if one is None or other is None:
            yield Difference(name, "the table", _presence(one), _presence(other))
            continue
        if one.rows != other.rows:
            yield Difference(name, "the number of rows", one.rows, other.rows)
        yield from _columns(name, one, other)


def _columns(table: str, one: TableChecksum, other: TableChecksum) -> Iterator[Difference]:
    for name in sorted({*one.columns, *other.columns}):
        where = f"{table}.{name}"
        first, second = one.columns.get(name), other.columns.get(name)
        if first is None or second is None:
            yield Difference(where, "the column", _presence(first), _presence(second))
            continue
        if first.nulls != second.nulls:
            yield Difference(where, "the number of nulls", first.nulls, second.nulls)
        if first.digest != second.digest:
            yield Difference(where, "the checksum", first.digest, second.digest)


def _presence(side: object) -> str:
    return "missing" if side is None else "present"


def to_json(checksums: Checksums) -> dict[str, object]:
    """Return the checksums in a form that JSON can represent."""
    return {
        name: {"rows": table.rows, "columns": {c: [s.nulls, str(s.digest)] for c, s in table.columns.items()}}
        for name, table in checksums.items()
    }


def from_json(value: Mapping[str, Mapping[str, object]]) -> dict[str, TableChecksum]:
    """Convert the result of `to_json` back to checksums."""
    found = {}
    for name, table in value.items():
        rows, columns = table["rows"], table["columns"]
        assert isinstance(rows, int)
        assert isinstance(columns, dict)
        checksums = {column: ColumnChecksum(nulls, int(digest)) for column, (nulls, digest) in columns.items()}
        found[name] = TableChecksum(rows, checksums)
    return found
