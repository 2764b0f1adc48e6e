"""Checks whether a record from a custom transform can be written: its values must match its schemas.

Otherwise, values would be truncated or changed silently: 1.9 becomes 1 in an Avro integer.
"""

from collections.abc import Callable, Mapping
from math import isfinite, isinf
from typing import Any

from rowtide.envelope.json.java_numbers import to_float32
from rowtide.envelope.schema import INTEGER_BITS, Schema
from rowtide.envelope.transforms.record import ConnectRecord, RejectedValue, SchemaCache, Side

Check = Callable[[Any, str], None]
"""Raises ``ValueError`` with the path of a value that does not fit its schema."""

_CLASSES: Mapping[str, type] = {
    "boolean": bool, "float": float, "double": float, "string": str, "bytes": bytes, "array": list,
    "map": dict, "struct": dict,
}  # fmt: skip


def check_record(record: object, given: ConnectRecord, checks: SchemaCache[Check]) -> None:
    """Raise ``ValueError`` if a record cannot be written; its message says what was returned instead.

    Args:
        record: the record.
        given: the record from which it was made, whose own values match.
        checks: the checks of schemas.
    """
    if not isinstance(record, ConnectRecord):
        raise ValueError(f"a {type(record).__name__} instead of a ConnectRecord")  # noqa: TRY004 - not a bug of rowtide
    if not isinstance(record.topic, str) or not record.topic:
        raise RejectedValue("a record whose topic is not text, or is empty", repr(record.topic))
    for name in ("partition", "timestamp"):
        number = getattr(record, name)
        if number is not None and (type(number) is not int or number < 0):
            raise RejectedValue(f"a record whose {name} is neither None nor a number of at least 0", repr(number))
    sides: tuple[Side, Side] = ("key", "value")
    for side in sides:
        schema, content = record.schema_of(side), record.content(side)
        if schema is given.schema_of(side) and content is given.content(side):
            continue
        _check_content(side, schema, content, checks)
    if record.headers is not given.headers:
        _check_headers(record.headers, checks)


def _check_content(place: str, schema: object, content: object, checks: SchemaCache[Check]) -> None:
    if schema is None:
        if content is not None:
            raise ValueError(f"a record with a {place}, but without its schema" + _schema_name(place))
    elif not isinstance(schema, Schema):
        raise ValueError(f"a record whose {place} has a {type(schema).__name__} instead of a Schema")
    else:
        checks.get(schema_check, schema)(content, place)


def _schema_name(place: str) -> str:
    return f" ({place}_schema)" if place in ("key", "value") else ""


def _check_headers(headers: object, checks: SchemaCache[Check]) -> None:
    if not isinstance(headers, tuple):
        raise ValueError(f"a record whose headers are a {type(headers).__name__} instead of a tuple")  # noqa: TRY004
    for header in headers:
        if not isinstance(header, tuple) or len(header) != 3 or not isinstance(header[0], str):
            raise RejectedValue("a record with something other than Header(name, schema, value)", f"{header!r:.60}")
        _check_content(f"header {header[0]}", header[1], header[2], checks)


def schema_check(schema: Schema) -> Check:
    """Return the check of a schema's values.

    Raises:
        ValueError: the schema type does not exist.
    """
    content = _content_check(schema)
    if schema.optional or schema.default is not None:
        return lambda value, path: None if value is None else content(value, path)

    def check(value: Any, path: str) -> None:
        if value is None:
            raise ValueError(f"null for {path}, which is neither optional nor has a default")
        content(value, path)

    return check


def _content_check(schema: Schema) -> Check:
    kind = schema.type
    if schema.is_decimal:
        return _class_check(int, "the unscaled number of a Decimal")
    if kind in INTEGER_BITS:
        return _integer_check(kind)
    if kind not in _CLASSES:
        raise ValueError(f"{kind!r} is not a type of Kafka Connect's schemas")
    right = _class_check(_CLASSES[kind], kind)
    if kind == "float":
        return _float_check(right)
    if kind == "struct":
        return _struct_check(schema, right)
    if kind in ("array", "map"):
        assert schema.items is not None
        item = schema_check(schema.items)

        def check_items(value: Any, path: str) -> None:
            right(value, path)
            for one in value.values() if isinstance(value, dict) else value:
                item(one, f"{path}[]")

        return check_items
    return right


def _class_check(wanted: type, kind: str) -> Check:
    def check(value: Any, path: str) -> None:
        if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):
            raise RejectedValue(f"{_named(value)} for {path}, which is {kind}", f"{value!r:.60}")

    return check


def _float_check(right: Check) -> Check:
    def check(value: Any, path: str) -> None:
        right(value, path)
        if isfinite(value) and isinf(to_float32(value)):
            raise RejectedValue(f"a number out of range for {path}, which is float", str(value))

    return check


def _named(value: object) -> str:
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def _integer_check(kind: str) -> Check:
    half = 1 << INTEGER_BITS[kind] - 1

    def check(value: Any, path: str) -> None:
        if type(value) is not int or not -half <= value < half:
            found = "a number out of range" if type(value) is int else _named(value)
            raise RejectedValue(f"{found} for {path}, which is {kind}", f"{value!r:.60}")

    return check


def _struct_check(schema: Schema, right: Check) -> Check:
    fields = [(field.name, schema_check(field.schema)) for field in schema.fields]
    names = {name for name, _ in fields}

    def check(value: Any, path: str) -> None:
        right(value, path)
        for name, check_field in fields:
            check_field(value.get(name), f"{path}.{name}")
        if not value.keys() <= names:
            unknown = ", ".join(sorted(map(str, value.keys() - names)))
            raise ValueError(f"{path} with {unknown}, which its schema lacks: add a field to the schema, too")

    return check
