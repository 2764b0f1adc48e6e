"""Changes as Arrow record batches, which pandas and DuckDB read."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import rowtide
from rowtide.connector.records.change import JsonText, Layout

ZONE = dt.UTC
DIGITS = Decimal("1234567890123456789012345678901234567890.12345678901234567890")


def column(name: str, column_type: str, data_type: str, **more: Any) -> rowtide.Column:
    return rowtide.Column(name, column_type, data_type, **more)


VALUES: list[tuple[rowtide.Column, Any, Any]] = [
    (column("id", "int unsigned", "int", unsigned=True), 2**32 - 1, 2**32 - 1),
    (column("big", "bigint unsigned", "bigint", unsigned=True), 2**64 - 1, 2**64 - 1),
    (column("small", "bigint", "bigint"), -(2**63), -(2**63)),
    (column("year", "year", "year"), 2155, 2155),
    (column("flag", "bit(1)", "bit", length=1), True, True),
    (column("bits", "bit(64)", "bit", length=64), 2**64 - 1, 2**64 - 1),
    (column("price", "decimal(38,2)", "decimal", length=38, scale=2), Decimal("1.50"), Decimal("1.50")),
    (column("wide", "decimal(60,20)", "decimal", length=60, scale=20), DIGITS, str(DIGITS)),
    (column("none", "decimal(60,20)", "decimal", length=60, scale=20), Decimal("0E-20"), "0." + 20 * "0"),
    (column("ratio", "float", "float"), 0.5, 0.5),
    (column("double", "double", "double"), 1e300, 1e300),
    (column("day", "date", "date"), dt.date(1, 1, 1), dt.date(1, 1, 1)),
    (column("no day", "date", "date"), "0000-00-00", None),
    (column("made", "datetime(6)", "datetime", fsp=6), dt.datetime(9999, 12, 31, 23, 59, 59, 999999), ...),  # noqa: DTZ001
    (column("seen", "timestamp", "timestamp"), dt.datetime(2024, 1, 1, tzinfo=ZONE), ...),
    (column("clock", "time", "time"), -dt.timedelta(hours=838, minutes=59, seconds=59), ...),
    (column("name", "varchar(9)", "varchar", length=9), "Zoë 😀", "Zoë 😀"),
    (column("label", "enum('a','b')", "enum", labels=("a", "b")), "b", "b"),
    (column("data", "varbinary(9)", "varbinary"), b"\0\xff", b"\0\xff"),
    (column("text", "binary(2)", "binary", length=2), "Ã©", "é".encode()),
    (column("doc", "json", "json"), JsonText("null"), "null"),
    (column("no doc", "json", "json"), None, None),
    (column("place", "point", "point"), rowtide.Geometry(b"\1", 4326), {"wkb": b"\1", "srid": 4326}),
    (column("vector", "vector(2)", "vector"), [0.5, 1.0], [0.5, 1.0]),
    (column("address", "inet6", "inet6"), "::1", "::1"),
    (column("gone", "int", "int"), rowtide.UNAVAILABLE, None),
]


def change(*columns: rowtide.Column, after: tuple[Any, ...]) -> rowtide.Change:
    table = rowtide.Table(rowtide.TableId("shop", "t"), columns)
    layout = Layout(table, "p.shop.t", [one.name for one in columns], [])
    position = rowtide.SourcePosition("binlog.000001", 4, None, 1, None, None, 1_700_000_000_000_000, 0)
    return rowtide.Change("c", layout, (), None, after, position, 0, lambda _change: (None, b"{}"))


def batch(*columns: rowtide.Column, after: tuple[Any, ...]) -> rowtide.ChangeBatch:
    return rowtide.ChangeBatch([change(*columns, after=after)], lambda: True)


def test_every_type_has_its_value() -> None:
    made = batch(*(one for one, _, _ in VALUES), after=tuple(value for _, value, _ in VALUES))
    (found,) = made.to_arrow()["shop.t"]
    (row,) = found.to_pylist()
    for one, value, expected in VALUES:
        assert row[one.name] == (value if expected is ... else expected), one.name
    assert row["__unavailable"] == ["gone"]


@pytest.mark.parametrize("library", ["duckdb", "pandas"])
def test_libraries_read_every_type(library: str) -> None:
    made = batch(*(one for one, _, _ in VALUES), after=tuple(value for _, value, _ in VALUES))
    table = pa.Table.from_batches(made.to_arrow()["shop.t"])
    if library == "duckdb":
        (row,) = duckdb.from_arrow(table).fetchall()
    else:
        (row,) = table.to_pandas().itertuples(index=False, name=None)
    names = table.column_names
    assert row[names.index("wide")] == str(DIGITS)
    assert row[names.index("big")] == 2**64 - 1
    assert row[names.index("price")] == Decimal("1.50")


def test_wide_decimals_by_choice() -> None:
    wide = column("wide", "decimal(60,20)", "decimal", length=60, scale=20)
    small, large = batch(wide, after=(Decimal("1.5"),)), batch(wide, after=(DIGITS,))
    (found,) = large.to_arrow(wide_decimals="decimal256")["shop.t"]
    assert (found.schema.field("wide").type, found["wide"].to_pylist()) == (pa.decimal256(60, 20), [DIGITS])
    (found,) = small.to_arrow(wide_decimals="decimal128")["shop.t"]
    assert (found.schema.field("wide").type, found["wide"].to_pylist()) == (pa.decimal128(38, 20), [Decimal("1.5")])
    with pytest.raises(rowtide.EngineError, match=r"shop\.t\.wide has a value that Arrow's decimal128\(38, 20\)"):
        large.to_arrow(wide_decimals="decimal128")
    with pytest.raises(rowtide.EngineTypeError, match="wide_decimals must be one of"):
        large.to_arrow(wide_decimals="text")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["__op", "__OP", "__ts", "__file", "__pos", "__row", "__unavailable"])
def test_a_column_with_the_name_of_an_added_one(name: str) -> None:
    own = column(name, "varchar(9)", "varchar"), column(f"_{name}", "varchar(9)", "varchar")
    (found,) = batch(*own, after=("mine", "too")).to_arrow()["shop.t"]
    lower = [one.lower() for one in found.schema.names]
    assert len(set(lower)) == len(lower)
    assert f"__{name.lower()}" in lower
    (row,) = found.to_pylist()
    assert (row[name], row[f"_{name}"]) == ("mine", "too")
    relation = duckdb.from_arrow(pa.Table.from_batches([found]))
    assert relation.columns == found.schema.names
