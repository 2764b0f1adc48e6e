"""The Connect schemas of a table's records: key, row and envelope, and the field of each column.

They are derived once for each structure of a table.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rowtide.envelope.column_converters import ColumnConverterError, ColumnConverters
from rowtide.envelope.json.text import JsonFormat, string_text, value_text
from rowtide.envelope.schema import INT64, OPTIONAL_INT64, STRING, Field, Schema, struct
from rowtide.envelope.settings import Stage, ValueSettings
from rowtide.envelope.source import source_schema
from rowtide.envelope.types.column_type import ColumnType
from rowtide.envelope.types.defaults import default_value
from rowtide.envelope.types.mapping import JDBC_BOOLEAN, column_type
from rowtide.envelope.types.masking import column_mapper
from rowtide.envelope.types.temporal import ZERO_DATE_KINDS, distinct_in_keys
from rowtide.schema_history.catalog.tables import as_described_by_snapshot
from rowtide.schema_history.model import Column, DebeziumColumn, Table
from rowtide.schema_history.server.query_event import Flavor, Server
from rowtide.schema_history.structure.type_names import BLOBS, TEXTS
from rowtide.topics.column_rules import ColumnRules, Hash
from rowtide.topics.filters import ColumnFilter, ColumnSelector, MessageKeys
from rowtide.topics.naming import KeyAugment

_Parameters = tuple[tuple[str, str], ...]

OMITTED_TYPES = frozenset((*TEXTS, *BLOBS))
"""Types of columns that row images omit with ``binlog_row_image=NOBLOB``."""

TRANSACTION_BLOCK = struct(
    "event.block",
    {"id": STRING, "total_order": INT64, "data_collection_order": INT64},
    version=1,
    optional=True,
)


@dataclass(frozen=True, slots=True)
class RecordRules:
    """The settings that determine the schemas and values of records.

    Attributes:
        values: settings of values.
        columns: the captured columns.
        keys: the key columns of tables that do not use their primary key (``message.key.columns``).
        column_rules: masking, hashing and truncating.
        propagate_columns: columns whose source type is written as schema parameters.
        propagate_types: types of columns whose source type is written as schema parameters.
        converters: the custom column converters (``converters``).
    """

    values: ValueSettings = field(default_factory=ValueSettings)
    columns: ColumnFilter = field(default_factory=ColumnFilter)
    keys: MessageKeys = field(default_factory=MessageKeys)
    column_rules: ColumnRules = field(default_factory=ColumnRules)
    propagate_columns: ColumnSelector = field(default_factory=ColumnSelector)
    propagate_types: ColumnSelector = field(default_factory=ColumnSelector)
    converters: ColumnConverters = field(default_factory=ColumnConverters)


@dataclass(frozen=True, slots=True)
class RecordColumn:
    """A column in the records.

    Attributes:
        index: index of the column in row images, from 0.
        column: the column.
        field: name of the field.
        type: the type of its values.
        schema: its full schema, with optionality, default and documentation.
        key_schema: its schema in the key, without masking and propagated types.
        null: the Connect value written for null, and for a value that cannot be represented.
        in_value: whether the row has the field; if not, only the key has it.
        mapper: masks, hashes or truncates a Connect value, which may be ``None``; ``None`` to keep values.
    """

    index: int
    column: Column
    field: str
    type: ColumnType
    schema: Schema
    key_schema: Schema
    null: Any
    in_value: bool
    mapper: Callable[[Any], Any] | None

    def null_text(self, json_format: JsonFormat) -> str:
        """Return the JSON that is written for null."""
        return self.text(self.null, json_format)

    def text(self, value: Any, json_format: JsonFormat) -> str:
        """Return the JSON of a Connect value of this column, which may be ``None``."""
        return value_text(self.schema.with_optional(True), value, json_format)


@dataclass(frozen=True, slots=True)
class TableSchema:
    """The Connect schemas of a table's records.

    Attributes:
        table: the structure of the table.
        topic: name of the topic.
        key: schema of the key, ``None`` without a key.
        row: schema of ``before`` and ``after``.
        envelope: schema of the value.
        columns: the columns in records, in their order.
        key_columns: indexes of the key's columns in row images, in the order of the key.
        augment: a constant field that follows the columns in the key.
    """

    table: Table
    topic: str
    key: Schema | None
    row: Schema
    envelope: Schema
    columns: tuple[RecordColumn, ...]
    key_columns: tuple[int, ...]
    augment: KeyAugment | None = None

    @property
    def key_constants(self) -> list[tuple[str, str]]:
        """The fields of the key that are not columns, with their JSON."""
        return [] if self.augment is None else [(self.augment.field, string_text(self.augment.value))]


def build_table_schema(
    table: Table,
    topic: str,
    rules: RecordRules,
    stage: Stage,
    unknown: Callable[[Table, Column], None],
    augment: KeyAugment | None = None,
    key_names: Sequence[str] | None = None,
) -> TableSchema:
    """Derive the Connect schemas of a table's records.

    Exact values have one description in snapshot and stream, that of SHOW CREATE TABLE. Debezium describes a table in
    the stream by the statements, whose spelling of types, labels and defaults gives other schemas and values.

    Args:
        table: the structure of the table.
        topic: its topic, whose name is part of the schemas' names.
        rules: the settings.
        stage: snapshot or stream.
        unknown: called for each column that is omitted because its type is unknown.
        augment: the field that the topic naming strategy adds to keys; a table without a key has this field only.
        key_names: the key's columns, instead of those of the table and the settings.

    Raises:
        ColumnConverterError: a custom column converter failed.
    """
    given = table
    if rules.values.exact or table.kind == "SEQUENCE":  # CREATE SEQUENCE does not name the columns
        table = _as_shown(table, rules.values)
    key_names = _key_names(table, rules) if key_names is None else tuple(key_names)
    columns = tuple(
        made
        for index, column in enumerate(table.row_columns)
        if (made := _record_column(table, index, column, rules, stage, key_names, unknown)) is not None
    )
    by_name = {column.column.name: column for column in columns}
    key_columns = tuple(by_name[name] for name in key_names if name in by_name)
    adjust = rules.values.adjust_schema_name
    row = Schema(
        "struct",
        optional=True,
        name=adjust(f"{topic}.Value"),
        fields=tuple(Field(column.field, column.schema) for column in columns if column.in_value),
    )
    key = None
    fields = [Field(column.field, column.key_schema) for column in key_columns]
    if augment is not None:
        fields.append(Field(augment.field, STRING))
    if fields:
        key = Schema("struct", name=adjust(f"{topic}.Key"), fields=tuple(fields))
    return TableSchema(
        given,
        topic,
        key,
        row,
        envelope_schema(adjust(f"{topic}.Envelope"), row, rules.values.connector),
        columns,
        tuple(column.index for column in key_columns),
        augment,
    )


def envelope_schema(name: str, row: Schema, connector: str) -> Schema:
    """Return the schema of a record's value, version 2."""
    return struct(
        name,
        {
            "before": row,
            "after": row,
            "source": source_schema(connector),
            "transaction": TRANSACTION_BLOCK,
            "op": STRING,
            "ts_ms": OPTIONAL_INT64,
            "ts_us": OPTIONAL_INT64,
            "ts_ns": OPTIONAL_INT64,
        },
        version=2,
    )


