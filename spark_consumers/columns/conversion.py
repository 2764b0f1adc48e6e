"""Conversion of a column from its Connect schema to a Spark type.

A :class:`Column` has the type that ``from_json`` reads (the *wire* type), the type of the table's column, and an SQL
expression from one to the other. Nothing here needs Spark. The types are those of Debezium's MySQL and MariaDB
connectors and of Kafka Connect's logical types, as ``JsonConverter`` writes them.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rowtide.spark_consumers.columns.spark_types import MAX_DECIMAL_DIGITS, decimal_type, literal, quote
from rowtide.spark_consumers.columns.unavailable import checked

JsonSchema = Mapping[str, Any]
"""A Connect schema as parsed JSON."""

VALUE = "{value}"
SNAPSHOT = "{snapshot}"

_EPOCH = "TIMESTAMP_NTZ'1970-01-01 00:00:00'"
_MISSING = object()


@dataclass(frozen=True, slots=True)
class Column:
    """A column in messages and in the table.

    Attributes:
        name: the column's name in the table.
        type: Spark's type in the table.
        wire: the type that ``from_json`` reads.
        template: SQL with ``{value}`` for the value read and ``{snapshot}`` for whether it comes from a snapshot.
        optional: whether null is allowed.
        default: SQL of the value in rows that are older than the column; ``NULL`` if there is none.
        has_default: whether MySQL has a constant default for the column.
        inexact: whether snapshot and stream may write the same value differently (FLOAT, JSON).
        unavailable: the placeholder of values that the binlog did not have; ``None`` if no value is one.
        former: its name in the messages, if the column was renamed later; ``None`` if it is :attr:`name`.
    """

    name: str
    type: str
    wire: str
    template: str = VALUE
    optional: bool = True
    default: str = "NULL"
    has_default: bool = False
    inexact: bool = False
    unavailable: bytes | None = None
    former: str | None = None

    @property
    def field(self) -> str:
        """The column's name in the messages."""
        return self.name if self.former is None else self.former

    def expression(self, value: str, snapshot: str = "false") -> str:
        """Return SQL of the column's value from the SQL of the value read."""
        converted = _substitute(self.template, value, snapshot)
        if self.unavailable is None:
            return converted
        return checked(value, converted, self.name, self.wire, self.type, self.unavailable)


@dataclass(frozen=True, slots=True)
class Kind:
    """Type, wire type and template of a Connect schema; ``zero`` is SQL of MySQL's implicit default."""

    type: str
    wire: str
    template: str = VALUE
    zero: str = "NULL"
    inexact: bool = False


@dataclass(frozen=True, slots=True)
class ConverterSettings:
    """Settings of the connector's converter that the messages do not show.

    Attributes:
        numeric_decimals: ``decimal.format=NUMERIC`` of JsonConverter: decimals as JSON numbers, not as base64.
        unavailable: the placeholder of values that the binlog did not have; ``None`` if no message contains it.
    """

    numeric_decimals: bool = False
    unavailable: bytes | None = None


def column_of(field: JsonSchema, settings: ConverterSettings) -> Column:
    """Return the column of a field of a struct schema."""
    kind = kind_of(field, settings)
    optional = bool(field.get("optional", False))
    return Column(
        name=field["field"],
        type=kind.type,
        wire=kind.wire,
        template=kind.template,
        optional=optional,
        default=_default(kind, field.get("default", _MISSING), optional),
        has_default=field.get("default") is not None,
        inexact=kind.inexact,
        unavailable=settings.unavailable if (field["type"], field.get("name")) in _MAY_BE_UNAVAILABLE else None,
    )


_MAY_BE_UNAVAILABLE = {("string", None), ("string", "io.debezium.data.Json"), ("bytes", None)}
"""Types and names of the Connect schemas whose values may be the placeholder."""


def kind_of(schema: JsonSchema, settings: ConverterSettings) -> Kind:
    """Return type and conversion of a Connect schema. An unknown semantic type is read as its literal type."""
    name = schema.get("name")
    semantic = _SEMANTIC.get(name) if isinstance(name, str) else None
    return semantic(schema, settings) if semantic else _literal_kind(schema, settings)


