"""Masking, hashing and truncating of column values, and their parameters in schemas.

The rules are Debezium's (``ColumnMappers``, ``MaskStrings``, ``TruncateColumn``). Masks and hashes apply to text types
only, but mark the schema of every selected column; truncation applies to text, and to bytes except BIT. A hash is a
salted digest in lower-case hexadecimal, truncated to the column's length. Version 2 digests the UTF-8 of the value,
version 1 the output of Java's ``ObjectOutputStream``, so that older hashes still match.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from rowtide.topics.column_rules import ColumnRule, Hash, Mask, Truncate

# Numbers of java.sql.Types: CHAR, VARCHAR, LONGVARCHAR, CLOB, NCHAR, NVARCHAR, LONGNVARCHAR, NCLOB, DATALINK.
_TEXT_TYPES = frozenset({1, 12, -1, 2005, -15, -9, -16, 2011, 70})
_BIT = -7
_MD5_DIGITS = 32


class MaskedColumn(Protocol):
    """The properties of a column that a rule depends on."""

    @property
    def jdbc_type(self) -> int: ...
    @property
    def length(self) -> int | None: ...


@dataclass(frozen=True, slots=True)
class ColumnMapper:
    """The effect of a rule on one column.

    Attributes:
        convert: converts a Connect value, which may be ``None``; ``None`` if values are not changed.
        parameters: parameters to add to the column's schema.
    """

    convert: Callable[[Any], Any] | None
    parameters: tuple[tuple[str, str], ...] = ()


def column_mapper(rule: ColumnRule, column: MaskedColumn) -> ColumnMapper:
    """Return the effect of a rule on a column. As in Debezium, the default in the schema is not changed."""
    if isinstance(rule, Truncate):
        if column.length is not None and 0 <= column.length <= rule.length:
            return ColumnMapper(None)
        convert = None if column.jdbc_type == _BIT else _truncating(rule.length)  # Debezium's BIT is not a byte array
        return ColumnMapper(convert, (("truncateLength", str(rule.length)),))
    parameters = (("masked", "true"),)
    if column.jdbc_type not in _TEXT_TYPES:
        return ColumnMapper(None, parameters)
    if isinstance(rule, Mask):
        return ColumnMapper(_masking(rule.length), parameters)
    return ColumnMapper(_hashing(rule, column.length or 0), parameters)


def keeps_apart(convert: Callable[[Any], Any]) -> bool:
    """Return whether different texts stay different: with a hash they do, unless the column is too short for it."""
    one, other = str(convert("a")), str(convert("b"))
    return one != other and len(one) >= _MD5_DIGITS


def truncate_text(text: str, length: int) -> str:
    """Return the first ``length`` UTF-16 units of a text, one less if the last character would be split.

    Java counts in these units, and so do the column widths of consumers. Debezium keeps the first half of a split
    character, which is not valid text.
    """
    if len(text) * 2 <= length:
        return text
    if text.isascii():
        return text[:length]
    return text.encode("utf-16-le", "surrogatepass")[: 2 * length].decode("utf-16-le", "ignore")


def java_serialized(text: str) -> bytes:
    """Return a string as ``ObjectOutputStream.writeObject`` writes it to a new stream.

    The format is the stream header (magic, version 5), ``TC_STRING`` or ``TC_LONGSTRING``, the length, and modified
    UTF-8: each UTF-16 unit is encoded separately, and NUL in two bytes. Source: Java Object Serialization
    Specification, section 6.
    """
    units = text.encode("utf-16-be", "surrogatepass")
    if text.isascii() and "\0" not in text:
        encoded = text.encode()
    else:
        encoded = b"".join(_modified_utf8(high << 8 | low) for high, low in zip(units[::2], units[1::2], strict=True))
    if len(encoded) > 0xFFFF:
        return b"\xac\xed\x00\x05\x7c" + len(encoded).to_bytes(8, "big") + encoded
    return b"\xac\xed\x00\x05\x74" + len(encoded).to_bytes(2, "big") + encoded


def _modified_utf8(unit: int) -> bytes:
    return b"\xc0\x80" if unit == 0 else chr(unit).encode("utf-8", "surrogatepass")


def _truncating(length: int) -> Callable[[Any], Any]:
    def truncated(value: Any) -> Any:
        if isinstance(value, str):
            return truncate_text(value, length)
        if isinstance(value, bytes):
            return value[:length]
        return value

    return truncated


def _masking(length: int) -> Callable[[Any], Any]:
    mask = "*" * length
    return lambda _value: mask


def _hashing(rule: Hash, column_length: int) -> Callable[[Any], Any]:
    salted = hashlib.new(rule.hashlib_name, rule.salt.encode("utf-8", "replace"), usedforsecurity=False)
    serialize = java_serialized if rule.version == 1 else _utf8

    def hashed(value: Any) -> Any:
        if not isinstance(value, str):  # null, or bytes of a text type with the charset binary
            return None
        digest = salted.copy()
        digest.update(serialize(value))
        text = digest.hexdigest()
        return text[:column_length] if column_length > 0 else text

    return hashed


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "replace")  # Java writes a lone surrogate as a question mark
