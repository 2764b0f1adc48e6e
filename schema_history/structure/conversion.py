"""CONVERT TO CHARACTER SET: what it makes of a column."""

from dataclasses import replace

from rowtide.schema_history.ddl.statements import DataType
from rowtide.schema_history.model import Column, DefaultKind
from rowtide.schema_history.server import charsets
from rowtide.schema_history.structure.context import Context
from rowtide.schema_history.structure.types import (
    BLOBS,
    CHARACTER_TYPES,
    SPATIAL,
    TEXTS,
    blob_capacity,
    blob_for,
    column_type,
    labels_in,
)

_VARCHAR_BYTES = 65535
_SHORT = 26
"""At most so many characters have dates, times and numbers without a length: a DATETIME(6)."""


def _reread(label: str, old: str, new: str, mariadb: bool) -> str:
    """Labels of a column that is there are not converted: their bytes are read in the new character set."""
    if label.isascii() and charsets.is_ascii_based(old) and charsets.is_ascii_based(new):
        return label
    data = label.encode(charsets.codec(old), "surrogateescape")
    if new == "binary":
        return data.decode("utf8", "replace").replace("\ufffd", "?")
    text = data.decode(charsets.codec(new), "surrogateescape" if new.startswith("utf8") else "replace")
    return text.replace("\ufffd", "?" if mariadb else "")


def redefined_text(column: Column, length: int | None, old: Column | None, ctx: Context) -> Column:
    """A TEXT column that a statement defines and converts: as large as the characters that it counts need.

    Args:
        column: the column after the conversion.
        length: the number in ``TEXT(n)``.
        old: the column before, if there was one. MySQL makes a TEXT without a length as large as what it was before
            needs, even a TINYTEXT of it.
        ctx: the statement's context.
    """
    if length is None and old is not None and not ctx.mariadb and column.data_type != "longtext":
        length = _characters(old)
    if column.data_type not in TEXTS or column.charset is None or length is None:
        return column
    new = replace(column, data_type=blob_for(length * charsets.max_bytes(column.charset), TEXTS))
    return replace(new, column_type=column_type(new, ctx.server))


def _characters(column: Column) -> int:
    """How many characters a column shows at most."""
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


def converted(column: Column, charset: str, collation: str, ctx: Context, written: DataType | None = None) -> Column:
    """A column after CONVERT TO CHARACTER SET; longer characters can make a type larger.

    Args:
        column: the column before.
        charset: what it is converted to.
        collation: the same.
        ctx: the statement's context.
        written: the type if the same statement defines the column: then a TEXT need not hold what was there, and labels
            are converted.
    """
    if column.data_type not in CHARACTER_TYPES or column.charset in (None, "binary"):
        return column
    assert column.charset is not None
    name = column.data_type
    new = replace(column, charset=charset, collation=collation)
    if name in ("enum", "set"):
        labels = tuple(_reread(label, column.charset, charset, ctx.mariadb) for label in column.labels)
        new = replace(new, labels=labels_in(charset, written, ctx) if written is not None else labels)
    if charset == "binary" and name not in ("enum", "set"):
        binary = {"char": "binary", "varchar": "varbinary"}.get(name) or BLOBS[TEXTS.index(name)]
        new = replace(new, data_type=binary, charset=None, collation=None)
        if column.default_kind is DefaultKind.LITERAL and column.default is not None:
            shown = ctx.mariadb and name in TEXTS  # an expression, which stays as it is
            data = column.default.encode("utf8" if shown else charsets.codec(column.charset), "surrogateescape")
            width = column.length or 0 if binary == "binary" else 0
            new = replace(new, default=data.ljust(width, b"\0").decode("latin-1"))
    elif name in TEXTS and charset != column.charset and written is None:
        size = blob_capacity(name) // charsets.max_bytes(column.charset) * charsets.max_bytes(charset)
        larger = blob_for(size, TEXTS)
        if TEXTS.index(larger) > TEXTS.index(name):
            new = replace(new, data_type=larger)
    elif name == "varchar" and (column.length or 0) * charsets.max_bytes(charset) > _VARCHAR_BYTES:
        size = (column.length or 0) * charsets.max_bytes(charset)
        if not ctx.mariadb and written is None and charsets.max_bytes(column.charset) > 1:
            size = column.length or 0  # MySQL counts characters if they had more than one byte before
        new = replace(new, data_type=blob_for(max(size, _VARCHAR_BYTES), TEXTS), length=None)
    return replace(new, column_type=column_type(new, ctx.server))
