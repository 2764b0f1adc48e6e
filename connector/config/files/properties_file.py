r"""Java's ``.properties`` format, as ``java.util.Properties.load`` reads it; pure.

Comments start with ``#`` or ``!``; ``=``, ``:`` or blanks separate key and value; a backslash continues a line; escapes
are ``\t \n \r \f \uXXXX``, and a backslash before any other character stands for that character.
"""

import re
from collections.abc import Iterator

_BLANK = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_UNICODE = re.compile(r"[0-9a-fA-F]{4}")


class PropertiesSyntaxError(ValueError):
    """A malformed escape; the message names the line."""


def parse_properties(text: str) -> list[tuple[str, str]]:
    r"""Return all pairs of key and value, in order. For a repeated key, the last pair is used.

    Raises:
        PropertiesSyntaxError: ``\u`` is not followed by four hexadecimal digits.
    """
    return [_key_and_value(line, number) for number, line in logical_lines(text)]


def logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield logical lines (continuations joined, no comments or blank lines) with the numbers of their first lines."""
    joined, first = "", 0
    continued = False
    for number, natural in enumerate(re.split(r"\r\n|\r|\n", text), start=1):
        line = natural.lstrip(_BLANK)
        if not joined:
            # This also applies after a line with only a backslash: Java then still looks for the start of a logical
            # line.
            first = number
            if line.startswith(("#", "!")) or (not line and not continued):
                continued = False
                continue
        backslashes = len(line) - len(line.rstrip("\\"))
        continued = backslashes % 2 == 1
        joined += line[:-1] if continued else line
        if not continued:
            if joined:
                yield first, joined
            joined = ""
    if joined:
        yield first, joined


def _key_and_value(line: str, number: int) -> tuple[str, str]:
    at = 0
    while at < len(line) and line[at] not in "=:" + _BLANK:
        at += 2 if line[at] == "\\" else 1
    key, rest = line[:at], line[at:].lstrip(_BLANK)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(_BLANK)
    return _unescaped(key, number), _unescaped(rest, number)


def _unescaped(text: str, number: int) -> str:
    out: list[str] = []
    at = 0
    while at < len(text):
        char = text[at]
        at += 1
        if char == "\\" and at < len(text):
            char = text[at]
            at += 1
            if char == "u":
                digits = _UNICODE.match(text, at)
                if digits is None:
                    raise PropertiesSyntaxError(f"line {number}: malformed \\uXXXX escape")
                char = chr(int(digits[0], 16))
                at += 4
            else:
                char = _ESCAPES.get(char, char)
        out.append(char)
    # Characters beyond the first plane are written as two escapes, a surrogate pair.
    return "".join(out).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
