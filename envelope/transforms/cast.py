"""Kafka Connect's ``Cast``, which changes the types of fields, or of the whole key or value."""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from rowtide.envelope.json.headers import header_text
from rowtide.envelope.json.java_numbers import float32_of
from rowtide.envelope.json.text import decimal_scale
from rowtide.envelope.schema import BOOLEAN, FLOAT32, FLOAT64, INT8, INT16, INT32, INT64, INTEGER_BITS, STRING, Schema
from rowtide.envelope.schema import Field as SchemaField
from rowtide.envelope.transforms.options import Options
from rowtide.envelope.transforms.record import (
    ConnectRecord,
    RejectedValue,
    SchemaCache,
    Side,
    TransformError,
    convert_fields,
    require_struct,
    with_fields,
)
from rowtide.envelope.transforms.simple_date_format import SimpleDateFormat

_TYPES = {
    "int8": INT8, "int16": INT16, "int32": INT32, "int64": INT64,
    "float32": FLOAT32, "float64": FLOAT64, "boolean": BOOLEAN, "string": STRING,
}  # fmt: skip
"""The schemas of the types that ``spec`` can name."""
_CONNECT = "org.apache.kafka.connect.data."
_TIMES = (_CONNECT + "Date", _CONNECT + "Time", _CONNECT + "Timestamp")
_DAY = 86_400_000
_ISO = SimpleDateFormat("yyyy-MM-dd'T'HH:mm:ss.SSS'Z'", exact=True)
_SPACES = "".join(map(chr, range(33)))  # what Java's trim removes
_INTEGER = re.compile(r"[+-]?\d+")
_NUMBER = re.compile(r"([+-]?(?:NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?))[fFdD]?")

Convert = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Cast:
    """``org.apache.kafka.connect.transforms.Cast``.

    A cast to a smaller integer wraps around, as in Java. With ``exact``, a number that does not fit is an error.

    Attributes:
        side: the key or the value.
        fields: the new types of fields.
        whole: the new type of the whole key or value.
        exact: see above.
        replace_null_with_default: whether a field's default replaces null.
    """

    side: Side
    fields: Mapping[str, Schema]
    whole: Schema | None
    exact: bool
    replace_null_with_default: bool
    _plans: SchemaCache[tuple[Schema, Convert]] = field(default_factory=SchemaCache, repr=False, compare=False)

    @classmethod
    def from_options(cls, side: Side, options: Options) -> "Cast":
        """Read ``spec``, a list of ``field:type``, or one type."""
        fields: dict[str, Schema] = {}
        whole: Schema | None = None
        items = options.items("spec")
        if not items:
            options.problem("spec", "is required, for example price:float64,count:int32")
        for item in items:
            name, colon, kind = item.rpartition(":")
            schema = _TYPES.get(kind.strip().lower())
            if schema is None:
                options.problem("spec", f"{item!r} must be field:type or a type; the types are {', '.join(_TYPES)}")
            elif ":" in name:
                options.problem("spec", f"{item!r} must be field:type, with one colon")
            elif colon:
                fields[name.strip()] = schema
            elif len(items) > 1:
                options.problem("spec", f"{item!r} is a type for the whole {side}, which must be the only item")
            else:
                whole = schema
        return cls(side, fields, whole, options.exact, options.replaces_nulls())

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        """Return the record with the new types; fields that it does not have are ignored."""
        schema, value = record.schema_of(self.side), record.content(self.side)
        if schema is None or value is None:
            return record
        if self.whole is None:
            require_struct(schema, value)
        made, convert = self._plans.get(self._plan, schema)
        try:
            return record.with_content(self.side, made, convert(value))
        except TransformError:
            raise
        except ValueError as error:
            raise TransformError(f"the {self.side}: {error}") from error

    def _plan(self, schema: Schema) -> tuple[Schema, Convert]:
        if self.whole is not None:
            convert = _cast(schema, self.whole, exact=self.exact)
            made = replace(self.whole, optional=schema.optional, default=_default(schema, convert), doc=schema.doc)
            if not (schema.name or "").startswith(_CONNECT):  # whose names would give the new type another meaning
                made = replace(made, name=schema.name, version=schema.version, parameters=schema.parameters)
            return made, convert
        fields: list[SchemaField] = []
        changes: list[tuple[str, Convert]] = []
        for one in schema.fields:
            target = self.fields.get(one.name)
            if target is None:
                fields.append(one)
                continue
            convert = _cast(one.schema, target, exact=self.exact)
            changes.append((one.name, convert))
            default = _default(one.schema, convert, f" of field {one.name!r}")
            fields.append(SchemaField(one.name, replace(target, optional=one.schema.optional, default=default)))
        made = with_fields(schema, tuple(fields)).with_optional(schema.optional)
        keep = self.replace_null_with_default
        return made, lambda struct: convert_fields(schema, struct, changes, replace_null_with_default=keep)


