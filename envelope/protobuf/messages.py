"""Messages of Connect schemas: names, field numbers and types, as Confluent's ``ProtobufData`` chooses them.

Field numbers are those of the Connect fields in their order, from 1. Names, versions, parameters and defaults of
Connect schemas are lost.
"""

import re
import string
from collections.abc import Mapping
from dataclasses import dataclass

from rowtide.envelope.avro.names import scrubbed
from rowtide.envelope.schema import Field, Schema

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DEFAULT_NAME = "ConnectDefault"

SCALARS: Mapping[str, str] = {
    "int8": "int32",
    "int16": "int32",
    "int32": "int32",
    "int64": "int64",
    "float": "float",
    "double": "double",
    "boolean": "bool",
    "string": "string",
    "bytes": "bytes",
}
"""The Protobuf type of each primitive Connect type."""

WRAPPERS: Mapping[str, tuple[str, int]] = {
    "double": ("DoubleValue", 0),
    "float": ("FloatValue", 1),
    "int64": ("Int64Value", 2),
    "int32": ("Int32Value", 4),
    "bool": ("BoolValue", 6),
    "string": ("StringValue", 7),
    "bytes": ("BytesValue", 8),
}
"""Google's wrapper of each type, and its place in ``google/protobuf/wrappers.proto``."""

WELL_KNOWN: Mapping[str, tuple[str, str]] = {
    "org.apache.kafka.connect.data.Decimal": ("confluent.type.Decimal", "confluent/type/decimal.proto"),
    "org.apache.kafka.connect.data.Date": ("google.type.Date", "google/type/date.proto"),
    "org.apache.kafka.connect.data.Time": ("google.type.TimeOfDay", "google/type/timeofday.proto"),
    "org.apache.kafka.connect.data.Timestamp": ("google.protobuf.Timestamp", "google/protobuf/timestamp.proto"),
}
"""The message of each of Connect's logical types, and the file to import."""


@dataclass(frozen=True, slots=True)
class ProtobufFormat:
    """Settings of ``ProtobufConverter`` that affect schemas and bytes.

    Attributes:
        optional_for_nullables: ``optional.for.nullables``: zero and an empty string are distinguished from null.
        wrapper_for_nullables: ``wrapper.for.nullables``: the same, with Google's wrapper messages.
        scrub_invalid_names: ``scrub.invalid.names``: replace characters that names cannot have.
        replace_null_with_default: write null as the default of its schema, if there is one.
    """

    optional_for_nullables: bool = False
    wrapper_for_nullables: bool = False
    scrub_invalid_names: bool = False
    replace_null_with_default: bool = False

    @property
    def tells_null(self) -> bool:
        """Whether null can be distinguished from zero and an empty text."""
        return self.optional_for_nullables or self.wrapper_for_nullables


DEFAULT_FORMAT = ProtobufFormat()


@dataclass(frozen=True, slots=True)
class FieldType:
    """A field of a message.

    Attributes:
        name: its name in Protobuf.
        field: its name in Connect.
        number: its number.
        schema: its Connect schema.
        element: the schema of an element, if it is repeated; otherwise ``schema``.
        type: the name of its type as written in the message.
        scalar: the scalar type; ``None`` for a message.
        message: the message that this one defines for it; ``None`` for a scalar and for a message from a file.
        repeated: whether it is a list.
        wrapped: whether a wrapper message holds the scalar.
        explicit: whether it is marked ``optional``.
    """

    name: str
    field: str
    number: int
    schema: Schema
    element: Schema
    type: str
    scalar: str | None
    message: "MessageType | None"
    repeated: bool
    wrapped: bool
    explicit: bool


@dataclass(frozen=True, slots=True)
class MessageType:
    """A message with its fields, and the messages that it defines, in the order of their use."""

    name: str
    fields: tuple[FieldType, ...]
    messages: "tuple[MessageType, ...]"


@dataclass(frozen=True, slots=True)
class ProtobufFile:
    """A file with one message.

    Attributes:
        package: its package; empty without one.
        message: the message.
        imports: the files to import, in order.
    """

    package: str
    message: MessageType
    imports: tuple[str, ...]

    @property
    def full_name(self) -> str:
        """The name of the message with its package."""
        return f"{self.package}.{self.message.name}" if self.package else self.message.name


