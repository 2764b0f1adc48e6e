"""Metadata columns: fields of a record other than its row, which a table has on request (``--metadata``).

A field has the name that Debezium's ``add.fields`` gives it, and its column the name that Debezium derives from it:
``source.ts_ms`` is ``__source_ts_ms``. Nothing here needs Spark.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from rowtide.spark_consumers.columns.spark_types import quote

FILE_NUMBER = "try_cast(regexp_extract({source}.file, '([0-9]+)$', 1) AS bigint)"
"""SQL of the number of a binlog file, from the source block. A snapshot of a server without a binlog has no file."""


@dataclass(frozen=True, slots=True)
class MetadataField:
    """A field of records.

    Attributes:
        name: such as ``source.pos``.
        type: Spark's type of its column.
        wire: the fields of the envelope ``e`` that it is made of, and the types that ``from_json`` reads.
        sql: of its value.
        given: the name of its column; empty for the one that follows from its own.
    """

    name: str
    type: str
    wire: tuple[tuple[str, str], ...]
    sql: str
    given: str = ""

    @property
    def column(self) -> str:
        """The name of its column."""
        return self.given or "__" + self.name.replace(".", "_")


def _plain(name: str, kind: str) -> MetadataField:
    return MetadataField(name, kind, ((name, kind),), ".".join(("e", *map(quote, name.split(".")))))


_FIELDS = {
    field.name: field
    for field in (
        MetadataField("op", "string", (), "op"),
        _plain("ts_ms", "bigint"),
        MetadataField("source.ts", "timestamp", (("source.ts_ms", "bigint"),), "timestamp_millis(e.source.ts_ms)"),
        _plain("source.ts_ms", "bigint"),
        MetadataField(
            "source.file", "bigint", (("source.file", "string"),), FILE_NUMBER.replace("{source}", "e.source")
        ),
        _plain("source.pos", "bigint"),
        _plain("source.row", "int"),
        _plain("source.gtid", "string"),
        _plain("source.server_id", "bigint"),
        _plain("source.thread", "bigint"),
        _plain("source.snapshot", "string"),
        _plain("source.query", "string"),
        _plain("source.name", "string"),
        _plain("source.db", "string"),
        _plain("source.table", "string"),
        _plain("transaction.id", "string"),
        MetadataField("kafka.partition", "int", (), "partition"),
        MetadataField("kafka.offset", "bigint", (), "offset"),
    )
}
FIELD_NAMES = tuple(_FIELDS)
CHANGE_FIELDS = ("op", "source.ts_ms", "source.file", "source.pos", "source.row")
"""The fields that a table of changes always has."""


def metadata_fields(names: Iterable[str]) -> tuple[MetadataField, ...]:
    """Return the fields with these names, each once; ``pos`` is short for ``source.pos``.

    Raises:
        ValueError: a name is unknown; the text says so.
    """
    found: dict[str, MetadataField] = {}
    for name in names:
        full = name if name in _FIELDS else f"source.{name}"
        if full not in _FIELDS:
            raise ValueError(f"{name!r} is unknown; there are {', '.join(_FIELDS)}")
        found[full] = _FIELDS[full]
    return tuple(found.values())


def wire_fields(fields: Iterable[MetadataField], others: Sequence[tuple[str, str]] = ()) -> str:
    """Return the DDL, after a comma, of the fields of the envelope that ``from_json`` reads for some fields.

    Args:
        fields: the metadata.
        others: further fields to read, such as ``source.gtid``, with their types.
    """
    blocks: dict[str, dict[str, str]] = {}
    for name, kind in [*others, *(part for field in fields for part in field.wire)]:
        block, _, inner = name.rpartition(".")
        blocks.setdefault(block, {})[inner] = kind
    plain = blocks.pop("", {})
    parts = [f"{name}: {kind}" for name, kind in plain.items()]
    for block, inner_fields in blocks.items():
        parts.append(f"{block}: STRUCT<{', '.join(f'{quote(name)}: {kind}' for name, kind in inner_fields.items())}>")
    return "".join(f", {part}" for part in parts)


def taken(fields: Iterable[MetadataField], names: Collection[str]) -> list[MetadataField]:
    """Return the fields whose column also exists in MySQL's table; ``names`` are its columns."""
    own = {name.lower() for name in names}
    return [field for field in fields if field.column.lower() in own]
