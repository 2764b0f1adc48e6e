"""From a column to its Connect schema and to the form of its values.

A :class:`ColumnType` takes the values of one *kind* (below), as both the binlog decoder and the snapshot reader give
them, to Connect values (:meth:`ColumnType.convert`) and, faster, straight to JSON text: ``expression`` is Python source
for that, so that a table's decoder and its rendering can be compiled into one function.

Kinds of values: ``int``, ``decimal`` (unscaled int), ``float``, ``bit`` (int), ``year`` (int), the temporal kinds of
:mod:`rowtide.envelope.temporal`, ``text`` (str), ``bytes``, ``enum`` and ``set`` (label text), ``json`` (text),
``geometry`` (SRID and WKB as stored), ``vector`` (list of floats), ``uuid`` and ``inet`` (text).
"""

import base64
import re
import struct
from binascii import b2a_base64
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

from rowtide.envelope import temporal
from rowtide.envelope.java_numbers import decimal_text, double_text, float_text
from rowtide.envelope.json_text import string_text, value_text
from rowtide.envelope.schema import (
    BOOLEAN,
    BYTES,
    DECIMAL,
    FLOAT32,
    FLOAT64,
    INT16,
    INT32,
    INT64,
    OPTIONAL_INT32,
    STRING,
    Field,
    Schema,
)
from rowtide.envelope.settings import Stage, ValueSettings
from rowtide.envelope.temporal import OffCalendar, TemporalForm

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
        failed: told of each value that could not be converted; raises if that must stop the connector
            (``event.converting.failure.handling.mode``).
    """

    text: str
    failed: Callable[[object, Exception], None]


Expression = Callable[[str, Bind, Fallback], str]
"""From the name of a variable to Python source that gives the JSON text of its value."""

GEOMETRIES = frozenset(
    {
        "GEOMETRY",
        "LINESTRING",
        "POLYGON",
        "MULTIPOINT",
        "MULTILINESTRING",
        "MULTIPOLYGON",
        "GEOMETRYCOLLECTION",
        "GEOMCOLLECTION",
    }
)


class ColumnFacet(Protocol):
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


def column_type(column: ColumnFacet, settings: ValueSettings, stage: Stage) -> ColumnType | None:
    """The form of a column's values, or ``None`` if the type is not known (Debezium leaves such a column out).

    Args:
        column: the column as Debezium sees it (``typeName``, ``jdbcType``, ``length``, ``scale``).
        settings: the handling modes.
        stage: the few types whose text differs between snapshot and stream need to know.
    """
    words = column.type_name.upper().split()
    base = words[0]
    special = _SPECIAL.get(base)
    if special is not None:
        return special(column, settings, stage)
    if base in GEOMETRIES:
        return _GEOMETRY
    by_jdbc = _JDBC.get(column.jdbc_type)
    return by_jdbc(column, settings, stage) if by_jdbc else None


# --- numbers ----------------------------------------------------------------------------------------------------


def _plain(variable: str, bind: Bind, fallback: Fallback) -> str:
    return variable


def _call(function: Callable[[Any], str]) -> Expression:
    return lambda variable, bind, fallback: f"{bind(function)}({variable})"


def _same(value: Any) -> Any:
    return value


def _integer(schema: Schema) -> ColumnType:
    return ColumnType(schema, "int", _same, _plain)


_INT16, _INT32, _INT64 = _integer(INT16), _integer(INT32), _integer(INT64)


def wrap_long(value: int) -> int:
    """A BIGINT UNSIGNED as Java's long: from 2^63 on it is negative (``bigint.unsigned.handling.mode=long``)."""
    return value - 2**64 if value >= 2**63 else value


_UNSIGNED_LONG = ColumnType(INT64, "int", wrap_long, lambda v, bind, _: f"({v} if {v} < 1 << 63 else {v} - (1 << 64))")


def decimal_schema(precision: int | None, scale: int) -> Schema:
    """Connect's ``Decimal`` with Debezium's precision parameter."""
    parameters = [("scale", str(scale))]
    if precision is not None:
        parameters.append(("connect.decimal.precision", str(precision)))
    return Schema("bytes", name=DECIMAL, version=1, parameters=tuple(parameters))


def unscaled_text(unscaled: int) -> str:
    """The JSON text of an unscaled number: base64 of its big-endian two's complement, as Java's BigInteger gives it."""
    length = (unscaled if unscaled >= 0 else ~unscaled).bit_length() // 8 + 1
    return f'"{b2a_base64(unscaled.to_bytes(length, "big", signed=True), newline=False).decode()}"'


