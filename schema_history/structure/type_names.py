"""Names of MySQL's and MariaDB's data types, as SHOW CREATE TABLE prints them, by kind."""

INTEGER_BYTES = {"tinyint": 1, "smallint": 2, "mediumint": 3, "int": 4, "bigint": 8}
INTEGERS = frozenset(INTEGER_BYTES)
NUMBERS = INTEGERS | {"decimal", "float", "double"}
TEXTS = ("tinytext", "text", "mediumtext", "longtext")
BLOBS = ("tinyblob", "blob", "mediumblob", "longblob")
CHARACTER_TYPES = frozenset(("char", "varchar", "enum", "set", *TEXTS))
BINARY_TYPES = frozenset(("binary", "varbinary", *BLOBS))
TEMPORAL = frozenset(("time", "datetime", "timestamp"))
SPATIAL = frozenset(
    (
        "geometry",
        "point",
        "linestring",
        "polygon",
        "multipoint",
        "multilinestring",
        "multipolygon",
        "geomcollection",
        "geometrycollection",
    )
)
