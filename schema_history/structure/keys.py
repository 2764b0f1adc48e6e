"""Indexes: their automatic names, those of foreign keys, and the effect of dropped and changed columns."""

import re
from collections.abc import Container, Iterable, Sequence
from dataclasses import replace

from rowtide.schema_history.ddl.expressions import canonical
from rowtide.schema_history.ddl.statements import ForeignKeyDef, IndexDef
from rowtide.schema_history.model import Column, Index, KeyPart
from rowtide.schema_history.server import charsets
from rowtide.schema_history.structure.context import Context
from rowtide.schema_history.structure.type_names import BLOBS, CHARACTER_TYPES, INTEGER_BYTES, SPATIAL, TEXTS
from rowtide.schema_history.structure.types import blob_capacity

_PREFIXABLE = frozenset(("char", "varchar", "binary", "varbinary", *TEXTS, *BLOBS, "geometry", *SPATIAL))
_NAME = re.compile(r"`((?:[^`]|``)*)`")
_POINT_BYTES = 25
HASHED_SHAPE = 8


def index_of(definition: IndexDef, ctx: Context) -> Index:
    """Return the index of a definition; its name is ``""`` if the server has to choose one."""
    parts = tuple(
        KeyPart(
            p.column,
            p.length,
            None if p.expression is None else canonical(p.expression, ctx.dialect, ctx.connection_charset),
            p.descending,
            p.without_overlaps,
        )
        for p in definition.parts
    )
    name = "PRIMARY" if definition.kind == "primary" else definition.name or ""
    hashed = ctx.mariadb and definition.kind == "unique" and definition.hashed
    return Index(name, parts, definition.kind, hashed=hashed)


def index_of_foreign_key(definition: ForeignKeyDef) -> Index:
    """Return the index that a foreign key creates; another index that starts with its columns replaces it."""
    name = definition.name or definition.index_name or ""
    return Index(name, tuple(KeyPart(c) for c in definition.columns), "key", generated=True)


def named(indexes: Sequence[Index], taken: Iterable[str] = ()) -> tuple[Index, ...]:
    """Return the indexes with automatic names: the name of the first column, with a number if it is already used."""
    used = {name.lower() for name in taken} | {i.name.lower() for i in indexes if i.name}
    result = []
    for index in indexes:
        name = index.name
        if not name:
            functional = any(part.expression is not None for part in index.parts)
            name = _free_name("functional_index" if functional else index.parts[0].column, used)
            used.add(name.lower())
        result.append(replace(index, name=name))
    return tuple(result)


def _free_name(base: str, used: set[str]) -> str:
    if base.lower() not in used and base.lower() != "primary":
        return base
    number = 2
    while f"{base}_{number}".lower() in used:
        number += 1
    return f"{base}_{number}"


def without_covered(indexes: Sequence[Index]) -> list[Index]:
    """Return the indexes without those of foreign keys that are a prefix of another index."""
    ignored: set[int] = set()
    for at, index in enumerate(indexes):
        for before in range(at):
            other = indexes[before]
            if before in ignored or not (index.generated or other.generated) or not _prefix(index, other):
                continue
            if not other.generated or (index.generated and len(index.parts) < len(other.parts)):
                ignored.add(at)
            else:
                ignored.add(before)
            break
    return [index for at, index in enumerate(indexes) if at not in ignored]


def _prefix(first: Index, second: Index) -> bool:
    """Return whether one of the two, created by a foreign key, is a prefix of the other."""
    short, long = first, second
    if first.generated and second.generated:
        if len(first.parts) > len(second.parts):
            short, long = second, first
    elif second.generated:
        short, long = second, first
    if len(short.parts) > len(long.parts) or long.kind in ("fulltext", "spatial", "vector"):
        return False
    pairs = zip(short.parts, long.parts, strict=False)
    return all(a.column.lower() == b.column.lower() and b.length is None and not b.expression for a, b in pairs)


def with_columns(
    indexes: Sequence[Index],
    old: Sequence[Column],
    renamed: dict[str, str],
    new: Sequence[Column],
    dropped: Container[str],
    ctx: Context,
) -> list[Index]:
    """Return the indexes of a table after a change of its columns.

    Parts of dropped columns are removed, and an index without parts (those of a period do not count) as well; lengths
    that no longer fit are removed. A column that is dropped and added again stays in the index, with as many characters
    as the index had bytes of the old column.

    Args:
        indexes: the indexes before.
        old: the columns before.
        renamed: new names by old ones in lower case, for every column that remains.
        new: the columns after.
        dropped: names in lower case of the dropped columns; they can be in ``new`` again.
        ctx: the statement's context.
    """
    before = {c.name.lower(): c for c in old}
    after = {c.name.lower(): c for c in new}
    result = []
    for index in indexes:
        parts = []
        for part in index.parts:
            if part.expression is not None:
                parts.append(part)
                continue
            name = renamed.get(part.column.lower())
            column = after.get(name.lower()) if name is not None else None
            if name is not None and column is not None:
                was = before.get(part.column.lower())
                length = _fitting(part, was, column)
                if was is not None and column.data_type in _PREFIXABLE:
                    if part.column.lower() in dropped:
                        length = part.length or _stored(was) or None
                    elif was.data_type in ("enum", "set") and not ctx.mariadb:
                        length = _stored_label(was)
                parts.append(replace(part, column=column.name, length=length))
        if not all(part.period for part in parts):
            result.append(replace(index, parts=tuple(parts)))
    return result


