"""Builds the codecs: one per captured table, built when its first row arrives."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from rowtide.connector.errors import SchemaError
from rowtide.connector.protocol import charset
from rowtide.connector.protocol.events.table_structure import MappedColumn, TableStructure
from rowtide.connector.protocol.json import binary
from rowtide.connector.records.codecs.debezium_messages import TableCodec
from rowtide.connector.records.codecs.python_changes import ChangeCodec
from rowtide.connector.records.codecs.python_values import python_output
from rowtide.connector.records.codecs.rows import RowsCodec
from rowtide.connector.records.codecs.system_versioning import CurrentRows, row_end
from rowtide.connector.records.settings import PipelineSettings
from rowtide.connector.records.topic_conflicts import TopicOwners
from rowtide.connector.records.unavailable import UNAVAILABLE
from rowtide.connector.rows.column_output import ColumnOutput
from rowtide.connector.rows.layouts import JSON, KINDS, ColumnDecoding, column_layout
from rowtide.connector.rows.row_compiler import Column
from rowtide.envelope.column_converters import ColumnConverterError
from rowtide.envelope.converters.plain import SimpleHeaderConverter
from rowtide.envelope.settings import Stage
from rowtide.envelope.table import OMITTED_TYPES, RecordColumn, RecordRules, TableSchema, build_table_schema
from rowtide.envelope.types.column_type import Fallback, OutOfRangeError
from rowtide.envelope.types.defaults import default_value
from rowtide.schema_history import model
from rowtide.schema_history.model import Table
from rowtide.schema_history.server.charsets import unicode_text
from rowtide.topics.naming import KeyAugment

log = logging.getLogger(__name__)

_SETTING = "event.converting.failure.handling.mode"
_HIDDEN_VALUE = "a value cannot be converted (errors.log.include.messages=true shows it)"
_UTF8 = frozenset({"utf8mb4", "utf8mb3", "utf8"})


Codec = RowsCodec[Any, Any]
"""The codec of Debezium's messages, of Python values (``PipelineSettings.changes``), or of another form."""


class Codecs:
    """Builds codecs. One is valid as long as neither the structure nor the TABLE_MAP changes."""

    def __init__(self, settings: PipelineSettings, topics: TopicOwners) -> None:
        self._settings = settings
        self._topics = topics

    def codec(self, structure: TableStructure, table: Table, key: Sequence[str] | None = None) -> Codec:
        """Return the codec for a table, whose structure must have the TABLE_MAP's number of columns.

        Args:
            structure: the TABLE_MAP.
            table: the structure.
            key: the key's columns, instead of those of the table and the settings.

        Raises:
            SchemaError: the type of a column in the TABLE_MAP does not match the structure.
            TopicClash: its topic belongs to another table.
        """
        settings = self._settings
        database, name = table.id.database, table.id.table
        topic, augment = self._topics.topic(table.id), settings.naming.key_augment(database, name)
        records = table_schema(table, topic, settings.rules, "stream", warn_unknown, augment, key)
        columns = self._columns(structure, table, records)
        if settings.form is not None and not settings.changes:
            found: Codec = settings.form.codec(records, columns)
            return found
        end = row_end(table)
        current = None if end is None else CurrentRows(columns, end)
        minimal = settings.rules.values.minimal_row_images
        style = binary.SERVER if settings.canonical else binary.STREAM

        def messages() -> TableCodec:
            return TableCodec(
                records,
                columns,
                settings.keys,
                settings.values,
                tombstones=settings.tombstones,
                skip_unchanged=settings.skip_unchanged and not settings.changes,
                minimal_images=minimal,
                current=current,
                json_style=style,
                headers=None
                if settings.transforms is not None
                else SimpleHeaderConverter(replace_null_with_default=not settings.exact_values),
            )

        if not settings.changes:
            return messages()
        python = python_columns(columns, records, minimal_images=minimal, documents=settings.connector == "mysql")
        return ChangeCodec(
            records,
            python,
            skip_unchanged=settings.skip_unchanged,
            minimal_images=minimal,
            current=current,
            json_style=style,
            messages=messages,
        )

    def _columns(self, structure: TableStructure, table: Table, records: TableSchema) -> list[Column]:
        outputs = {column.index: column for column in records.columns}
        columns = []
        for index, (mapped, column) in enumerate(zip(structure.columns, table.row_columns, strict=True)):
            record = outputs.get(index)
            layout = column_layout(mapped.type, mapped.metadata)
            if record is None:
                columns.append(Column(layout, ColumnDecoding("bytes"), mapped.nullable, None))
                continue
            if mapped.type not in KINDS[record.type.kind]:
                raise SchemaError(
                    f"table {table.id}, column {column.name}: the row events have type {mapped.type}, but the column "
                    f"is a {column.column_type} in the schema history. The schema history does not match the "
                    "binlog: restart with snapshot.mode=recovery"
                )
            columns.append(self._column(mapped, column, record, records))
        return columns

    def _column(self, mapped: MappedColumn, column: model.Column, record: RecordColumn, records: TableSchema) -> Column:
        settings = self._settings
        form = settings.values.json_format
        absent = absent_value(column, record, settings)
        return Column(
            column_layout(mapped.type, mapped.metadata),
            column_decoding(column, record, mapped, exact=settings.canonical),
            mapped.nullable,
            column_output(record, records, settings),
            absent_text=record.text(absent, form),
            absent_value=absent,
            default_text=default_text(column, record, settings),
        )


