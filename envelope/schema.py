"""Kafka Connect schemas.

Schemas are immutable, compare by value and can be shared between tables. The values of a schema are Python values:

====================  ==========================================================================
schema type           Python value
====================  ==========================================================================
int8 ... int64        ``int``
float, double         ``float``
boolean               ``bool``
string                ``str``
bytes                 ``bytes``; the unscaled ``int`` for ``org.apache.kafka.connect.data.Decimal``
array                 ``list``
map                   ``dict``
struct                ``dict`` of values by field name, in the order of the fields
====================  ==========================================================================

``None`` is null, for every optional schema.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

DECIMAL = "org.apache.kafka.connect.data.Decimal"
INTEGER_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}


@dataclass(frozen=True, slots=True)
class Field:
    """A named field of a struct schema."""

    name: str
    schema: "Schema"


@dataclass(frozen=True, slots=True)
class Schema:
    """A Kafka Connect schema.

    Attributes:
        type: Connect's name of the type: ``int32``, ``string``, ``struct``, ...
        optional: whether null is allowed.
        name: semantic type, such as ``io.debezium.time.Date``.
        version: version of the semantic type.
        parameters: of the semantic type, in the order of the JSON.
        default: value for a missing or null field; ``None`` for no default.
        doc: description; the comment of a column.
        fields: of a struct.
        items: element schema of an array, value schema of a map.
        keys: key schema of a map.
    """

    type: str
    optional: bool = False
    name: str | None = None
    version: int | None = None
    parameters: tuple[tuple[str, str], ...] = ()
    default: Any = None
    doc: str | None = None
    fields: tuple[Field, ...] = ()
    items: "Schema | None" = None
    keys: "Schema | None" = None

    def with_optional(self, optional: bool) -> "Schema":
        """Return the same schema, optional or required."""
        return replace(self, optional=optional)

    def field(self, name: str) -> "Field | None":
        """Return the field of that name, ``None`` if there is none."""
        return next((field for field in self.fields if field.name == name), None)

    @property
    def is_decimal(self) -> bool:
        """Whether this is Connect's ``Decimal``, whose values are unscaled integers."""
        return self.name == DECIMAL and self.type == "bytes"


def struct(
    name: str | None, fields: Mapping[str, Schema], *, version: int | None = None, optional: bool = False
) -> Schema:
    """Return a struct schema with these fields."""
    return Schema(
        "struct",
        optional=optional,
        name=name,
        version=version,
        fields=tuple(Field(field_name, schema) for field_name, schema in fields.items()),
    )


INT8, INT16, INT32, INT64 = Schema("int8"), Schema("int16"), Schema("int32"), Schema("int64")
FLOAT32, FLOAT64, BOOLEAN = Schema("float"), Schema("double"), Schema("boolean")
STRING, BYTES = Schema("string"), Schema("bytes")
OPTIONAL_INT32, OPTIONAL_INT64 = INT32.with_optional(True), INT64.with_optional(True)
OPTIONAL_STRING = STRING.with_optional(True)