def _fitting(part: KeyPart, old: Column | None, new: Column) -> int | None:
    if part.length is None or old is None or new == old:
        return part.length
    if new.data_type not in _PREFIXABLE or old.data_type not in _PREFIXABLE:
        return None
    if new.data_type in TEXTS or new.data_type in BLOBS:
        return part.length if blob_capacity(new.data_type) >= part.length else None
    if new.length is not None and new.length < part.length:
        return None
    if old.length == part.length and old.data_type not in TEXTS and old.data_type not in BLOBS:
        return None
    return part.length


_STORED = {
    **INTEGER_BYTES, "float": 4, "double": 8,
    "year": 1, "date": 3, "time": 3, "datetime": 5, "timestamp": 4,
}  # fmt: skip
_DIGIT_BYTES = (0, 1, 1, 2, 2, 3, 3, 4, 4)


def _stored(column: Column) -> int:
    """Return the bytes of a column in an index, divided by the bytes of the longest character of its character set."""
    name = column.data_type
    if name == "decimal":
        scale = column.scale or 0
        return sum(digits // 9 * 4 + _DIGIT_BYTES[digits % 9] for digits in ((column.length or 10) - scale, scale))
    if name == "bit":
        return ((column.length or 1) + 7) // 8
    if name in ("enum", "set"):
        count = len(column.labels)
        size = (1 if count < 256 else 2) if name == "enum" else (count + 7) // 8
        size = size if size < 5 else 8
        return size // charsets.max_bytes(column.charset or "binary")
    if name in _STORED:
        return _STORED[name] + (column.fsp + 1) // 2
    return column.length or 0


def _stored_label(column: Column) -> int | None:
    """Return the prefix length that MySQL gives an ENUM or SET in an index when it becomes text.

    ``None`` for all of it.
    """
    sizes = [len(label) for label in column.labels]
    shown = max(sizes, default=0) if column.data_type == "enum" else sum(sizes) + len(sizes) - 1
    size = _stored(column)
    return size if size and size != shown else None


def reprinted(index: Index, columns: Sequence[Column]) -> Index:
    """Return the index with its expressions printed again, as ALTER TABLE does: with the names of the columns."""
    if all(part.expression is None for part in index.parts):
        return index
    return replace(index, parts=tuple(_with_names(part, columns) for part in index.parts))


def _with_names(part: KeyPart, columns: Sequence[Column]) -> KeyPart:
    if part.expression is None:
        return part
    names = (column.name.replace("`", "``") for column in columns)
    known = {name.lower(): name for name in names}
    text = _NAME.sub(lambda name: f"`{known.get(name[1].lower(), name[1])}`", part.expression)
    return replace(part, expression=text)


def normalized_parts(index: Index, columns: Sequence[Column], ctx: Context) -> Index:
    """Return the index with the names of the columns, and without lengths that cover a whole column."""
    known = {c.name.lower(): c for c in columns}
    parts = []
    for part in index.parts:
        column = known.get(part.column.lower()) if part.expression is None else None
        if column is None:
            parts.append(part)
            continue
        length = part.length
        if ctx.mariadb and column.data_type in SPATIAL:
            length = _spatial_length(index, part, column)
        elif length is not None and not _is_prefix(length, column):
            length = None
        parts.append(replace(part, column=column.name, length=length))
    return replace(index, parts=tuple(parts))


def _spatial_length(index: Index, part: KeyPart, column: Column) -> int | None:
    """Return the length that MariaDB shows: 25 bytes for a POINT, and 8 for other shapes, which can only be hashed."""
    if index.kind in ("spatial", "fulltext", "vector"):
        return None
    if column.data_type == "point":
        return _POINT_BYTES
    return HASHED_SHAPE if part.length is None and index.kind != "primary" else part.length


def _is_prefix(length: int, column: Column) -> bool:
    if column.data_type in TEXTS or column.data_type in BLOBS:
        return True
    if column.data_type in ("char", "varchar", "binary", "varbinary"):
        return column.length is None or length < column.length
    return column.data_type in SPATIAL


def byte_width(column: Column) -> int:
    """Return the maximum number of bytes of a text or binary column in an index."""
    if column.data_type in CHARACTER_TYPES and column.charset is not None:
        return (column.length or 0) * charsets.max_bytes(column.charset)
    return column.length or 0
