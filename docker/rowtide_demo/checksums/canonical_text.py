r"""One text for each value, the same in MySQL and in Spark: what the proof adds up.

For each kind of MySQL's types there are two SQL expressions, MySQL's and Spark's, that give the same text for the same
value, and different texts for different values. Two places need care:

* JSON: MySQL's text has a space behind commas and colons, a message's has none. White space outside of strings is taken
  out on both sides; order of the members, numbers and escapes must be the same.
* DOUBLE: both sides print the shortest text that gives the number, but not in the same form. As DECIMAL it is the same,
  to twelve places.
"""

from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["Column", "digest_in_mysql", "digest_in_spark", "key_in_spark", "mysql_text", "quoted", "spark_text"]

_SEPARATOR = "\x1f"
# A string as a whole, or white space: what is matched is replaced by the string, if it is one.
_JSON_SPACE = r'("(?:[^"\\]|\\.)*")|\s+'


@dataclass(frozen=True, slots=True)
class Column:
    """A column as MySQL's information_schema has it.

    Attributes:
        name: the column's name.
        type: ``DATA_TYPE``: ``int``, ``varchar`` ...
        size: bits of a BIT column, 0 for others.
        key: whether it is part of the primary key.
    """

    name: str
    type: str
    size: int = 0
    key: bool = False


_INTEGERS = ("tinyint", "smallint", "mediumint", "int", "bigint", "year")
_TEXTS = ("char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "set")
_BYTES = ("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob")

_MYSQL = {
    **dict.fromkeys(_INTEGERS, "CAST({c} AS CHAR)"),
    **dict.fromkeys(_TEXTS, "CONVERT({c} USING utf8mb4)"),
    **dict.fromkeys(_BYTES, "HEX({c})"),
    "bit": "LPAD(HEX({c} + 0), {hex_digits}, '0')",
    "date": "DATE_FORMAT({c}, '%Y-%m-%d')",
    "datetime": "DATE_FORMAT({c}, '%Y-%m-%d %H:%i:%s.%f')",
    "decimal": "CAST({c} AS CHAR)",
    "double": "CAST(CAST({c} AS DECIMAL(38, 12)) AS CHAR)",
    "json": "REGEXP_REPLACE(CAST({c} AS CHAR), {json_space}, '$1')",
    "time": "CAST(IF({c} < 0, -1, 1) * (TIME_TO_SEC(ABS({c})) * 1000000 + MICROSECOND({c})) AS CHAR)",
    "timestamp": "DATE_FORMAT({c}, '%Y-%m-%d %H:%i:%s.%f')",
}
_SPARK = {
    # By way of a decimal: BOOLEAN may be a Spark boolean, which as text would be "true".
    **dict.fromkeys(_INTEGERS, "CAST(CAST({c} AS DECIMAL(20, 0)) AS STRING)"),
    **dict.fromkeys(_TEXTS, "{c}"),
    **dict.fromkeys(_BYTES, "hex({c})"),
    "bit": "hex({c})",
    "date": "date_format({c}, 'yyyy-MM-dd')",
    "datetime": "date_format({c}, 'yyyy-MM-dd HH:mm:ss.SSSSSS')",
    "decimal": "CAST({c} AS STRING)",
    "double": "CAST(CAST({c} AS DECIMAL(38, 12)) AS STRING)",
    "json": "regexp_replace({c}, {json_space}, '$1')",
    "time": "CAST({c} AS STRING)",
    "timestamp": "date_format({c}, 'yyyy-MM-dd HH:mm:ss.SSSSSS')",
}


def quoted(name: str) -> str:
    """A name as an identifier, of MySQL and of Spark alike."""
    return "`" + name.replace("`", "``") + "`"


def mysql_text(column: Column) -> str:
    """SQL of MySQL for a column's canonical text, null for null.

    Raises:
        KeyError: the type has no canonical text here.
    """
    return _filled(_MYSQL[column.type], quoted(column.name), column, _literal(_JSON_SPACE))


def spark_text(column: Column) -> str:
    """SQL of Spark for the same text, in a session with ANSI mode on and the time zone UTC.

    Raises:
        KeyError: the type has no canonical text here.
    """
    return _filled(_SPARK[column.type], quoted(column.name), column, _literal(_JSON_SPACE))


def digest_in_mysql(key: list[Column], column: Column) -> str:
    """SQL of MySQL for a number of 60 bits: of a column's value and of its row's key.

    With the key in it, two values that have changed places change the sum.
    """
    text = _joined(map(mysql_text, [*key, column]))
    return f"CAST(CONV(LEFT(SHA2({text}, 256), 15), 16, 10) AS UNSIGNED)"


def key_in_spark(key: list[Column]) -> str:
    """SQL of Spark for the text of a row's key."""
    return _joined(map(spark_text, key))


def digest_in_spark(row: str, text: str) -> str:
    """SQL of Spark for the number that `digest_in_mysql` gives, from a key's and a value's text."""
    joined = f"concat_ws('{_SEPARATOR}', {row}, {_marked(text)})"
    return f"CAST(conv(left(sha2({joined}, 256), 15), 16, 10) AS DECIMAL(20, 0))"


def _joined(texts: Iterable[str]) -> str:
    return f"CONCAT_WS('{_SEPARATOR}', {', '.join(map(_marked, texts))})"


def _marked(text: str) -> str:
    # Null is told from every text: a text has an equals sign before it.
    return f"COALESCE(CONCAT('=', {text}), '-')"


def _filled(template: str, name: str, column: Column, json_space: str) -> str:
    digits = 2 * ((column.size + 7) // 8)
    for mark, text in (("{hex_digits}", str(digits)), ("{json_space}", json_space), ("{c}", name)):
        template = template.replace(mark, text)
    return template


def _literal(text: str) -> str:
    """A string literal, alike in MySQL and Spark: both take a back-slash for the start of an escape."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
