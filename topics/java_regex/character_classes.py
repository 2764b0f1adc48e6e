r"""Java's named character classes, such as ``\p{Alpha}``, as the content of a Python character class."""

import functools
import re
import sys
import unicodedata
from collections.abc import Iterable

Ranges = tuple[tuple[int, int], ...]
"""Code points, as inclusive ranges in ascending order."""

_POSIX = {
    "Lower": "a-z",
    "Upper": "A-Z",
    "ASCII": "\\x00-\\x7f",
    "Alpha": "a-zA-Z",
    "Digit": "0-9",
    "Alnum": "a-zA-Z0-9",
    "Punct": "!-/:-@\\[-`{-~",
    "Graph": "!-~",
    "Print": " -~",
    "Blank": " \\t",
    "Cntrl": "\\x00-\\x1f\\x7f",
    "XDigit": "0-9a-fA-F",
    "Space": " \\t\\n\\x0b\\f\\r",
}
_CATEGORY = re.compile(
    r"(?:Is|gc=|general_category=)?(L|M|N|P|S|Z|C|L[ultmoC]|M[nce]|N[dlo]|P[cdseifo]|S[mcko]|Z[slp]|C[cfons])"
)


def family(name: str, *, negated: bool = False, ignore_case: bool = False) -> str | None:
    r"""Return the content of a character class for ``\p{name}``, or ``None`` if the name is not supported.

    Args:
        name: a POSIX class (``Alpha``) or a Unicode general category (``Lu``, ``IsLu``, ``gc=Lu``).
        negated: for ``\P{name}``.
        ignore_case: whether upper, lower and title case letters match each other.
    """
    if name in _POSIX:
        return class_text(complement(_ranges_of(_POSIX[name]))) if negated else _POSIX[name]
    match = _CATEGORY.fullmatch(name)
    if match is None:
        return None
    ranges = category_ranges("LC" if ignore_case and match[1] in ("Lu", "Ll", "Lt") else match[1])
    return class_text(complement(ranges) if negated else ranges)


def _ranges_of(inside: str) -> Ranges:
    member = re.compile(f"[{inside}]").fullmatch
    return _collect(code for code in range(128) if member(chr(code)))


def _collect(codes: Iterable[int]) -> Ranges:
    ranges: list[tuple[int, int]] = []
    for code in codes:
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1] = (ranges[-1][0], code)
        else:
            ranges.append((code, code))
    return tuple(ranges)


@functools.cache
def category_ranges(category: str) -> Ranges:
    """Return the code points of a Unicode category (``Lu``), a group of them (``L``), or ``LC`` (cased letters)."""
    wanted = ("Lu", "Ll", "Lt") if category == "LC" else (category,)
    return _collect(code for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code)).startswith(wanted))


def complement(ranges: Ranges) -> Ranges:
    """Return the code points that are not in the ranges."""
    rest: list[tuple[int, int]] = []
    start = 0
    for low, high in ranges:
        if low > start:
            rest.append((start, low - 1))
        start = high + 1
    if start <= sys.maxunicode:
        rest.append((start, sys.maxunicode))
    return tuple(rest)


def class_text(ranges: Ranges) -> str:
    """Return the content of a Python character class."""
    return "".join(f"\\U{low:08x}-\\U{high:08x}" for low, high in ranges)
