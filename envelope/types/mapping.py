"""The Connect type of each MySQL and MariaDB data type."""

from rowtide.envelope.settings import Stage, ValueSettings
from rowtide.envelope.types.column_type import ColumnDescription, ColumnType, TypeFactory, fixed_type
from rowtide.envelope.types.numbers import (
    DOUBLE_TYPE,
    bigint_type,
    bit_type,
    bool_type,
    float_type,
    int_type,
    numeric_type,
    real_type,
    smallint_type,
)
from rowtide.envelope.types.spatial import GEOMETRIES, GEOMETRY, POINT, VECTOR
from rowtide.envelope.types.temporal import YEAR, date_type, datetime_type, time_type, timestamp_type
from rowtide.envelope.types.text import INET, JSON, TEXT, UUID, binary_type, enum_type, set_type

JDBC_BOOLEAN = 16
"""The type in ``java.sql.Types`` of a column that a statement has declared BOOL or BOOLEAN."""
JDBC_REAL = 7
"""That of a column that a statement has declared REAL."""
_SPECIAL: dict[str, TypeFactory] = {
    "JSON": fixed_type(JSON),
    "POINT": fixed_type(POINT),
    "YEAR": fixed_type(YEAR),
    "ENUM": enum_type,
    "SET": set_type,
    "FLOAT": float_type,
    "VECTOR": fixed_type(VECTOR),
    "UUID": fixed_type(UUID),
    "INET4": fixed_type(INET),
    "INET6": fixed_type(INET),
}

# By the number of java.sql.Types in the schema history.
_JDBC: dict[int, TypeFactory] = {
    -7: bit_type,  # BIT
    JDBC_BOOLEAN: bool_type,
    -6: smallint_type,  # TINYINT
    5: smallint_type,  # SMALLINT
    4: int_type,  # INTEGER
    -5: bigint_type,  # BIGINT
    6: float_type,  # FLOAT
    JDBC_REAL: real_type,
    8: fixed_type(DOUBLE_TYPE),  # DOUBLE_TYPE
    2: numeric_type,  # NUMERIC
    3: numeric_type,  # DECIMAL
    1: fixed_type(TEXT),  # CHAR
    12: fixed_type(TEXT),  # VARCHAR
    -1: fixed_type(TEXT),  # LONGVARCHAR
    -15: fixed_type(TEXT),  # NCHAR
    -9: fixed_type(TEXT),  # NVARCHAR
    -16: fixed_type(TEXT),  # LONGNVARCHAR
    2005: fixed_type(TEXT),  # CLOB
    2011: fixed_type(TEXT),  # NCLOB
    -2: binary_type,  # BINARY
    -3: binary_type,  # VARBINARY
    -4: binary_type,  # LONGVARBINARY
    2004: binary_type,  # BLOB
    91: date_type,  # DATE
    92: time_type,  # TIME
    93: datetime_type,  # TIMESTAMP
    2014: timestamp_type,  # TIMESTAMP_WITH_TIMEZONE
}


def column_type(column: ColumnDescription, settings: ValueSettings, stage: Stage) -> ColumnType | None:
    """Return the Connect type of a column, ``None`` if its data type is unknown (Debezium omits such a column).

    Args:
        column: Debezium's description of the column.
        settings: the handling modes.
        stage: snapshot or stream, which differ in a few types.
    """
    words = column.type_name.upper().split()
    base = words[0]
    special = _SPECIAL.get(base)
    if special is not None:
        return special(column, settings, stage)
    if base in GEOMETRIES:
        return GEOMETRY
    by_jdbc = _JDBC.get(column.jdbc_type)
    return by_jdbc(column, settings, stage) if by_jdbc else None
