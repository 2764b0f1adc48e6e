"""The Connect types of numbers and BIT."""

from dataclasses import replace

from rowtide.envelope.json.java_numbers import decimal_text, double_text, float_text, to_float32
from rowtide.envelope.json.text import base64_text, decimal_bytes
from rowtide.envelope.schema import BOOLEAN, DECIMAL, FLOAT32, FLOAT64, INT16, INT32, INT64, STRING, Schema
from rowtide.envelope.settings import Stage, ValueSettings
from rowtide.envelope.types.column_type import (
    ColumnDescription,
    ColumnType,
    Form,
    OutOfRangeError,
    call_expression,
    identity,
    str_expression,
    via_connect_value,
)


def _integer(schema: Schema) -> ColumnType:
    return ColumnType(schema, "int", identity, str_expression, form=Form("integer"))


_INT16, _INT32, _INT64 = _integer(INT16), _integer(INT32), _integer(INT64)


def wrap_long(value: int) -> int:
    """Convert a BIGINT UNSIGNED to Java's long, negative from 2^63 (``bigint.unsigned.handling.mode=long``)."""
    return value - 2**64 if value >= 2**63 else value


_UNSIGNED_LONG = ColumnType(
    INT64,
    "int",
    wrap_long,
    lambda v, bind, _: f"({v} if {v} < 1 << 63 else {v} - (1 << 64))",
    form=Form("wrapped"),
)


def _exact_long(value: int) -> int:
    if value >= 2**63:
        raise OutOfRangeError(
            "the schema's signed 64-bit number ends at 2^63 - 1; bigint.unsigned.handling.mode=precise (a decimal) or "
            "string keeps it"
        )
    return value


_long_text = via_connect_value(INT64, _exact_long)
_EXACT_LONG = ColumnType(
    INT64,
    "int",
    _exact_long,
    lambda v, bind, fallback: f"({v} if {v} < 1 << 63 else {_long_text(v, bind, fallback)})",
    form=Form("long"),
)
_INTEGER_TEXT = ColumnType(STRING, "int", str, lambda v, bind, _: f"'\"' + str({v}) + '\"'", form=Form("plain decimal"))


def decimal_schema(precision: int | None, scale: int) -> Schema:
    """Return Connect's ``Decimal`` with Debezium's precision parameter."""
    parameters = [("scale", str(scale))]
    if precision is not None:
        parameters.append(("connect.decimal.precision", str(precision)))
    return Schema("bytes", name=DECIMAL, version=1, parameters=tuple(parameters))


def unscaled_text(unscaled: int) -> str:
    """Return the JSON of an unscaled number: base64 of its bytes as in Java's ``BigInteger.toByteArray``."""
    return base64_text(decimal_bytes(unscaled))


def numeric_type(column: ColumnDescription, settings: ValueSettings, stage: Stage) -> ColumnType:
    """Return the type of DECIMAL by ``decimal.handling.mode``."""
    scale = column.scale or 0
    return decimal_type(column.length, scale, settings.decimal_handling_mode)


def decimal_type(precision: int | None, scale: int, mode: str) -> ColumnType:
    """Return the type of DECIMAL(precision, scale) for a ``decimal.handling.mode``."""
    if mode == "double":
        divisor: int = 10**scale

        def as_double(unscaled: int) -> float:
            return unscaled / divisor

        return ColumnType(
            FLOAT64,
            "decimal",
            as_double,
            lambda v, bind, _: f"{bind(double_text)}({v} / {bind(divisor)})",
            form=Form("ratio", scale),
        )
    if mode == "string":

        def as_text(unscaled: int) -> str:
            return decimal_text(unscaled, scale)

        return ColumnType(
            STRING,
            "decimal",
            as_text,
            lambda v, bind, _: f"'\"' + {bind(decimal_text)}({v}, {scale}) + '\"'",
            form=Form("plain decimal", scale),
        )
    return ColumnType(
        decimal_schema(precision, scale), "decimal", identity, call_expression(unscaled_text), form=Form("unscaled")
    )


