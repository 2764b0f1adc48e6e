"""Kafka Connect schemas, and the JSON that ``JsonConverter`` writes for them.

A schema is a value: equal schemas compare equal and can be shared between tables. Values that belong to a schema are
plain Python ones:

====================  ==========================================================================
schema type           Python value
====================  ==========================================================================
int8 ... int64        ``int``
float, double         ``float``
boolean               ``bool``
string                ``str``
bytes                 ``bytes``; of ``org.apache.kafka.connect.data.Decimal`` the unscaled ``int``
array                 ``list``
map                   ``dict``
struct                ``dict`` from field name to value, in the order of the fields
====================  ==========================================================================

``None`` is the null of every optional schema.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

DECIMAL = "org.apache.kafka.connect.data.Decimal"


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
        parameters: of the semantic type, in the order in which they are written.
        default: value for a missing or null field; ``None`` for no default.
        doc: description, a column's comment.
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
        """The same schema, optional or not."""
        return replace(self, optional=optional)

    def field(self, name: str) -> "Field | None":
        """The field of that name, or ``None``."""
        return next((field for field in self.fields if field.name == name), None)

    @property
    def is_decimal(self) -> bool:
        """Whether values are unscaled numbers of Connect's ``Decimal``."""
        return self.name == DECIMAL and self.type == "bytes"


def struct(
    name: str | None, fields: Mapping[str, Schema], *, version: int | None = None, optional: bool = False
) -> Schema:
    """A struct schema from its fields in order."""
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
