"""Changes as Arrow record batches; needs pyarrow (``pip install 'rowtide[arrow]'``)."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Literal, get_args

import pyarrow as pa

from rowtide.connector.errors import EngineError, EngineTypeError
from rowtide.connector.records.change import Change, Geometry
from rowtide.connector.records.unavailable import UNAVAILABLE
from rowtide.schema_history.model import Column

_META = [
    pa.field("__op", pa.string(), nullable=False),
    pa.field("__ts", pa.timestamp("us", tz="UTC"), nullable=False),
    pa.field("__file", pa.string(), nullable=False),
    pa.field("__pos", pa.int64(), nullable=False),
    pa.field("__row", pa.int32(), nullable=False),
    pa.field("__unavailable", pa.list_(pa.string())),
]
_INTEGERS = frozenset({"tinyint", "smallint", "mediumint", "int", "year"})
_BINARY = frozenset({"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"})
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


def record_batches(changes: Sequence[Change], wide_decimals: WideDecimals) -> dict[str, list[pa.RecordBatch]]:
    """The record batches of each table, in order; see :meth:`ChangeBatch.to_arrow`."""
    if wide_decimals not in get_args(WideDecimals):
        raise EngineTypeError(f"wide_decimals must be one of {get_args(WideDecimals)}, not {wide_decimals!r}")
    found: dict[str, list[list[Change]]] = {}
    for change in changes:
        parts = found.setdefault(str(change.schema.id), [])
        if not parts or parts[-1][-1].schema is not change.schema:
            parts.append([])
        parts[-1].append(change)
    return {table: [_record_batch(part, wide_decimals) for part in parts] for table, parts in found.items()}


def arrow_type(column: Column, wide_decimals: WideDecimals = "string") -> pa.DataType:
    """The Arrow type of a column's values. TIME is a duration; JSON, ENUM and SET are strings."""
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
        case kind if kind in _BINARY:
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


def _record_batch(changes: Sequence[Change], wide_decimals: WideDecimals) -> pa.RecordBatch:
    """The record batch of changes of one structure."""
    first = changes[0]
    by_name = {column.name: column for column in first.schema.row_columns}
    names = first.columns
    rows = [change.image for change in changes]
    unavailable = [
        None if row is None else [name for name, value in zip(names, row, strict=True) if value is UNAVAILABLE] or None
        for row in rows
    ]
    meta: list[list[Any]] = [
        [change.op for change in changes],
        [change.position.ts_us for change in changes],
        [change.position.file for change in changes],
        [change.position.pos for change in changes],
        [change.row for change in changes],
        unavailable,
    ]
    fields = [*_meta_fields(names), *(pa.field(name, arrow_type(by_name[name], wide_decimals)) for name in names)]
    columns = [*meta, *([None if row is None else row[place] for row in rows] for place in range(len(names)))]
    arrays = [_array(values, field, first) for values, field in zip(columns, fields, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def _meta_fields(names: Sequence[str]) -> list[pa.Field]:
    """The columns before those of the table; a name that the table has, in whatever case, gets another underscore."""
    taken = {name.lower() for name in names}
    fields = []
    for field in _META:
        name = field.name
        while name in taken:
            name = f"_{name}"
        fields.append(field.with_name(name))
    return fields


def _array(values: list[Any], field: pa.Field, change: Change) -> pa.Array:
    try:
        return pa.array(_fitting(values, field.type), field.type)
    except (pa.ArrowInvalid, UnicodeEncodeError) as error:
        raise EngineError(
            f"{change.schema.id}.{field.name} has a value that Arrow's {field.type} cannot hold: {error}"
        ) from error


def _fitting(values: list[Any], kind: pa.DataType) -> list[Any]:
    """The values without those that Arrow has no form for: unavailable ones, and dates that no calendar has."""
    if pa.types.is_temporal(kind):
        return [None if isinstance(value, str) or value is UNAVAILABLE else value for value in values]
    if kind == _GEOMETRY:
        return [{"wkb": value.wkb, "srid": value.srid} if isinstance(value, Geometry) else None for value in values]
    if kind == pa.string():
        return [None if value is UNAVAILABLE else _text(value) for value in values]
    return [None if value is UNAVAILABLE else value for value in values]


def _text(value: Any) -> Any:
    return format(value, "f") if isinstance(value, Decimal) else value
