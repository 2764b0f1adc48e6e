"""Compares a TABLE_MAP with the known structure of its table.

Every TABLE_MAP has the types with their sizes and nullability. It has signedness and character sets with
``binlog_row_metadata=MINIMAL`` too, names, labels and the primary key only with ``FULL``. Everything that is there is
compared.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from rowtide.connector.protocol import charset
from rowtide.connector.protocol.events.table_structure import BinlogType, MappedColumn, TableStructure
from rowtide.schema_history.model import Column, Extra, Table
from rowtide.schema_history.server.charsets import charset_name, max_bytes
from rowtide.schema_history.structure.type_names import BINARY_TYPES, SPATIAL, TEXTS

Layout = tuple[int, int]
"""A binlog type and its metadata, as in ``MappedColumn``."""

_INTEGERS = {
    "tinyint": BinlogType.TINY,
    "smallint": BinlogType.SHORT,
    "mediumint": BinlogType.INT24,
    "int": BinlogType.LONG,
    "bigint": BinlogType.LONGLONG,
}
_SIGNED = frozenset({*_INTEGERS, "decimal", "float", "double"})
_FIXED: dict[str, frozenset[Layout]] = {
    **{name: frozenset({(int(code), 0)}) for name, code in _INTEGERS.items()},
    "float": frozenset({(BinlogType.FLOAT, 4)}),
    "double": frozenset({(BinlogType.DOUBLE, 8)}),
    "year": frozenset({(BinlogType.YEAR, 0)}),
    "date": frozenset({(BinlogType.DATE, 0), (BinlogType.NEWDATE, 0)}),
    "json": frozenset({(BinlogType.JSON, 4)}),
    "uuid": frozenset({(BinlogType.STRING, 16)}),
    "inet6": frozenset({(BinlogType.STRING, 16)}),
    "inet4": frozenset({(BinlogType.STRING, 4)}),
}
_TEMPORAL = {
    "time": (BinlogType.TIME2, BinlogType.TIME),
    "datetime": (BinlogType.DATETIME2, BinlogType.DATETIME),
    "timestamp": (BinlogType.TIMESTAMP2, BinlogType.TIMESTAMP),
}
"""The current type, and that of tables from before MySQL 5.6.4 (or ``mysql56_temporal_format=OFF``)."""
_LENGTH_BYTES = {"tiny": 1, "": 2, "medium": 3, "long": 4}
_BLOB = re.compile(r"(tiny|medium|long|)(?:blob|text)")
_NUMBERS = re.compile(r"\((\d+)(?:,(\d+))?\)")
_LENGTHS = frozenset({"char", "varchar", *TEXTS, *BINARY_TYPES} - {"binary"})
"""Types whose values do not depend on their maximum length. (BINARY values are padded to it.)"""
_EXACT_FORMS = frozenset({*_INTEGERS, "date", "time", "datetime", "timestamp", "year"})
"""Types whose layout follows from Debezium's form alone, which keeps types such as ``TEXT(70000)`` as written."""


@dataclass(frozen=True, slots=True)
class Contradiction:
    """One difference between a TABLE_MAP and the known structure.

    Attributes:
        text: the difference, for messages.
        harmless: whether all values are still decoded correctly and fit the record's schema.
    """

    text: str
    harmless: bool = False

    def __str__(self) -> str:
        return self.text


def contradictions(structure: TableStructure, table: Table) -> list[Contradiction]:
    """Return the differences between a TABLE_MAP and the structure; none if they agree."""
    mapped, known = structure.columns, table.row_columns
    have = ", ".join(column.name for column in known)
    if structure.full:
        names = [column.name or "" for column in mapped]
        if [name.lower() for name in names] != [column.name.lower() for column in known]:
            return [Contradiction(f"its columns are {', '.join(names)}, not {have}")]
    elif len(mapped) != len(known):
        return [Contradiction(f"it has {len(mapped)} columns, not {len(known)} ({have})")]
    found = []
    for place, (event, column) in enumerate(zip(mapped, known, strict=True)):
        differences = _differences(event, column, table, hidden=place >= len(table.columns))
        found += [Contradiction(f"column {column.name} {text}", harmless) for text, harmless in differences]
    return found + [Contradiction(text) for text in _key_differences(structure, table)]


def fits(event: MappedColumn, column: Column, table: Table) -> bool:
    """Return whether a column of a TABLE_MAP does not contradict the column of a table."""
    return not any(_differences(event, column, table, hidden=False))


def _differences(event: MappedColumn, column: Column, table: Table, *, hidden: bool) -> Iterator[tuple[str, bool]]:
    layouts = expected_layouts(column) if table.complete or column.data_type in _EXACT_FORMS else None
    if layouts is not None and (event.type, event.metadata) not in layouts:
        harmless = _decodes_correctly(event, column, layouts)
        yield f"has the type {layout_text(event.type, event.metadata)}, not that of a {column.column_type}", harmless
        if not harmless:
            return
    if event.unsigned is not None and column.data_type in _SIGNED and event.unsigned != column.unsigned:
        yield "is unsigned" if event.unsigned else "is not unsigned", False
    if table.complete and not hidden:
        if event.nullable != column.nullable:
            yield "may be NULL" if event.nullable else "is NOT NULL", not event.nullable
        mapped, known = _mapped_charset(event), _known_charset(column)
        if mapped is not None and known is not None and mapped != known:
            yield f"is in character set {mapped}, not {known}", False
    if event.values is not None:
        yield from ((text, False) for text in _label_differences(event, event.values, column))


