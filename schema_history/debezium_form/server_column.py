"""Builds a column from Debezium's description alone.

The result is sufficient to decode rows: type, sign, length, character set, labels. It lacks collations, generation
expressions and keys.
"""

import re

from rowtide.schema_history.model import Column, DebeziumColumn, DefaultKind

_SYNONYMS = {
    "bool": "tinyint", "boolean": "tinyint", "int1": "tinyint", "int2": "smallint", "int3": "mediumint",
    "middleint": "mediumint", "integer": "int", "int4": "int", "int8": "bigint", "serial": "bigint",
    "dec": "decimal", "numeric": "decimal", "fixed": "decimal", "number": "decimal",
    "real": "double", "float8": "double", "float4": "float",
    "character": "char", "nchar": "char", "national": "char", "nvarchar": "varchar", "varcharacter": "varchar",
    "long": "mediumtext", "geometrycollection": "geomcollection",
}  # fmt: skip
_LABEL_ESCAPE = re.compile(r"\\.|''", re.DOTALL)


def server_column(described: DebeziumColumn) -> Column:
    """Return the column that Debezium describes."""
    words = described.type_name.lower().split()
    data_type = _SYNONYMS.get(words[0], words[0])
    if "varying" in words or "varchar" in words or "varcharacter" in words:
        data_type = "varchar"
    labels = tuple(_label(text) for text in described.enum_values)
    temporal = data_type in {"time", "datetime", "timestamp"}
    return Column(
        described.name,
        described.type_expression.lower(),
        data_type,
        nullable=described.optional,
        default_kind=DefaultKind.LITERAL if described.default_expression is not None else DefaultKind.NONE,
        default=described.default_expression,
        auto_increment=described.auto_incremented,
        charset=described.charset_name,
        length=described.length,
        scale=described.scale,
        fsp=described.length or 0 if temporal else 0,
        unsigned="unsigned" in words or "zerofill" in words or words[0] == "serial",
        zerofill="zerofill" in words,
        labels=labels,
        debezium=described,
    )


def _label(text: str) -> str:
    inner = text[1:-1] if len(text) >= 2 and text[0] == text[-1] == "'" else text
    return _LABEL_ESCAPE.sub(lambda match: match[0][1], inner)
