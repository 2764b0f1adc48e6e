"""The kind of a column's values, from the type that SHOW CREATE TABLE has."""

from rowtide.envelope.types.column_type import Kind
from rowtide.schema_history import model
from rowtide.schema_history.structure.type_names import BINARY_TYPES, INTEGERS


def column_kind(column: model.Column) -> Kind:
    """Return the kind of a column's values."""
    name = column.data_type
    kind = _KINDS.get(name)
    if kind is not None:
        return kind
    return "bytes" if name in BINARY_TYPES else "text"


_KINDS: dict[str, Kind] = {
    **dict.fromkeys(INTEGERS, "int"),
    **dict.fromkeys(("float", "double"), "float"),
    **dict.fromkeys(("inet4", "inet6"), "inet"),
    **dict.fromkeys(
        (
            "geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon",
            "geomcollection", "geometrycollection",
        ),
        "geometry",
    ),
    "decimal": "decimal", "bit": "bit", "year": "year", "date": "date", "datetime": "datetime",
    "timestamp": "timestamp", "time": "time", "enum": "enum", "set": "set", "uuid": "uuid", "vector": "vector",
    "json": "json",
}  # fmt: skip
