"""Rows of which only the key is known, and the topics of their deletion records. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.records.transforms import connect_record
from rowtide.connector.rows.column_kinds import column_kind
from rowtide.connector.snapshot.records import ReadTime, SnapshotTable
from rowtide.envelope.transforms import TransformError
from rowtide.envelope.transforms.record import described
from rowtide.schema_history.model import Column

_NULL = b"\xfb"
_POINT = bytes(4) + b"\1\1\0\0\0" + bytes(16)
"""The bytes of a point in SRID 0, as the server keeps it."""
_VECTOR_LENGTH, _FLOAT_BYTES = 2048, 4


def key_row(columns: Iterable[Column], key: Mapping[str, bytes], variant: int = 0) -> bytes:
    """Return a row as a packet of the text protocol.

    Args:
        columns: of the table, in order.
        key: the values of the key's columns as the server prints them.
        variant: selects the values of the other columns. With 0, they are NULL, or a value that means
            nothing in a ``NOT NULL`` column.
    """
    return b"".join(_packed(key.get(one.name, _value(one, variant))) for one in columns)


def misdirection(table: SnapshotTable, rows: Sequence[bytes], topics: Iterable[str]) -> str | None:
    """Return the reason why, after transforms, a deletion record may concern another row; ``None`` if it cannot.

    Args:
        table: makes the records.
        rows: variants of the same row, see :func:`key_row`.
        topics: the topics of other tables, before the transforms.

    Raises:
        ValueError: a transform cannot process a record.
    """
    settings = table.settings.transforms
    if settings is None or not settings.chain.steps or table.settings.changes:
        return None
    reader = table.reader([column.name for column in table.table.columns])
    nowhere = SourceOffset("", 0)

    def sent(row: bytes, topic: str) -> list[tuple[str, int | None, object]]:
        made = table.deletions([reader.row(row)], ReadTime(0, nowhere, lambda: 0))
        batch = table.batch(made, 0, nowhere)._replace(topic=topic)
        records = [connect_record(batch, message) for message in batch.messages]
        try:
            found = [one for record in records for one in settings.chain.records(record)]
        except TransformError as error:
            raise ValueError(described(error, show_values=settings.show_values)) from error
        return [(one.topic, one.partition, one.key) for one in found]

    own, *others = [sent(row, table.topic) for row in rows]
    if any(one != own for one in others):
        return (
            "the transforms derive the topic, partition or key of its records from columns other than those of its key"
        )
    keys = [(topic, key) for topic, _, key in own]
    for topic in topics:
        if any((routed, key) in keys for routed, _, key in sent(rows[0], topic)):
            return f"the transforms write rows of topic {topic} with the same keys into its topic"
    return None


def _value(column: Column, variant: int) -> bytes | None:
    """Return the placeholder for a column that is not in the key."""
    if column.nullable and not variant:
        return None
    size = column.length or 1
    match column_kind(column):
        case "set" if not variant:
            return b""
        case "enum" | "set":
            return column.labels[variant % len(column.labels)].encode() if column.labels else None
        case "bytes" if column.data_type == "binary":
            return bytes([variant]) * size
        case "bytes":
            return bytes([variant] * bool(variant))
        case "text":
            return b"%d" % variant if variant else b""
        case "bit":
            return (variant % (1 << size)).to_bytes((size + 7) // 8, "big")
        case "decimal":
            return f"{variant:.{column.scale or 0}f}".encode()
        case "int" | "float":
            return b"%d" % variant
        case "year":
            return b"%d" % (1970 + variant)
        case "date":
            return b"1970-01-%02d" % (1 + variant)
        case "datetime" | "timestamp":
            return b"1970-01-%02d 00:00:01" % (1 + variant)
        case "time":
            return b"00:00:%02d" % variant
        case "json":
            return b"%d" % variant if variant else b"{}"
        case "geometry":
            return _POINT
        case "vector":
            return bytes(_FLOAT_BYTES * (column.length or _VECTOR_LENGTH))
        case "uuid":
            return str(UUID(int=variant)).encode()
        case "inet":
            return b"::%d" % variant if column.data_type == "inet6" else b"0.0.0.%d" % variant
    return None


def _packed(value: bytes | None) -> bytes:
    """Return a value in a packet of the text protocol."""
    if value is None:
        return _NULL
    size = len(value)
    if size < _NULL[0]:
        return bytes([size]) + value
    return (
        b"\xfc" + size.to_bytes(2, "little") + value if size < 1 << 16 else b"\xfd" + size.to_bytes(3, "little") + value
    )
