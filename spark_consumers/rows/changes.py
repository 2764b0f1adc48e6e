"""The records of a batch as typed rows of the table, each read with the schema with which it was written."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from rowtide.spark_consumers.columns.conversion import Column
from rowtide.spark_consumers.columns.metadata import FILE_NUMBER, MetadataField, wire_fields
from rowtide.spark_consumers.columns.spark_types import literal, quote
from rowtide.spark_consumers.columns.unavailable import is_unavailable
from rowtide.spark_consumers.messages.records import UNEXPECTED, KeyId, RecordGroup
from rowtide.spark_consumers.messages.schemaless import FIELD_NAMES
from rowtide.spark_consumers.messages.versions import KeyVersion, ValueVersion, wire_struct
from rowtide.spark_consumers.rows.evolution import Evolution, Image, convert, row_expression
from rowtide.spark_consumers.rows.multiset import RECORD_HASH
from rowtide.spark_consumers.settings import DELETION, VERSION_COLUMNS
from rowtide.spark_consumers.state import ColumnNames, Computed, Projection, RowFilter

DELETED = "_rowtide_deleted"
"""The column that marks rows to delete. Only their key has values."""

OUT = "_rowtide_out"
"""The column that marks rows that do not match ``--where``, where deleted rows stay: they do not."""

PLACE = "struct<ts_ms:bigint,file:bigint,pos:bigint,row:int,known:int>"
"""Type of the time and place in the binlog of a record, with the index of the newest structure at that time."""

_AT = "struct<file:bigint,pos:bigint,row:int>"
_STRICT = "map('mode', 'FAILFAST')"
_SOURCE = {"ts_ms": "bigint", "server_id": "bigint", "gtid": "string", "file": "string", "pos": "bigint", "row": "int"}
_SOURCE_POSITION = "STRUCT<file: STRING, pos: BIGINT, row: INT>"
_SOURCE_PLACE = [("source.ts_ms", "bigint"), ("source.file", "string"), ("source.pos", "bigint"), ("source.row", "int")]
_IS_SNAPSHOT = "op = 'r'"
_MAY_BE_UNAVAILABLE = {"STRING", "BINARY"}
_INTEGERS = {"TINYINT", "SMALLINT", "INT", "BIGINT"}


@dataclass(frozen=True, slots=True)
class BatchSchemas:
    """The schemas with which the records of a batch are read.

    Attributes:
        evolution: the table's columns.
        keys: schemas of keys.
        values: schemas of rows, oldest first.
        last_known: the columns of the newest row of earlier batches, with their names in the table.
        newest: the columns of the newest row of this batch, ``None`` if an earlier batch has read a newer one.
        names: the columns' names in the table by the schema history; ``None`` if they are those of the messages.
        metadata: the fields of records that the table has as columns.
        soft: whether deleted rows stay, and are marked.
        history: whether all versions of rows stay.
        where: which rows the table has; ``None`` for all.
        projection: which columns of MySQL's table the table has; ``None`` for all.
        computed: the columns that the table has in addition; ``None`` if there are none.
    """

    evolution: Evolution
    keys: Mapping[KeyId, KeyVersion]
    values: Sequence[ValueVersion]
    last_known: Sequence[str] | None = None
    newest: Sequence[Column] | None = None
    names: ColumnNames | None = None
    metadata: Sequence[MetadataField] = ()
    soft: bool = False
    history: bool = False
    where: RowFilter | None = None
    projection: Projection | None = None
    computed: Computed | None = None

    @property
    def row_columns(self) -> list[str]:
        """The columns of the table that rows of MySQL have."""
        own = {field.column for field in self.metadata}
        own |= {DELETION[0]} if self.soft else set()
        own |= {name for name, _ in VERSION_COLUMNS} if self.history else set()
        own |= set() if self.computed is None else {*self.computed.expressions}
        return [name for name, _ in self.evolution.after if name not in own]

    @property
    def source_columns(self) -> list[str]:
        """The columns of images of rows that rows of MySQL have."""
        return [*self.row_columns, *(name for name, _ in self.evolution.hidden)]

    @property
    def structures(self) -> list[frozenset[str]]:
        """The names of the columns, in lower case, of each structure of rows, oldest first."""
        found = [version.names for version in self.values if version.columns]
        return found if self.last_known is None else [frozenset(map(str.lower, self.last_known)), *found]

    @property
    def has_rows(self) -> bool:
        """Whether there are records with rows."""
        return any(version.columns for version in self.values)

    @property
    def metadata_values(self) -> dict[str, str]:
        """SQL of the metadata by column, from an envelope ``e`` and the columns of its record."""
        return {field.column: field.sql for field in self.metadata}

    def key_types(self, key: KeyVersion) -> dict[str, str]:
        """Return the types of the key's columns in the table, by their names in the key."""
        types = {name.lower(): kind for name, kind in self.evolution.after}
        return {column.name: types[column.name.lower()] for column in key.columns}

    def differ_from(self, columns: Sequence[str] | None) -> bool:
        """Return whether some rows have columns other than these."""
        names = frozenset(name.lower() for name in columns or ())
        return any(version.names != names for version in self.values)

    def keys_of(self, names: Sequence[str]) -> list[KeyVersion]:
        """Return the schemas of keys with these columns."""
        return [key for key in self.keys.values() if key.columns and key.names == tuple(names)]


