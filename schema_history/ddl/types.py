"""Parses data types: ``INT(5) UNSIGNED``, ``NATIONAL CHARACTER VARYING(10)``, ``ENUM('a') CHARACTER SET latin1``."""

from rowtide.schema_history.ddl.cursor import Cursor, words_of
from rowtide.schema_history.ddl.lexer import BITS, HEX, NATIONAL, NUMBER, STRING, WORD, Token
from rowtide.schema_history.ddl.statements import DataType

_NUMBERS = words_of(
    "TINYINT SMALLINT MEDIUMINT MIDDLEINT INT INTEGER BIGINT INT1 INT2 INT3 INT4 INT8 "
    "FLOAT FLOAT4 FLOAT8 DOUBLE REAL DECIMAL DEC NUMERIC FIXED NUMBER"
)
_TEXTS = words_of("CHAR CHARACTER VARCHAR VARCHARACTER TINYTEXT TEXT MEDIUMTEXT LONGTEXT VARCHAR2 CLOB")
_SPATIAL = words_of(
    "GEOMETRY POINT LINESTRING POLYGON MULTIPOINT MULTILINESTRING MULTIPOLYGON GEOMETRYCOLLECTION GEOMCOLLECTION"
)
_PLAIN = words_of(
    "BINARY VARBINARY TINYBLOB BLOB MEDIUMBLOB LONGBLOB BIT BOOL BOOLEAN DATE TIME TIMESTAMP DATETIME YEAR JSON "
    "VECTOR SERIAL INET4 INET6 UUID XMLTYPE RAW"
)
_NCHAR = frozenset(("NCHAR", "NVARCHAR", "NATIONAL"))


def parse_type(c: Cursor) -> DataType:
    """Parse a data type with its length, signs and character set."""
    if c.token.kind is WORD and c.ahead() == "." and c.word in ("MARIADB_SCHEMA", "ORACLE_SCHEMA", "MAXDB_SCHEMA"):
        schema = c.word
        c.at += 2
        words = (schema, c.word) if schema != "MARIADB_SCHEMA" else (c.word,)
    else:
        words = (c.word,)
    word = words[-1]
    if c.token.kind is not WORD:
        c.fail("a data type")
    if word in ("ENUM", "SET"):
        c.at += 1
        return _with_charset(c, words, labels=_labels(c))
    if word in _NUMBERS:
        return _number(c, words)
    if word in _TEXTS or word in _NCHAR or word == "LONG":
        return _text(c, words)
    if word in _PLAIN:
        c.at += 1
        arguments = _arguments(c)
        options = []
        while word == "YEAR" and (option := c.accept_one("SIGNED", "UNSIGNED", "ZEROFILL")):
            options.append(option)
        return DataType(words, arguments, options=tuple(options))
    if word in _SPATIAL:
        c.at += 1
        if c.word == "(":  # MariaDB accepts a length and ignores it
            c.skip_parentheses()
        return DataType(words)
    return c.fail("a data type")


def _arguments(c: Cursor) -> tuple[str, ...]:
    if not c.accept("("):
        return ()
    arguments = []
    while not c.accept(")"):
        if c.token.kind is NUMBER:
            arguments.append(c.number())
        elif c.token.kind in (HEX, BITS):
            arguments.append(c.advance().value)
        elif c.accept_one("CHAR", "BYTE"):  # Oracle mode: VARCHAR2(10 CHAR)
            continue
        elif not c.accept(",") and not c.accept("-"):
            c.fail("a number")
    return tuple(arguments)


def _number(c: Cursor, words: tuple[str, ...]) -> DataType:
    word = c.word
    c.at += 1
    if word == "DOUBLE" and c.accept("PRECISION"):
        words = (*words, "PRECISION")
    arguments = _arguments(c)
    options = []
    while option := c.accept_one("SIGNED", "UNSIGNED", "ZEROFILL"):
        options.append(option)
    return DataType(words, arguments, options=tuple(options))


def _text(c: Cursor, words: tuple[str, ...]) -> DataType:
    word = c.word
    c.at += 1
    if word == "LONG":
        if c.accept("VARBINARY"):
            return DataType((*words, "VARBINARY"))
        if c.ahead() != "SET" and (second := c.accept_one("VARCHAR", "CHAR", "CHARACTER", "VARCHARACTER")):
            words = (*words, second)
            if c.accept("VARYING"):
                words = (*words, "VARYING")
    elif word == "NATIONAL":
        second = c.accept_one("CHAR", "CHARACTER", "VARCHAR", "VARCHARACTER") or c.fail("CHAR or VARCHAR")
        words = (*words, second)
        if c.accept("VARYING"):
            words = (*words, "VARYING")
    elif word in ("CHAR", "CHARACTER", "NCHAR"):
        if c.accept("VARYING"):
            words = (*words, "VARYING")
        elif word == "NCHAR" and (second := c.accept_one("VARCHAR", "VARCHARACTER")):
            words = (*words, second)
    return _with_charset(c, words, arguments=_arguments(c))


def _labels(c: Cursor) -> tuple[tuple[str | bytes, str], ...]:
    c.expect("(")
    labels: list[tuple[str | bytes, str]] = []
    value: str | bytes
    while True:
        first = c.at
        if c.token.kind in (STRING, NATIONAL):
            value = c.string()
        elif c.token.kind in (HEX, BITS):
            value = _bytes_of(c.advance())
        elif c.token.kind is WORD and c.word.startswith("_"):
            c.at += 1
            value = c.string()
        else:
            c.fail("a string")
        labels.append((value, c.text_from(first)))
        if not c.accept(","):
            break
    c.expect(")")
    return tuple(labels)


def _bytes_of(token: Token) -> bytes:
    """Return the bytes of a hexadecimal or bit literal."""
    digits = token.value
    if token.kind is HEX:
        return bytes.fromhex(digits.rjust(len(digits) + len(digits) % 2, "0"))
    return int(digits or "0", 2).to_bytes((len(digits) + 7) // 8)


def charset_value(c: Cursor) -> str:
    """Parse the name of a character set."""
    if c.accept("BINARY"):
        return "binary"
    return c.name_or_string()


def accept_charset_keyword(c: Cursor) -> bool:
    """Consume CHARSET, CHARACTER SET or CHAR SET, if it comes next."""
    return c.accept("CHARSET") or c.accept("CHARACTER", "SET") or c.accept("CHAR", "SET")


def _with_charset(
    c: Cursor,
    words: tuple[str, ...],
    arguments: tuple[str, ...] = (),
    labels: tuple[tuple[str | bytes, str], ...] = (),
) -> DataType:
    charset, binary, compressed, written = None, False, False, False
    while True:
        if c.word == "BINARY" and c.token.kind is WORD:
            c.at += 1
            binary = True
        elif accept_charset_keyword(c):
            charset, written = charset_value(c), True
        elif c.accept("ASCII"):
            charset = "latin1"
        elif c.accept("UNICODE"):
            charset = "ucs2"
        elif c.accept("BYTE"):
            charset = "binary"
        elif c.accept("COMPRESSED"):
            compressed = True
            if c.accept("="):
                c.advance()
        else:
            break
    values = tuple(value for value, _ in labels)
    raw = tuple(text for _, text in labels)
    return DataType(
        words, arguments, values, raw, binary=binary, charset=charset, compressed=compressed, written_charset=written
    )
