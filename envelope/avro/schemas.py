"""Avro schemas of Connect schemas, as text, as Confluent's ``AvroData`` and Avro 1.11 write them.

A schema registry compares texts, so the order of the attributes and the spelling of numbers matter.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rowtide.envelope.avro.names import AvroName, checked_field_name, record_name, scrubbed
from rowtide.envelope.json.java_numbers import double_text, float_text
from rowtide.envelope.json.text import decimal_bytes, decimal_scale, schema_string_text
from rowtide.envelope.schema import Field, Schema

DEFAULT_PRECISION = 64
"""The precision of a ``Decimal`` without one (``AvroData.CONNECT_AVRO_DECIMAL_PRECISION_DEFAULT``)."""
_DEFAULT_NAMESPACE = "io.confluent.connect.avro"
_DEFAULT_NAME = "ConnectDefault"

PRIMITIVES: Mapping[str, str] = {
    "int8": "int",
    "int16": "int",
    "int32": "int",
    "int64": "long",
    "float": "float",
    "double": "double",
    "boolean": "boolean",
    "string": "string",
    "bytes": "bytes",
}
"""The Avro type of each primitive Connect type."""

_LOGICAL_TYPES = {
    "org.apache.kafka.connect.data.Date": "date",
    "org.apache.kafka.connect.data.Time": "time-millis",
    "org.apache.kafka.connect.data.Timestamp": "timestamp-millis",
    "org.apache.kafka.connect.data.Decimal": "decimal",
}


@dataclass(frozen=True, slots=True)
class AvroFormat:
    """Settings of ``AvroConverter`` that affect schemas and bytes.

    Attributes:
        connect_meta_data: ``connect.meta.data``: keep name, version, parameters and default of Connect schemas.
        scrub_invalid_names: ``scrub.invalid.names``: replace characters that Avro's names cannot have.
        discard_type_doc_default: ``discard.type.doc.default``: write the documentation of a field to the field, too.
        replace_null_with_default: write null as the default of its schema, if there is one.
    """

    connect_meta_data: bool = True
    scrub_invalid_names: bool = False
    discard_type_doc_default: bool = False
    replace_null_with_default: bool = False


DEFAULT_FORMAT = AvroFormat()


def avro_schema_text(schema: Schema, settings: AvroFormat = DEFAULT_FORMAT) -> str:
    """Return the Avro schema of a Connect schema as JSON text.

    Raises:
        ValueError: a name is not valid in Avro, or two different structs have the same name.
    """
    return _Writer(settings).optional(schema, "")


class _Writer:
    """Writes one schema. A record is written where it is first used, and referred to by its name afterwards."""

    def __init__(self, settings: AvroFormat) -> None:
        self._settings = settings
        self._records: dict[AvroName, Schema] = {}
        self._unnamed = 0

    def optional(self, schema: Schema, namespace: str | None) -> str:
        """Return the type of a schema within a namespace: a union with null if the schema is optional."""
        text = self._type(schema, namespace)
        if not schema.optional:
            return text
        return f'["null",{text}]' if schema.default is None else f'[{text},"null"]'

    def _type(self, schema: Schema, namespace: str | None) -> str:
        if schema.type == "struct":
            return self._struct(schema, namespace)
        if schema.type == "array":
            assert schema.items is not None
            attributes = ['"type":"array"', f'"items":{self.optional(schema.items, namespace)}']
        elif schema.type == "map":
            assert schema.keys is not None
            assert schema.items is not None
            if schema.keys.type != "string" or schema.keys.optional:
                raise ValueError("Avro has no maps whose keys are not required strings")
            attributes = ['"type":"map"', f'"values":{self.optional(schema.items, namespace)}']
        else:
            attributes = [f'"type":"{PRIMITIVES[schema.type]}"']
            if schema.is_decimal:
                attributes += [f'"scale":{decimal_scale(schema)}', f'"precision":{_precision(schema)}']
        attributes += self._metadata(schema)
        if len(attributes) == 1 and schema.type in PRIMITIVES:
            return f'"{PRIMITIVES[schema.type]}"'
        return "{" + ",".join(attributes) + "}"

    def _struct(self, schema: Schema, namespace: str | None) -> str:
        name = self._name(schema)
        known = self._records.get(name)
        plain = schema.with_optional(False)
        if known is not None:
            if known != plain:
                raise ValueError(f"two different structs have the name {name.full}")
            return schema_string_text(name.name if name.namespace == namespace else name.full)
        self._records[name] = plain
        attributes = ['"type":"record"', f'"name":{schema_string_text(name.name)}']
        if name.namespace != namespace:
            attributes.append(f'"namespace":{schema_string_text(name.namespace)}')
        fields = [self._field(field, name.namespace) for field in schema.fields]
        attributes.append(f'"fields":[{",".join(fields)}]')
        attributes += self._metadata(schema)
        return "{" + ",".join(attributes) + "}"

    def _name(self, schema: Schema) -> AvroName:
        if schema.name is not None:
            return record_name(schema.name, scrub=self._settings.scrub_invalid_names)
        self._unnamed += 1
        return AvroName(_DEFAULT_NAMESPACE, _DEFAULT_NAME + (str(self._unnamed) if self._unnamed > 1 else ""))

    def _field(self, field: Field, namespace: str) -> str:
        schema = field.schema
        name = scrubbed(field.name) if self._settings.scrub_invalid_names else checked_field_name(field.name)
        text = f'{{"name":{schema_string_text(name)},"type":{self.optional(schema, namespace)}'
        if schema.doc is not None and self._settings.discard_type_doc_default:
            text += f',"doc":{schema_string_text(schema.doc)}'
        if schema.default is not None:
            return f'{text},"default":{_default_text(schema, schema.default, widened=True)}}}'
        return text + (',"default":null}' if schema.optional else "}")

    def _metadata(self, schema: Schema) -> list[str]:
        """Return the attributes that describe the Connect schema."""
        found = []
        if self._settings.connect_meta_data:
            if schema.doc is not None:
                found.append(f'"connect.doc":{schema_string_text(schema.doc)}')
            if schema.version is not None:
                found.append(f'"connect.version":{schema.version}')
            if schema.parameters:
                pairs = ",".join(
                    f"{schema_string_text(name)}:{schema_string_text(text)}" for name, text in schema.parameters
                )
                found.append(f'"connect.parameters":{{{pairs}}}')
            if schema.default is not None:
                found.append(f'"connect.default":{_default_text(schema, schema.default, widened=False)}')
            if schema.name is not None:
                found.append(f'"connect.name":{schema_string_text(schema.name)}')
            if schema.type in {"int8", "int16"}:
                found.append(f'"connect.type":"{schema.type}"')
        logical = _LOGICAL_TYPES.get(schema.name or "")
        if logical is not None:
            found.append(f'"logicalType":"{logical}"')
        return found


def _precision(schema: Schema) -> int:
    return int(dict(schema.parameters).get("connect.decimal.precision", DEFAULT_PRECISION))


def _default_text(schema: Schema, value: Any, *, widened: bool) -> str:
    """Return the JSON of a default.

    Args:
        schema: its schema.
        value: the default.
        widened: write a float as a double, as in a field's default, but not in ``connect.default``.
    """
    if value is None:
        return "null"
    return _DEFAULTS[schema.type](schema, value, widened)


def _struct_default(schema: Schema, value: Any, widened: bool) -> str:
    members = (
        f"{schema_string_text(field.name)}:{_default_text(field.schema, value.get(field.name), widened=widened)}"
        for field in schema.fields
    )
    return "{" + ",".join(members) + "}"


def _array_default(schema: Schema, value: Any, widened: bool) -> str:
    assert schema.items is not None
    items = schema.items
    return "[" + ",".join(_default_text(items, item, widened=widened) for item in value) + "]"


def _bytes_default(schema: Schema, value: Any, _widened: bool) -> str:
    return schema_string_text((decimal_bytes(value) if schema.is_decimal else value).decode("latin-1"))


def _integer_default(_schema: Schema, value: Any, _widened: bool) -> str:
    return str(value)


_DEFAULTS: Mapping[str, Callable[[Schema, Any, bool], str]] = {
    "int8": _integer_default,
    "int16": _integer_default,
    "int32": _integer_default,
    "int64": _integer_default,
    "float": lambda _schema, value, widened: double_text(value) if widened else float_text(value),
    "double": lambda _schema, value, _widened: double_text(value),
    "boolean": lambda _schema, value, _widened: "true" if value else "false",
    "string": lambda _schema, value, _widened: schema_string_text(value),
    "bytes": _bytes_default,
    "array": _array_default,
    "struct": _struct_default,
}
