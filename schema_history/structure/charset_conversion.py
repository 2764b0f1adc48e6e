"""The effect of CONVERT TO CHARACTER SET on a column."""

import re
from dataclasses import replace

from rowtide.schema_history.ddl.statements import DataType
from rowtide.schema_history.model import Column, DefaultKind
from rowtide.schema_history.server import charsets
from rowtide.schema_history.structure.context import Context
from rowtide.schema_history.structure.type_names import BLOBS, CHARACTER_TYPES, SPATIAL, TEXTS
from rowtide.schema_history.structure.types import blob_capacity, blob_for, column_type, labels_in, shown_bytes

_VARCHAR_BYTES = 65535
_SHORT = 26
"""Characters of the longest date, time or number without a length: a DATETIME(6)."""


_ASCII = rb"[\x00-\x7f]"
_CHARACTERS = {
    "sjis": rb"[\xa1-\xdf]|[\x81-\x9f\xe0-\xfc][\x40-\x7e\x80-\xfc]",
    "big5": rb"[\xa1-\xf9][\x40-\x7e\xa1-\xfe]",
    "gbk": rb"[\x81-\xfe][\x40-\x7e\x80-\xfe]",
    "gb2312": rb"[\xa1-\xf7][\xa1-\xfe]",
    "gb18030": rb"[\x81-\xfe][\x30-\x39][\x81-\xfe][\x30-\x39]|[\x81-\xfe][^\x30-\x39]",
    "euckr": rb"[\x81-\xfe][\x41-\x5a\x61-\x7a\x81-\xfe]",
    "ujis": rb"[\xa1-\xfe]{2}|\x8e[\xa1-\xdf]|\x8f[\xa1-\xfe]{2}",
    "utf8mb3": rb"[\xc2-\xdf][\x80-\xbf]|\xe0[\xa0-\xbf][\x80-\xbf]|[\xe1-\xef][\x80-\xbf]{2}",
    "utf8mb4": (
        rb"[\xc2-\xdf][\x80-\xbf]|\xe0[\xa0-\xbf][\x80-\xbf]|[\xe1-\xef][\x80-\xbf]{2}"
        rb"|\xf0[\x90-\xbf][\x80-\xbf]{2}|[\xf1-\xf3][\x80-\xbf]{3}|\xf4[\x80-\x8f][\x80-\xbf]{2}"
    ),
}
"""The bytes of one non-ASCII character as the servers see them; in other character sets each byte is one."""
_CHARACTERS |= {"cp932": _CHARACTERS["sjis"], "eucjpms": _CHARACTERS["ujis"]}
_ANY_PAIR = ("gbk", "big5", "euckr", "gb2312")
"""Character sets in which MySQL treats a non-ASCII byte and any byte after it as one character."""
_TRUNCATED = {
    "ujis": rb"[\xa1-\xfe\x8e]|\x8f.?",
    "gb18030": rb"[\x81-\xfe]",
    "utf8mb4": rb"[\xc2-\xdf]|[\xe0-\xef].?|[\xf0-\xff].{0,2}",
}
"""A truncated character at the end of a text, as MySQL sees it; in other character sets a non-ASCII byte."""
_TRUNCATED["eucjpms"] = _TRUNCATED["ujis"]


def _reinterpreted(label: str, old: str, new: str, mariadb: bool) -> str:
    """Return the label of a column that is converted.

    The servers keep its bytes and read them in the new character set.

    Invalid bytes become ``?``. MySQL stops at a truncated character.
    """
    if label.isascii() and charsets.is_ascii_based(old) and charsets.is_ascii_based(new):
        return label
    data = label.encode(charsets.codec(old), "surrogateescape")
    if new == "binary":
        return _decoded(data, "utf8mb3", cut=False) if mariadb else shown_bytes(data)
    if new == "utf8mb3" and not mariadb:
        return data.decode("utf8", "surrogateescape")
    if not charsets.is_ascii_based(new):
        return data.decode(charsets.codec(new), "replace").replace("\ufffd", "?" if mariadb else "")
    return _decoded(data, new, cut=not mariadb)


def _decoded(data: bytes, charset: str, *, cut: bool) -> str:
    """Decode like a server: each invalid byte becomes ``?``; with ``cut``, stop at a truncated character."""
    pattern = _CHARACTERS.get(charset)
    if pattern is None:
        return "".join(_character(data[at : at + 1], charset) for at in range(len(data)))
    if cut and charset in _ANY_PAIR:
        pattern = rb"[\x80-\xff]."
    character = re.compile(_ASCII + b"|" + pattern, re.DOTALL)
    truncated = re.compile(_TRUNCATED.get(charset, rb"[\x80-\xff]"), re.DOTALL)
    text, at = [], 0
    while at < len(data):
        match = character.match(data, at)
        if match is None and cut and truncated.fullmatch(data, at):
            break
        text.append("?" if match is None else _character(match[0], charset))
        at = at + 1 if match is None else match.end()
    return "".join(text)