def python_columns(
    columns: Sequence[Column], records: TableSchema, *, minimal_images: bool, documents: bool
) -> list[Column]:
    """Return the columns with Python values as their output; columns that an image omits are unavailable.

    Args:
        columns: with Connect values as their output.
        records: the schemas of the table's records.
        minimal_images: whether an image may omit any column. Connect has null for numbers and dates then.
        documents: see :func:`~rowtide.connector.records.codecs.python_values.python_output`.
    """
    by_index = {column.index: column for column in records.columns}
    return [
        column
        if column.output is None
        else replace(
            column,
            output=python_output(column.output, by_index[index], documents=documents),
            absent_value=UNAVAILABLE if minimal_images or column.absent_value is not None else None,
        )
        for index, column in enumerate(columns)
    ]


def column_decoding(column: model.Column, record: RecordColumn, mapped: MappedColumn, *, exact: bool) -> ColumnDecoding:
    """Return the decoding of a column's bytes from its structure; the sign in the TABLE_MAP takes precedence.

    Args:
        column: its structure.
        record: its field in the records.
        mapped: its description in the TABLE_MAP.
        exact: write JSON and BINARY without a length like the server, not like Debezium.
    """
    kind = record.type.kind
    decode: charset.Decoder | None = None
    if kind == "text":
        name = column.charset or (column.debezium.charset_name if column.debezium else None)
        if name == "binary":  # CHAR(4) CHARACTER SET binary: text for Debezium, with one character per byte
            decode = _latin1
        elif name is not None and name not in _UTF8:
            decode = charset.charset_decoder(name)
    documents = binary.server_text if exact else binary.stream_text
    json_text = documents if mapped.type == JSON else _utf8_or_nothing
    return ColumnDecoding(
        kind,
        unsigned=column.unsigned if mapped.unsigned is None else mapped.unsigned,
        text_decoder=decode,
        labels=tuple(map(unicode_text, column.labels)),
        pad=_padding(column, exact=exact),
        json_text=json_text if kind == "json" else None,
    )


def _padding(column: model.Column, *, exact: bool) -> int:
    """Return the number of bytes to which values are padded; Debezium does not pad a BINARY without length."""
    if column.data_type == "inet6":
        return 16
    if column.data_type != "binary":
        return 0
    return (column.length if exact or column.debezium is None else column.debezium.length) or 0


def _utf8_or_nothing(data: bytes) -> str | None:
    return _utf8(data) if data else None


def _latin1(data: bytes) -> str:
    return data.decode("latin-1")


