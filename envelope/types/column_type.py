"""What a column type is: the Connect schema of a column, and how its values become Connect values and JSON text.

A :class:`ColumnType` takes the values of one *kind* (below), as both the binlog decoder and the snapshot reader give
them, to Connect values (:attr:`ColumnType.convert`) and, faster, straight to JSON text: ``expression`` is Python source
for that, so that a table's decoder and its rendering can be compiled into one function.

Kinds of values: ``int``, ``decimal`` (unscaled int), ``float``, ``bit`` (int), ``year`` (int), the temporal kinds of
:mod:`rowtide.envelope.types.temporal_values`, ``text`` (str), ``bytes``, ``enum`` and ``set`` (label text), ``json``
(text), ``geometry`` (SRID and WKB as stored), ``vector`` (list of floats), ``uuid`` and ``inet`` (text).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from rowtide.envelope.json.text import value_text
from rowtide.envelope.schema import Schema
from rowtide.envelope.settings import Stage, ValueSettings

Kind = Literal[
    "int", "decimal", "float", "bit", "year", "date", "datetime", "timestamp", "time",
    "text", "bytes", "enum", "set", "json", "geometry", "vector", "uuid", "inet",
]  # fmt: skip

Bind = Callable[[object], str]
"""Gives a Python object a name that generated source can use."""


@dataclass(frozen=True, slots=True)
class Fallback:
    """What stands in a record for a value that has no form.

    Attributes:
        text: its JSON text: null, the column's default, or 1970-01-01 in a NOT NULL column.
        on_error: told of each value that could not be converted; raises if that must stop the connector
            (``event.converting.failure.handling.mode``).
    """

    text: str
    on_error: Callable[[object, Exception], None]


Expression = Callable[[str, Bind, Fallback], str]
"""From the name of a variable to Python source that gives the JSON text of its value."""


class ColumnDescription(Protocol):
    """What Debezium knows of a column, and what decides the form of its values."""

    @property
    def name(self) -> str: ...
    @property
    def type_name(self) -> str: ...
    @property
    def jdbc_type(self) -> int: ...
    @property
    def length(self) -> int | None: ...
    @property
    def scale(self) -> int | None: ...
    @property
    def optional(self) -> bool: ...
    @property
    def enum_values(self) -> tuple[str, ...]: ...


@dataclass(frozen=True, slots=True)
class ColumnType:
    """The form of a column's values.

    Attributes:
        schema: the Connect schema without optionality, default and documentation.
        kind: the kind of values that it takes.
        convert: from a value of that kind, never ``None``, to the Connect value.
        expression: from the name of a variable to Python source of the JSON text; must agree with ``convert``.
        epoch: what stands for an off-calendar value in a NOT NULL column; ``None`` where there are no such values.
    """

    schema: Schema
    kind: Kind
    convert: Callable[[Any], Any]
    expression: Expression
    epoch: Any = None


TypeFactory = Callable[[ColumnDescription, ValueSettings, Stage], ColumnType]
"""Finds the type of a column of a data type."""


def fixed_type(found: ColumnType) -> TypeFactory:
    """The same type for every column of a data type."""
    return lambda column, settings, stage: found


def str_expression(variable: str, bind: Bind, fallback: Fallback) -> str:
    """The expression of values whose JSON text is ``str`` of them."""
    return variable


def call_expression(function: Callable[[Any], str]) -> Expression:
    """The expression that calls a function."""
    return lambda variable, bind, fallback: f"{bind(function)}({variable})"


def identity(value: Any) -> Any:
    """The conversion of values that are Connect values already."""
    return value


def via_connect_value(schema: Schema, convert: Callable[[Any], Any]) -> Expression:
    """JSON text by way of the Connect value: for types that are rare or slow anyway, or whose values can be bad."""

    def expression(variable: str, bind: Bind, fallback: Fallback) -> str:
        def text(value: Any) -> str:
            try:
                return value_text(schema, convert(value))
            except ValueError as error:
                fallback.on_error(value, error)
                return fallback.text

        return f"{bind(text)}({variable})"

    return expression