def _character(data: bytes, charset: str) -> str:
    try:
        return data.decode(charsets.codec(charset))
    except UnicodeDecodeError:
        # MySQL's latin1 is Windows-1252, with control characters for undefined bytes.
        return data.decode("latin-1") if charset == "latin1" else "?"


def _default_among(labels: tuple[str, ...], column: Column) -> str | None:
    """Return the default of an ENUM or SET after a change of its labels: the number of its label stays."""
    if column.default_kind is not DefaultKind.LITERAL or column.default is None:
        return column.default
    changed = dict(zip(column.labels, labels, strict=True))
    chosen = [column.default] if column.data_type == "enum" else column.default.split(",")
    return ",".join(changed.get(label, label) for label in chosen)


def redefined_text(column: Column, length: int | None, old: Column | None, ctx: Context) -> Column:
    """Return a TEXT column that a statement both defines and converts: its size depends on the number of characters.

    Args:
        column: the column after the conversion.
        length: the number in ``TEXT(n)``.
        old: the former column, if there is one. In MySQL the size of a TEXT without a length is that of the former
            column, which can even result in a TINYTEXT.
        ctx: the statement's context.
    """
    if length is None and old is not None and not ctx.mariadb and column.data_type != "longtext":
        length = _characters(old)
    if column.data_type not in TEXTS or column.charset is None or length is None:
        return column
    new = replace(column, data_type=blob_for(length * charsets.max_bytes(column.charset), TEXTS))
    return replace(new, column_type=column_type(new, ctx.server))


def _characters(column: Column) -> int:
    """Return the maximum number of characters of a column's values."""
    name = column.data_type
    if name in TEXTS or name in BLOBS:
        return blob_capacity(name) // charsets.max_bytes(column.charset or "binary")
    if name in ("json", *SPATIAL):
        return blob_capacity("longtext")
    if name in ("enum", "set"):
        sizes = [len(label) for label in column.labels]
        return max(sizes) if name == "enum" else sum(sizes) + len(sizes) - 1
    if name == "decimal":
        return (column.length or 0) + 2
    return column.length or _SHORT


def converted(column: Column, charset: str, collation: str, ctx: Context, declared: DataType | None = None) -> Column:
    """Return a column after CONVERT TO CHARACTER SET; longer characters can require a larger type.

    Args:
        column: the column before.
        charset: the target character set.
        collation: the target collation.
        ctx: the statement's context.
        declared: the type, if the same statement defines the column: then its labels are converted, and a TEXT need not
            hold the former values.
    """
    if column.data_type not in CHARACTER_TYPES or column.charset in (None, "binary"):
        return column
    assert column.charset is not None
    name = column.data_type
    new = replace(column, charset=charset, collation=collation)
    if name in ("enum", "set") and declared is not None:
        new = replace(new, labels=labels_in(charset, declared, ctx))
    elif name in ("enum", "set"):
        labels = tuple(_reinterpreted(label, column.charset, charset, ctx.mariadb) for label in column.labels)
        new = replace(new, labels=labels, default=_default_among(labels, column))
    if charset == "binary" and name not in ("enum", "set"):
        binary = {"char": "binary", "varchar": "varbinary"}.get(name) or BLOBS[TEXTS.index(name)]
        new = replace(new, data_type=binary, charset=None, collation=None)
        if column.default_kind is DefaultKind.LITERAL and column.default is not None:
            shown = ctx.mariadb and name in TEXTS  # an expression, which is not converted
            data = column.default.encode("utf8" if shown else charsets.codec(column.charset), "surrogateescape")
            width = column.length or 0 if binary == "binary" else 0
            new = replace(new, default=data.ljust(width, b"\0").decode("latin-1"))
    elif name in TEXTS and charset != column.charset and declared is None:
        size = blob_capacity(name) // charsets.max_bytes(column.charset) * charsets.max_bytes(charset)
        larger = blob_for(size, TEXTS)
        if TEXTS.index(larger) > TEXTS.index(name):
            new = replace(new, data_type=larger)
    elif name == "varchar" and (column.length or 0) * charsets.max_bytes(charset) > _VARCHAR_BYTES:
        size = (column.length or 0) * charsets.max_bytes(charset)
        if not ctx.mariadb and declared is None and charsets.max_bytes(column.charset) > 1:
            size = column.length or 0  # MySQL counts characters if the old character set is multi-byte
        new = replace(new, data_type=blob_for(max(size, _VARCHAR_BYTES), TEXTS), length=None)
    return replace(new, column_type=column_type(new, ctx.server))
