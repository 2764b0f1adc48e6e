"""Rows as an Arrow table; needs pyarrow. Pure."""

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from rowtide.connector.delivery.errors import DeliveryError
from rowtide.connector.delivery.tables.pending import Image
from rowtide.connector.records.arrow_values import arrow_type, fitting
from rowtide.schema_history.model import Column, TableId


def arrow_rows(
    table: TableId,
    columns: Sequence[Column],
    rows: Sequence[Image],
    stored: Callable[[list[Any], pa.DataType], pa.Array] = pa.array,
) -> pa.Table:
    """Return the rows as an Arrow table.

    Args:
        table: the table, for errors.
        columns: of the rows.
        rows: at least one.
        stored: makes an array of the values of an Arrow type.

    Raises:
        DeliveryError: a value cannot be represented in Arrow.
    """
    arrays = []
    for column, values in zip(columns, zip(*rows, strict=True), strict=True):
        kind = arrow_type(column)
        try:
            arrays.append(stored(fitting(list(values), kind), kind))
        except (pa.ArrowException, UnicodeEncodeError, TypeError) as error:
            raise DeliveryError(
                f"{table}.{column.name} has a value that {kind} cannot hold: {error}. Exclude the column "
                "(column.exclude.list), or remove its converter"
            ) from error
    return pa.Table.from_arrays(arrays, names=[column.name for column in columns])
