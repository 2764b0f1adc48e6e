"""Reads Protobuf: the Connect schema of a message, and the values of its bytes, as Confluent's ``ProtobufData`` does.

Most names of Debezium's semantic types are not in Protobuf: a ``DATE`` is a number of days. Decimals and Connect's own
dates and times are recognised by their messages, Debezium's structs by the name and fields of theirs.
"""

import datetime as dt
import struct
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from rowtide.envelope.json.text import decimal_bytes
from rowtide.envelope.protobuf.messages import WELL_KNOWN, WRAPPERS
from rowtide.envelope.protobuf.parser import ParsedField, ParsedMessage, parsed_file
from rowtide.envelope.protobuf.wire import I32, I64, LEN, VARINT, read_varint, signed
from rowtide.envelope.protobuf.wire import fields as fields_of
from rowtide.envelope.schema import BOOLEAN, BYTES, DECIMAL, FLOAT32, FLOAT64, INT32, INT64, STRING, Field, Schema

Decode = Callable[[bytes], Any]

_SMALL = ("int8", "int16")
_MOST_DIGITS = 1000
"""Digits by which a decimal may be moved to the scale of its field: columns have 65."""
_SEMANTIC = {
    ("Geometry", ("wkb", "srid")): "io.debezium.data.geometry.Geometry",
    ("Geography", ("wkb", "srid")): "io.debezium.data.geometry.Geography",
    ("Point", ("x", "y", "wkb", "srid")): "io.debezium.data.geometry.Point",
    ("VariableScaleDecimal", ("scale", "value")): "io.debezium.data.VariableScaleDecimal",
}
"""Debezium's structs, by the name and the fields of their messages."""


class _Type(NamedTuple):
    """The type of a field: its Connect schema, wire type, conversion of a read value, and the value if absent."""

    schema: Schema
    wire: int
    value: Callable[[Any], Any]
    zero: Any = None


class ProtobufReader:
    """The messages of a Protobuf schema.

    Args:
        text: the schema.

    Raises:
        ValueError: it is not a Protobuf schema.
    """

    def __init__(self, text: str) -> None:
        self._file = parsed_file(text)
        self._known: dict[tuple[int, ...], tuple[Schema, Decode]] = {}

    def message(self, indexes: tuple[int, ...]) -> tuple[Schema, Decode]:
        """Return the Connect schema of a message, and the function that decodes a value of it.

        Values are those of Avro (:mod:`rowtide.envelope.avro.reader`): decimals are bytes, dates and times numbers.

        Args:
            indexes: its place in the file, then its place in that message, and so on.

        Raises:
            ValueError: the message does not exist, or has a type that Connect does not have.
        """
        known = self._known.get(indexes)
        if known is None:
            known = self._known[indexes] = self._message(indexes)
        return known

    def _message(self, indexes: tuple[int, ...]) -> tuple[Schema, Decode]:
        path = [self._file]
        for index in indexes:
            inside = list(path[-1].messages.values())
            if not 0 <= index < len(inside):
                raise ValueError(f"the schema has no message {list(indexes)}")
            path.append(inside[index])
        name = ".".join(one.name for one in path if one.name)
        if name in _WRAPPERS:
            wrapped = _WRAPPERS[name]
            return wrapped.schema.with_optional(False), wrapped.value
        return _struct(path, name)


def message_indexes(data: bytes) -> tuple[tuple[int, ...], int]:
    """Return the message indexes before a value, and the place where its bytes begin.

    Raises:
        ValueError: the bytes end too early.
    """
    size, place = read_varint(data, 0)
    indexes = []
    for _ in range(_zigzag(size)):
        index, place = read_varint(data, place)
        indexes.append(_zigzag(index))
    return tuple(indexes) or (0,), place


def _zigzag(value: int) -> int:
    return (value >> 1) ^ -(value & 1)


def _signed_32(value: int) -> int:
    """Return the lower 32 bits as a signed number, as all Protobuf readers do."""
    return ((value + (1 << 31)) & 0xFFFF_FFFF) - (1 << 31)


def _fixed(code: str) -> Callable[[bytes], Any]:
    unpack = struct.Struct(f"<{code}").unpack
    return lambda data: unpack(data)[0]


