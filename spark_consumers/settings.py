"""The settings of a run of ``rowtide tables``."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from rowtide.spark_consumers.columns.metadata import CHANGE_FIELDS, MetadataField, metadata_fields
from rowtide.spark_consumers.columns.spark_types import literal, quote
from rowtide.spark_consumers.columns.unavailable import DEFAULT_PLACEHOLDER
from rowtide.spark_consumers.kafka.naming import TableName, table_name
from rowtide.spark_consumers.partitioning import Expression
from rowtide.topics.java_regex import Replacement, compile_java

SchemaOf = Callable[[int | bytes], tuple[str, str]]
"""From the id of a schema, or its global id, to its kind (``AVRO``, ``PROTOBUF``) and its text."""

StructuresOf = Callable[[str], Sequence[Mapping[str, int]]]
"""From a topic to the structures of its table, oldest first: the identity of each column by its name in records.

Raises ``SettingsError`` if there is no schema history, and ``HistoryError`` if it cannot be read now.
"""


class Keyless(StrEnum):
    """The way in which changes of a table without a key are stored.

    ``apply``: an insert adds a row, a delete removes one row that equals the old image, an update does both; the table
    equals MySQL's. ``append``: each change is a separate row, with the columns of :data:`CHANGE_COLUMNS`.
    """

    APPLY = "apply"
    APPEND = "append"


class Layout(StrEnum):
    """The layout of a table's rows.

    ``rows``: those of MySQL's table. ``append``: each change is a row, with the columns of :data:`CHANGE_COLUMNS`.
    ``soft-delete``: those of MySQL's table, and the deleted ones, which :data:`DELETION` marks. ``history``: all
    versions of the rows of MySQL's table, with the columns of :data:`VERSION_COLUMNS`.
    """

    ROWS = "rows"
    APPEND = "append"
    SOFT_DELETE = "soft-delete"
    HISTORY = "history"


class SchemaChange(StrEnum):
    """The handling of structure changes, with the names of Flink CDC.

    ``evolve``: the table changes as in MySQL; a type that has no common type with the table's stops it. ``try-evolve``:
    then the column keeps its type, and only a value that does not fit stops the table. ``lenient``: no column is
    renamed or dropped. ``ignore``: the table keeps its columns. ``exception``: a change stops the table.
    """

    EVOLVE = "evolve"
    TRY_EVOLVE = "try-evolve"
    LENIENT = "lenient"
    IGNORE = "ignore"
    EXCEPTION = "exception"


class ChangeKind(StrEnum):
    """Kinds of changes of structure, with the names of Flink CDC."""

    ADD_COLUMN = "add.column"
    ALTER_COLUMN_TYPE = "alter.column.type"
    DROP_COLUMN = "drop.column"
    RENAME_COLUMN = "rename.column"
    TRUNCATE_TABLE = "truncate.table"


@dataclass(frozen=True, slots=True)
class ChangePolicy:
    """The structure changes that are applied.

    Attributes:
        behavior: see :class:`SchemaChange`.
        include: kinds that are not ignored, or parts of their names (``column``); none means all but ``drop.column``.
        exclude: kinds that are ignored. A rename that is ignored is a column that is added and one that is dropped.
    """

    behavior: SchemaChange = SchemaChange.EVOLVE
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    def applies(self, kind: ChangeKind) -> bool:
        """Return whether changes of a kind are applied to the table."""
        if self.behavior in (SchemaChange.IGNORE, SchemaChange.EXCEPTION):
            return False
        if self.behavior is SchemaChange.LENIENT and kind in (ChangeKind.RENAME_COLUMN, ChangeKind.DROP_COLUMN):
            return False
        return self._is_meant(kind) and (bool(self.include) or kind is not ChangeKind.DROP_COLUMN)

    def refuses(self, kind: ChangeKind) -> bool:
        """Return whether a change of a kind stops the table."""
        return self.behavior is SchemaChange.EXCEPTION and self._is_meant(kind)

    def ignores(self, kind: ChangeKind) -> bool:
        """Return whether the table stays as it is after a change of a kind."""
        return not (self.applies(kind) or self.refuses(kind))

    def _is_meant(self, kind: ChangeKind) -> bool:
        return (not self.include or is_part(kind, self.include)) and not is_part(kind, self.exclude)


def is_part(kind: ChangeKind, names: Collection[str]) -> bool:
    """Return whether a kind has one of these names, or its name begins or ends with one of them."""
    return any(f".{name}." in f".{kind}." for name in names)


CHANGE_COLUMNS = tuple((field.column, field.type) for field in metadata_fields(CHANGE_FIELDS))
"""The additional columns of ``append``: operation, time, number of the binlog file, position and row in it."""
DELETION = ("__deleted", "boolean")
"""The additional column of ``soft-delete``."""
CURRENT = "__current"
"""The column of ``history`` that marks the version that has not ended."""
BEGIN_COLUMNS = (
    ("__valid_from", "timestamp"), ("__valid_from_file", "bigint"), ("__valid_from_pos", "bigint"),
    ("__valid_from_row", "int"),
)  # fmt: skip
END_COLUMNS = (
    ("__valid_to", "timestamp"), ("__valid_to_file", "bigint"), ("__valid_to_pos", "bigint"), ("__valid_to_row", "int"),
    (CURRENT, "boolean"),
)  # fmt: skip
VERSION_COLUMNS = (*BEGIN_COLUMNS, *END_COLUMNS)
"""The additional columns of ``history``: time and place in the binlog of a version's begin and end."""


