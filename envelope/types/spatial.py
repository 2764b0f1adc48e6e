"""The Connect types of geometries and vectors."""

import struct
from typing import Any

from rowtide.envelope.schema import BYTES, FLOAT32, FLOAT64, OPTIONAL_INT32, Field, Schema
from rowtide.envelope.types.column_type import ColumnType, identity, via_connect_value

GEOMETRIES = frozenset(
    {
        "GEOMETRY",
        "LINESTRING",
        "POLYGON",
        "MULTIPOINT",
        "MULTILINESTRING",
        "MULTIPOLYGON",
        "GEOMETRYCOLLECTION",
        "GEOMCOLLECTION",
    }
)

_GEOMETRY_SCHEMA = Schema(
    "struct",
    optional=True,  # in Debezium even for a NOT NULL column
    name="io.debezium.data.geometry.Geometry",
    version=1,
    doc="Geometry",
    fields=(Field("wkb", BYTES), Field("srid", OPTIONAL_INT32)),
)
_POINT_SCHEMA = Schema(
    "struct",
    name="io.debezium.data.geometry.Point",
    version=1,
    doc="Geometry (POINT)",
    fields=(
        Field("x", FLOAT64),
        Field("y", FLOAT64),
        Field("wkb", BYTES.with_optional(True)),
        Field("srid", OPTIONAL_INT32),
    ),
)
_XY = struct.Struct("<dd")
_SRID_BYTES = 4
_POINT_BYTES = 25


def _geometry_value(stored: bytes) -> dict[str, Any]:
    if len(stored) < _SRID_BYTES:  # INSERT IGNORE can store such a value
        raise ValueError(f"{stored!r} is not a geometry: it has no SRID")
    return {"wkb": stored[4:], "srid": int.from_bytes(stored[:4], "little") or None}


def _point_value(stored: bytes) -> dict[str, Any]:
    if len(stored) != _POINT_BYTES:
        raise ValueError(f"{stored!r} is not a point with two coordinates")
    x, y = _XY.unpack_from(stored, 9)
    return {"x": x, "y": y, **_geometry_value(stored)}


GEOMETRY = ColumnType(
    _GEOMETRY_SCHEMA, "geometry", _geometry_value, via_connect_value(_GEOMETRY_SCHEMA, _geometry_value)
)
POINT = ColumnType(_POINT_SCHEMA, "geometry", _point_value, via_connect_value(_POINT_SCHEMA, _point_value))
_VECTOR_SCHEMA = Schema("array", name="io.debezium.data.FloatVector", version=1, items=FLOAT32)
VECTOR = ColumnType(_VECTOR_SCHEMA, "vector", identity, via_connect_value(_VECTOR_SCHEMA, identity))