_SCALARS = {
    "int32": _Type(INT32, VARINT, _signed_32, 0),
    "int64": _Type(INT64, VARINT, signed, 0),
    "uint32": _Type(INT64, VARINT, lambda value: value & 0xFFFF_FFFF, 0),
    "uint64": _Type(INT64, VARINT, int, 0),
    "sint32": _Type(INT32, VARINT, lambda value: _zigzag(value & 0xFFFF_FFFF), 0),
    "sint64": _Type(INT64, VARINT, _zigzag, 0),
    "bool": _Type(BOOLEAN, VARINT, bool, False),
    "fixed32": _Type(INT64, I32, _fixed("I"), 0),
    "sfixed32": _Type(INT32, I32, _fixed("i"), 0),
    "float": _Type(FLOAT32, I32, _fixed("f"), 0.0),
    "fixed64": _Type(INT64, I64, _fixed("Q"), 0),
    "sfixed64": _Type(INT64, I64, _fixed("q"), 0),
    "double": _Type(FLOAT64, I64, _fixed("d"), 0.0),
    "string": _Type(STRING, LEN, bytes.decode, ""),
    "bytes": _Type(BYTES, LEN, bytes, b""),
}


def _struct(path: list[ParsedMessage], name: str | None = None) -> tuple[Schema, Decode]:
    """Return the Connect schema of a message, and the function that decodes it.

    Args:
        path: the messages around it, from the file on, and the message.
        name: the name of the schema.
    """
    message = path[-1]
    absent: dict[str, Any] = {}
    fields, readers = [], {}
    for one in message.fields:
        kind = _field_type(one, path)
        fields.append(Field(one.name, kind.schema))
        absent[one.name] = kind.zero
        readers[one.number] = one.name, kind
    names = tuple(field.name for field in fields)
    schema = Schema("struct", name=name or _SEMANTIC.get((message.name, names), message.name), fields=tuple(fields))

    def decode(data: bytes) -> dict[str, Any]:
        found = dict(absent)
        collections: dict[str, Any] = {}
        for number, wire, part in fields_of(data):
            if number not in readers:
                raise ValueError(f"message {message.name} has no field {number}")
            field, kind = readers[number]
            if kind.schema.type in {"array", "map"}:
                _add(collections, field, kind, wire, part)
            elif wire != kind.wire:
                raise ValueError(f"field {field} of message {message.name} has the wire type {wire}")
            else:
                found[field] = kind.value(part)
        return found | collections

    return schema, decode


def _add(found: dict[str, Any], field: str, kind: _Type, wire: int, part: Any) -> None:
    """Add the content of one occurrence of a field to its list or map."""
    values = [part]
    if wire == LEN != kind.wire:  # packed
        values = []
        place = 0
        while place < len(part):
            if kind.wire == VARINT:
                value, place = read_varint(part, place)
            else:
                size = 4 if kind.wire == I32 else 8
                value, place = part[place : place + size], place + size
            values.append(value)
    elif wire != kind.wire:
        raise ValueError(f"field {field} has the wire type {wire}")
    if kind.schema.type == "map":
        found.setdefault(field, {}).update({one["key"]: one["value"] for one in map(kind.value, values)})
    else:
        found.setdefault(field, []).extend(map(kind.value, values))


def _field_type(field: ParsedField, path: list[ParsedMessage]) -> _Type:
    element = _type(field.type, field.parameters, path)
    if field.key:
        entry = ParsedMessage("Entry", [ParsedField("key", 1, field.key), ParsedField("value", 2, field.type)])
        _, decode = _struct([*path, entry])
        keys = _type(field.key, {}, path).schema
        return _Type(Schema("map", keys=keys, items=element.schema), LEN, decode, {})
    if field.label == "repeated":
        schema = element.schema.with_optional(False)
        if schema.type == "struct" and field.type.endswith("Entry") and _is_entry(schema):
            keys, items = (one.schema for one in schema.fields)
            return _Type(Schema("map", keys=keys, items=items), LEN, element.value, {})
        # Only a VECTOR is a list of floats in Debezium's rows, and it has elements, so an absent field is null.
        is_vector = schema.type == "float"
        return _Type(
            Schema("array", optional=is_vector, items=schema), element.wire, element.value, None if is_vector else []
        )
    if field.label == "optional" or field.choice or element.schema.type == "struct":
        return element._replace(schema=element.schema.with_optional(True), zero=None)
    return element


def _is_entry(schema: Schema) -> bool:
    return [field.name for field in schema.fields] == ["key", "value"]