def _decodes_correctly(event: MappedColumn, column: Column, layouts: frozenset[Layout]) -> bool:
    """Return whether only the maximum length differs: no sign of a different character set, no padded values.

    Or FLOAT instead of DOUBLE: a schema history does not show which of them REAL was in its session.
    """
    if column.data_type == "double" and event.type == BinlogType.FLOAT:
        return True
    texts = column.charset is None or event.collation is not None
    return texts and column.data_type in _LENGTHS and any(code == event.type for code, _ in layouts)


def _mapped_charset(event: MappedColumn) -> str | None:
    return None if event.collation is None else charset.charset_of_collation(event.collation)


def _known_charset(column: Column) -> str | None:
    if column.charset is not None:
        return charset_name(column.charset)
    return "binary" if column.data_type in BINARY_TYPES else None


def _label_differences(event: MappedColumn, values: tuple[bytes, ...], column: Column) -> Iterator[str]:
    mapped = labels(event, values)
    if mapped != column.labels:
        yield f"has the labels {', '.join(map(repr, mapped))}, not {', '.join(map(repr, column.labels))}"


def labels(event: MappedColumn, values: tuple[bytes, ...]) -> tuple[str, ...]:
    """Return the labels of an ENUM or SET as text."""
    if event.collation in {None, charset.BINARY}:
        return tuple(label.decode("utf-8", "replace") for label in values)
    decode = charset.decoder(event.collation)
    return tuple(decode(label) for label in values)


def _key_differences(structure: TableStructure, table: Table) -> Iterator[str]:
    """Yield the difference of the primary keys.

    For a table without one, a TABLE_MAP may have its first unique key of NOT NULL columns instead. MariaDB adds the
    ROW END column to the keys of system-versioned tables.
    """
    if not structure.full or not table.complete:
        return
    columns = table.row_columns
    ends = {column.name.lower() for column in columns if column.row is Extra.ROW_END}
    names = [column.name.lower() for column in columns]
    mapped = tuple(names[index] for index, _ in structure.primary_key or () if names[index] not in ends)
    known = tuple(name.lower() for name in table.primary_key if name.lower() not in ends)
    unique = [
        tuple(part.column.lower() for part in index.parts if part.column.lower() not in ends)
        for index in table.indexes
        if index.unique
    ]
    if mapped != known and (known or mapped not in unique):
        yield f"its primary key is ({', '.join(mapped)}), not ({', '.join(known)})"


def expected_layouts(column: Column) -> frozenset[Layout] | None:
    """Return the types and metadata that a column may have in a TABLE_MAP; ``None`` if unknown."""
    name = column.data_type
    if name in _FIXED:
        return _FIXED[name]
    if name in _TEMPORAL:
        now, before = _TEMPORAL[name]
        return frozenset({(now, column.fsp), (before, 0)})
    if name in SPATIAL:
        return frozenset({(BinlogType.GEOMETRY, 4)})
    if blob := _BLOB.fullmatch(name):
        code = BinlogType.MARIADB_BLOB_COMPRESSED if column.compressed else BinlogType.BLOB
        return frozenset({(code, _LENGTH_BYTES[blob[1]])})
    if name in {"enum", "set"}:
        return frozenset({_labelled(name, len(column.labels))})
    numbers = _NUMBERS.search(column.column_type)
    return _sized(column, int(numbers[1]), int(numbers[2] or 0)) if numbers else None


def _labelled(name: str, count: int) -> Layout:
    if name == "enum":
        return BinlogType.ENUM, 1 if count < 256 else 2
    size = (count + 7) // 8
    return BinlogType.SET, 8 if size > 4 else size


def _sized(column: Column, size: int, scale: int) -> frozenset[Layout] | None:
    """Return the layouts of types with a size in parentheses."""
    name = column.data_type
    if name == "decimal":
        return frozenset({(BinlogType.NEWDECIMAL, size << 8 | scale)})
    if name == "bit":
        return frozenset({(BinlogType.BIT, size)})
    if name == "vector":
        return frozenset({(BinlogType.VECTOR, 4), (BinlogType.VARCHAR, 4 * size)})
    octets = size * (max_bytes(charset_name(column.charset)) if column.charset else 1)
    if name in {"char", "binary"}:
        return frozenset({(BinlogType.STRING, octets)})
    if name in {"varchar", "varbinary"}:
        if column.compressed:
            return frozenset({(BinlogType.MARIADB_VARCHAR_COMPRESSED, octets + 1)})
        return frozenset({(BinlogType.VARCHAR, octets), (BinlogType.VAR_STRING, octets)})
    return None


def layout_text(code: int, metadata: int) -> str:
    """Return a binlog type for messages: ``LONG``, ``VARCHAR(80)``."""
    name = BinlogType(code).name
    if code == BinlogType.NEWDECIMAL:
        return f"{name}({metadata >> 8},{metadata & 255})"
    if not metadata or code in {BinlogType.FLOAT, BinlogType.DOUBLE}:
        return name
    return f"{name}({metadata})"


def structure_text(structure: TableStructure) -> str:
    """Return the columns of a TABLE_MAP, for messages."""
    columns = ", ".join(_column_text(column) for column in structure.columns)
    return f"({columns})"


def _column_text(column: MappedColumn) -> str:
    words = [column.name] if column.name is not None else []
    words.append(layout_text(column.type, column.metadata))
    if column.unsigned:
        words.append("UNSIGNED")
    if not column.nullable:
        words.append("NOT NULL")
    return " ".join(words)


def table_text(table: Table) -> str:
    """Return the columns of a structure, for messages."""
    columns = (f"{c.name} {c.column_type}{'' if c.nullable else ' NOT NULL'}" for c in table.row_columns)
    return f"({', '.join(columns)})"
