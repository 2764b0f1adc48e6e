"""The schemas of a table's records, and what each column gives to them.

Everything that stays the same while a table keeps its structure is derived here, once: key, row and envelope schemas,
their JSON, and for each column its field, the form of its values and what stands there for null.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from rowtide.envelope.json.text import JsonFormat, string_text, value_text
from rowtide.envelope.schema import INT64, OPTIONAL_INT64, STRING, Field, Schema, struct
from rowtide.envelope.settings import Stage, ValueSettings
from rowtide.envelope.source import source_schema
from rowtide.envelope.types.column_type import ColumnType
from rowtide.envelope.types.defaults import default_value
from rowtide.envelope.types.mapping import column_type
from rowtide.envelope.types.masking import column_mapper
from rowtide.envelope.types.temporal import ZERO_DATE_KINDS
from rowtide.schema_history.model import Column, DebeziumColumn, Table
from rowtide.topics.column_rules import ColumnRules, Hash
from rowtide.topics.filters import ColumnFilter, ColumnSelector, MessageKeys, TypeSelector
from rowtide.topics.naming import KeyAugment

_Parameters = tuple[tuple[str, str], ...]

TRANSACTION_BLOCK = struct(
    "event.block",
    {"id": STRING, "total_order": INT64, "data_collection_order": INT64},
    version=1,
    optional=True,
)


@dataclass(frozen=True, slots=True)
class RecordRules:
    """All settings that shape records.

    Attributes:
        values: how values are formed.
        columns: which columns are published.
        keys: which columns make the key instead of the primary key.
        column_rules: masking, hashing, truncating.
        propagate_columns: columns whose source type is written as schema parameters.
        propagate_types: the same by type.
    """

    values: ValueSettings = field(default_factory=ValueSettings)
    columns: ColumnFilter = field(default_factory=ColumnFilter)
    keys: MessageKeys = field(default_factory=MessageKeys)
    column_rules: ColumnRules = field(default_factory=ColumnRules)
    propagate_columns: ColumnSelector = field(default_factory=ColumnSelector)
    propagate_types: TypeSelector = field(default_factory=TypeSelector)


@dataclass(frozen=True, slots=True)
class RecordColumn:
    """What a column gives to the records.

    Attributes:
        index: its place in the row images, from 0.
        column: the column.
        field: the field's name.
        type: the form of its values.
        schema: its full schema: optional or not, with default and documentation.
        key_schema: the same as a field of the key, where masking and propagated types do not show.
        null: the Connect value that stands for null, or for a value that has no form.
        in_value: false if only the key has it.
        mapper: masking, hashing or truncating of Connect values, null included; ``None`` for none.
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
        """JSON of what stands for null."""
        return self.text(self.null, json_format)

    def text(self, value: Any, json_format: JsonFormat) -> str:
        """JSON of a Connect value of this column, null included."""
        return value_text(self.schema.with_optional(True), value, json_format)


@dataclass(frozen=True, slots=True)
class TableSchema:
    """The form of a table's records.

    Attributes:
        table: the structure that it was derived from.
        topic: name of the topic.
        key: schema of the key, ``None`` without one.
        row: schema of ``before`` and ``after``.
        envelope: schema of the value.
        columns: the columns that are published, in their order.
        key_columns: indexes of the key's columns in the row images, in the key's order.
        augment: a field of the key behind its columns that is the same for all rows of the table.
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
        """Fields of the key that are no columns, with their JSON."""
        return [] if self.augment is None else [(self.augment.field, string_text(self.augment.value))]


def build_table_schema(
    table: Table,
    topic: str,
    rules: RecordRules,
    stage: Stage,
    unknown: Callable[[Table, Column], None],
    augment: KeyAugment | None = None,
) -> TableSchema:
    """Derive the form of a table's records.

    Args:
        table: its structure.
        topic: its topic, which also names its schemas.
        rules: the settings.
        stage: snapshot or stream.
        unknown: told of each column whose type has no form and is left out.
        augment: what the topic naming strategy adds to keys; a table without a key gets one of it alone.
    """
    key_names = _key_names(table, rules)
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
        table,
        topic,
        key,
        row,
        envelope_schema(adjust(f"{topic}.Envelope"), row, rules.values.connector),
        columns,
        tuple(column.index for column in key_columns),
        augment,
    )


def envelope_schema(name: str, row: Schema, connector: str) -> Schema:
    """The schema of a record's value, version 2."""
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
    form = column.debezium
    form_type = column_type(form, rules.values, stage) if form is not None else None
    if form is None or form_type is None:
        unknown(table, column)
        return None
    # Debezium trims the fraction of a snapshot's TIMESTAMP values, not that of their default.
    key_schema = _column_schema(form, form_type, column_type(form, rules.values, "stream") or form_type, rules)
    change, parameters = _change(table, form, rules)
    if rules.values.minimal_row_images and column.name not in key_names:
        key_schema = replace(key_schema, optional=True, default=None)  # null stands for what no image of a row has
    schema = replace(key_schema, parameters=key_schema.parameters + parameters)
    null = None
    if not schema.optional:
        null = schema.default if schema.default is not None else form_type.epoch
    field_name = rules.values.adjust_field_name(column.name)
    return RecordColumn(index, column, field_name, form_type, schema, key_schema, null, in_value, change)


def _column_schema(form: DebeziumColumn, form_type: ColumnType, default_type: ColumnType, rules: RecordRules) -> Schema:
    schema = form_type.schema
    doc = form.comment if rules.values.include_schema_comments and form.comment is not None else schema.doc
    if rules.values.zero_date_handling_mode == "null" and form_type.kind in ZERO_DATE_KINDS:
        # Without a default: Kafka Connect's converters would write and read it for null.
        return replace(schema, optional=True, doc=doc)
    return replace(
        schema,
        optional=form.optional or schema.optional,
        default=default_value(form, default_type),
        doc=doc,
    )


def _change(table: Table, form: DebeziumColumn, rules: RecordRules) -> tuple[Callable[[Any], Any] | None, _Parameters]:
    """What masking, hashing and truncating make of a column's values, and the parameters of its schema.

    Debezium lets the first rule that names a column mark it: truncating, masking, propagation of the source type,
    hashing. It then leaves a column open that is to be hashed and whose type is propagated; here it is hashed.
    """
    rule = rules.column_rules.rule_for(table.id.database, table.id.table, form.name)
    source = _source_parameters(table, form, rules)
    if rule is None:
        return None, source
    changed = column_mapper(rule, form)
    return changed.convert, source if source and isinstance(rule, Hash) else changed.parameters


def _source_parameters(table: Table, form: DebeziumColumn, rules: RecordRules) -> _Parameters:
    """``column.propagate.source.type`` and ``datatype.propagate.source.type``."""
    database, name = table.id.database, table.id.table
    chosen = rules.propagate_columns.selects(database, name, form.name) or rules.propagate_types.selects(
        database, name, form.type_name
    )
    if not chosen:
        return ()
    parameters = [("__debezium.source.column.type", form.type_name.upper())]
    if form.length is not None:
        parameters.append(("__debezium.source.column.length", str(form.length)))
    if form.scale is not None:
        parameters.append(("__debezium.source.column.scale", str(form.scale)))
    if rules.values.include_schema_comments and form.comment:
        parameters.append(("__debezium.source.column.comment", form.comment))
    parameters.append(("__debezium.source.column.name", form.name))
    return tuple(parameters)