def _decimal(column: ColumnFacet, settings: ValueSettings, stage: Stage) -> ColumnType:
    scale = column.scale or 0
    return decimal_type(column.length, scale, settings.decimal_handling_mode)


def decimal_type(precision: int | None, scale: int, mode: str) -> ColumnType:
    """The form of a DECIMAL(precision, scale) in a ``decimal.handling.mode``."""
    if mode == "double":
        divisor: int = 10**scale

        def as_double(unscaled: int) -> float:
            return unscaled / divisor

        return ColumnType(
            FLOAT64, "decimal", as_double, lambda v, bind, _: f"{bind(double_text)}({v} / {bind(divisor)})"
        )
    if mode == "string":

        def as_text(unscaled: int) -> str:
            return decimal_text(unscaled, scale)

        return ColumnType(
            STRING, "decimal", as_text, lambda v, bind, _: f"'\"' + {bind(decimal_text)}({v}, {scale}) + '\"'"
        )
    return ColumnType(decimal_schema(precision, scale), "decimal", _same, _call(unscaled_text))


def _bigint(column: ColumnFacet, settings: ValueSettings, stage: Stage) -> ColumnType:
    if not _unsigned(column):
        return _INT64
    if settings.bigint_unsigned_handling_mode == "precise":
        return replace(decimal_type(20, 0, "precise"), kind="int")
    return _UNSIGNED_LONG


def _unsigned(column: ColumnFacet) -> bool:
    words = column.type_name.upper().split()
    return "UNSIGNED" in words or "ZEROFILL" in words or words[0] == "SERIAL"


def _smallint(column: ColumnFacet, settings: ValueSettings, stage: Stage) -> ColumnType:
    wide = _unsigned(column) and column.type_name.upper().split()[0] not in {"TINYINT", "INT1"}
    return _INT32 if wide else _INT16


def _int(column: ColumnFacet, settings: ValueSettings, stage: Stage) -> ColumnType:
    base = column.type_name.upper().split()[0]
    return _INT64 if _unsigned(column) and base in {"INT", "INTEGER", "INT4"} else _INT32


_FLOAT32 = struct.Struct("<f")


def single(value: float) -> float:
    """Round to float32, as Java's cast does: what lies outside its range is infinite."""
    try:
        rounded: float = _FLOAT32.unpack(_FLOAT32.pack(value))[0]
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")
    return rounded


_SINGLE = ColumnType(FLOAT32, "float", single, lambda v, bind, _: f"{bind(float_text)}({bind(single)}({v}))")
_DOUBLE = ColumnType(FLOAT64, "float", _same, _call(double_text))


def _float(column: ColumnFacet, settings: ValueSettings, stage: Stage) -> ColumnType:
    double = column.scale is not None or (column.length is not None and column.length > 24)
    return _DOUBLE if double else _SINGLE


def _truth(value: int) -> bool:
    return value != 0


_BOOLEAN = ColumnType(BOOLEAN, "int", _truth, lambda v, bind, _: f"('true' if {v} else 'false')")


def _bit(column: ColumnFacet, settings: ValueSettings, stage: Stage) -> ColumnType:
    bits = column.length or 1
    if bits == 1:
        return replace(_BOOLEAN, kind="bit")
    size = (bits + 7) // 8
    schema = Schema("bytes", name="io.debezium.data.Bits", version=1, parameters=(("length", str(bits)),))

    def little_endian(value: int) -> bytes:
        return value.to_bytes(size, "little")

    return ColumnType(schema, "bit", little_endian, _through(schema, little_endian))


def _through(schema: Schema, convert: Callable[[Any], Any]) -> Expression:
    """JSON text by way of the Connect value: for types that are rare or slow anyway."""

    def text(value: Any) -> str:
        return value_text(schema, convert(value))

    return _call(text)


# --- text and bytes ---------------------------------------------------------------------------------------------


_TEXT = ColumnType(STRING, "text", _same, _call(string_text))


def _base64_json(value: bytes) -> str:
    return f'"{b2a_base64(value, newline=False).decode()}"'


def base64_url_safe(value: bytes) -> str:
    """Base64 with ``-`` and ``_``, padded (``binary.handling.mode=base64-url-safe``)."""
    return base64.urlsafe_b64encode(value).decode()