def _default(kind: Kind, default: Any, optional: bool) -> str:
    if default is not _MISSING and default is not None:
        text = literal(json.dumps({"v": default}, ensure_ascii=False))
        read = f"from_json({text}, {literal(f'v {kind.wire}')}).v"
        return _substitute(kind.template, read, "true")
    # ALTER TABLE ... ADD c INT NOT NULL sets MySQL's implicit default in existing rows.
    return "NULL" if optional else kind.zero


_PLACEHOLDER = re.compile(r"\{(?:value|snapshot)\}")


def _substitute(template: str, value: str, snapshot: str) -> str:
    """Fill a template in one pass: column names and defaults in the SQL of a value may look like placeholders."""
    return _PLACEHOLDER.sub(lambda match: value if match[0] == VALUE else snapshot, template)


_PRIMITIVES = {
    "int8": Kind("tinyint", "TINYINT", zero="0Y"),
    "int16": Kind("smallint", "SMALLINT", zero="0S"),
    "int32": Kind("int", "INT", zero="0"),
    "int64": Kind("bigint", "BIGINT", zero="0L"),
    "float": Kind("float", "FLOAT", zero="0F", inexact=True),
    "double": Kind("double", "DOUBLE", zero="0D"),
    "boolean": Kind("boolean", "BOOLEAN", zero="false"),
    "string": Kind("string", "STRING", zero="''"),
    "bytes": Kind("binary", "BINARY", zero="X''"),
}


def _literal_kind(schema: JsonSchema, settings: ConverterSettings) -> Kind:
    connect_type = schema["type"]
    if connect_type in _PRIMITIVES:
        primitive = _PRIMITIVES[connect_type]
        return _unsigned_bigint(primitive, schema) if connect_type == "int64" else primitive
    nested = _nested_type(schema)
    return Kind(nested, nested)


def _nested_type(schema: JsonSchema) -> str:
    """Return the type of an array, map or struct; its elements have their literal types."""
    connect_type = schema["type"]
    if connect_type in _PRIMITIVES:
        return _PRIMITIVES[connect_type].type
    if connect_type == "array":
        return f"array<{_nested_type(schema['items'])}>"
    if connect_type == "map":
        return f"map<{_nested_type(schema['keys'])},{_nested_type(schema['values'])}>"
    names = ((field["field"], field) for field in schema["fields"])
    return f"struct<{','.join(f'{_plain(name)}:{_nested_type(field)}' for name, field in names)}>"


def _plain(name: str) -> str:
    return name if name.isidentifier() else quote(name)


def _unsigned_bigint(kind: Kind, schema: JsonSchema) -> Kind:
    """Return SQL that undoes the wrap at 2^63 (``bigint.unsigned.handling.mode=long``) of a propagated source type."""
    source = str(schema.get("parameters", {}).get("__debezium.source.column.type", ""))
    if not source.upper().startswith("BIGINT UNSIGNED"):
        return kind
    wrapped = f"IF({VALUE} < 0, 18446744073709551616BD, 0BD)"
    return Kind("decimal(20,0)", kind.wire, f"CAST(CAST({VALUE} AS decimal(20,0)) + {wrapped} AS decimal(20,0))", "0BD")


# --- Numbers ---------------------------------------------------------------------------------------------------------


def _decimal(schema: JsonSchema, settings: ConverterSettings) -> Kind:
    parameters = schema.get("parameters", {})
    scale = int(parameters["scale"])
    precision = max(int(parameters.get("connect.decimal.precision", MAX_DECIMAL_DIGITS)), scale, 1)
    target = decimal_type(precision, scale)
    zero = f"CAST(0 AS {target})" if target != "string" else literal("0." + "0" * scale if scale else "0")
    if settings.numeric_decimals:
        return Kind(target, target.upper(), zero=zero)
    if precision > MAX_DECIMAL_DIGITS:
        return Kind(target, "BINARY", _long_decimal_text(scale), zero)
    return Kind(target, "BINARY", f"CAST(concat({_unscaled(precision)}, 'E-{scale}') AS {target})", zero)


def _unscaled(precision: int) -> str:
    """Return SQL of the text of a big-endian two's complement number of at most 38 digits."""
    if precision <= 18:
        return f"conv({_sign_extended(16)}, 16, -10)"
    digits = _sign_extended(32)
    high = f"CAST(conv(left({digits}, 16), 16, -10) AS decimal(20,0))"
    low = f"CAST(conv(right({digits}, 16), 16, 10) AS decimal(20,0))"
    # The high half of a negative number is rounded towards zero: else the product may overflow where the sum fits.
    size = "18446744073709551616BD"
    negative = f"({high} + 1) * {size} + ({low} - {size})"
    return f"CAST(IF(hex({VALUE}) >= '8', {negative}, {high} * {size} + {low}) AS string)"