def bigint_type(column: ColumnDescription, settings: ValueSettings, stage: Stage) -> ColumnType:
    """Return the type of BIGINT; for unsigned ones by ``bigint.unsigned.handling.mode``."""
    if not _unsigned(column):
        return _INT64
    match settings.bigint_unsigned_handling_mode:
        case "precise":
            return replace(decimal_type(20, 0, "precise"), kind="int")
        case "string":
            return _INTEGER_TEXT
        case "long_exact":
            return _EXACT_LONG
        case "long":
            return _UNSIGNED_LONG


def _unsigned(column: ColumnDescription) -> bool:
    words = column.type_name.upper().split()
    return "UNSIGNED" in words or "ZEROFILL" in words or words[0] == "SERIAL"


def smallint_type(column: ColumnDescription, settings: ValueSettings, stage: Stage) -> ColumnType:
    """Return the type of TINYINT and SMALLINT."""
    wide = _unsigned(column) and column.type_name.upper().split()[0] not in {"TINYINT", "INT1"}
    return _INT32 if wide else _INT16


def int_type(column: ColumnDescription, settings: ValueSettings, stage: Stage) -> ColumnType:
    """Return the type of MEDIUMINT and INT."""
    base = column.type_name.upper().split()[0]
    return _INT64 if _unsigned(column) and base in {"INT", "INTEGER", "INT4"} else _INT32


FLOAT_TYPE = ColumnType(
    FLOAT32,
    "float",
    to_float32,
    lambda v, bind, _: f"{bind(float_text)}({bind(to_float32)}({v}))",
    form=Form("float"),
)
DOUBLE_TYPE = ColumnType(FLOAT64, "float", identity, call_expression(double_text), form=Form("double"))


def float_type(column: ColumnDescription, settings: ValueSettings, stage: Stage) -> ColumnType:
    """Return the type of FLOAT: double precision with a scale or with more than 24 bits."""
    double = column.scale is not None or (column.length is not None and column.length > 24)
    return DOUBLE_TYPE if double else FLOAT_TYPE


def real_type(column: ColumnDescription, settings: ValueSettings, stage: Stage) -> ColumnType:
    """Return the type of a column declared REAL, which is a DOUBLE for the server."""
    return DOUBLE_TYPE if settings.exact else FLOAT_TYPE


def _boolean(value: int) -> bool:
    if value not in (0, 1):
        raise OutOfRangeError("a boolean is 0 or 1; rowtide.bool.handling.mode=int16 keeps the number", nearest=True)
    return value == 1


_boolean_text = via_connect_value(BOOLEAN, _boolean)
_BOOLEAN = ColumnType(
    BOOLEAN,
    "int",
    _boolean,
    lambda v, bind, fallback: f"('false' if {v} == 0 else 'true' if {v} == 1 else {_boolean_text(v, bind, fallback)})",
    form=Form("boolean"),
)


def bool_type(column: ColumnDescription, settings: ValueSettings, stage: Stage) -> ColumnType:
    """Return the type of a column declared BOOL, by ``rowtide.bool.handling.mode``."""
    return _INT16 if settings.bool_handling_mode == "int16" else _BOOLEAN


def bit_type(column: ColumnDescription, settings: ValueSettings, stage: Stage) -> ColumnType:
    """Return the type of BIT: BIT(1) is boolean, a longer BIT is bytes in little-endian order."""
    bits = column.length or 1
    if bits == 1:
        return replace(_BOOLEAN, kind="bit")
    size = (bits + 7) // 8
    schema = Schema("bytes", name="io.debezium.data.Bits", version=1, parameters=(("length", str(bits)),))

    def little_endian(value: int) -> bytes:
        return value.to_bytes(size, "little")

    return ColumnType(schema, "bit", little_endian, via_connect_value(schema, little_endian), form=Form("bits", size))
