"""The interface of column converters and their arguments: Debezium's ``CustomConverter`` and ``RelationalColumn``."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from rowtide.envelope.schema import Schema
from rowtide.envelope.transforms.validation import schema_check


@dataclass(frozen=True, slots=True)
class RelationalColumn:
    """A column, as a converter sees it: Debezium's ``RelationalColumn``.

    Attributes:
        name: its name.
        table: its table, ``database.table``.
        type_name: the type in upper case, such as ``DECIMAL`` or ``INT UNSIGNED``.
        type_expression: the same.
        length, scale: as declared; ``None`` without one.
        optional: whether NULL is allowed.
        has_default: whether it has a default, NULL included.
        default: its default, in the form of the values that the function receives; ``None`` for NULL and for
            expressions.
        charset: its character set; ``None`` without one.
        jdbc_type: the number in ``java.sql.Types``.
    """

    name: str
    table: str
    type_name: str
    type_expression: str = ""
    length: int | None = None
    scale: int | None = None
    optional: bool = True
    has_default: bool = False
    default: Any = None
    charset: str | None = None
    jdbc_type: int = 0


CONVERTED = object()
"""Stands for the default of a column, converted like its values."""


class Registered(NamedTuple):
    """The registration of a converter for a column.

    Attributes:
        schema: the schema of the field.
        convert: the function from a value, never ``None``, to a value of the schema.
        null: the value of the schema for NULL.
        default: the default of the schema if the column has one; :data:`CONVERTED` for the column's.
    """

    schema: Schema
    convert: Callable[[Any], Any]
    null: Any = None
    default: Any = CONVERTED


class Registration:
    """Receives the registration of a converter for a column.

    Attributes:
        registered: the registration; ``None`` if there is none yet.
    """

    def __init__(self) -> None:
        self.registered: Registered | None = None

    def register(
        self, schema: Schema, convert: Callable[[Any], Any], *, null: Any = None, default: Any = CONVERTED
    ) -> None:
        """Register a schema, and the function from a value of the column, never ``None``, to a value of the schema.

        Args:
            schema: the schema.
            convert: the function.
            null: the value of the schema for NULL.
            default: the default of the schema if the column has one that is not NULL; by default that of the column.

        Raises:
            TypeError: an argument has the wrong type.
            ValueError: something is registered already.
        """
        if not isinstance(schema, Schema):
            raise TypeError(f"the schema must be a rowtide.envelope.schema.Schema, not a {type(schema).__name__}")
        if not callable(convert):
            raise TypeError(f"the conversion must be a function, not a {type(convert).__name__}")
        if self.registered is not None:
            raise ValueError("two functions were registered for the column")
        schema_check(schema)
        self.registered = Registered(schema, convert, null, default)


class CustomConverter(Protocol):
    """A custom column converter."""

    def converter_for(self, column: RelationalColumn, registration: Registration) -> None:
        """Register a schema and a function if the column should be converted."""
        ...