def written(rows: DataFrame) -> str:
    """Return SQL of whether the table has a row of these, which may have :data:`OUT`, with its values."""
    return f"NOT ({DELETED} OR {OUT})" if OUT in rows.columns else f"NOT {DELETED}"


def keyed_changes(records: DataFrame, schemas: BatchSchemas, key_names: Sequence[str]) -> DataFrame:
    """Return the columns ``partition``, ``offset``, ``op``, ``at`` (binlog position, null for a tombstone) and ``key``.

    The key of a record identifies its row.
    """
    source = f"STRUCT<source: {_SOURCE_POSITION}>"
    return reduce(
        DataFrame.unionAll,
        (
            _with_key(records, key)
            .select("partition", "offset", "op", _key_fields(key),
                    _from_json("value", source).alias("e"))
            .selectExpr("partition", "offset", "op", f"IF(op IS NULL, NULL, {_position('e.source')}) AS at",
                        f"{_key_struct(_key_values(schemas, key), key.columns)} AS key")
            for key in schemas.keys_of(key_names)
        ),
    )  # fmt: skip


def keyed_rows(
    records: DataFrame, schemas: BatchSchemas, key_names: Sequence[str], groups: Sequence[RecordGroup]
) -> DataFrame:
    """Return the rows after some changes: the table's columns and :data:`DELETED`.

    Args:
        records: the changes.
        schemas: of the batch.
        key_names: the columns of the key.
        groups: of the batch. Records of other kinds are not searched for.
    """
    parts = []
    for key in schemas.keys_of(key_names):
        mine = _with_key(records, key)
        kinds = [group for group in groups if group.key_version == key.id]
        if any(group.tombstone or (group.op == "d" and not schemas.soft) for group in kinds):
            gone = "value IS NULL" if schemas.soft else "value IS NULL OR op = 'd'"
            parts.append(_deleted(mine.where(gone), schemas, key))
        for image, others in (("after", {"d", "t"}), *([("before", {"r", "c", "u", "t"})] if schemas.soft else [])):
            written = {group.value_version for group in kinds if not group.tombstone and group.op not in others}
            left_out = ", ".join(literal(op) for op in sorted(others))
            for index, version in enumerate(schemas.values):
                if version.id in written:
                    there = mine.where(f"{_has(version)} AND value IS NOT NULL AND op NOT IN ({left_out})")
                    parts.append(_written(there, schemas, key, index, image))
    return reduce(DataFrame.unionAll, parts)