_BINARY = {
    "bytes": ColumnType(BYTES, "bytes", _same, _call(_base64_json)),
    "base64": ColumnType(STRING, "bytes", lambda value: b2a_base64(value, newline=False).decode(), _call(_base64_json)),
    "base64-url-safe": ColumnType(STRING, "bytes", base64_url_safe, _through(STRING, base64_url_safe)),
    "hex": ColumnType(STRING, "bytes", bytes.hex, lambda v, bind, _: f"'\"' + {v}.hex() + '\"'"),
}


def _binary(column: ColumnFacet, settings: ValueSettings, stage: Stage) -> ColumnType:
    return _BINARY[settings.binary_handling_mode]


def labels(column: ColumnFacet) -> tuple[str, ...]:
    """The labels of an ENUM or SET as the parser keeps them, without their quotes."""
    return tuple(_unquoted(label) for label in column.enum_values)


_LABEL_ESCAPE = re.compile(r"\\.|''", re.DOTALL)


def _unquoted(label: str) -> str:
    if len(label) >= 2 and label[0] == label[-1] == "'":
        label = label[1:-1]
    return _LABEL_ESCAPE.sub(lambda match: match[0][1], label)


def escaped_label(label: str) -> str:
    """A label as it stands in the ``allowed`` parameter, whose separator is the comma."""
    return label.replace("\\", "\\\\").replace(",", "\\,")


def _enum(column: ColumnFacet, settings: ValueSettings, stage: Stage) -> ColumnType:
    allowed = ",".join(escaped_label(label) for label in labels(column))
    schema = Schema("string", name="io.debezium.data.Enum", version=1, parameters=(("allowed", allowed),))
    if stage == "stream":
        # Debezium keeps the escaped labels and gives one of those for the index in the row event.
        return ColumnType(
            schema, "enum", escaped_label, lambda v, bind, _: f"{bind(string_text)}({bind(escaped_label)}({v}))"
        )
    return ColumnType(schema, "enum", _same, _call(string_text))


def _set(column: ColumnFacet, settings: ValueSettings, stage: Stage) -> ColumnType:
    allowed = ",".join(escaped_label(label) for label in labels(column))
    schema = Schema("string", name="io.debezium.data.EnumSet", version=1, parameters=(("allowed", allowed),))
    return ColumnType(schema, "set", _same, _call(string_text))


def _semantic_text(name: str, kind: Kind) -> ColumnType:
    return ColumnType(Schema("string", name=name, version=1), kind, _same, _call(string_text))


_JSON = _semantic_text("io.debezium.data.Json", "json")
_UUID = _semantic_text("io.debezium.data.Uuid", "uuid")
_INET = ColumnType(STRING, "inet", _same, _call(string_text))


# --- geometry and vectors ---------------------------------------------------------------------------------------

_GEOMETRY_SCHEMA = Schema(
    "struct",
    optional=True,  # even of a NOT NULL column: Debezium's builder begins so, and nothing takes it back
    name="io.debezium.data.geometry.Geometry",
    version=1,
    doc="Geometry",
    fields=(Field("wkb", BYTES), Field("srid", OPTIONAL_INT32)),
)
_POINT_SCHEMA = Schema(
    "struct",
    name="io.debezium.data.geometry.Point",
    version=1,
    doc="Geometry (POINT)",
    fields=(
        Field("x", FLOAT64),
        Field("y", FLOAT64),
        Field("wkb", BYTES.with_optional(True)),
        Field("srid", OPTIONAL_INT32),
    ),
)
_POINT = struct.Struct("<dd")


def _geometry_value(stored: bytes) -> dict[str, Any]:
    return {"wkb": stored[4:], "srid": int.from_bytes(stored[:4], "little") or None}


def _point_value(stored: bytes) -> dict[str, Any]:
    x, y = _POINT.unpack_from(stored, 9)
    return {"x": x, "y": y, **_geometry_value(stored)}


_GEOMETRY = ColumnType(_GEOMETRY_SCHEMA, "geometry", _geometry_value, _through(_GEOMETRY_SCHEMA, _geometry_value))
_POINT_TYPE = ColumnType(_POINT_SCHEMA, "geometry", _point_value, _through(_POINT_SCHEMA, _point_value))
_VECTOR_SCHEMA = Schema("array", name="io.debezium.data.FloatVector", version=1, items=FLOAT32)
_VECTOR = ColumnType(_VECTOR_SCHEMA, "vector", _same, _through(_VECTOR_SCHEMA, _same))


# --- temporal ---------------------------------------------------------------------------------------------------


