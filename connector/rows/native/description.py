"""The description of a column for the compiled row path: how values are stored, their output form, and their function.

A column whose values only Python converts is described as such, and compiled code calls its function for every value.
For the other columns, it does so only for rare values: dates outside the calendar, large exponents, broken UTF-8.
"""

import logging
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from rowtide.connector.rows.column_output import ColumnOutput
from rowtide.envelope.types.column_type import Form

log = logging.getLogger(__name__)

PYTHON = Form("from python")
NO_MINIMUM = -(1 << 63)

Stored = Callable[[bytes], Any]
"""Converts the bytes of a value, without their length."""


class Description(NamedTuple):
    """A column as ``column_read`` in ``native/columns.c`` takes it.

    Attributes:
        stored: how values are stored.
        form: their output form.
        size: bytes of a value, or of its length prefix unless `fixed`.
        fixed: whether every value has ``size`` bytes; in packets, whether its length is one byte.
        nullable: whether it has to be looked up in the null bitmap.
        published: whether row or key have it.
        in_row: whether the row has it.
        precision: digits of a DECIMAL.
        scale: its scale, or the digits of a fraction of seconds.
        argument: of the form.
        minimum: smaller values are converted in Python.
        before: the bytes before the value in the row: a comma and the field's name.
        null: the output for NULL.
        absent: the same for an image without the column.
        python: converts values that the form does not cover.
        table: texts by number, for forms that have them.
        key_python: converts for the key, if that differs.
        key_null: the output for NULL in the key.
    """

    stored: str
    form: str
    size: int
    fixed: bool
    nullable: bool
    published: bool
    in_row: bool
    precision: int = 0
    scale: int = 0
    argument: int = 0
    minimum: int = NO_MINIMUM
    before: bytes = b""
    null: Any = b""
    absent: Any = b""
    python: Stored | None = None
    table: tuple[bytes, ...] | None = None
    key_python: Stored | None = None
    key_null: Any = None

    @property
    def is_native(self) -> bool:
        """Whether compiled code converts the usual values."""
        return not self.published or self.stored != "otherwise"


def log_python_columns(columns: Sequence[tuple[Description, ColumnOutput | None]]) -> None:
    """Log which columns only Python converts."""
    names = [f"{output.field} ({output.type.kind})" for one, output in columns if output and not one.is_native]
    if names:
        log.debug("columns whose values are converted in Python: %s", ", ".join(names))
