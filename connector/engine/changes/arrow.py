"""Changes as Arrow record batches; needs pyarrow (``pip install 'rowtide[arrow]'``)."""

from collections.abc import Sequence
from typing import Any, get_args

import pyarrow as pa

from rowtide.connector.errors import EngineError, EngineTypeError
from rowtide.connector.records.arrow_values import WideDecimals, arrow_type, fitting
from rowtide.connector.records.change import Change
from rowtide.connector.records.unavailable import UNAVAILABLE

_META = [
    pa.field("__op", pa.string(), nullable=False),
    pa.field("__ts", pa.timestamp("us", tz="UTC"), nullable=False),
    pa.field("__file", pa.string(), nullable=False),
    pa.field("__pos", pa.int64(), nullable=False),
    pa.field("__row", pa.int32(), nullable=False),
    pa.field("__unavailable", pa.list_(pa.string())),
]


def record_batches(changes: Sequence[Change], wide_decimals: WideDecimals) -> dict[str, list[pa.RecordBatch]]:
    """Return the record batches of each table, in order; see :meth:`ChangeBatch.to_arrow`."""
    if wide_decimals not in get_args(WideDecimals):
        raise EngineTypeError(f"wide_decimals must be one of {get_args(WideDecimals)}, not {wide_decimals!r}")
    found: dict[str, list[list[Change]]] = {}
    for change in changes:
        parts = found.setdefault(str(change.schema.id), [])
        if not parts or parts[-1][-1].schema is not change.schema:
            parts.append([])
        parts[-1].append(change)
    return {table: [_record_batch(part, wide_decimals) for part in parts] for table, parts in found.items()}


def _record_batch(changes: Sequence[Change], wide_decimals: WideDecimals) -> pa.RecordBatch:
    """Return the record batch of changes of one structure."""
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
    """Return the columns before those of the table.

    A name that the table already has, in any case, gets another underscore.
    """
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
        return pa.array(fitting(values, field.type), field.type)
    except (pa.ArrowInvalid, UnicodeEncodeError) as error:
        raise EngineError(
            f"{change.schema.id}.{field.name} has a value that Arrow's {field.type} cannot hold: {error}"
        ) from error
