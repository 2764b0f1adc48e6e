"""Whether a changed column type keeps the values of existing rows, for which the binlog has no row events. Pure."""

from decimal import Context, Decimal
from typing import Literal, NamedTuple

from rowtide.schema_history.model import Column

_INTEGERS = {"tinyint": 1, "smallint": 2, "mediumint": 3, "int": 4, "bigint": 8}
_TEXTS = {"tinytext": 255, "text": 2**16 - 1, "mediumtext": 2**24 - 1, "longtext": 2**32 - 1}
_BLOBS = {"tinyblob": 255, "blob": 2**16 - 1, "mediumblob": 2**24 - 1, "longblob": 2**32 - 1}
_EXACT = Context(prec=100)
_TIMES = frozenset({"time", "datetime", "timestamp"})


def keeps_values(old: Column, new: Column) -> bool:
    """Whether every value of ``old`` is the same value in ``new``."""
    if old.column_type == new.column_type and old.charset == new.charset:
        return True
    kinds = old.data_type, new.data_type
    if kinds[0] in _INTEGERS:
        return _keeps_integers(old, new)
    if kinds == ("decimal", "decimal"):
        digits, scale = (old.length or 10) - (old.scale or 0), old.scale or 0
        fits = (new.length or 10) - (new.scale or 0) >= digits and (new.scale or 0) >= scale
        return fits and (old.unsigned or not new.unsigned)
    if kinds[0] in ("char", "varchar", *_TEXTS):
        same = new.charset in (old.charset, "utf8mb4")
        return same and new.data_type in ("varchar", *_TEXTS, kinds[0]) and _characters(new) >= _characters(old)
    if kinds == ("enum", "enum"):
        return set(old.labels) <= set(new.labels) and old.charset == new.charset
    if kinds == ("set", "set"):
        return new.labels[: len(old.labels)] == old.labels and old.charset == new.charset
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
    low: int | Decimal
    high: int | Decimal


def fitting_values(old: Column, new: Column) -> Range | None:
    """The range of the values of ``old`` that are the same in ``new``; ``None`` if there is none for these types.

    In strict mode, the server changes a type only if all values are in it.
    """
    kinds = old.data_type, new.data_type
    if kinds[0] in _INTEGERS and kinds[1] in _INTEGERS:
        return Range("values", *_range(new))
    if kinds == ("decimal", "decimal") and (new.scale or 0) >= (old.scale or 0):
        digits = (new.length or 10) - (new.scale or 0)
        largest = _EXACT.subtract(Decimal(10) ** digits, Decimal(1).scaleb(-(old.scale or 0)))
        return Range("values", Decimal(0) if new.unsigned else largest.copy_negate(), largest)
    if kinds == ("varchar", "varchar") and new.charset in (old.charset, "utf8mb4"):
        return Range("characters", 0, new.length or 0)
    if kinds == ("varbinary", "varbinary"):
        return Range("bytes", 0, new.length or 0)
    return None


def _keeps_integers(old: Column, new: Column) -> bool:
    low, high = _range(old)
    if new.data_type in _INTEGERS:
        new_low, new_high = _range(new)
        return new_low <= low and high <= new_high
    if new.data_type == "decimal":
        largest = int(10 ** ((new.length or 10) - (new.scale or 0)))
        return max(-low, high) < largest and (low >= 0 or not new.unsigned)
    return False


def _range(column: Column) -> tuple[int, int]:
    bits = 8 * _INTEGERS[column.data_type]
    return (0, 2**bits - 1) if column.unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _characters(column: Column) -> int:
    """How many characters fit, at least."""
    return column.length or 0 if column.data_type not in _TEXTS else _TEXTS[column.data_type] // 4


def _bytes(column: Column) -> int:
    return _BLOBS.get(column.data_type, column.length or 0)