def _temporal(form: TemporalForm, kind: Kind, adjusted: temporal.Adjusted | None = None) -> ColumnType:
    """The type of a form; ``adjusted`` if years before 100 are two-digit years (``enable.time.adjuster``)."""

    def convert(value: int | OffCalendar) -> Any:
        if isinstance(value, OffCalendar):
            return None
        return form.convert(adjusted.adjust(value) if adjusted and value < adjusted.before else value)

    def expression(variable: str, bind: Bind, fallback: Fallback) -> str:
        def text(value: int | OffCalendar) -> str:
            if isinstance(value, OffCalendar):
                return fallback.text
            try:
                return value_text(form.schema, convert(value))
            except ValueError as error:
                fallback.failed(value, error)
                return fallback.text

        slow = f"{bind(text)}({variable})"
        if not form.expression:
            return slow
        modern = f" and {variable} >= {adjusted.before}" if adjusted else ""
        return f"({form.expression.format(v=variable)} if {variable}.__class__ is int{modern} else {slow})"

    return ColumnType(form.schema, kind, convert, expression, form.epoch)


def _date(column: ColumnFacet, settings: ValueSettings, stage: Stage) -> ColumnType:
    adjusted = temporal.ADJUSTED_DATE if settings.enable_time_adjuster else None
    return _temporal(temporal.date_form(settings.time_precision_mode), "date", adjusted)


def _time(column: ColumnFacet, settings: ValueSettings, stage: Stage) -> ColumnType:
    return _temporal(temporal.time_form(settings.time_precision_mode), "time")


def _datetime(column: ColumnFacet, settings: ValueSettings, stage: Stage) -> ColumnType:
    adjusted = temporal.ADJUSTED_DATETIME if settings.enable_time_adjuster else None
    return _temporal(temporal.datetime_form(settings.time_precision_mode, column.length or 0), "datetime", adjusted)


def _timestamp(column: ColumnFacet, settings: ValueSettings, stage: Stage) -> ColumnType:
    form = temporal.zoned_form(column.length or 0, trimmed=stage == "snapshot")
    zoned = _temporal(form, "timestamp")
    if settings.connector == "mariadb" and stage == "stream":
        # MariaDB's zero timestamp is 1970 in the stream, also where null is allowed.
        return replace(
            zoned,
            convert=lambda value: form.convert(0 if isinstance(value, OffCalendar) else value),
            expression=_call(lambda value: string_text(form.convert(0 if isinstance(value, OffCalendar) else value))),
        )
    return zoned


_YEAR = ColumnType(temporal.YEAR, "year", _same, _plain)


# --- the tables -------------------------------------------------------------------------------------------------

_TypeOf = Callable[[ColumnFacet, ValueSettings, Stage], ColumnType]


def _always(found: ColumnType) -> _TypeOf:
    return lambda column, settings, stage: found


_SPECIAL: dict[str, _TypeOf] = {
    "JSON": _always(_JSON),
    "POINT": _always(_POINT_TYPE),
    "YEAR": _always(_YEAR),
    "ENUM": _enum,
    "SET": _set,
    "FLOAT": _float,
    "VECTOR": _always(_VECTOR),
    "UUID": _always(_UUID),
    "INET4": _always(_INET),
    "INET6": _always(_INET),
}

# By java.sql.Types, the number that the schema history keeps.
_JDBC: dict[int, _TypeOf] = {
    -7: _bit,  # BIT
    16: _always(_BOOLEAN),  # BOOLEAN
    -6: _smallint,  # TINYINT
    5: _smallint,  # SMALLINT
    4: _int,  # INTEGER
    -5: _bigint,  # BIGINT
    6: _float,  # FLOAT
    7: _always(_SINGLE),  # REAL
    8: _always(_DOUBLE),  # DOUBLE
    2: _decimal,  # NUMERIC
    3: _decimal,  # DECIMAL
    1: _always(_TEXT),  # CHAR
    12: _always(_TEXT),  # VARCHAR
    -1: _always(_TEXT),  # LONGVARCHAR
    -15: _always(_TEXT),  # NCHAR
    -9: _always(_TEXT),  # NVARCHAR
    -16: _always(_TEXT),  # LONGNVARCHAR
    2005: _always(_TEXT),  # CLOB
    2011: _always(_TEXT),  # NCLOB
    -2: _binary,  # BINARY
    -3: _binary,  # VARBINARY
    -4: _binary,  # LONGVARBINARY
    2004: _binary,  # BLOB
    91: _date,  # DATE
    92: _time,  # TIME
    93: _datetime,  # TIMESTAMP
    2014: _timestamp,  # TIMESTAMP_WITH_TIMEZONE
}