def _as_shown(table: Table, values: ValueSettings) -> Table:
    shown = as_described_by_snapshot(table, Server(Flavor(values.connector)))
    if values.bool_handling_mode == "int16":
        return shown
    columns = tuple(
        old if old.debezium is not None and old.debezium.jdbc_type == JDBC_BOOLEAN else new
        for old, new in zip(table.columns, shown.columns, strict=True)
    )
    return replace(shown, columns=columns)


def _key_names(table: Table, rules: RecordRules) -> tuple[str, ...]:
    names = [column.name for column in table.columns]
    return rules.keys.key_columns(table.id.database, table.id.table, names) or table.debezium.primary_key


def _record_column(
    table: Table,
    index: int,
    column: Column,
    rules: RecordRules,
    stage: Stage,
    key_names: tuple[str, ...],
    unknown: Callable[[Table, Column], None],
) -> RecordColumn | None:
    database, name = table.id.database, table.id.table
    in_value = column not in table.hidden and rules.columns.captures(database, name, column.name)
    if not in_value and column.name not in key_names:
        return None
    debezium = column.debezium
    connect_type = column_type(debezium, rules.values, stage) if debezium is not None else None
    if debezium is None or connect_type is None:
        unknown(table, column)
        return None
    # Debezium trims the fraction of TIMESTAMP values in a snapshot, but not that of their default.
    default_type = column_type(debezium, rules.values, "stream") or connect_type
    custom = rules.converters.type_of(table, column, connect_type, exact=rules.values.exact)
    if custom is not None:
        if column.data_type in OMITTED_TYPES and custom.schema.type not in {"string", "bytes"}:
            custom = replace(custom, schema=custom.schema.with_optional(True))  # there is no placeholder
        connect_type = default_type = custom
    elif rules.values.exact and column.name in key_names and connect_type.kind in ZERO_DATE_KINDS:
        connect_type = distinct_in_keys(connect_type)
    key_schema = _column_schema(debezium, connect_type, default_type, rules)
    mapper, parameters = _mapper(table, debezium, rules)
    if custom is not None and mapper is not None and custom.schema.type != "string":
        raise ColumnConverterError(
            f"table {table.id}, column {column.name}: a converter gives {custom.schema.type}, but a property that "
            "masks, hashes or truncates selects the column, too: it needs a string. Exclude the column from one of them"
        )
    if rules.values.minimal_row_images and column.name not in key_names:
        key_schema = replace(key_schema, optional=True, default=None)  # null if the row image omits the column
    schema = replace(key_schema, parameters=key_schema.parameters + parameters)
    null = connect_type.custom_null
    if null is None and not schema.optional:
        null = schema.default if schema.default is not None else connect_type.epoch
    field_name = rules.values.adjust_field_name(column.name)
    return RecordColumn(index, column, field_name, connect_type, schema, key_schema, null, in_value, mapper)


