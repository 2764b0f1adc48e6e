"""The parser of TABLE_MAP events. A column's type and the kind of server decide which optional fields apply to it."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from struct import Struct

from rowtide.connector.errors import RemoteProtocolError, UnsupportedEvent
from rowtide.connector.protocol.byte_reader import ByteReader
from rowtide.connector.protocol.events.classes import TableMap
from rowtide.connector.protocol.events.table_structure import BinlogType, MappedColumn, TableStructure
from rowtide.connector.protocol.header import EventHeader

_ID_LOW_HIGH_FLAGS = Struct("<IHH")
_CACHED_COLUMNS = 100_000
"""Columns of all cached structures together; a column needs about 150 bytes."""

_ONE_BYTE = frozenset(
    {
        BinlogType.FLOAT, BinlogType.DOUBLE, BinlogType.TINY_BLOB, BinlogType.MEDIUM_BLOB, BinlogType.LONG_BLOB,
        BinlogType.BLOB, BinlogType.JSON, BinlogType.GEOMETRY, BinlogType.VECTOR, BinlogType.TIMESTAMP2,
        BinlogType.DATETIME2, BinlogType.TIME2, BinlogType.MARIADB_BLOB_COMPRESSED,
    }
)  # fmt: skip
_BLOBS = _ONE_BYTE - {
    BinlogType.FLOAT, BinlogType.DOUBLE, BinlogType.TIMESTAMP2, BinlogType.DATETIME2, BinlogType.TIME2,
}  # fmt: skip
_TWO_BYTES_REVERSED = frozenset({BinlogType.STRING, BinlogType.ENUM, BinlogType.SET, BinlogType.NEWDECIMAL})
_TWO_BYTES = frozenset({BinlogType.VARCHAR, BinlogType.VAR_STRING, BinlogType.MARIADB_VARCHAR_COMPRESSED})
_KNOWN = frozenset(BinlogType)

_NUMERIC = frozenset(
    {
        BinlogType.TINY, BinlogType.SHORT, BinlogType.INT24, BinlogType.LONG, BinlogType.LONGLONG,
        BinlogType.NEWDECIMAL, BinlogType.FLOAT, BinlogType.DOUBLE, BinlogType.YEAR,
    }
)  # fmt: skip
_CHARACTER = frozenset(
    {
        BinlogType.STRING, BinlogType.VAR_STRING, BinlogType.VARCHAR, BinlogType.BLOB, BinlogType.TINY_BLOB,
        BinlogType.MEDIUM_BLOB, BinlogType.LONG_BLOB, BinlogType.MARIADB_BLOB_COMPRESSED,
        BinlogType.MARIADB_VARCHAR_COMPRESSED, BinlogType.VECTOR,
    }
)  # fmt: skip
_ENUM_AND_SET = frozenset({BinlogType.ENUM, BinlogType.SET})


class TableMapParser:
    """Parses table maps. Each distinct body (without the table id in front of it) is parsed only once.

    Attributes:
        parsed: the structures by their bodies.
    """

    def __init__(self, mariadb: bool) -> None:
        self._mariadb = mariadb
        self.parsed: dict[bytes, TableStructure] = {}
        self._columns = 0

    def __call__(self, header: EventHeader, data: bytes, pos: int, end: int) -> TableMap:
        """Parse the event body ``data[pos:end]``, without header and checksum."""
        low, high, flags = _ID_LOW_HIGH_FLAGS.unpack_from(data, pos)
        body = data[pos + 8 : end]
        structure = self.parsed.get(body)
        if structure is None:
            structure = parse_structure(body, self._mariadb)
            self._columns += len(structure.columns)
            if self._columns > _CACHED_COLUMNS:
                self.parsed.clear()
                self._columns = len(structure.columns)
            self.parsed[body] = structure
        return TableMap(header, low | high << 32, flags, structure)


def parse_structure(body: bytes, mariadb: bool) -> TableStructure:
    """Parse a table map, starting at the database name.

    Raises:
        UnsupportedEvent: an unknown column type or metadata field.
        RemoteProtocolError: the fields contradict each other.
        TruncatedEvent: the bytes end too early.
    """
    reader = ByteReader(body, 0, len(body))
    database, table = (_name(reader) for _ in range(2))
    count = reader.packed()
    types = reader.take(count)
    metadata = ByteReader(reader.packed_string(), 0, 0)
    metadata.end = len(metadata.data)
    nulls = reader.take((count + 7) // 8)
    columns = []
    for index, code in enumerate(types):
        if code not in _KNOWN:
            raise UnsupportedEvent(f"column {index + 1} of table {database}.{table} has the unknown type {code}")
        column_type, meta = _read_metadata(metadata, code)
        columns.append(MappedColumn(column_type, meta, bool(nulls[index >> 3] >> (index & 7) & 1)))
    if metadata.remaining():
        raise RemoteProtocolError(
            f"{metadata.remaining()} surplus bytes in the type metadata of table {database}.{table}"
        )
    structure = TableStructure(database, table, tuple(columns))
    return _read_optional(reader, structure, mariadb) if reader.remaining() else structure


def _name(reader: ByteReader) -> str:
    name = reader.packed_string().decode("utf-8")
    reader.take(1)
    return name


def _read_metadata(reader: ByteReader, code: int) -> tuple[int, int]:
    """Return type and metadata of a column, as `MappedColumn` describes them."""
    if code in _ONE_BYTE:
        value = reader.uint(1)
        if code in _BLOBS and not 1 <= value <= 4:
            raise RemoteProtocolError(f"the type metadata of a BLOB says that its length has {value} bytes")
        return code, value
    if code in _TWO_BYTES:
        return code, reader.uint(2)
    if code in _TWO_BYTES_REVERSED:
        high, low = reader.take(2)
        if code == BinlogType.NEWDECIMAL:
            return code, high << 8 | low
        if high & 0x30 != 0x30:  # bits 8 and 9 of the length of a long CHAR, inverted, since 5.1
            return high | 0x30, low | ((high & 0x30) ^ 0x30) << 4
        return high or code, low
    if code == BinlogType.BIT:
        bits, size = reader.take(2)
        return code, size * 8 + bits
    if code == BinlogType.TYPED_ARRAY:
        element = reader.uint(1)
        if element == BinlogType.VARCHAR:
            return code, element << 24 | reader.uint(3)
        if element == BinlogType.TYPED_ARRAY:
            raise RemoteProtocolError("the type metadata of an array says that its elements are arrays")
        return code, element << 24 | _read_metadata(reader, element)[1]
    return code, 0


def _bits(value: bytes) -> list[bool]:
    return [bool(byte & bit) for byte in value for bit in (0x80, 0x40, 0x20, 0x10, 8, 4, 2, 1)]


def _numbers(reader: ByteReader) -> list[int]:
    values = []
    while reader.remaining():
        values.append(reader.packed())
    return values


def _pairs(reader: ByteReader) -> list[tuple[int, int]]:
    pairs = []
    while reader.remaining():
        pairs.append((reader.packed(), reader.packed()))
    return pairs


def _strings(reader: ByteReader) -> list[tuple[bytes, ...]]:
    lists = []
    while reader.remaining():
        lists.append(tuple(reader.packed_string() for _ in range(reader.packed())))
    return lists


def _names(reader: ByteReader) -> list[str]:
    names = []
    while reader.remaining():
        names.append(reader.packed_string().decode("utf-8"))
    return names


class _Optional:
    """Assigns the optional metadata fields to the columns of one table."""

    def __init__(self, structure: TableStructure, mariadb: bool) -> None:
        self.structure = structure
        self.fields: list[dict[str, object]] = [{} for _ in structure.columns]
        character = _CHARACTER | {BinlogType.GEOMETRY} if mariadb else _CHARACTER
        self.numeric = self._of(_NUMERIC)
        self.character = self._of(character)
        self.enum_and_set = self._of(_ENUM_AND_SET)
        self.primary_key: tuple[tuple[int, int], ...] | None = None

    def _of(self, types: Iterable[int]) -> list[int]:
        return [index for index, column in enumerate(self.structure.columns) if column.type in types]

    def put(self, name: str, indexes: Sequence[int], values: Sequence[object], *, padded: bool = False) -> None:
        if len(values) != len(indexes) and not (padded and len(values) >= len(indexes)):
            raise RemoteProtocolError(
                f"table map of {self.structure.database}.{self.structure.table}: {len(values)} values of {name} "
                f"for {len(indexes)} columns"
            )
        for index, value in zip(indexes, values, strict=False):
            self.fields[index][name] = value

    def put_default(self, reader: ByteReader, indexes: Sequence[int]) -> None:
        values = [reader.packed()] * len(indexes)
        for position, collation in _pairs(reader):
            values[position] = collation
        self.put("collation", indexes, values)

    def typed(self, column_type: int) -> list[int]:
        return self._of({column_type})

    def all(self) -> range:
        return range(len(self.fields))

    def put_key(self, pairs: Iterable[tuple[int, int]]) -> None:
        self.primary_key = tuple(pairs)
        if any(index >= len(self.fields) for index, _ in self.primary_key):
            raise RemoteProtocolError(
                f"table map of {self.structure.database}.{self.structure.table}: its primary key has column "
                f"{max(self.primary_key)[0] + 1} of {len(self.fields)}"
            )


_FIELDS: dict[int, Callable[[_Optional, ByteReader], None]] = {
    1: lambda o, r: o.put("unsigned", o.numeric, _bits(r.rest()), padded=True),
    2: lambda o, r: o.put_default(r, o.character),
    3: lambda o, r: o.put("collation", o.character, _numbers(r)),
    4: lambda o, r: o.put("name", o.all(), _names(r)),
    5: lambda o, r: o.put("values", o.typed(BinlogType.SET), _strings(r)),
    6: lambda o, r: o.put("values", o.typed(BinlogType.ENUM), _strings(r)),
    7: lambda o, r: o.put("geometry_type", o.typed(BinlogType.GEOMETRY), _numbers(r)),
    8: lambda o, r: o.put_key((index, 0) for index in _numbers(r)),
    9: lambda o, r: o.put_key(_pairs(r)),
    10: lambda o, r: o.put_default(r, o.enum_and_set),
    11: lambda o, r: o.put("collation", o.enum_and_set, _numbers(r)),
    12: lambda o, r: o.put("visible", o.all(), _bits(r.rest()), padded=True),
    13: lambda o, r: o.put("dimensions", o.typed(BinlogType.VECTOR), _numbers(r)),
}
"""SIGNEDNESS, DEFAULT_CHARSET, COLUMN_CHARSET, COLUMN_NAME, SET_STR_VALUE, ENUM_STR_VALUE, GEOMETRY_TYPE,
SIMPLE_PRIMARY_KEY, PRIMARY_KEY_WITH_PREFIX, ENUM_AND_SET_DEFAULT_CHARSET, ENUM_AND_SET_COLUMN_CHARSET,
COLUMN_VISIBILITY, VECTOR_DIMENSIONALITY."""


def _read_optional(reader: ByteReader, structure: TableStructure, mariadb: bool) -> TableStructure:
    optional = _Optional(structure, mariadb)
    while reader.remaining():
        code = reader.uint(1)
        value = reader.packed_string()
        if code not in _FIELDS:
            raise UnsupportedEvent(
                f"table map of {structure.database}.{structure.table} with unknown metadata field {code}"
            )
        _FIELDS[code](optional, ByteReader(value, 0, len(value)))
    columns = tuple(
        replace(column, **fields)  # type: ignore[arg-type]
        for column, fields in zip(structure.columns, optional.fields, strict=True)
    )
    return replace(structure, columns=columns, primary_key=optional.primary_key)