def changed_rows(messages: DataFrame, schemas: BatchSchemas, key: KeyVersion, placeholder: bytes) -> DataFrame:
    """Return ``partition``, ``offset``, ``op``, :data:`DELETED` and ``row``, a struct of the table's columns.

    In a deleted row, only the key has values. An operation that is none of rows ends the query with :data:`UNEXPECTED`,
    and so does a value that the binlog did not have.

    Args:
        messages: from :func:`rowtide.spark_consumers.messages.records.uniform_messages`.
        schemas: of the batch; one version of rows.
        key: the version of the keys.
        placeholder: of values that the binlog did not have.
    """
    [version] = schemas.values
    given = _key_values(schemas, key) | schemas.metadata_values
    row = row_expression(schemas.evolution, [version], 0, Image("after", _IS_SNAPSHOT), given)
    envelope = f"STRUCT<after: {wire_struct(version.columns)}, op: STRING{wire_fields(schemas.metadata)}>"
    lacking = [
        is_unavailable(f"{struct}.{quote(column.field)}", column.wire, placeholder)
        for struct, columns in (("k", key.columns), ("e.after", version.columns))
        for column in columns
        if column.wire in _MAY_BE_UNAVAILABLE
    ]
    unavailable = f"e.op <> 'r' AND ({' OR '.join(lacking) or 'false'})"
    deleted = (
        f"CASE WHEN op IS NULL OR op = 'd' THEN true WHEN op IN ('r', 'c', 'u') THEN false "
        f"ELSE CAST({UNEXPECTED} AS boolean) END"
    )
    return (
        messages.select("partition", "offset", F.expr("value IS NULL").alias("tombstone"), _key_fields(key),
                        _from_json("value", envelope).alias("e"))
        .selectExpr("*", f"CASE WHEN {unavailable} THEN CAST({UNEXPECTED} AS string) "
                         f"WHEN NOT tombstone THEN coalesce(e.op, CAST({UNEXPECTED} AS string)) END AS op")
        .selectExpr("partition", "offset", "op", f"{deleted} AS {DELETED}", f"{row} AS row")
    )  # fmt: skip


def keyed_images(
    records: DataFrame, schemas: BatchSchemas, key_names: Sequence[str], known: str, *, tombstones: bool
) -> DataFrame:
    """Return ``partition``, ``offset``, ``op``, ``hash``, ``key``, ``place``, ``index`` and ``rows`` of each record.

    ``op``, ``hash``, ``place`` and ``rows`` are null for a tombstone. ``rows`` has the row after the change as of the
    record's structure, whose number among those of the batch is ``index``, and as of each later one: columns that were
    added since then have their default.

    Args:
        records: the changes.
        schemas: of the batch.
        key_names: the columns of the key.
        known: SQL of the number of the newest structure at the time of a record.
        tombstones: whether there are any.
    """
    kind = f"array<struct<{','.join(f'{quote(name)}:{kind}' for name, kind in schemas.evolution.images)}>>"
    parts = []
    for key in schemas.keys_of(key_names):
        mine, given = _with_key(records, key), _key_values(schemas, key)
        identity = f"{_key_struct(given, key.columns)} AS key"
        if tombstones:
            parts.append(
                mine.where("value IS NULL")
                .select("partition", "offset", "op", _key_fields(key))
                .selectExpr("partition", "offset", "op", "CAST(NULL AS bigint) AS hash", identity,
                            f"CAST(NULL AS {PLACE}) AS place", "0 AS index", f"CAST(NULL AS {kind}) AS rows")
            )  # fmt: skip
        for index, version in enumerate(schemas.values):
            image, values = Image("after", _IS_SNAPSHOT), given | schemas.metadata_values
            rows = (
                row_expression(schemas.evolution, schemas.values[:end], index, image, values)
                for end in range(index + 1, len(schemas.values) + 1)
            )
            envelope = f"STRUCT<after: {wire_struct(version.columns)}{wire_fields(schemas.metadata, _SOURCE_PLACE)}>"
            place = f"named_struct('ts_ms', e.source.ts_ms, {_position_fields('e.source')}, 'known', {known})"
            parts.append(
                mine.where(f"{_has(version)} AND value IS NOT NULL")
                .select("partition", "offset", "op", F.expr(RECORD_HASH).alias("hash"), _key_fields(key),
                        _from_json("value", envelope).alias("e"), *_field_names(version))
                .selectExpr("partition", "offset", "op", "hash", identity, f"{place} AS place",
                            f"{index} AS index", f"array({', '.join(rows)}) AS rows")
            )  # fmt: skip
    return reduce(DataFrame.unionAll, parts)


