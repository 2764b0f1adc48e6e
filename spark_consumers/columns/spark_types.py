"""Spark types as text, and the common type of two types.

A type is Spark's text for it (``simpleString``): ``int``, ``decimal(10,2)``, ``array<float>``,
``struct<wkb:binary,srid:int>``. It is valid DDL.
"""

import re

MAX_DECIMAL_DIGITS = 38
"""The most digits of Spark's decimal; MySQL's has up to 65."""

_INTEGER_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
_INTEGERS = tuple(_INTEGER_DIGITS)
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
# Types whose text is the same in Spark and MySQL, so that ALTER TABLE ... MODIFY ... VARCHAR has the same effect.
_SAME_TEXT = frozenset({"boolean", "date", *_INTEGERS})
_EXACT_IN_FLOATING = {
    ("tinyint", "float"): "float",
    ("smallint", "float"): "float",
    ("int", "float"): "double",
    ("tinyint", "double"): "double",
    ("smallint", "double"): "double",
    ("int", "double"): "double",
    ("float", "double"): "double",
    ("date", "timestamp_ntz"): "timestamp_ntz",
}


def quote(name: str) -> str:
    """Return a column's name as an SQL identifier."""
    return "`" + name.replace("`", "``") + "`"


def literal(text: str) -> str:
    """Return text as an SQL string literal."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def decimal_type(precision: int, scale: int) -> str:
    """Return the type of a decimal, ``string`` if it has too many digits for Spark."""
    return f"decimal({precision},{scale})" if precision <= MAX_DECIMAL_DIGITS else "string"


def decimal_parts(spark_type: str) -> tuple[int, int] | None:
    """Return precision and scale, ``None`` for another type."""
    found = _DECIMAL.fullmatch(spark_type)
    return (int(found[1]), int(found[2])) if found else None


def is_integer(spark_type: str) -> bool:
    """Return whether a type is an integer type."""
    return spark_type in _INTEGERS


def common_type(first: str, second: str) -> str | None:
    """Return the narrowest type that holds the values of both types without loss, ``None`` if there is none.

    Values are converted as ``ALTER TABLE ... MODIFY`` converts those in the table. Debezium itself changes ``BOOL``,
    which is ``int16`` in a snapshot and ``boolean`` in the stream.
    """
    if first == second:
        return first
    return _wider(first, second) or _wider(second, first)


def _wider(small: str, large: str) -> str | None:
    if small in _INTEGERS and large in _INTEGERS:
        return _INTEGERS[max(_INTEGERS.index(small), _INTEGERS.index(large))]
    if small == "boolean" and (large in _INTEGERS or decimal_parts(large)):
        return large
    if large == "string" and (small in _SAME_TEXT or decimal_parts(small)):
        return "string"
    decimal = decimal_parts(large)
    if decimal:
        return _decimal_holding(small, *decimal)
    return _EXACT_IN_FLOATING.get((small, large))


def _decimal_holding(small: str, precision: int, scale: int) -> str | None:
    other = decimal_parts(small) or ((_INTEGER_DIGITS[small], 0) if small in _INTEGERS else None)
    if other is None:
        return None
    digits = max(precision - scale, other[0] - other[1])
    scale = max(scale, other[1])
    return decimal_type(digits + scale, scale)


def cast(expression: str, source: str, target: str) -> str:
    """Return SQL that converts a value to another type.

    If it is not a common type of both, as for a column that keeps its type, a value that does not fit ends the query.
    """
    if source == target:
        return expression
    if source == "boolean":  # 1 and 0, as in MySQL
        return cast(f"CAST({expression} AS tinyint)", "tinyint", target)
    if common_type(source, target) == target:
        return f"CAST({expression} AS {target})"
    fitting = f"try_cast({expression} AS {target})"
    message = (
        f"a value of type {source} does not fit into {target}, the type that the column keeps. Let the type change "
        f"with --schema-change evolve, or build the table again with --restart"
    )
    return (
        f"IF({expression} IS NULL OR CAST({fitting} AS {source}) <=> {expression}, {fitting}, "
        f"CAST(raise_error({literal(message)}) AS {target}))"
    )
