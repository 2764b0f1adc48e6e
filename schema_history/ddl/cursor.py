"""A position in a list of tokens, and the basic operations of the parser."""

import re
from typing import NoReturn

from rowtide.schema_history.ddl.lexer import (
    END,
    NATIONAL,
    NUMBER,
    QUOTED,
    STRING,
    WORD,
    Dialect,
    Token,
    tokenize,
)
from rowtide.schema_history.ddl.statements import Expression, TableName
from rowtide.schema_history.errors import UnparsedStatement

_OPEN = {"(": ")", "{": "}"}
_MOST_DIGITS = 20
"""Digits of a length, scale or the like: those of the largest 64-bit number. The servers accept far less."""
_OUTSIDE = re.compile("[\ud800-\udfff\U00010000-\U0010ffff]")


def words_of(text: str) -> frozenset[str]:
    """Return the words of a string, separated by blanks."""
    return frozenset(text.split())


class Cursor:
    """Reads tokens in order. Words are compared in upper case; quoted names are never keywords."""

    def __init__(self, sql: str, dialect: Dialect) -> None:
        self.sql = sql
        self.dialect = dialect
        self.tokens = tokenize(sql, dialect)
        self.at = 0

    @property
    def token(self) -> Token:
        """The next token."""
        return self.tokens[self.at]

    @property
    def word(self) -> str:
        """The next token's keyword or operator, ``""`` if it is neither."""
        return self.tokens[self.at].word

    def ahead(self, steps: int = 1) -> str:
        """Return the keyword or operator ``steps`` tokens after the next one."""
        at = self.at + steps
        return self.tokens[at].word if at < len(self.tokens) else ""

    def fail(self, expected: str) -> NoReturn:
        """Raise an error with the position of the next token."""
        raise UnparsedStatement(self.sql, f"expected {expected}", self.token.start)

    def advance(self) -> Token:
        """Consume and return the next token."""
        token = self.tokens[self.at]
        if token.kind is END:
            self.fail("more")
        self.at += 1
        return token

    def accept(self, *words: str) -> bool:
        """Consume these words if all of them come next in this order, and return whether they do."""
        tokens, at = self.tokens, self.at
        for n, word in enumerate(words):
            if tokens[at + n].word != word:
                return False
        self.at = at + len(words)
        return True

    def accept_one(self, *words: str) -> str:
        """Consume one of these words if it comes next, and return it, or ``""``."""
        word = self.word
        if word and word in words:
            self.at += 1
            return word
        return ""

    def expect(self, *words: str) -> None:
        """Consume these words.

        Raises:
            UnparsedStatement: something else comes next.
        """
        for word in words:
            if self.tokens[self.at].word != word:
                self.fail(word)
            self.at += 1

    def at_end(self) -> bool:
        """Return whether only semicolons remain."""
        while self.word == ";":
            self.at += 1
        return self.token.kind is END

    def is_name(self) -> bool:
        """Return whether a name can come next: a word or a quoted name."""
        return self.token.kind in (WORD, QUOTED)

    def name(self, what: str = "a name") -> str:
        """Parse a name."""
        token = self.tokens[self.at]
        if token.kind is not WORD and token.kind is not QUOTED:
            self.fail(what)
        self.at += 1
        value = token.value
        # The servers store names in three-byte UTF-8; bytes that are not characters are surrogates here.
        return value if value.isascii() else _OUTSIDE.sub("?", value)

    def table_name(self) -> TableName:
        """Parse the name of a table with or without its database."""
        if self.accept("."):
            return TableName(None, self.name("a table name"))
        first = self.name("a table name")
        if self.accept("."):
            return TableName(first, self.name("a table name"))
        return TableName(None, first)

    def column_name(self) -> str:
        """Parse the name of a column, possibly with its table and database."""
        self.accept(".")
        name = self.name("a column name")
        while self.accept("."):
            name = self.name("a column name")
        return name

    def number(self) -> str:
        """Parse an unsigned number, such as the length of a type."""
        if self.token.kind is not NUMBER:
            self.fail("a number")
        digits = self.token.value.lstrip("0") or "0"
        if len(digits) > _MOST_DIGITS:
            self.fail(f"a number of at most {_MOST_DIGITS} digits")
        self.at += 1
        return digits

    def string(self) -> str:
        """Parse a string; adjacent strings are one."""
        if self.token.kind not in (STRING, NATIONAL):
            self.fail("a string")
        text = self.advance().value
        while self.token.kind is STRING:
            text += self.advance().value
        return text

    def name_or_string(self) -> str:
        """Parse a name in any kind of quotes."""
        return self.string() if self.token.kind in (STRING, NATIONAL) else self.name()

    def text_from(self, first: int) -> str:
        """Return the text of the statement from token ``first`` to the last consumed one."""
        return self.sql[self.tokens[first].start : self.tokens[self.at - 1].end] if self.at > first else ""

    def skip_parentheses(self) -> None:
        """Skip a group in parentheses."""
        start = self.token
        closing = [_OPEN[self.word]]
        self.at += 1
        while closing:
            token = self.tokens[self.at]
            if token.kind is END:
                raise UnparsedStatement(self.sql, f"{start.value} is not closed", start.start)
            if token.word in _OPEN:
                closing.append(_OPEN[token.word])
            elif token.word == closing[-1]:
                closing.pop()
            self.at += 1

    def parenthesized(self) -> Expression:
        """Parse an expression in parentheses."""
        if self.word != "(":
            self.fail("(")
        first = self.at
        self.skip_parentheses()
        inner = self.tokens[first + 1 : self.at - 1]
        text = self.sql[inner[0].start : inner[-1].end] if inner else ""
        return Expression(text, tuple(inner))

    def skip_until(self, *words: str) -> None:
        """Skip to one of these words outside parentheses, or to the end."""
        while self.token.kind is not END and self.word not in words:
            if self.word in ("(", "{"):
                self.skip_parentheses()
            else:
                self.at += 1
