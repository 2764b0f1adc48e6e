"""Debezium's transforms of geometries.

``SwapGeometryCoordinates`` exchanges x and y, which reference systems order differently. ``GeometryFormatTransformer``
turns WKB into EWKB, which has the reference system in it, or vice versa.
"""

import abc
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from rowtide.envelope.schema import Schema
from rowtide.envelope.transforms.options import Options
from rowtide.envelope.transforms.record import ConnectRecord, SchemaCache, TransformError, convert_fields

_GEOMETRY = "io.debezium.data.geometry.Geometry"
_Z, _M, _SRID = 0x80000000, 0x40000000, 0x20000000  # flags of EWKB in the type of a geometry
_POINT, _LINE_STRING, _POLYGON, _MULTI_POINT, _MULTI_POLYGON, _COLLECTION = 1, 2, 3, 4, 6, 7

Convert = Callable[[Any], Any]


class _GeometryTransform(abc.ABC):
    """Changes the WKB of ``GEOMETRY`` columns; as in Debezium, ``POINT`` columns stay unchanged."""

    replace_null_with_default: bool
    _plans: SchemaCache[tuple[Convert | None]]

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        """Return the record with its geometries changed."""
        schema = record.value_schema
        if schema is None or schema.type != "struct" or record.value is None:
            return record
        (convert,) = self._plans.get(
            lambda of: (_conversion(of, self._changed, replaces=self.replace_null_with_default),), schema
        )
        return record if convert is None else record.with_content("value", schema, convert(record.value))

    @abc.abstractmethod
    def _changed(self, geometry: Any) -> Any:
        """Return the struct of a geometry after the change."""


@dataclass(frozen=True)
class SwapGeometryCoordinates(_GeometryTransform):
    """Exchanges the coordinates of geometries.

    Attributes:
        srids: the reference systems whose geometries are changed.
        replace_null_with_default: whether a column's default replaces NULL, as in Debezium.
    """

    srids: frozenset[int]
    replace_null_with_default: bool
    _plans: SchemaCache[tuple[Convert | None]] = field(default_factory=SchemaCache, repr=False, compare=False)

    @classmethod
    def from_options(cls, options: Options) -> "SwapGeometryCoordinates":
        """Read ``srids``."""
        srids = set()
        for item in options.items("srids") or ("4326", "3857", "4269"):
            if item.isdecimal():
                srids.add(int(item))
            else:
                options.problem("srids", f"must be numbers separated by commas, not {item!r}")
        return cls(frozenset(srids), not options.exact)

    def _changed(self, geometry: Any) -> Any:
        if geometry.get("srid") not in self.srids or geometry.get("wkb") is None:
            return geometry
        return {**geometry, "wkb": swapped_wkb(geometry["wkb"])}


@dataclass(frozen=True)
class GeometryFormatTransformer(_GeometryTransform):
    """Turns WKB into EWKB, and EWKB into WKB.

    A geometry without a reference system, for which Debezium stops, stays WKB.

    Attributes:
        extends: ``format=wkb``: the geometries are WKB; otherwise only EWKB is changed.
        replace_null_with_default: whether a column's default replaces NULL, as in Debezium.
    """

    extends: bool
    replace_null_with_default: bool
    _plans: SchemaCache[tuple[Convert | None]] = field(default_factory=SchemaCache, repr=False, compare=False)

    @classmethod
    def from_options(cls, options: Options) -> "GeometryFormatTransformer":
        """Read ``format``, which is that of the geometries before the transform."""
        return cls(options.choice("format", ("wkb", "ewkb"), "wkb") == "wkb", not options.exact)

    def _changed(self, geometry: Any) -> Any:
        wkb = geometry.get("wkb")
        if wkb is None:
            return geometry
        try:
            order, kind = _header(wkb, 0)
        except struct.error as error:
            raise TransformError(f"the geometry ends unexpectedly, after {len(wkb)} bytes") from error
        if kind & _SRID:
            return {**geometry, "wkb": wkb[:1] + struct.pack(order + "I", kind & ~_SRID) + wkb[9:]}
        if not self.extends or geometry.get("srid") is None:
            return geometry
        return {**geometry, "wkb": wkb[:1] + struct.pack(order + "II", kind | _SRID, geometry["srid"]) + wkb[5:]}


def _conversion(schema: Schema, change: Convert, *, replaces: bool) -> Convert | None:
    """Return the conversion of values, ``None`` if they stay unchanged.

    Args:
        schema: their schema.
        change: the conversion of a geometry.
        replaces: whether a field's default replaces null.
    """
    if schema.type == "struct" and schema.name == _GEOMETRY:
        return change
    if schema.type == "struct":
        found = ((one.name, _conversion(one.schema, change, replaces=replaces)) for one in schema.fields)
        changes = [(name, convert) for name, convert in found if convert is not None]
        if not changes and not (replaces and any(one.schema.default is not None for one in schema.fields)):
            return None
        return lambda value: convert_fields(schema, value, changes, replace_null_with_default=replaces)
    inner = _conversion(schema.items, change, replaces=replaces) if schema.items is not None else None
    if inner is None:
        return None
    if schema.type == "array":
        return lambda value: [one if one is None else inner(one) for one in value]
    return lambda value: {name: one if one is None else inner(one) for name, one in value.items()}


def swapped_wkb(wkb: bytes) -> bytes:
    """Return WKB or EWKB with x in place of y, and y in place of x.

    Raises:
        TransformError: it is not WKB.
    """
    changed = bytearray(wkb)
    try:
        end = _swap_geometry(changed, 0)
    except struct.error as error:
        raise TransformError(f"the geometry ends unexpectedly, after {len(wkb)} bytes") from error
    return bytes(changed[:end])


def _swap_geometry(wkb: bytearray, at: int, dimensions: int | None = None) -> int:
    """Exchange the coordinates of the geometry at a position, and return the position after it."""
    order, kind = _header(wkb, at)
    at += 5
    if kind & _SRID and dimensions is None:
        at += 4
    if dimensions is None:
        dimensions = 2 + bool(kind & _Z) + bool(kind & _M)
    base = kind & 0xFF
    if base == _POINT:
        return _swap_points(wkb, at, order, 1, dimensions)
    if base not in range(_LINE_STRING, _COLLECTION + 1):
        raise TransformError(f"{base} is not a type of geometries")
    (count,) = struct.unpack_from(order + "I", wkb, at)
    at += 4
    if base == _LINE_STRING:
        return _swap_points(wkb, at, order, count, dimensions)
    for _ in range(count):
        if base == _POLYGON:
            (points,) = struct.unpack_from(order + "I", wkb, at)
            at = _swap_points(wkb, at + 4, order, points, dimensions)
        else:
            at = _swap_geometry(wkb, at, None if base == _COLLECTION else dimensions)
    return at


def _header(wkb: bytes | bytearray, at: int) -> tuple[str, int]:
    """Return the byte order of a geometry, and its type with the flags."""
    order = "<" if wkb[at : at + 1] == b"\x01" else ">"
    (kind,) = struct.unpack_from(order + "I", wkb, at + 1)
    return order, kind


def _swap_points(wkb: bytearray, at: int, order: str, count: int, dimensions: int) -> int:
    point = struct.Struct(f"{order}{dimensions}d")
    for _ in range(count):
        x, y, *rest = point.unpack_from(wkb, at)
        point.pack_into(wkb, at, y, x, *rest)
        at += point.size
    return at