def _sign_extended(hex_digits: int) -> str:
    """Return SQL of the number's hexadecimal digits, sign-extended to a fixed length."""
    fill = f"IF(hex({VALUE}) >= '8', '{'F' * hex_digits}', '{'0' * hex_digits}')"
    return f"right(concat({fill}, hex({VALUE})), {hex_digits})"


_LIMB = 1_000_000_000
_LONG_HEX_DIGITS = 56  # 28 bytes: 65 digits need 27
_LONG_LIMBS = 8  # of nine decimal digits: 72


def _long_decimal_text(scale: int) -> str:
    """Return SQL of the text of a number of more than 38 digits: conversion to base 10^9, 32 bits at a time.

    Spark has no integer of that size; the digits are an array, lowest first.
    """
    negative = f"(hex({VALUE}) >= '8')"
    # The magnitude of a negative number is its complement plus one.
    plain = _sign_extended(_LONG_HEX_DIGITS)
    digits = f"IF({negative}, translate({plain}, '0123456789ABCDEF', 'FEDCBA9876543210'), {plain})"
    chunks = (
        f"transform(sequence(1, {_LONG_HEX_DIGITS}, 8), i -> CAST(conv(substring({digits}, i, 8), 16, 10) AS bigint))"
    )
    start = f"array_repeat(0L, {_LONG_LIMBS})"
    limbs = f"aggregate({chunks}, {start}, (limbs, chunk) -> {_multiply_add('limbs', '4294967296L', 'chunk')})"
    limbs = _multiply_add(limbs, "1L", f"IF({negative}, 1L, 0L)")
    text = f"concat_ws('', transform(reverse({limbs}), x -> lpad(CAST(x AS string), 9, '0')))"
    text = f"concat(right(concat('{'0' * _LONG_LIMBS * 9}', {text}), {_LONG_LIMBS * 9}))"
    return f"IF({VALUE} IS NULL, NULL, concat(IF({negative}, '-', ''), {_with_point(text, scale)}))"


def _multiply_add(limbs: str, factor: str, addend: str) -> str:
    step = (
        f"named_struct('out', concat(s.out, array((x * {factor} + s.carry) % {_LIMB}L)), "
        f"'carry', (x * {factor} + s.carry) div {_LIMB}L)"
    )
    zero = f"named_struct('out', CAST(array() AS array<bigint>), 'carry', {addend})"
    return f"aggregate({limbs}, {zero}, (s, x) -> {step}, s -> s.out)"


def _with_point(digits: str, scale: int) -> str:
    length = _LONG_LIMBS * 9
    whole = f"ltrim('0', left({digits}, {length - scale}))"
    whole = f"IF({whole} = '', '0', {whole})"
    return f"concat({whole}, '.', right({digits}, {scale}))" if scale else whole


def _bits(schema: JsonSchema, _settings: ConverterSettings) -> Kind:
    """Return SQL that reverses the bytes of BIT(n): Debezium sends them little-endian, MySQL shows them big-endian."""
    size = (int(schema.get("parameters", {}).get("length", 64)) + 7) // 8
    full = f"rpad(hex({VALUE}), {2 * size}, '0')"
    swapped = ", ".join(f"substring({full}, {2 * i + 1}, 2)" for i in reversed(range(size)))
    return Kind("binary", "BINARY", f"unhex(concat({swapped}))", f"X'{'00' * size}'")


# --- Dates and times -------------------------------------------------------------------------------------------------


def _fixed(kind: Kind) -> Callable[[JsonSchema, ConverterSettings], Kind]:
    return lambda _schema, _settings: kind


def _local_timestamp(unit: str, wire: str = "BIGINT") -> Kind:
    # An interval times a number is exact integer arithmetic and does not depend on the session's time zone.
    return Kind("timestamp_ntz", wire, f"({_EPOCH} + {VALUE} * INTERVAL '{unit}' SECOND)", _EPOCH)


