"""A parser of Connect schemas and values from the JSON that ``JsonConverter`` writes."""

import json
from base64 import b64decode
from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Context, Decimal
from typing import Any

from rowtide.envelope.json.java_numbers import float32_of
from rowtide.envelope.json.text import decimal_scale
from rowtide.envelope.schema import Field, Schema


class NotConnectJsonError(ValueError):
    """The JSON is not that of ``JsonConverter``, or does not match the schema."""


def parse_schema(text: str | bytes) -> Schema:
    """Parse the JSON of a schema.

    Raises:
        NotConnectJsonError: the text is not JSON, or not a schema.
    """
    return schema_from_json(_loaded(text))


def parse_value(schema: Schema, text: str | bytes) -> Any:
    """Parse the JSON of a value.

    Raises:
        NotConnectJsonError: the text is not JSON, or not a value of the schema.
    """
    return value_from_json(schema, _loaded(text))


def schema_from_json(document: Any) -> Schema:
    """Return the schema of a parsed JSON document.

    Raises:
        NotConnectJsonError: the document is not a schema.
    """
    if not isinstance(document, dict) or not isinstance(document.get("type"), str):
        raise NotConnectJsonError('a schema must be an object with a "type"')
    kind = document["type"]
    if kind not in _READERS:
        raise NotConnectJsonError(f"unknown schema type {kind!r}; the types are {', '.join(_READERS)}")
    try:
        schema = Schema(
            kind,
            optional=document.get("optional", False),
            name=document.get("name"),
            version=document.get("version"),
            parameters=tuple((document.get("parameters") or {}).items()),
            doc=document.get("doc"),
            fields=tuple(Field(field["field"], schema_from_json(field)) for field in document["fields"])
            if kind == "struct"
            else (),
            items=schema_from_json(document[_ITEMS[kind]]) if kind in _ITEMS else None,
            keys=schema_from_json(document["keys"]) if kind == "map" else None,
        )
    except KeyError as error:
        raise NotConnectJsonError(f"a schema of type {kind} lacks {error}") from error
    default = document.get("default")
    return schema if default is None else replace(schema, default=value_from_json(schema, default))


_ITEMS = {"array": "items", "map": "values"}


def value_from_json(schema: Schema, document: Any) -> Any:
    """Return the value in a parsed JSON document; numbers may be ``float`` or ``Decimal``.

    Null stays null, even if the schema has a default: the writer decides whether to replace it.

    Raises:
        NotConnectJsonError: the document is not a value of the schema.
    """
    if document is None:
        return None
    try:
        return _READERS[schema.type](schema, document)
    except NotConnectJsonError:
        raise
    except (ArithmeticError, AttributeError, TypeError, ValueError) as error:
        raise NotConnectJsonError(f"not a value of type {schema.name or schema.type}: {error}") from error


def _struct(schema: Schema, document: Mapping[str, Any]) -> dict[str, Any]:
    return {field.name: value_from_json(field.schema, document.get(field.name)) for field in schema.fields}


def _array(schema: Schema, document: list[Any]) -> list[Any]:
    items = _required(schema.items)
    return [value_from_json(items, item) for item in document]


def _map(schema: Schema, document: Any) -> dict[Any, Any]:
    keys, items = _required(schema.keys), _required(schema.items)
    pairs = document.items() if isinstance(document, dict) else document
    return {value_from_json(keys, key): value_from_json(items, item) for key, item in pairs}


def _bytes(schema: Schema, document: Any) -> Any:
    if not schema.is_decimal:
        return b64decode(document, validate=True)
    if isinstance(document, str):
        return int.from_bytes(b64decode(document, validate=True), "big", signed=True)
    unscaled = _EXACT.scaleb(Decimal(document), decimal_scale(schema))
    if unscaled != int(unscaled):
        raise NotConnectJsonError(f"{document} has more than {decimal_scale(schema)} fractional digits")
    return int(unscaled)


_EXACT = Context(prec=1000)  # no column has more than 65 digits


def _integer(_schema: Schema, document: Any) -> int:
    if type(document) is not int:
        raise NotConnectJsonError(f"{document!r} is not an integer")
    return document


def _checked(kind: type) -> Callable[[Schema, Any], Any]:
    def read(_schema: Schema, document: Any) -> Any:
        if not isinstance(document, kind):
            raise NotConnectJsonError(f"{document!r} is not a {kind.__name__}")
        return document

    return read


_READERS: dict[str, Callable[[Schema, Any], Any]] = {
    "int8": _integer,
    "int16": _integer,
    "int32": _integer,
    "int64": _integer,
    "float": lambda _schema, document: float32_of(Decimal(document)),  # also "NaN" and "Infinity"
    "double": lambda _schema, document: float(document),
    "boolean": _checked(bool),
    "string": _checked(str),
    "bytes": _bytes,
    "array": _array,
    "map": _map,
    "struct": _struct,
}


def _required(schema: Schema | None) -> Schema:
    if schema is None:
        raise NotConnectJsonError("a schema of an array or map has no element schema")
    return schema


def _loaded(text: str | bytes) -> Any:
    try:
        return json.loads(text, parse_float=Decimal)
    except ValueError as error:
        raise NotConnectJsonError(f"not JSON: {error}") from error
