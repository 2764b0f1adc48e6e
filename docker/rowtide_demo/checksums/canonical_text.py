r"""A canonical text for each value, computed by an SQL expression of MySQL and by one of Spark.

Equal values have equal texts in both, and different values have different texts. Two types need care:

* JSON: MySQL's text has a space after commas and colons, the records have none. White space outside of strings is
  removed on both sides; the order of members, the numbers and the escapes must be equal.
* DOUBLE: both print the shortest text that identifies the number, but in different notations. Cast to DECIMAL, with
  twelve decimal places, the texts are equal.
"""

from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["Column", "digest_in_mysql", "digest_in_spark", "key_in_spark", "mysql_text", "quoted", "spark_text"]

_SEPARATOR = "\x1f"
# Matches a whole string or white space. Replaced by its first group, a string stays and white space goes.
_JSON_SPACE = r'("(?:[^"\\]|\\.)*")|\s+'


@dataclass(frozen=True, slots=True)
class Column:
    """A column as information_schema describes it.

    Attributes:
        name: the name of the column.
        type: ``DATA_TYPE``: ``int``, ``varchar`` ...
        size: the number of bits of a BIT column, 0 for others.
        key: whether the column is part of the primary key.
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
    # BOOLEAN may be a Spark boolean, whose text is "true"; as a decimal it is 1.
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
    """Return a name as a quoted identifier, in the syntax of both MySQL and Spark."""
    return "`" + name.replace("`", "``") + "`"


def mysql_text(column: Column) -> str:
    """Return the expression of MySQL for the canonical text of a column; NULL for NULL.

    Raises:
        KeyError: the type is not supported.
    """
    return _filled(_MYSQL[column.type], quoted(column.name), column, _literal(_JSON_SPACE))


def spark_text(column: Column) -> str:
    """Return the expression of Spark for the same text, in a session with ANSI mode and the time zone UTC.

    Raises:
        KeyError: the type is not supported.
    """
    return _filled(_SPARK[column.type], quoted(column.name), column, _literal(_JSON_SPACE))


def digest_in_mysql(key: list[Column], column: Column) -> str:
    """Return the expression of MySQL for a 60-bit hash of a value and the key of its row.

    Because the key is included, swapping the values of two rows changes the checksum.
    """
    text = _joined(map(mysql_text, [*key, column]))
    return f"CAST(CONV(LEFT(SHA2({text}, 256), 15), 16, 10) AS UNSIGNED)"


def key_in_spark(key: list[Column]) -> str:
    """Return the expression of Spark for the text of a row's key."""
    return _joined(map(spark_text, key))


def digest_in_spark(row: str, text: str) -> str:
    """Return the expression of Spark for the same number as `digest_in_mysql`, from the texts of a key and a value."""
    joined = f"concat_ws('{_SEPARATOR}', {row}, {_marked(text)})"
    return f"CAST(conv(left(sha2({joined}, 256), 15), 16, 10) AS DECIMAL(20, 0))"


def _joined(texts: Iterable[str]) -> str:
    return f"CONCAT_WS('{_SEPARATOR}', {', '.join(map(_marked, texts))})"


def _marked(text: str) -> str:
    # A text starts with an equals sign, so that it differs from the mark of NULL.
    return f"COALESCE(CONCAT('=', {text}), '-')"


def _filled(template: str, name: str, column: Column, json_space: str) -> str:
    digits = 2 * ((column.size + 7) // 8)
    for mark, text in (("{hex_digits}", str(digits)), ("{json_space}", json_space), ("{c}", name)):
        template = template.replace(mark, text)
    return template


def _literal(text: str) -> str:
    """Return a string literal in the syntax of both MySQL and Spark, in which a backslash starts an escape."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
