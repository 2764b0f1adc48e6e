"""A table's structure as in its TABLE_MAP: types always; names, character sets and keys with full row metadata."""

from dataclasses import dataclass
from enum import IntEnum


class BinlogType(IntEnum):
    """Type codes in the binlog: MySQL's ``enum_field_types`` and MariaDB's additions."""

    DECIMAL = 0
    TINY = 1
    SHORT = 2
    LONG = 3
    FLOAT = 4
    DOUBLE = 5
    NULL = 6
    TIMESTAMP = 7
    LONGLONG = 8
    INT24 = 9
    DATE = 10
    TIME = 11
    DATETIME = 12
    YEAR = 13
    NEWDATE = 14
    VARCHAR = 15
    BIT = 16
    TIMESTAMP2 = 17
    DATETIME2 = 18
    TIME2 = 19
    TYPED_ARRAY = 20
    MARIADB_BLOB_COMPRESSED = 140
    MARIADB_VARCHAR_COMPRESSED = 141
    VECTOR = 242
    JSON = 245
    NEWDECIMAL = 246
    ENUM = 247
    SET = 248
    TINY_BLOB = 249
    MEDIUM_BLOB = 250
    LONG_BLOB = 251
    BLOB = 252
    VAR_STRING = 253
    STRING = 254
    GEOMETRY = 255


@dataclass(frozen=True, slots=True)
class MappedColumn:
    """One column of a table map. Attributes that need ``binlog_row_metadata=FULL`` are ``None`` without it.

    Attributes:
        type: see `BinlogType`; ENUM or SET, where the event has STRING.
        metadata: by type: VARCHAR, STRING: maximum bytes; ENUM, SET, FLOAT, DOUBLE: bytes of a value; NEWDECIMAL:
            precision * 256 + scale; BIT: number of bits; BLOB, JSON, GEOMETRY, VECTOR and similar types: bytes of the
            length prefix of a value; TIMESTAMP2, DATETIME2, TIME2: digits of the fraction; TYPED_ARRAY: element
            type * 2**24 + its metadata; otherwise 0.
        nullable: whether the column may be NULL.
        unsigned: for numeric columns; also present with minimal metadata.
        collation: collation id of text, ENUM and SET columns; 63 is binary.
        name: column name.
        values: labels of ENUM and SET, as bytes in the collation's character set.
        geometry_type: 0 geometry, 1 point, 2 linestring, 3 polygon, 4-6 their multi variants, 7 collection.
        visible: false for an INVISIBLE column.
        dimensions: number of dimensions of a VECTOR.
    """

    type: int
    metadata: int
    nullable: bool
    unsigned: bool | None = None
    collation: int | None = None
    name: str | None = None
    values: tuple[bytes, ...] | None = None
    geometry_type: int | None = None
    visible: bool | None = None
    dimensions: int | None = None


@dataclass(frozen=True, slots=True)
class TableStructure:
    """A table as described by a TABLE_MAP event.

    Attributes:
        database: database name.
        table: table name.
        columns: in the order of the table.
        primary_key: column index and prefix length (in characters; 0: the whole column) per key part; ``None`` if there
            is no primary key or the event does not describe it.
    """

    database: str
    table: str
    columns: tuple[MappedColumn, ...]
    primary_key: tuple[tuple[int, int], ...] | None = None

    @property
    def full(self) -> bool:
        """Whether the event was written with ``binlog_row_metadata=FULL``."""
        return bool(self.columns) and self.columns[0].name is not None