@dataclass(frozen=True, slots=True)
class Shard:
    """The rows of one of several tables of MySQL that are one table.

    Attributes:
        column: the column that names the table of MySQL.
        value: the name of this one, ``database.table``.
    """

    column: str
    value: str

    def rows(self, table: str = "") -> str:
        """Return SQL of whether a row is one of them; ``table`` is the name of the table in the query."""
        return f"{table and f'{table}.'}{quote(self.column)} = {literal(self.value)}"

    @property
    def field(self) -> MetadataField:
        """The column as a constant field of records."""
        return MetadataField(self.column, "string", (), literal(self.value), self.column)


@dataclass(frozen=True, slots=True)
class TableRule:
    """Settings of the tables whose names match a pattern.

    Attributes:
        pattern: a Java regular expression of the whole name, ``database.table``.
        fields: the fields of :class:`Settings` that these tables override.
        into: a Java replacement for the name, ``database.table``, which gives the name in the output; ``None`` keeps
            it.
        shard_column: the column that tells apart the rows of tables that get the same name in the output; ``None`` if
            none do.
    """

    pattern: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    into: str | None = None
    shard_column: str | None = None

    def matches(self, table: str) -> bool:
        """Return whether a table has these settings."""
        return compile_java(self.pattern).fullmatch(table) is not None

    def place(self, name: TableName) -> TableName:
        """Return a table that has these settings, with its name in the output.

        Raises:
            SettingsError: the name cannot be used.
        """
        pattern = compile_java(self.pattern)
        match = pattern.fullmatch(str(name))
        return name if self.into is None or match is None else name.into(Replacement(self.into, pattern).expand(match))


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a run.

    Attributes:
        output: directory of all tables.
        state: directory of the stored offsets.
        prefix: the connector's ``topic.prefix``, which table names do not include.
        format: name of a :class:`rowtide.spark_consumers.formats.TableFormat`.
        layout: the layout of the rows of tables; tables without a key may have another one, see ``keyless``.
        keyless: see :class:`Keyless`.
        max_records: limit of the records of one partition in a batch; ``None`` reads all in one batch.
        numeric_decimals: ``decimal.format=NUMERIC`` of the connector's JsonConverter.
        schemas: Connect schemas of topics whose messages have none: ``{topic: {"key": ..., "value": ...}}``.
        unavailable_placeholder: ``unavailable.value.placeholder`` of the connector, in bytes.
        parallel: number of tables that are updated at the same time.
        claim_checks: the folder of values that are too large for Kafka; ``None`` refuses their records.
        catalog: the catalog of Spark that has the tables (Iceberg); ``None`` puts them into the output.
        table_properties: properties of new tables (Delta Lake, Iceberg).
        registry: the schema registry of messages in Avro and Protobuf; raises ``RegistryError``. The source must then
            have the headers of records.
        changes: the handling of structure changes.
        structures: the schema history, which proves renames of columns; ``None`` adds columns instead.
        metadata: fields of a row's last record that tables have as columns, in addition to those of MySQL.
        partition_by: the expressions by which new tables are partitioned.
        cluster_by: the expressions by which new tables are clustered (Delta Lake) or sorted (Iceberg).
        where: SQL of the rows that tables have; ``None`` for all rows.
        columns: the columns of MySQL that tables have; none for all columns.
        computed: SQL of the columns that tables have in addition to those of MySQL, by their names.
        shard: the rows of a table that several tables of MySQL share; ``None`` if it has all rows.
        rules: settings of single tables; the first one that matches applies.
    """

    output: str
    state: str
    prefix: str | None = None
    format: str = "delta"
    layout: Layout = Layout.ROWS
    keyless: Keyless = Keyless.APPLY
    max_records: int | None = None
    numeric_decimals: bool = False
    schemas: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    unavailable_placeholder: bytes = DEFAULT_PLACEHOLDER
    parallel: int = 2
    claim_checks: str | None = None
    catalog: str | None = None
    table_properties: Mapping[str, str] = field(default_factory=dict)
    registry: SchemaOf | None = None
    structures: StructuresOf | None = None
    changes: ChangePolicy = ChangePolicy()
    metadata: Sequence[MetadataField] = ()
    partition_by: Sequence[Expression] = ()
    cluster_by: Sequence[Expression] = ()
    where: str | None = None
    columns: Sequence[str] = ()
    computed: Mapping[str, str] = field(default_factory=dict)
    shard: Shard | None = None
    rules: Sequence[TableRule] = ()

    def of(self, table: str) -> "Settings":
        """Return the settings of a table, by its name ``database.table``."""
        found = self._rule(table)
        if found is None:
            return self
        own = replace(self, **found.fields)
        if found.shard_column is None:
            return own
        # Another table of MySQL may still have, or already have, the column under the other name.
        kept = (ChangeKind.RENAME_COLUMN, ChangeKind.DROP_COLUMN)
        changes = replace(own.changes, exclude=(*own.changes.exclude, *kept))
        return replace(own, shard=Shard(found.shard_column, table), changes=changes)

    def table(self, topic: str) -> TableName:
        """Return the table of a topic.

        Raises:
            SettingsError: its name cannot be used.
        """
        name = table_name(topic, self.prefix)
        found = self._rule(str(name))
        return name if found is None else found.place(name)

    def share(self, name: TableName, other: TableName) -> bool:
        """Return whether two topics have rows of the same table."""
        rule = self._rule(str(name))
        return (
            rule is not None
            and rule.shard_column is not None
            and rule is self._rule(str(other))
            and name.place == other.place
        )

    def unused_rules(self, topics: Collection[str]) -> list[str]:
        """Return why rules apply to no table of these topics, one text for each such rule.

        Raises:
            SettingsError: the name of a topic's table cannot be used.
        """
        names = [str(table_name(topic, self.prefix)) for topic in topics]
        used = {id(self._rule(name)) for name in names}
        found = []
        for rule in self.rules:
            if id(rule) in used:
                continue
            if any(rule.matches(name) for name in names):
                why = "applies to no table, because an element before it matches the same tables: move it before that"
            else:
                why = "matches no table of the topics: correct it, unless its tables are still to come"
            found.append(f"--job: table {rule.pattern} {why}")
        return found

    def _rule(self, table: str) -> TableRule | None:
        return next((rule for rule in self.rules if rule.matches(table)), None)

    @property
    def keeps_deleted(self) -> bool:
        """Whether deleted rows stay, and are marked."""
        return self.layout is Layout.SOFT_DELETE