_DATE = Kind("date", "INT", f"date_from_unix_date({VALUE})", "DATE'1970-01-01'")
_ZONED = Kind("timestamp", "STRING", f"CAST({VALUE} AS timestamp)", "TIMESTAMP'1970-01-01 00:00:00Z'")
_ISO_DATE = Kind("date", "STRING", f"CAST(left({VALUE}, length({VALUE}) - 1) AS date)", "DATE'1970-01-01'")
_ISO_LOCAL = Kind("timestamp_ntz", "STRING", f"CAST({VALUE} AS timestamp_ntz)", _EPOCH)
_ISO_TIME = Kind("bigint", "STRING", f"unix_micros(CAST(concat('1970-01-01T', {VALUE}) AS timestamp))", "0L")


# --- Text, geometry, vectors -----------------------------------------------------------------------------------------


def _labels(schema: JsonSchema, _settings: ConverterSettings) -> Kind:
    """Return SQL that unescapes ENUM and SET labels: Debezium escapes commas and backslashes only in the stream."""
    allowed = str(schema.get("parameters", {}).get("allowed", ""))
    zero = literal(_first_label(allowed)) if schema.get("name") == "io.debezium.data.Enum" else "''"
    if "\\" not in allowed:
        return Kind("string", "STRING", zero=zero)
    unescaped = f"IF({SNAPSHOT}, {VALUE}, regexp_replace({VALUE}, '\\\\\\\\(.)', '$1'))"
    return Kind("string", "STRING", unescaped, zero)


def _first_label(allowed: str) -> str:
    label = ""
    characters = iter(allowed)
    for character in characters:
        if character == ",":
            break
        label += next(characters, "") if character == "\\" else character
    return label


def _structure(*fields: str) -> Kind:
    ddl = f"struct<{','.join(fields)}>"
    return Kind(ddl, ddl)


_JSON = Kind("string", "STRING", zero="'null'", inexact=True)
_VECTOR = Kind("array<float>", "ARRAY<FLOAT>")
_MICRO_TIME = Kind("bigint", "BIGINT", zero="0L")

_SEMANTIC: Mapping[str, Callable[[JsonSchema, ConverterSettings], Kind]] = {
    "org.apache.kafka.connect.data.Decimal": _decimal,
    "org.apache.kafka.connect.data.Date": _fixed(_DATE),
    "org.apache.kafka.connect.data.Time": _fixed(Kind("bigint", "INT", f"({VALUE} * 1000L)", "0L")),
    "org.apache.kafka.connect.data.Timestamp": _fixed(_local_timestamp("0.001")),
    "io.debezium.data.Bits": _bits,
    "io.debezium.data.Enum": _labels,
    "io.debezium.data.EnumSet": _labels,
    "io.debezium.data.Json": _fixed(_JSON),
    "io.debezium.data.FloatVector": _fixed(_VECTOR),
    "io.debezium.data.geometry.Geometry": _fixed(_structure("wkb:binary", "srid:int")),
    "io.debezium.data.geometry.Point": _fixed(_structure("x:double", "y:double", "wkb:binary", "srid:int")),
    "io.debezium.time.Date": _fixed(_DATE),
    "io.debezium.time.Year": _fixed(_PRIMITIVES["int32"]),
    "io.debezium.time.Time": _fixed(Kind("bigint", "INT", f"({VALUE} * 1000L)", "0L")),
    "io.debezium.time.MicroTime": _fixed(_MICRO_TIME),
    "io.debezium.time.NanoTime": _fixed(Kind("bigint", "BIGINT", f"({VALUE} div 1000)", "0L")),
    "io.debezium.time.Timestamp": _fixed(_local_timestamp("0.001")),
    "io.debezium.time.MicroTimestamp": _fixed(_local_timestamp("0.000001")),
    "io.debezium.time.NanoTimestamp": _fixed(
        Kind("timestamp_ntz", "BIGINT", f"({_EPOCH} + ({VALUE} div 1000) * INTERVAL '0.000001' SECOND)", _EPOCH)
    ),
    "io.debezium.time.ZonedTimestamp": _fixed(_ZONED),
    "io.debezium.time.IsoDate": _fixed(_ISO_DATE),
    "io.debezium.time.IsoTimestamp": _fixed(_ISO_LOCAL),
    "io.debezium.time.IsoTime": _fixed(_ISO_TIME),
}