def _with_key(records: DataFrame, key: KeyVersion) -> DataFrame:
    return records.where(_is("key_version", key.id) + " AND key IS NOT NULL AND (op IS NULL OR op <> 't')")


def _key_values(schemas: BatchSchemas, key: KeyVersion) -> dict[str, str]:
    kinds = schemas.key_types(key)
    return {
        column.name.lower(): convert(column, f"k.{quote(column.field)}", _IS_SNAPSHOT, kinds[column.name])
        for column in key.columns
    }


def _written(records: DataFrame, schemas: BatchSchemas, key: KeyVersion, index: int, image: str) -> DataFrame:
    """Return rows with the image after a change, or, if deleted rows stay, before a deletion."""
    version, is_last = schemas.values[index], image == "before"
    given = _key_values(schemas, key) | schemas.metadata_values
    if schemas.soft:
        given[DELETION[0]] = "true" if is_last else "false"
    row = row_expression(schemas.evolution, schemas.values, index, Image(image, _IS_SNAPSHOT), given)
    envelope = f"STRUCT<{image}: {wire_struct(version.columns)}{wire_fields(schemas.metadata)}>"
    without = "e.before IS NULL" if is_last else "false"
    return (
        records.select("partition", "offset", "op", _key_fields(key),
                       _from_json("value", envelope).alias("e"), *_field_names(version))
        .selectExpr(f"{row} AS row", f"{without} AS {DELETED}")
        .selectExpr("row.*", DELETED)
    )  # fmt: skip


def _deleted(records: DataFrame, schemas: BatchSchemas, key: KeyVersion) -> DataFrame:
    """Return rows with the key's columns only. Tombstones delete, too: compaction may have removed everything else."""
    keys = _key_values(schemas, key)
    values = [
        f"{keys.get(name.lower()) or f'CAST(NULL AS {kind})'} AS {quote(name)}"
        for name, kind in schemas.evolution.images
    ]
    return records.select("partition", "offset", "op", _key_fields(key)).selectExpr(*values, f"true AS {DELETED}")


def keyless_changes(records: DataFrame, schemas: BatchSchemas, *, log: bool = False) -> DataFrame:
    """Return ``op``, ``at``, ``ts_ms``, ``server_id``, ``gtid``, ``before``, ``after`` and ``metadata``.

    The images have the table's columns, of which those of the metadata are null.

    Args:
        records: of the batch.
        schemas: of the batch.
        log: whether TRUNCATEs and records with a key are wanted, too.
    """
    metadata = _metadata_struct(schemas.metadata)
    parts = []
    keys = [key for key in schemas.keys.values() if log and key.columns and key.id is not None]
    for (index, version), key in product(enumerate(schemas.values), [None, *keys]):
        given = {} if key is None else _key_values(schemas, key)
        old, new = (
            row_expression(schemas.evolution, schemas.values, index, Image(image, _IS_SNAPSHOT), given)
            for image in ("before", "after")
        )
        if key is not None:
            mine = _with_key(records, key)
        else:
            mine = records.where("key_version IS NULL" if log else "key IS NULL AND op <> 't'")
        parts.append(
            mine.where(_has(version) + " AND value IS NOT NULL")
            .select("partition", "offset", "op", _from_json("value", _change(version, schemas.metadata)).alias("e"),
                    *_field_names(version), *([] if key is None else [_key_fields(key)]))
            .selectExpr(f"{_position('e.source')} AS at", "op", "e.source.ts_ms AS ts_ms", f"{metadata} AS metadata",
                        "e.source.server_id AS server_id", "e.source.gtid AS gtid",
                        f"IF(e.before IS NULL, NULL, {old}) AS before", f"IF(e.after IS NULL, NULL, {new}) AS after")
        )  # fmt: skip
    return reduce(DataFrame.unionAll, parts) if parts else _no_changes(records, schemas)