def _default(schema: Schema, convert: Convert, place: str = "") -> Any:
    try:
        return None if schema.default is None else convert(schema.default)
    except ValueError as error:
        raise TransformError(f"the default{place}: {error}") from error


def _cast(source: Schema, target: Schema, *, exact: bool) -> Convert:
    """Return the conversion of values, which raises ``ValueError`` for one that cannot be converted."""
    if source.type in ("array", "map", "struct") or (
        source.type == "bytes" and not source.is_decimal and target.type != "string"
    ):
        return _refused(f"{source.type} cannot be cast to {_name_of(target)}")
    if target.type == "string":
        return _text_of(source, exact=exact)
    if target.type == "boolean":
        return _boolean_of(source, exact=exact)
    if target.type in INTEGER_BITS:
        return _integer_of(source, target, exact=exact)
    return _float_of(source, target, exact=exact)


def _refused(reason: str) -> Convert:
    def refuse(_value: Any) -> Any:
        raise ValueError(reason)

    return refuse


def _name_of(target: Schema) -> str:
    return next(name for name, schema in _TYPES.items() if schema.type == target.type)


def _text_of(source: Schema, *, exact: bool) -> Convert:
    if source.type == "string":
        return str
    if source.name not in _TIMES:
        return lambda value: header_text(source, value)

    def text(value: int) -> str:
        milliseconds = value * _DAY if source.name == _CONNECT + "Date" else value
        shown = _ISO.format(milliseconds)
        if exact and source.name == _CONNECT + "Time":
            return f"{milliseconds // 3_600_000:02d}{shown[13:]}"
        if not exact and milliseconds < _DAY:  # Connect takes times before 1970-01-02 for times of day
            return shown[11:]
        return shown[:10] if milliseconds % _DAY == 0 else shown

    return text


def _boolean_of(source: Schema, *, exact: bool) -> Convert:
    if source.type == "string":

        def parsed(text: str) -> bool:
            if exact and text.lower() not in ("true", "false"):
                raise RejectedValue("the text is neither true nor false", f"{text!r:.60}")
            return text.lower() == "true"

        return parsed
    number_of = _whole_number(source, 64, exact=False)
    return lambda value: number_of(value) != 0


def _integer_of(source: Schema, target: Schema, *, exact: bool) -> Convert:
    bits = INTEGER_BITS[target.type]
    half = 1 << bits - 1
    number_of = _whole_number(source, max(bits, 32), exact=exact)
    strict = exact or source.type == "string"

    def cast(value: Any) -> int:
        number = number_of(value)
        if strict and not -half <= number < half:
            raise RejectedValue(f"the number does not fit {target.type}", f"{header_text(source, value):.60}")
        return (number + half) % (2 * half) - half

    return cast


def _whole_number(source: Schema, bits: int, *, exact: bool) -> Callable[[Any], int]:
    """Return the function that converts a value to an integer, without its fraction.

    Args:
        source: the schema of the value.
        bits: those of Java's conversion of floats, which takes the nearest integer of that many bits, and 0 for NaN.
        exact: whether a float may be any integer, but not NaN or infinite.
    """
    if source.is_decimal:
        unit = 10 ** decimal_scale(source)
        return lambda unscaled: -(-unscaled // unit) if unscaled < 0 else unscaled // unit
    if source.type == "string":
        return _parsed_integer
    if source.type not in ("float", "double"):
        return int
    limit = 1 << bits - 1

    def truncated(value: float) -> int:
        if math.isfinite(value):
            return int(value) if exact else max(-limit, min(int(value), limit - 1))
        if exact:
            raise RejectedValue("the number is not an integer", str(value))
        return 0 if math.isnan(value) else limit - 1 if value > 0 else -limit

    return truncated


def _float_of(source: Schema, target: Schema, *, exact: bool) -> Convert:
    scale = decimal_scale(source) if source.is_decimal else 0
    to_float: Callable[[Any], float] = float32_of if target.type == "float" else float

    def cast(value: Any) -> float:
        number = value
        if source.type == "string":
            number = _parsed_number(value)
        elif source.is_decimal:
            number = Decimal(f"{value}E{-scale}")
        found = to_float(number)
        if exact and math.isinf(found) and math.isfinite(number):
            raise RejectedValue(f"the number does not fit {_name_of(target)}", f"{header_text(source, value):.60}")
        return found

    return cast


def _parsed_integer(text: str) -> int:
    if not _INTEGER.fullmatch(text):
        raise RejectedValue("the text is not an integer", f"{text!r:.60}")
    return int(text)


def _parsed_number(text: str) -> Decimal | float:
    match = _NUMBER.fullmatch(text.strip(_SPACES))
    if match is None:
        raise RejectedValue("the text is not a number", f"{text!r:.60}")
    return float(match[1]) if match[1][-1] in "Ny" else Decimal(match[1])
