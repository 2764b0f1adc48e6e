"""Characters of names and variables without quotes."""

from __future__ import annotations

import string

from rowtide.schema_history.ddl.lexer import VARIABLE, WORD, Dialect, tokenize
from rowtide.schema_history.errors import UnparsedStatement
from rowtide.schema_history.server.query_event import Flavor

_DIALECT = Dialect(Flavor.MYSQL, 80400, 0)
_IN_NAMES = {*string.ascii_letters, *string.digits, "_", "$"}
_BEYOND_ASCII = "\x80\xff\u0100\ud7ff\ud800\udfff\ue000\uffff\U00010000\U0010ffff"


def kinds(sql: str) -> list[tuple[str, str]]:
    """The kinds and values of the tokens, without the last; none if a character is not valid."""
    try:
        return [(token.kind, token.value) for token in tokenize(sql, _DIALECT)[:-1]]
    except UnparsedStatement:
        return []


def test_names_have_letters_digits_underscore_dollar_and_all_beyond_ascii() -> None:
    ascii_characters = map(chr, range(0x80))
    assert {one for one in ascii_characters if kinds(f"a{one}b") == [(WORD, f"a{one}b")]} == _IN_NAMES
    assert all(kinds(f"a{one}b") == [(WORD, f"a{one}b")] for one in _BEYOND_ASCII)


def test_variables_may_have_dots_too() -> None:
    ascii_characters = map(chr, range(0x80))
    variables = {one for one in ascii_characters if kinds(f"@a{one}b") == [(VARIABLE, f"@a{one}b")]}
    assert variables == {*_IN_NAMES, "."}
    assert all(kinds(f"@a{one}b") == [(VARIABLE, f"@a{one}b")] for one in _BEYOND_ASCII)


def test_a_name_after_a_dot_may_begin_with_a_digit() -> None:
    assert [value for _, value in kinds("`db`.1é$")] == ["db", ".", "1é$"]
