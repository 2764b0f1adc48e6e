"""Reads Avro: the Connect schema of an Avro schema, and the values of its bytes, as Confluent's ``AvroData`` does."""

import io
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from rowtide.envelope.schema import DECIMAL, Field, Schema

T = TypeVar("T")

_CONNECT = {"int": "int32", "long": "int64", "float": "float", "double": "double"}
_LOGICAL = {
    "date": "org.apache.kafka.connect.data.Date",
    "time-millis": "org.apache.kafka.connect.data.Time",
    "timestamp-millis": "org.apache.kafka.connect.data.Timestamp",
}


def avro_reader(text: str) -> tuple[Schema, Callable[[bytes], Any]]:
    """Return the Connect schema of an Avro schema, and the function that decodes a value of it.

    Values are those of Avro without logical types: decimals are bytes, dates and times numbers.

    Raises:
        ValueError: the schema has types that Connect's schemas of records do not have.
    """
    import fastavro  # noqa: PLC0415 - of the extra avro, which Spark's executors do not need

    parsed = fastavro.parse_schema(bare_schema(text))

    def decode(data: bytes) -> Any:
        buffer = io.BytesIO(data)
        value = fastavro.schemaless_reader(buffer, parsed, None)
        if buffer.tell() != len(data):
            raise ValueError(f"{len(data) - buffer.tell()} bytes follow the value")
        return value

    return connect_schema(text), decode


def connect_schema(text: str) -> Schema:
    """Return the Connect schema of an Avro schema.

    Raises:
        ValueError: the schema has types that Connect's schemas of records do not have.
    """
    return _Reader().schema(json.loads(text), "")


def bare_schema(text: str) -> Any:
    """Return the parts of an Avro schema that decoding needs, as parsed JSON with names that every reader accepts.

    Readers would convert values of logical types to their own objects, and Java's refuses namespaces that
    Confluent's converter writes. So there are no logical types, defaults and attributes, and types are numbered.

    Raises:
        ValueError: the schema refers to a type that it does not define.
    """
    return _Bare().schema(json.loads(text), "")


def _defined(types: Mapping[str, T], reference: str, namespace: str) -> T:
    name = reference if "." in reference else f"{namespace}.{reference}".lstrip(".")
    if name not in types:
        raise ValueError(f"the schema refers to {name}, which it does not define")
    return types[name]


class _Reader:
    def __init__(self) -> None:
        self._records: dict[str, Schema] = {}

    def schema(self, document: Any, namespace: str) -> Schema:
        if isinstance(document, list):
            others = [branch for branch in document if branch != "null"]
            if len(others) != 1 or len(document) > 2:
                raise ValueError(f"the schema has a union of {len(others)} types")
            found = self.schema(others[0], namespace)
            return found.with_optional("null" in document)
        if isinstance(document, str):
            if document in _CONNECT or document in ("boolean", "string", "bytes"):
                return Schema(_CONNECT.get(document, document))
            return _defined(self._records, document, namespace)
        kind = document["type"]
        if isinstance(kind, dict | list):
            return self.schema(kind, namespace)
        return self._described(document, kind, namespace)

    def _described(self, document: dict[str, Any], kind: str, namespace: str) -> Schema:
        if kind == "record":
            return self._record(document, namespace)
        if kind == "array":
            found = Schema("array", items=self.schema(document["items"], namespace))
        elif kind == "map":
            found = Schema("map", keys=Schema("string"), items=self.schema(document["values"], namespace))
        elif kind == "enum":
            found = Schema("string", parameters=(("allowed", ",".join(document["symbols"])),))
        elif kind == "fixed":
            found = Schema("bytes")
        else:
            found = self.schema(kind, namespace)
        return self._named(document, found)

    def _record(self, document: dict[str, Any], namespace: str) -> Schema:
        namespace = document.get("namespace", namespace)
        full = f"{namespace}.{document['name']}".lstrip(".")
        fields = []
        for field in document["fields"]:
            of = self.schema(field["type"], namespace)
            default = field.get("default")
            if default is not None and of.type not in {"struct", "array", "map"}:
                of = replace(of, default=_default(of, default))
            fields.append(Field(field["name"], of))
        found = self._named(document, Schema("struct", name=full, fields=tuple(fields)))
        self._records[full] = found
        return found

    def _named(self, document: dict[str, Any], found: Schema) -> Schema:
        """Return the schema with the attributes of Connect applied."""
        logical = document.get("logicalType")
        parameters = dict(document.get("connect.parameters") or ())
        name = document.get("connect.name") or _LOGICAL.get(logical or "") or found.name
        if logical == "decimal":
            name, parameters = DECIMAL, {**parameters, "scale": str(document.get("scale", 0))}
        return replace(
            found,
            type=document.get("connect.type", found.type),
            name=name,
            version=document.get("connect.version"),
            parameters=tuple(parameters.items()) or found.parameters,
            doc=document.get("connect.doc"),
        )


def _default(schema: Schema, value: Any) -> Any:
    if schema.type == "bytes":
        data = str(value).encode("latin-1")
        return int.from_bytes(data, "big", signed=True) if schema.is_decimal else data
    return value


_PRIMITIVE = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})


class _Bare:
    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def schema(self, document: Any, namespace: str) -> Any:
        if isinstance(document, list):
            return [self.schema(branch, namespace) for branch in document]
        if isinstance(document, str):
            if document in _PRIMITIVE:
                return document
            return _defined(self._names, document, namespace)
        kind = document["type"]
        if kind == "array":
            return {"type": kind, "items": self.schema(document["items"], namespace)}
        if kind == "map":
            return {"type": kind, "values": self.schema(document["values"], namespace)}
        if kind not in ("record", "enum", "fixed"):
            return self.schema(kind, namespace)
        namespace = document.get("namespace", namespace)
        name = f"Type{len(self._names)}"
        self._names[f"{namespace}.{document['name']}".lstrip(".")] = name
        if kind == "record":
            fields = [{"name": one["name"], "type": self.schema(one["type"], namespace)} for one in document["fields"]]
            return {"type": kind, "name": name, "fields": fields}
        part = "symbols" if kind == "enum" else "size"
        return {"type": kind, "name": name, part: document[part]}


def connect_value(schema: Schema, value: Any) -> Any:
    """Return a decoded value in the form of :mod:`rowtide.envelope.schema`: decimals are numbers, not bytes."""
    if value is None:
        return None
    if schema.is_decimal:
        return int.from_bytes(value, "big", signed=True)
    if schema.type == "struct":
        return {field.name: connect_value(field.schema, value[field.name]) for field in schema.fields}
    if schema.type == "array" and schema.items is not None:
        items = schema.items
        return [connect_value(items, item) for item in value]
    return value
