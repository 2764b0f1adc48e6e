"""Splits a statement into tokens as the servers do: quotes, escapes and comments depend on sql_mode and version.

Comments that the server executes (``/*!80023 ... */``, ``/*M!100100 ... */``) are expanded: their content is part
of the statement. The offsets of tokens are indexes into the original text.
"""

import re
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from rowtide.schema_history.errors import UnparsedStatement
from rowtide.schema_history.server.query_event import Flavor

ANSI_QUOTES = 1 << 2
REAL_AS_FLOAT = 1 << 0
EMPTY_STRING_IS_NULL = 1 << 32
ORACLE = 1 << 9
MSSQL = 1 << 10
MAXDB = 1 << 12
NO_BACKSLASH_ESCAPES = 1 << 20
STRICT_TRANS_TABLES = 1 << 21
STRICT_ALL_TABLES = 1 << 22

WORD = "word"
QUOTED = "quoted name"
STRING = "string"
NATIONAL = "national string"
HEX = "hexadecimal literal"
BITS = "bit literal"
NUMBER = "number"
VARIABLE = "variable"
OPERATOR = "operator"
END = "end"


class Token(NamedTuple):
    """A token: its kind, its value without quotes, the keyword or operator in upper case, and its offsets."""

    kind: str
    value: str
    word: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Dialect:
    """The properties of server and session that affect the syntax."""

    flavor: Flavor
    version_number: int
    sql_mode: int

    @property
    def ansi_quotes(self) -> bool:
        """Whether double quotes enclose names."""
        return bool(self.sql_mode & ANSI_QUOTES)

    @property
    def backslash_escapes(self) -> bool:
        """Whether a backslash is an escape character in strings."""
        return not self.sql_mode & NO_BACKSLASH_ESCAPES

    @property
    def strict(self) -> bool:
        """Whether invalid values are errors."""
        return bool(self.sql_mode & (STRICT_TRANS_TABLES | STRICT_ALL_TABLES))

    @property
    def maxdb(self) -> bool:
        """Whether it is MariaDB's MAXDB mode, without its Oracle mode, which takes precedence."""
        return self.flavor is Flavor.MARIADB and bool(self.sql_mode & MAXDB) and not self.oracle

    @property
    def brackets(self) -> bool:
        """Whether brackets enclose names: MariaDB's MSSQL mode."""
        return self.flavor is Flavor.MARIADB and bool(self.sql_mode & MSSQL)

    @property
    def oracle(self) -> bool:
        """Whether it is MariaDB's Oracle mode."""
        return self.flavor is Flavor.MARIADB and bool(self.sql_mode & ORACLE)

    @property
    def empty_string_is_null(self) -> bool:
        """Whether an empty string is NULL: MariaDB's EMPTY_STRING_IS_NULL mode."""
        return self.flavor is Flavor.MARIADB and bool(self.sql_mode & EMPTY_STRING_IS_NULL)

    def executes(self, version: int, only_mariadb: bool) -> bool:
        """Return whether the server executes an executable comment of that version (0 if it has none)."""
        if only_mariadb:
            return self.flavor is Flavor.MARIADB and version <= self.version_number
        if self.flavor is Flavor.MARIADB:
            return version <= self.version_number and not 50700 <= version <= 99999
        return version <= self.version_number


_PATTERN = r"""
    (?P<space>[\x00-\x20]+|--(?=[\x00-\x20]|\Z)[^\n]*|\#[^\n]*)
  | (?P<executable>/\*(?:M?!)(?:\d{5,6})?)
  | (?P<comment>/\*)
  | (?P<close>\*/)
  | (?P<hex>[xX]'[0-9A-Fa-f]*'|0x[0-9A-Fa-f]+(?!NAME))
  | (?P<bits>[bB]'[01]*'|0b[01]+(?!NAME))
  | (?P<national>[nN]'STRING')
  | (?P<number>\d+\.\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+(?!NAME)|\d+(?!NAME))
  | (?P<null>\\N)
  | (?P<word>NAME+)
  | (?P<quoted>`[^`]*(?:``[^`]*)*`)
  | (?P<string>'STRING')
  | (?P<double>"DOUBLE")
  | (?P<variable>@@?(?:`[^`]*`|'[^']*'|"[^"]*"|DOTTED*))
  | (?P<bracketed>\[[^\]]*\])
  | (?P<operator><=>|->>|->|:=|\|\||&&|<<|>>|<=|>=|<>|!=|[-+*/%^~!=<>(),.;:{}\]&|?@])
"""
_NAME = r"[^\x00-\x23\x25-\x2f\x3a-\x40\x5b-\x5e\x60\x7b-\x7f]"
"""A letter or digit of ASCII, ``_``, ``$``, or anything beyond ASCII. It is written as a negated class, because a range
beyond ASCII takes Python 2 ms to compile, each time it appears."""
_DOTTED = _NAME.replace(r"\x25-\x2f", r"\x25-\x2d\x2f")
"""The same, or a dot (2E)."""


