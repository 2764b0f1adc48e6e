"""The canonical texts of values, by which rows of the source and of the topic are compared. Pure.

A text begins with the letter of the value's type. Rows of both sides come from the same decoder, so this module only
removes differences that are irrelevant for the row: the digits and the spelling of numbers, the spelling of JSON, and
the zeros at the end of a BINARY.
"""

import datetime as dt
import json
import math
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from decimal import Context, Decimal
from typing import Any

from rowtide.connector.records.change import Geometry, JsonText
from rowtide.connector.records.unavailable import UNAVAILABLE

NULL, UNKNOWN = "-", "?"
"""The texts of NULL, and of a value that the binlog omits."""

Canonical = Callable[[Any], str]

_EXACT = Context(prec=1000)
_NUMBERS = "bidf"
_TYPED_BYTES = re.compile(r"base64:type\d+:")
_FRACTION = re.compile(r"(?<!\d)\d{2,3}:\d\d:\d\d\.\d+0\Z")


def canonical_values(kinds: Sequence[str], *, exact: bool) -> list[Canonical]:
    """Return the functions from the values of columns to their texts.

    Args:
        kinds: the data types of the columns, such as ``varchar``; ``""`` for an unknown one.
        exact: whether values are exact. With Debezium's values, a FLOAT of a snapshot has six digits, and documents of
            MySQL with values of SQL, such as TIME and BINARY, and labels with backslashes have two spellings.
    """
    return [_canonical(kind, exact=exact) for kind in kinds]


def _canonical(kind: str, *, exact: bool) -> Canonical:
    if kind == "float" and not exact:
        return lambda value: six_digits(value) if isinstance(value, float) else value_text(value)
    if kind in ("enum", "set") and not exact:
        return lambda value: "s" + value.replace("\\", "") if isinstance(value, str) else value_text(value)
    if kind == "json":
        return lambda value: "j" + json_text(value, exact=exact) if isinstance(value, str) else value_text(value)
    if kind == "binary":
        return lambda value: "x" + value.rstrip(b"\0").hex() if isinstance(value, bytes) else value_text(value)
    return value_text


def value_text(value: Any) -> str:
    """Return the text of a value whose column has no special rule.

    Raises:
        TypeError: the decoder does not produce such values.
    """
    form = _FORMS.get(type(value))
    if form is None:
        form = next((one for kind, one in _FORMS.items() if isinstance(value, kind)), None)
    if form is not None:
        return form(value)
    if value is UNAVAILABLE:
        return UNKNOWN
    raise TypeError(f"no canonical text for a {type(value).__name__}")


def six_digits(value: float) -> str:
    """Return the text of a FLOAT with the six digits that a result set has."""
    if not math.isfinite(value):
        return f"f{value!r}"
    single: float = struct.unpack("<f", struct.pack("<f", value))[0]
    return f"f{float(f'{single:.6g}') + 0.0!r}"


def json_text(text: str, *, exact: bool = True) -> str:
    """Return a document with sorted members and one spelling of each number; the text itself if it is not JSON.

    Args:
        text: the document.
        exact: whether values of SQL in it have one spelling. With Debezium's values, a snapshot has MySQL's text of the
            document, and the stream has bytes without MySQL's mark of their type, and times without zeros at the end.
    """
    try:
        document = json.loads(text, parse_float=_json_number, parse_int=int)
        found = document if exact else _of_one_spelling(document)
        return json.dumps(found, sort_keys=True, separators=(",", ":"))
    except (ValueError, RecursionError):
        return text


def _of_one_spelling(value: Any) -> Any:
    match value:
        case str() if _TYPED_BYTES.match(value):
            return _TYPED_BYTES.sub("", value).replace("\n", "")
        case str() if _FRACTION.search(value):
            return value.rstrip("0").rstrip(".")
        case dict():
            return {name: _of_one_spelling(one) for name, one in value.items()}
        case list():
            return [_of_one_spelling(one) for one in value]
    return value


def _json_number(text: str) -> int | float:
    number = float(text)
    return int(number) if number.is_integer() else number


def _decimal(value: Decimal) -> str:
    return format(_EXACT.normalize(value) if value else Decimal(0), "f")


def is_equal(one: str, other: str) -> bool:
    """Return whether two texts represent equal values, even of different types, as after ``ALTER TABLE … MODIFY``."""
    if one == other:
        return True
    if one[0] == other[0] or NULL in (one, other):
        return False
    if one[0] in _NUMBERS and other[0] in _NUMBERS:
        return _number(one) == _number(other)
    return one[1:] == other[1:]


def are_of_one_kind(one: str, other: str) -> bool:
    """Return whether two texts are of values of one kind, such as numbers or texts; NULL is of every kind."""
    return one[0] == other[0] or NULL in (one, other) or (one[0] in _NUMBERS and other[0] in _NUMBERS)


def _number(text: str) -> Decimal | float:
    found = Decimal(text[1:])
    return float(found) if text[0] == "f" else found


def shown_values(row: Mapping[str, str]) -> str:
    """Return the columns and values of a row in reports: ``id=1, name="a"``."""
    return ", ".join(f"{name}={shown(text)}" for name, text in row.items())


def shown(text: str) -> str:
    """Return the form of a text in reports."""
    kind, value = text[0], text[1:]
    if kind == NULL:
        return "NULL"
    if kind == UNKNOWN:
        return "unknown"
    if kind in "sj":
        return json.dumps(value, ensure_ascii=False)
    if kind == "h":
        return str(dt.timedelta(microseconds=int(value)))
    return f"0x{value}" if kind == "x" else value


def _json(value: Any) -> str:
    return "l" + json.dumps(value, sort_keys=True, separators=(",", ":"))


_FORMS: Mapping[type, Canonical] = {
    type(None): lambda _value: NULL,
    bool: lambda value: f"b{value:d}",
    int: lambda value: f"i{value}",
    float: lambda value: f"f{value + 0.0!r}",  # -0.0 equals 0.0
    JsonText: lambda value: "j" + json_text(value),
    str: lambda value: "s" + value,
    bytes: lambda value: "x" + value.hex(),
    Decimal: lambda value: "d" + _decimal(value),
    dt.date: lambda value: "t" + value.isoformat(),
    dt.datetime: lambda value: "t" + value.isoformat(),
    dt.timedelta: lambda value: f"h{value // dt.timedelta(microseconds=1)}",
    Geometry: lambda value: f"g{value.srid}:{value.wkb.hex()}",
    list: _json,
    dict: _json,
}
"""The forms by type; a type comes before those that it is derived from."""