def _column_schema(
    debezium: DebeziumColumn, connect_type: ColumnType, default_type: ColumnType, rules: RecordRules
) -> Schema:
    schema = connect_type.schema
    doc = debezium.comment if rules.values.include_schema_comments and debezium.comment is not None else schema.doc
    zero_dates = connect_type.kind in ZERO_DATE_KINDS and not connect_type.is_custom
    if rules.values.zero_date_handling_mode == "null" and zero_dates:
        # Kafka Connect's converters would replace null with a default.
        return replace(schema, optional=True, doc=doc)
    return replace(
        schema,
        optional=debezium.optional or schema.optional,
        default=default_value(debezium, default_type, exact=rules.values.exact),
        doc=doc,
    )


def _mapper(
    table: Table, debezium: DebeziumColumn, rules: RecordRules
) -> tuple[Callable[[Any], Any] | None, _Parameters]:
    """Return the mapper of a column's values and the parameters of its schema.

    In Debezium only the first rule for a column takes effect, in the order truncating, masking, propagation of the
    source type, hashing. Debezium therefore does not hash a column whose source type is propagated; rowtide does.
    """
    rule = rules.column_rules.rule_for(table.id.database, table.id.table, debezium.name)
    source = _source_parameters(table, debezium, rules)
    if rule is None:
        return None, source
    mapper = column_mapper(rule, debezium)
    return mapper.convert, source if source and isinstance(rule, Hash) else mapper.parameters


def _source_parameters(table: Table, debezium: DebeziumColumn, rules: RecordRules) -> _Parameters:
    """Return the parameters of ``column.propagate.source.type`` and ``datatype.propagate.source.type``."""
    database, name = table.id.database, table.id.table
    chosen = rules.propagate_columns.selects(database, name, debezium.name) or rules.propagate_types.selects(
        database, name, debezium.type_name
    )
    if not chosen:
        return ()
    parameters = [("__debezium.source.column.type", debezium.type_name.upper())]
    if debezium.length is not None:
        parameters.append(("__debezium.source.column.length", str(debezium.length)))
    if debezium.scale is not None:
        parameters.append(("__debezium.source.column.scale", str(debezium.scale)))
    if rules.values.include_schema_comments and debezium.comment:
        parameters.append(("__debezium.source.column.comment", debezium.comment))
    parameters.append(("__debezium.source.column.name", debezium.name))
    return tuple(parameters)