@cache
def _tokens(*, escapes: bool) -> re.Pattern[str]:
    """Return the pattern of a token, compiled when it is first used."""
    plain, special = (r"[^Q\\]", r"(?:\\.|QQ)") if escapes else ("[^Q]", "QQ")
    quoted = f"{plain}*(?:{special}{plain}*)*"
    pattern = _PATTERN.replace("NAME", _NAME).replace("DOTTED", _DOTTED).replace("STRING", quoted.replace("Q", "'"))
    return re.compile(pattern.replace("DOUBLE", quoted.replace("Q", '"')), re.VERBOSE | re.DOTALL)


_AFTER_DOT = re.compile(_NAME + "+")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "0": "\0", "Z": "\x1a", "%": "\\%", "_": "\\_"}


def _unescape(match: re.Match[str]) -> str:
    return _ESCAPES.get(match[1], match[1])


_QUOTES_OR_ESCAPES = {quote: re.compile(rf"{quote}{quote}|\\(.)", re.DOTALL) for quote in "'\""}


def unquote(text: str, escapes: bool) -> str:
    """Return the value of a string token, whose text has quotes."""
    quote, inner = text[0], text[1:-1]
    if escapes and "\\" in inner:
        return _QUOTES_OR_ESCAPES[quote].sub(lambda m: quote if m[1] is None else _unescape(m), inner)
    return inner.replace(quote + quote, quote) if quote in inner else inner


def _end_of_comment(sql: str, start: int) -> int:
    end = sql.find("*/", start + 2)
    if end < 0:
        raise UnparsedStatement(sql, "a comment is not closed", start)
    return end + 2


def _end_of_skipped(sql: str, start: int) -> int:
    """Return the end of an executable comment that is not executed; it may contain comments."""
    at = start + 2
    while True:
        end, inner = sql.find("*/", at), sql.find("/*", at)
        if end < 0:
            raise UnparsedStatement(sql, "a comment is not closed", start)
        if not 0 <= inner < end:
            return end + 2
        at = _end_of_comment(sql, inner)


def tokenize(sql: str, dialect: Dialect) -> list[Token]:
    """Return the tokens of a statement; the last one is of kind ``END``.

    Raises:
        UnparsedStatement: a quote or comment is not closed, or a character is not valid.
    """
    escapes, ansi = dialect.backslash_escapes, dialect.ansi_quotes
    match_at = _tokens(escapes=escapes).match
    tokens: list[Token] = []
    append = tokens.append
    at, size, opened = 0, len(sql), False
    while at < size:
        match = match_at(sql, at)
        if match is None:
            raise UnparsedStatement(sql, f"unexpected {sql[at]!r}", at)
        group, text, start = match.lastgroup, match[0], at
        at = match.end()
        if group == "space":
            continue
        if group == "word":
            append(Token(WORD, text, text.upper(), start, at))
        elif group == "null":
            append(Token(WORD, "NULL", "NULL", start, at))
        elif group == "operator":
            append(Token(OPERATOR, text, text, start, at))
            if text == "." and (name := _AFTER_DOT.match(sql, at)):
                append(Token(WORD, name[0], name[0].upper(), at, name.end()))
                at = name.end()
        elif group == "quoted":
            append(Token(QUOTED, text[1:-1].replace("``", "`"), "", start, at))
        elif group == "string" or (group == "double" and not ansi):
            append(Token(STRING, unquote(text, escapes), "", start, at))
        elif group == "number":
            if text[0] == "." and tokens and tokens[-1].end == start and tokens[-1].kind in (WORD, QUOTED):
                # A name that starts with a digit, after the name of its database: `db`.1table.
                append(Token(OPERATOR, ".", ".", start, start + 1))
                if name := _AFTER_DOT.match(sql, start + 1):
                    append(Token(WORD, name[0], name[0].upper(), start + 1, name.end()))
                    at = name.end()
            else:
                append(Token(NUMBER, text, "", start, at))
        elif group == "double":
            append(Token(QUOTED, text[1:-1].replace('""', '"'), "", start, at))
        elif group == "hex":
            append(Token(HEX, text[2:] if text[0] == "0" else text[2:-1], "", start, at))
        elif group == "bits":
            append(Token(BITS, text[2:] if text[0] == "0" else text[2:-1], "", start, at))
        elif group == "national":
            append(Token(NATIONAL, unquote(text[1:], escapes), "", start, at))
        elif group == "bracketed" and dialect.brackets:
            append(Token(QUOTED, text[1:-1], "", start, at))
        elif group == "bracketed":
            append(Token(OPERATOR, text, text, start, at))
        elif group == "variable":
            append(Token(VARIABLE, text, "", start, at))
        elif group == "comment":
            at = _end_of_comment(sql, start)
        elif group == "executable":
            version = re.search(r"\d+", text)
            if dialect.executes(int(version[0]) if version else 0, "M" in text):
                opened = True
            else:
                at = _end_of_skipped(sql, start)
        elif opened:
            opened = False
        else:
            raise UnparsedStatement(sql, "a comment that was not opened is closed", start)
    append(Token(END, "", "", size, size))
    return tokens
