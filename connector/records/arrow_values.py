"""The Arrow types of columns, and the values for Arrow arrays; needs pyarrow. Pure."""

from decimal import Decimal
from typing import Any, Literal

import pyarrow as pa

from rowtide.connector.records.change import Geometry
from rowtide.connector.records.unavailable import UNAVAILABLE
from rowtide.schema_history.model import Column
from rowtide.schema_history.structure.type_names import BINARY_TYPES

_INTEGERS = frozenset({"tinyint", "smallint", "mediumint", "int", "year"})
_GEOMETRIES = frozenset(
    {
        "geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon",
        "geomcollection", "geometrycollection",
    }
)  # fmt: skip
_GEOMETRY = pa.struct([pa.field("wkb", pa.binary()), pa.field("srid", pa.int64())])
_DECIMAL128_DIGITS = 38

WideDecimals = Literal["string", "decimal128", "decimal256"]
"""The Arrow type of DECIMAL columns with more than 38 digits."""


def arrow_type(column: Column, wide_decimals: WideDecimals = "string") -> pa.DataType:
    """Return the Arrow type of a column's values. TIME is a duration; JSON, ENUM and SET are strings."""
    match column.data_type:
        case "bigint":
            return pa.uint64() if column.unsigned else pa.int64()
        case kind if kind in _INTEGERS:
            return pa.int64()
        case "decimal":
            return _decimal_type(column.length or 10, column.scale or 0, wide_decimals)
        case "float":
            return pa.float32()
        case "double":
            return pa.float64()
        case "bit":
            return pa.bool_() if (column.length or 1) == 1 else pa.uint64()
        case "date":
            return pa.date32()
        case "datetime":
            return pa.timestamp("us")
        case "timestamp":
            return pa.timestamp("us", tz="UTC")
        case "time":
            return pa.duration("us")
        case "vector":
            return pa.list_(pa.float32())
        case kind if kind in BINARY_TYPES:
            return pa.binary()
        case kind if kind in _GEOMETRIES:
            return _GEOMETRY
        case _:
            return pa.string()


def _decimal_type(digits: int, scale: int, wide_decimals: WideDecimals) -> pa.DataType:
    if digits <= _DECIMAL128_DIGITS:
        return pa.decimal128(digits, scale)
    if wide_decimals == "decimal256":
        return pa.decimal256(digits, scale)
    return pa.string() if wide_decimals == "string" else pa.decimal128(_DECIMAL128_DIGITS, scale)


def fitting(values: list[Any], kind: pa.DataType) -> list[Any]:
    """Return the values without those that Arrow cannot represent: unavailable ones, and dates that do not exist."""
    if pa.types.is_temporal(kind):
        return [None if isinstance(value, str) or value is UNAVAILABLE else value for value in values]
    if kind == _GEOMETRY:
        return [{"wkb": value.wkb, "srid": value.srid} if isinstance(value, Geometry) else None for value in values]
    if kind == pa.string():
        return [None if value is UNAVAILABLE else _text(value) for value in values]
    if kind == pa.binary():
        return [None if value is UNAVAILABLE else _binary(value) for value in values]
    return [None if value is UNAVAILABLE else value for value in values]


def _text(value: Any) -> Any:
    return format(value, "f") if isinstance(value, Decimal) else value


def _binary(value: Any) -> Any:
    """Return the bytes of a text with a character for each byte, Debezium's form of ``CHARACTER SET binary``."""
    return value.encode("latin-1") if isinstance(value, str) else value
