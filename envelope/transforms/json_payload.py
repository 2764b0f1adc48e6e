"""Connect schemas and values from JSON text, as Debezium's outbox expands payloads (``JsonSchemaData``)."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import reduce
from math import isinf
from typing import Any

from rowtide.envelope.schema import BOOLEAN, BYTES, FLOAT64, INT32, INT64, STRING, Field, Schema

_UNKNOWN = STRING.with_optional(True)
"""The schema of the elements of an array that has only nulls."""
_TYPES: dict[str, type] = {"string": str, "boolean": bool, "int32": int, "int64": int, "double": float}


class NotExpandableError(ValueError):
    """The JSON cannot be described by a Connect schema."""


@dataclass(frozen=True, slots=True)
class JsonExpander:
    """Converts a JSON object to a struct.

    Attributes:
        keep_nulls: whether a null becomes an optional field of type bytes; else it is omitted.
        adjust: returns the name of a key's field.
        exact: lose no value, and keep payloads that would lose one as text: with numbers of more digits than a double
            has, with text after the object, or with keys that become one name. Arrays without a value are arrays of
            optional strings; Debezium omits empty ones, and keeps a payload with one of nulls as text. Objects in
            nested arrays and fields have the fields of all; Debezium keeps those of the first. Debezium also has null
            for a key that ``adjust`` changes.
    """

    keep_nulls: bool
    adjust: Callable[[str], str]
    exact: bool = False

    def expand(self, name: str, text: str) -> tuple[Schema, Any]:
        """Return the schema and the value of a JSON object.

        Args:
            name: name of the schema.
            text: JSON; as in Jackson, text after the object is ignored, unless values are exact.

        Raises:
            NotExpandableError: the text is not a JSON object, has arrays of mixed types, or would lose a value.
        """
        if not text.startswith("{"):
            raise NotExpandableError(f"the payload starts with {text[:1]!r} and is not a JSON object")
        try:
            document, end = (_EXACT_DECODER if self.exact else _DECODER).raw_decode(text)
        except NotExpandableError:
            raise
        except (ValueError, RecursionError) as error:
            raise NotExpandableError(f"the payload is not JSON: {error}") from error
        if self.exact and text[end:].strip():
            raise NotExpandableError("the payload has text after the JSON object")
        schema = self._struct(name, document)
        return schema, self._values(schema, document)

    def _schema(self, path: str | None, document: Any) -> Schema | None:
        """Return the schema of a value, ``None`` to omit it."""
        match document:
            case None:
                return BYTES.with_optional(True) if self.keep_nulls else None
            case bool():
                return BOOLEAN.with_optional(True)
            case str():
                return STRING.with_optional(True)
            case int():
                return _integer_schema(document)
            case float():
                return FLOAT64.with_optional(True)
            case list():
                if not document and not self.exact:
                    return None
                return Schema("array", optional=True, items=self._items(path, document))
            case _:
                return self._struct(path, document)

    def _struct(self, path: str | None, document: dict[str, Any]) -> Schema:
        fields: dict[str, Field] = {}
        for key, value in document.items():
            name = self.adjust(key)
            if not name:
                raise NotExpandableError("an object has an empty key, which is not allowed as the name of a field")
            if self.exact and name in fields:
                raise NotExpandableError(f"several keys of an object become the field {name}")
            schema = self._schema(f"{path}.{name}" if path and path.strip() else name, value)
            if schema is not None:
                fields.setdefault(name, Field(name, schema))
        return Schema("struct", optional=True, name=path, fields=tuple(fields.values()))

    def _items(self, path: str | None, array: list[Any]) -> Schema:
        """Return the schema of all elements; objects may have different fields."""
        present = [element for element in array if element is not None]
        if len({_kind(element) for element in present}) > 1:
            raise NotExpandableError("an array has elements of different types")
        if present and isinstance(present[0], dict):
            return self._merged([self._struct(path, element) for element in present], nulls=len(present) < len(array))
        schema = self._schema(None, present[0] if present else None)
        if self.exact and present and isinstance(present[0], list):
            schema = reduce(_merge, (self._schema(None, element) or _UNKNOWN for element in present))
        if schema is None:
            if self.exact:
                return _UNKNOWN
            raise NotExpandableError("an array has elements of an unknown type")
        return schema

    def _merged(self, schemas: list[Schema], *, nulls: bool) -> Schema:
        """Return one schema for objects with different fields. As in Debezium, it is required."""
        if all(schema == schemas[0] for schema in schemas):
            return schemas[0]
        if self.exact:
            return reduce(_merge, schemas).with_optional(nulls)
        fields: dict[str, Field] = {}
        for schema in schemas:
            for field in schema.fields:
                known = fields.get(field.name)
                if known is None or (known.schema.type == "bytes" and field.schema.type != "bytes"):
                    fields[field.name] = field
        return Schema("struct", name=schemas[0].name, fields=tuple(fields.values()))

    def _values(self, schema: Schema, document: dict[str, Any]) -> dict[str, Any]:
        if self.exact:
            document = {self.adjust(key): value for key, value in document.items()}
        return {field.name: self._value(field.schema, document.get(field.name)) for field in schema.fields}

    def _value(self, schema: Schema, document: Any) -> Any:
        if document is None:
            return None
        if schema.type == "struct" and isinstance(document, dict):
            return self._values(schema, document)
        if schema.type == "array" and isinstance(document, list) and schema.items is not None:
            return [self._value(schema.items, element) for element in document]
        if type(document) is not _TYPES.get(schema.type) or _too_long(schema, document):
            raise NotExpandableError("elements of an array have fields of the same name but different types")
        return document


def _merge(one: Schema, other: Schema) -> Schema:
    """Return the schema of values of two schemas, of which one may have only nulls or empty arrays."""
    if one == other or other is _UNKNOWN or other.type == "bytes":
        return one
    if one is _UNKNOWN or one.type == "bytes":
        return other
    if one.type == other.type == "array" and one.items is not None and other.items is not None:
        return replace(one, items=_merge(one.items, other.items))
    if one.type == other.type == "struct":
        fields = {field.name: field for field in one.fields}
        for field in other.fields:
            known = fields.get(field.name)
            fields[field.name] = field if known is None else Field(field.name, _merge(known.schema, field.schema))
        return replace(one, optional=one.optional or other.optional, fields=tuple(fields.values()))
    raise NotExpandableError("elements of an array have fields of the same name but different types")


def _kind(element: Any) -> str:
    if isinstance(element, dict | list):
        return type(element).__name__
    return _integer_schema(element).type if type(element) is int else type(element).__name__


def _integer_schema(value: int) -> Schema:
    if -(2**31) <= value < 2**31:
        return INT32.with_optional(True)
    if -(2**63) <= value < 2**63:
        return INT64.with_optional(True)
    raise NotExpandableError("a number has more than 64 bits")


def _too_long(schema: Schema, document: Any) -> bool:
    return schema.type == "int32" and not -(2**31) <= document < 2**31


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")


def _exact_float(text: str) -> float:
    value = float(text)
    if isinf(value) or Decimal(repr(value)) != Decimal(text):
        raise NotExpandableError("a number has more digits than a double")
    return value


_DECODER = json.JSONDecoder(parse_constant=_no_constant)
_EXACT_DECODER = json.JSONDecoder(parse_float=_exact_float, parse_constant=_no_constant)