def _type(name: str, parameters: Mapping[str, str], path: list[ParsedMessage]) -> _Type:
    """Return the type of a name in a message. A message is optional."""
    scalar = _SCALARS.get(name)
    if scalar is not None:
        narrow = parameters.get("connect.type", "")
        return scalar._replace(schema=Schema(narrow)) if narrow in _SMALL else scalar
    known = name.removeprefix(".")
    if known in _WRAPPERS:
        return _WRAPPERS[known]
    if known == _DECIMAL:
        scale = int(parameters.get("scale", 0))
        precision = (("connect.decimal.precision", parameters["precision"]),) if "precision" in parameters else ()
        schema = Schema("bytes", True, DECIMAL, 1, (("scale", str(scale)), *precision))
        return _Type(schema, LEN, lambda data: _decimal(data, scale))
    if known in _MESSAGES:
        connect, kind, decode = _MESSAGES[known]
        return _Type(Schema(kind, True, connect, 1), LEN, decode)
    return _defined(name, path)


def _defined(name: str, path: list[ParsedMessage]) -> _Type:
    """Return the message or enumeration of a name, which is looked up from the inside out."""
    parts = name.removeprefix(f".{path[0].name}.").removeprefix(f"{path[0].name}.").split(".")
    for depth in range(len(path), 0, -1):
        found = [*path[:depth]]
        for part in parts[:-1]:
            inner = found[-1].messages.get(part)
            if inner is None:
                break
            found.append(inner)
        else:
            if (names := found[-1].enums.get(parts[-1])) is not None:
                return _Type(Schema("string"), VARINT, lambda number: names.get(number, str(number)), names.get(0, ""))
            if (inner := found[-1].messages.get(parts[-1])) is not None:
                if any(inner is one for one in path):
                    raise ValueError(f"message {name} contains itself, which Connect does not have")
                schema, decode = _struct([*found, inner])
                return _Type(schema.with_optional(True), LEN, decode)
    raise ValueError(f"the schema refers to {name}, which it does not define")


def _wrapper(scalar: str) -> _Type:
    kind = _SCALARS[scalar]

    def value(data: bytes) -> Any:
        found = kind.zero
        for number, wire, part in fields_of(data):
            if (number, wire) != (1, kind.wire):
                raise ValueError(f"a wrapper of {scalar} has the field {number}")
            found = kind.value(part)
        return found

    return _Type(kind.schema.with_optional(True), LEN, value)


_WRAPPERS = {
    **{f"google.protobuf.{name}": _wrapper(scalar) for scalar, (name, _) in WRAPPERS.items()},
    "google.protobuf.UInt32Value": _wrapper("uint32"),
    "google.protobuf.UInt64Value": _wrapper("uint64"),
}


def _numbers(data: bytes) -> list[int]:
    """Return the fields of a message of four whole numbers."""
    found = [0] * 5
    for number, wire, part in fields_of(data):
        if wire != VARINT or not 0 < number < len(found):
            raise ValueError(f"a date or time has the field {number}")
        found[number] = signed(part)
    return found[1:]


def _decimal(data: bytes, scale: int) -> bytes:
    unscaled, written = b"", 0
    for number, wire, part in fields_of(data):
        if (number, wire) == (1, LEN):
            unscaled = part
        elif (number, wire) == (3, VARINT):
            written = signed(part)
    if abs(scale - written) > _MOST_DIGITS:
        raise ValueError(f"a decimal has the scale {written}, but its field has {scale}")
    value = int.from_bytes(unscaled, "big", signed=True)
    if scale < written and value % 10 ** (written - scale):
        raise ValueError(f"a decimal has the scale {written}, but its field has {scale}")
    factor = 10 ** abs(scale - written)
    return decimal_bytes(value * factor if scale >= written else value // factor)


def _date(data: bytes) -> int:
    year, month, day, _ = _numbers(data)
    return dt.date(year, month, day).toordinal() - dt.date(1970, 1, 1).toordinal()


def _time(data: bytes) -> int:
    hours, minutes, seconds, nanos = _numbers(data)
    return (hours * 3600 + minutes * 60 + seconds) * 1000 + nanos // 1_000_000


def _timestamp(data: bytes) -> int:
    seconds, nanos, _, _ = _numbers(data)
    return seconds * 1000 + nanos // 1_000_000


_DECIMAL = WELL_KNOWN[DECIMAL][0]
_DECODERS: Mapping[str, tuple[str, Decode]] = {
    "google.type.Date": ("int32", _date),
    "google.type.TimeOfDay": ("int32", _time),
    "google.protobuf.Timestamp": ("int64", _timestamp),
}
_MESSAGES = {
    message: (connect, *_DECODERS[message]) for connect, (message, _) in WELL_KNOWN.items() if message in _DECODERS
}
"""Connect's type, its base type, and the decoder of each message of a date or time."""