def protobuf_file(schema: Schema, settings: ProtobufFormat = DEFAULT_FORMAT) -> ProtobufFile:
    """Return the file of a struct.

    Raises:
        ValueError: a name is not valid in Protobuf, or a type has no counterpart.
    """
    builder = _Builder(settings)
    package, _, name = (schema.name or builder.next_name()).rpartition(".")
    if settings.scrub_invalid_names:
        package = ".".join(map(_scrubbed, package.split("."))) if package else ""
    message = builder.message(schema, builder.identifier(name, "the schema name"))
    return ProtobufFile(package, message, tuple(builder.imports))


class _Builder:
    def __init__(self, settings: ProtobufFormat) -> None:
        self._settings = settings
        self._unnamed = 0
        self.imports: dict[str, None] = {}  # a set in the order of use

    def next_name(self) -> str:
        """Return a name for a schema that has none in Connect."""
        self._unnamed += 1
        return f"{_DEFAULT_NAME}{self._unnamed}"

    def identifier(self, name: str, what: str) -> str:
        """Return a name in a form that is valid in Protobuf."""
        if self._settings.scrub_invalid_names:
            return _scrubbed(name)
        if _IDENTIFIER.fullmatch(name) is None:
            raise ValueError(
                f"{what} {name!r} is not valid in Protobuf: a name has Latin letters, digits and underscores, and does "
                "not begin with a digit. Set schema.name.adjustment.mode=avro and field.name.adjustment.mode=avro"
            )
        return name

    def message(self, schema: Schema, name: str) -> MessageType:
        """Return the message of a struct."""
        defined: dict[str, tuple[Schema, MessageType]] = {}
        fields = tuple(
            self._field(number, one.name, one.schema, defined) for number, one in enumerate(schema.fields, 1)
        )
        return MessageType(name, fields, tuple(message for _, message in defined.values()))

    def _field(
        self, number: int, field: str, schema: Schema, defined: dict[str, tuple[Schema, MessageType]]
    ) -> FieldType:
        name = self.identifier(field, "the field")
        element, repeated = schema, False
        if schema.type == "array":
            assert schema.items is not None
            element, repeated = schema.items, True
        elif schema.type == "map":
            element, repeated = _entry(schema), True
        if element.type == "array" or (element.type == "map" and repeated):
            raise ValueError(f"the field {field!r} is a list of lists, which Protobuf does not have")
        nullable = schema.optional and not repeated
        explicit = nullable and self._settings.optional_for_nullables
        if element.type == "struct":
            given = f"{self.next_name()}Entry" if schema.type == "map" else element.name or self.next_name()
            kind = self.identifier(given.rpartition(".")[2], "the schema name")
            kind = f"{kind}Message" if kind == name else kind
            message = self._defined(kind, element, defined)
            return FieldType(name, field, number, schema, element, kind, None, message, repeated, False, explicit)
        known = WELL_KNOWN.get(element.name or "")
        if known is not None:
            self.imports[known[1]] = None
            return FieldType(name, field, number, schema, element, known[0], None, None, repeated, False, explicit)
        scalar = SCALARS[element.type]
        if nullable and self._settings.wrapper_for_nullables:
            self.imports["google/protobuf/wrappers.proto"] = None
            kind = f"google.protobuf.{WRAPPERS[scalar][0]}"
            return FieldType(name, field, number, schema, element, kind, scalar, None, repeated, True, explicit)
        return FieldType(name, field, number, schema, element, scalar, scalar, None, repeated, False, explicit)

    def _defined(self, kind: str, schema: Schema, defined: dict[str, tuple[Schema, MessageType]]) -> MessageType:
        plain = schema.with_optional(False)
        known = defined.get(kind)
        if known is None:
            defined[kind] = known = plain, self.message(schema, kind)
        elif known[0] != plain:
            raise ValueError(f"two different structs have the name {kind}")
        return known[1]


def _scrubbed(name: str) -> str:
    return scrubbed(name, string.digits + "_")


def _entry(schema: Schema) -> Schema:
    """Return the entries of a map as structs."""
    assert schema.keys is not None
    assert schema.items is not None
    return Schema("struct", fields=(Field("key", schema.keys), Field("value", schema.items)))
