"""Column types: the Connect schema of a column, and the conversion of its values to Connect values and to JSON.

A :class:`ColumnType` converts the values of one *kind*, which the row decoders of binlog and snapshot produce. It
converts them to Connect values (``convert``) and, faster, directly to JSON: ``expression`` is Python source, so that
decoding and rendering of a table's rows can be compiled into one function.

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
"""Returns a name by which generated source can refer to a Python object."""


@dataclass(frozen=True, slots=True)
class Fallback:
    """The replacement for a value that cannot be represented in a record.

    Attributes:
        text: its JSON: null, the column's default, or 1970-01-01 in a NOT NULL column.
        on_error: called for each value that could not be converted. It raises if the connector must stop
            (``event.converting.failure.handling.mode``), or returns the Connect value to write, ``None`` for ``text``.
    """

    text: str
    on_error: Callable[[object, Exception], object]


class OutOfRangeError(ValueError):
    """A number that its Connect type cannot hold.

    Attributes:
        nearest: the number to write instead if ``event.converting.failure.handling.mode`` tolerates it; ``None`` for
            null or the default.
    """

    def __init__(self, message: str, nearest: object = None) -> None:
        super().__init__(message)
        self.nearest = nearest


Expression = Callable[[str, Bind, Fallback], str]
"""Returns Python source of the JSON text of a variable's value."""


class ColumnDescription(Protocol):
    """Debezium's description of a column, which determines its Connect type."""

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
class Form:
    """The form of a type's JSON text or objects, for the compiled row path, which cannot use Python source.

    Attributes:
        name: one of the forms in ``connector/rows/native/columns.c``.
        argument: of the form, such as the scale of a decimal.
        minimum: smaller values have another form, which only ``expression`` has.
    """

    name: str
    argument: int = 0
    minimum: int | None = None


@dataclass(frozen=True, slots=True)
class ColumnType:
    """The Connect type of a column.

    Attributes:
        schema: the Connect schema without optionality, default and documentation.
        kind: the kind of its values.
        convert: converts a value of that kind, never ``None``, to the Connect value.
        expression: Python source of the JSON text, which must agree with ``convert``.
        epoch: the Connect value of an invalid date in a NOT NULL column; ``None`` for types without invalid dates.
        form: what ``expression`` returns, by name; ``None`` for types that only Python converts.
        object_form: the same for ``convert``.
        is_custom: whether a column converter defined it.
        custom_default: the Connect value of the column's default, if so.
        custom_null: the Connect value of NULL, if so.
    """

    schema: Schema
    kind: Kind
    convert: Callable[[Any], Any]
    expression: Expression
    epoch: Any = None
    form: Form | None = None
    object_form: Form | None = None
    is_custom: bool = False
    custom_default: Any = None
    custom_null: Any = None


TypeFactory = Callable[[ColumnDescription, ValueSettings, Stage], ColumnType]
"""Returns the Connect type of a column of one data type."""


def fixed_type(found: ColumnType) -> TypeFactory:
    """Return a factory that returns the same type for every column."""
    return lambda column, settings, stage: found


def str_expression(variable: str, bind: Bind, fallback: Fallback) -> str:
    """Return the expression of values whose JSON text is their ``str``."""
    return variable


def call_expression(function: Callable[[Any], str]) -> Expression:
    """Return the expression that calls a function."""
    return lambda variable, bind, fallback: f"{bind(function)}({variable})"


def identity(value: Any) -> Any:
    """Return a value that already is a Connect value."""
    return value


def via_connect_value(schema: Schema, convert: Callable[[Any], Any]) -> Expression:
    """Return the expression that converts to the Connect value first: for rare types, and if ``convert`` can fail."""

    def expression(variable: str, bind: Bind, fallback: Fallback) -> str:
        def text(value: Any) -> str:
            try:
                return value_text(schema, convert(value))
            except ValueError as error:
                nearest = fallback.on_error(value, error)
                return fallback.text if nearest is None else value_text(schema, nearest)

        return f"{bind(text)}({variable})"

    return expression
