"""Checks whether a changed column type keeps the values of existing rows, for which there are no row events. Pure."""

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from rowtide.schema_history.model import Column
from rowtide.schema_history.structure.type_names import INTEGER_BYTES

_TEXTS = {"tinytext": 255, "text": 2**16 - 1, "mediumtext": 2**24 - 1, "longtext": 2**32 - 1}
_BLOBS = {"tinyblob": 255, "blob": 2**16 - 1, "mediumblob": 2**24 - 1, "longblob": 2**32 - 1}
_TIMES = frozenset({"time", "datetime", "timestamp"})


def keeps_values(old: Column, new: Column) -> bool:
    """Return whether every value of ``old`` is the same value in ``new``."""
    if old.column_type == new.column_type and old.charset == new.charset:
        return True
    kinds = old.data_type, new.data_type
    if kinds[0] in INTEGER_BYTES:
        return _keeps_integers(old, new)
    if kinds == ("decimal", "decimal"):
        digits, scale = (old.length or 10) - (old.scale or 0), old.scale or 0
        fits = (new.length or 10) - (new.scale or 0) >= digits and (new.scale or 0) >= scale
        return fits and (old.unsigned or not new.unsigned)
    if kinds[0] in ("char", "varchar", *_TEXTS):
        same = new.charset in (old.charset, "utf8mb4")
        most = _TEXTS.get(kinds[0], old.length or 0)  # of a character set with one byte for each
        return same and new.data_type in ("varchar", *_TEXTS, kinds[0]) and _characters(new) >= most
    if kinds == ("enum", "enum"):
        return set(old.labels) <= set(new.labels) and new.charset in (old.charset, "utf8mb4")
    if kinds == ("set", "set"):
        return new.labels[: len(old.labels)] == old.labels and new.charset in (old.charset, "utf8mb4")
    if kinds[0] in ("varbinary", *_BLOBS):
        return new.data_type in ("varbinary", *_BLOBS) and _bytes(new) >= _bytes(old)
    if kinds == ("binary", "binary"):
        return old.length == new.length
    if kinds[0] in _TIMES and kinds[0] == kinds[1]:
        return new.fsp >= old.fsp
    if kinds == ("bit", "bit"):
        return (new.length or 1) >= (old.length or 1)
    return kinds == ("float", "double") and old.scale is None and new.scale is None


class Range(NamedTuple):
    """A range, with both ends.

    Attributes:
        of: the values themselves, or the numbers of their characters or bytes.
        low: the smallest.
        high: the largest.
    """

    of: Literal["values", "characters", "bytes"]
    low: int
    high: int


class Decimals(NamedTuple):
    """The values of a DECIMAL, which may be texts.

    Attributes:
        digits: the maximum number of digits before the point.
        negative: whether they may be negative.
    """

    digits: int
    negative: bool


Fitting = Range | Decimals


def fitting_values(old: Column, new: Column) -> Fitting | None:
    """Return the range of the values of ``old`` that are the same in ``new``, if these types have one.

    In strict mode, the server changes a type only if all values are in it.
    """
    kinds = old.data_type, new.data_type
    if kinds[0] in INTEGER_BYTES and kinds[1] in INTEGER_BYTES:
        return Range("values", *_range(new))
    if kinds == ("decimal", "decimal") and (new.scale or 0) >= (old.scale or 0):
        return Decimals((new.length or 10) - (new.scale or 0), not new.unsigned)
    texts, blobs = ("varchar", *_TEXTS), ("varbinary", *_BLOBS)
    if kinds[0] in texts and kinds[1] in texts and new.charset in (old.charset, "utf8mb4"):
        return Range("characters", 0, _characters(new))
    if kinds[0] in blobs and kinds[1] in blobs:
        return Range("bytes", 0, _bytes(new))
    return None


def computed_again(pairs: Sequence[tuple[Column | None, Column]]) -> Column | None:
    """Return a generated column whose values in existing rows a statement may have changed; ``None`` if there is none.

    Args:
        pairs: each column before and after the statement; ``None`` before it for a new column.
    """
    kept = [(old, new) for old, new in pairs if old is not None]
    changed = [
        new.name.lower().replace("`", "``")
        for old, new in kept
        if (old.column_type, old.charset, old.collation) != (new.column_type, new.charset, new.collation)
    ]
    for old, new in kept:
        if new.generation is not None:
            expression = new.generation.expression
            same = old.generation is not None and old.generation.expression == expression
            if not same or any(_names(expression.lower(), one) for one in changed):
                return new
    return None


def _names(expression: str, column: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(column)}(?!\w)", expression) is not None


def _keeps_integers(old: Column, new: Column) -> bool:
    low, high = _range(old)
    if new.data_type in INTEGER_BYTES:
        new_low, new_high = _range(new)
        return new_low <= low and high <= new_high
    if new.data_type == "decimal":
        largest = int(10 ** ((new.length or 10) - (new.scale or 0)))
        return max(-low, high) < largest and (low >= 0 or not new.unsigned)
    return False


def _range(column: Column) -> tuple[int, int]:
    bits = 8 * INTEGER_BYTES[column.data_type]
    return (0, 2**bits - 1) if column.unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _characters(column: Column) -> int:
    """Return the minimum number of characters that fit."""
    return column.length or 0 if column.data_type not in _TEXTS else _TEXTS[column.data_type] // 4


def _bytes(column: Column) -> int:
    return _BLOBS.get(column.data_type, column.length or 0)
