"""``io.debezium.transforms.VectorToJsonConverter``: writes vectors as JSON for systems without vectors."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from rowtide.envelope.json.headers import header_text
from rowtide.envelope.schema import FLOAT64, Field, Schema
from rowtide.envelope.transforms.options import Options
from rowtide.envelope.transforms.record import ConnectRecord, SchemaCache, convert_fields, require_struct

_DATA = "io.debezium.data."
_JSON = Schema("string", name=_DATA + "Json", version=1)
_DENSE = (_DATA + "FloatVector", _DATA + "DoubleVector")
_SPARSE = _DATA + "SparseDoubleVector"

Convert = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class VectorToJsonConverter:
    """Converts each vector to a JSON object with its numbers as ``values``.

    Attributes:
        replace_null_with_default: whether a column's default replaces NULL, as in Debezium.
    """

    replace_null_with_default: bool
    _plans: SchemaCache[tuple[Schema, Convert]] = field(default_factory=SchemaCache, repr=False, compare=False)

    @classmethod
    def from_options(cls, options: Options) -> "VectorToJsonConverter":
        """Read no options."""
        return cls(not options.exact)

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        """Return the record with JSON instead of vectors, even in nested structs."""
        if record.value is None:
            return record
        schema, value = require_struct(record.value_schema, record.value)
        made, convert = self._plans.get(self._plan, schema)
        return record.with_content("value", made, convert(value))

    def _plan(self, schema: Schema) -> tuple[Schema, Convert]:
        fields = []
        changes: list[tuple[str, Convert]] = []
        for one in schema.fields:
            made, convert = one.schema, None
            if one.schema.name in _DENSE and one.schema.items is not None:
                made, convert = _JSON.with_optional(one.schema.optional), _dense(one.schema.items)
            elif one.schema.name == _SPARSE:
                made, convert = _JSON.with_optional(one.schema.optional), _sparse
            elif one.schema.type == "struct":
                made, convert = self._plan(one.schema)
            fields.append(Field(one.name, made))
            if convert is not None:
                changes.append((one.name, convert))
        replaces = self.replace_null_with_default
        return replace(schema, default=None, fields=tuple(fields)), lambda struct: convert_fields(
            schema, struct, changes, replace_null_with_default=replaces
        )


def _dense(items: Schema) -> Convert:
    return lambda vector: f'{{ "values": [{", ".join(header_text(items, one) or "null" for one in vector)}] }}'


def _sparse(vector: Any) -> str:
    numbers = ", ".join(f'"{index}": {header_text(FLOAT64, one)}' for index, one in sorted(vector["vector"].items()))
    return f'{{ "dimensions": {vector["dimensions"]}, "vector": {{ {numbers} }} }}'