def _no_changes(records: DataFrame, schemas: BatchSchemas) -> DataFrame:
    """Return an empty frame, for a batch of truncations only."""
    row = f"struct<{','.join(f'{quote(name)}:{kind}' for name, kind in schemas.evolution.images)}>"
    metadata = f"struct<{','.join(f'{field.column}:{field.type}' for field in schemas.metadata) or '_:int'}>"
    kinds = {"at": _AT, "op": "string", "ts_ms": "bigint", "metadata": metadata, "server_id": "bigint",
             "gtid": "string", "before": row, "after": row}  # fmt: skip
    return records.limit(0).selectExpr(*(f"CAST(NULL AS {kind}) AS {name}" for name, kind in kinds.items()))


def with_metadata(schemas: BatchSchemas, image: str) -> list[str]:
    """Return SQL of the columns of a row: an image of :func:`keyless_changes` with the metadata of its record."""
    own = {field.column for field in schemas.metadata}
    return [
        f"{'metadata' if name in own else image}.{quote(name)} AS {quote(name)}" for name, _ in schemas.evolution.images
    ]


def _metadata_struct(metadata: Sequence[MetadataField]) -> str:
    parts = [f"{literal(field.column)}, CAST({field.sql} AS {field.type})" for field in metadata]
    return f"named_struct({', '.join(parts) or literal('_') + ', 0'})"


def _change(version: ValueVersion, metadata: Sequence[MetadataField]) -> str:
    """Return the DDL with which ``from_json`` reads a change with both images."""
    row, source = wire_struct(version.columns), [(f"source.{name}", kind) for name, kind in _SOURCE.items()]
    return f"STRUCT<before: {row}, after: {row}{wire_fields(metadata, source)}>"


def _position(source: str) -> str:
    return f"named_struct({_position_fields(source)})"


def _position_fields(source: str) -> str:
    number = FILE_NUMBER.replace("{source}", source)
    return f"'file', {number}, 'pos', {source}.pos, 'row', {source}.row"


def _key_struct(keys: Mapping[str, str], columns: Sequence[Column]) -> str:
    return f"named_struct({', '.join(f'{literal(column.name)}, {keys[column.name.lower()]}' for column in columns)})"


def _key_fields(key: KeyVersion) -> SparkColumn:
    """Return column ``k``, the fields of a key.

    The usual key is one integer, ``{"id":7}``. Its digits are cut out, which takes less time than a JSON parser, and
    are used if they yield the same text again. Any other text is parsed.
    """
    parsed = f"from_json(key, {literal(wire_struct(key.columns))}, {_STRICT})"
    if len(key.columns) != 1 or key.columns[0].wire not in _INTEGERS:
        return F.expr(parsed).alias("k")
    [column] = key.columns
    start = f"{{{json.dumps(column.field, ensure_ascii=False)}:"
    digits = f"substring(key, {len(start) + 1}, length(key) - {len(start) + 1})"
    number = f"try_cast({digits} AS {column.wire})"
    proved = f"IF(concat({literal(start)}, CAST({number} AS string), '}}') = key, {number}, NULL)"
    fields = f"named_struct({literal(column.field)}, coalesce({proved}, {parsed}.{quote(column.field)}))"
    return F.expr(fields).alias("k")


def _from_json(column: str, ddl: str) -> SparkColumn:
    return F.expr(f"from_json({column}, {literal(ddl)}, {_STRICT})")


def _field_names(version: ValueVersion) -> list[SparkColumn]:
    """Return the columns with the names of the fields that a message without a schema has."""
    if version.id is not None:
        return []
    return [F.expr(FIELD_NAMES.replace("{image}", image)).alias(f"{image}_fields") for image in ("before", "after")]


def _has(version: ValueVersion) -> str:
    """Return SQL of whether a record has this version."""
    same = _is("value_version", version.id)
    if version.offsets is None:
        return same
    return f"{same} AND ({' OR '.join(f'offset BETWEEN {first} AND {last}' for first, last in version.offsets)})"


def _is(column: str, version: int | None) -> str:
    return f"{column} IS NULL" if version is None else f"{column} = {version}L"