def _utf8(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def column_output(record: RecordColumn, records: TableSchema, settings: PipelineSettings) -> ColumnOutput:
    """Return a column's field in the form that the row compilers need."""
    form, in_key = settings.values.json_format, settings.keys.json_format
    failed = conversion_failure(
        settings, record, f"table {records.table.id}, ", key=record.index in records.key_columns
    )
    fallback = Fallback(record.null_text(form), failed)
    output = ColumnOutput(
        record.field, record.type, fallback, record.null, record.schema, form, record.in_value, record.mapper
    )
    if in_key == form:
        return output
    key = replace(output, form=in_key, fallback=Fallback(record.null_text(in_key), failed), change=None)
    return replace(output, key=key)


def conversion_failure(settings: PipelineSettings, record: RecordColumn, table: str = "", *, key: bool = False) -> Any:
    """Return the handler of values that cannot be converted (``event.converting.failure.handling.mode``).

    Args:
        settings: the settings.
        record: the column.
        table: the start of its messages, which names the table.
        key: whether the column is part of the key: several rows must not get the same key, whatever the setting.
    """
    mode = "fail" if key else settings.rules.values.event_converting_failure_handling_mode
    subject = f"{table}column {record.column.name} ({record.column.column_type})"
    if key:
        way_out = (
            "The column is part of the key, where any other value would identify another row: set "
            "message.key.columns to other columns"
        )
    else:
        way_out = f"{_SETTING}=warn publishes null or a default instead (of BOOL: true)"

    def failed(value: object, error: Exception) -> object:
        if isinstance(error, ColumnConverterError):  # of the user's code: null instead would hide its mistake
            raise SchemaError(f"{subject}: {error}{_detail(error, settings)}") from error
        shows = settings.show_values or isinstance(error, OutOfRangeError)  # without the number, the error says little
        shown = f"{value} cannot be converted: {error}" if shows else _HIDDEN_VALUE
        if mode == "fail":
            raise SchemaError(f"{subject}: {shown}. {way_out}") from error
        written = error.nearest if isinstance(error, OutOfRangeError) else None
        if mode == "warn":
            instead = "null" if record.null is None else "the default"
            instead = instead if written is None else str(written).lower()
            log.warning("%s: %s. Records have %s instead (%s=warn)", subject, shown, instead, _SETTING)
        return written

    return failed


def _detail(error: ColumnConverterError, settings: PipelineSettings) -> str:
    if not error.detail:
        return ""
    return f": {error.detail}" if settings.show_values else " (errors.log.include.messages=true shows more)"


def absent_value(column: model.Column, record: RecordColumn, settings: PipelineSettings) -> Any:
    """Return the value of a column that is absent in a row image: the placeholder for BLOB and TEXT, else null.

    With ``binlog.row.image.minimal.allowed`` it is the placeholder for all strings and bytes.
    """
    schema = record.type.schema
    plain = settings.rules.values.minimal_row_images and schema.type in {"string", "bytes"} and schema.name is None
    if column.data_type not in OMITTED_TYPES and not plain:
        return None
    if record.type.is_custom and schema.type not in {"string", "bytes"}:
        return None
    placeholder = settings.rules.values.unavailable_value_placeholder
    return placeholder if record.type.schema.type == "bytes" else placeholder.decode("utf-8", "replace")


def default_text(column: model.Column, record: RecordColumn, settings: PipelineSettings) -> str | None:
    """Return the JSON text of a column's literal default, for an INSERT image without the column, if it has one."""
    if column.default_kind is model.DefaultKind.NULL or (
        column.default_kind is model.DefaultKind.NONE and column.nullable
    ):
        value = None
    elif column.default_kind is model.DefaultKind.LITERAL and column.debezium is not None:
        value = default_value(column.debezium, record.type, exact=settings.rules.values.exact)
        if value is None:
            return None
    else:
        return None
    return record.text(record.mapper(value) if record.mapper else value, settings.values.json_format)


def warn_unknown(table: Table, column: model.Column) -> None:
    """Warn that a column is not published, because its type is not supported."""
    log.warning(
        "table %s: column %s has the type %s, which is not supported; the column is not published",
        table.id,
        column.name,
        column.column_type,
    )


def table_schema(
    table: Table,
    topic: str,
    rules: RecordRules,
    stage: Stage,
    unknown: Callable[[Table, model.Column], None] = warn_unknown,
    augment: KeyAugment | None = None,
    key: Sequence[str] | None = None,
) -> TableSchema:
    """Derive the schemas of a table's records; see ``build_table_schema``.

    Raises:
        SchemaError: a custom column converter failed.
    """
    try:
        return build_table_schema(table, topic, rules, stage, unknown, augment, key)
    except ColumnConverterError as error:
        raise SchemaError(str(error)) from error
