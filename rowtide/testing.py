"""Tools for unit tests of your transforms and column converters: no server, no Kafka."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from rowtide.envelope.custom_converter import CustomConverter, Registration, RelationalColumn
from rowtide.envelope.schema import Schema, struct
from rowtide.envelope.source import VERSIONS
from rowtide.envelope.table import envelope_schema
from rowtide.envelope.transforms import ConnectRecord, Plugin, TransformError, transform_chain
from rowtide.envelope.transforms.python_hook import PythonTransform
from rowtide.envelope.transforms.record import SchemaCache, described
from rowtide.envelope.transforms.validation import check_record, schema_check

__all__ = ["Converted", "RelationalColumn", "apply_transform", "change", "convert"]

_AT = 1_767_225_600_000
"""The time of the example's transaction: 2026-01-01, in milliseconds since the epoch."""


class Converted(NamedTuple):
    """The output of a column converter for a column and a value.

    Attributes:
        schema: the schema of the field, optional if the column is.
        value: the value of the field.
    """

    schema: Schema
    value: Any


def change(
    row: Mapping[str, Schema],
    *,
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
    key: tuple[str, ...] = (),
    topic: str = "server.shop.orders",
) -> ConnectRecord:
    """Return the record of a change, with the envelope that a connector for MySQL writes.

    Args:
        row: the schemas of the row's fields.
        before: the row before the change; ``None`` for an insert.
        after: the row after it; ``None`` for a delete.
        key: the fields of the key; without any, the record has no key.
        topic: ``prefix.database.table``.

    Raises:
        ValueError: there is no row, a value does not match its schema, or the topic has another form.
    """
    present = after if after is not None else before
    if present is None:
        raise ValueError("a change needs a row: before, after, or both")
    prefix, _, rest = topic.partition(".")
    database, _, table = rest.partition(".")
    if not table:
        raise ValueError(f"topic must have the form prefix.database.table, not {topic!r}")
    schema = envelope_schema(f"{topic}.Envelope", struct(f"{topic}.Value", row, optional=True), "mysql")
    source = {
        "version": VERSIONS["mysql"], "connector": "mysql", "name": prefix, "ts_ms": _AT, "snapshot": "false",
        "db": database, "sequence": None, "ts_us": _AT * 1000, "ts_ns": _AT * 1_000_000, "table": table, "server_id": 1,
        "gtid": None, "file": "binlog.000001", "pos": 4, "row": 0, "thread": None, "query": None,
    }  # fmt: skip
    value = {
        "before": None if before is None else dict(before),
        "after": None if after is None else dict(after),
        "source": source,
        "transaction": None,
        "op": "c" if before is None else "d" if after is None else "u",
        "ts_ms": _AT,
        "ts_us": _AT * 1000,
        "ts_ns": _AT * 1_000_000,
    }
    key_schema = struct(f"{topic}.Key", {name: row[name] for name in key}) if key else None
    nothing = ConnectRecord(topic, None, None, None, None, None)
    key_value = {name: present[name] for name in key} if key else None
    found = ConnectRecord(topic, None, key_schema, key_value, schema, value)
    check_record(found, nothing, SchemaCache())
    return found


def apply_transform(
    transform: str | Callable[[ConnectRecord], Any], record: ConnectRecord, options: Mapping[str, str] | None = None
) -> list[ConnectRecord]:
    """Apply a transform to a record, check the result as a connector does, and return it.

    Args:
        transform: a function, or the ``type`` of a transform, such as ``python:shop_transforms.Suffix`` or
            ``io.debezium.transforms.Filter``.
        record: the record.
        options: the transform's options, by their names without ``transforms.<name>.``.

    Raises:
        TransformConfigurationError: the transform does not exist, or its options are invalid.
        TransformError: the transform raised an error, or its result does not match its schema.
    """
    if options and not isinstance(transform, str):
        raise TransformError("a function takes no options: name a class by python:module.Class")
    try:
        if isinstance(transform, str):
            return transform_chain([Plugin("tested", transform, dict(options or {}))]).records(record)
        return list(PythonTransform(transform.__name__, transform).apply(record) or ())  # type: ignore[arg-type]
    except TransformError as error:
        raise TransformError(described(error, show_values=True)) from error


def convert(
    converter: CustomConverter, column: RelationalColumn, value: Any, options: Mapping[str, str] | None = None
) -> Converted | None:
    """Convert a value with a column converter; return ``None`` if the converter ignores the column.

    Args:
        converter: the converter.
        column: the column.
        value: a value of the column, as from :class:`rowtide.Engine`; ``None`` becomes the registered ``null``.
        options: given to its method ``configure``, if it has one.

    Raises:
        ValueError: the result does not match the schema.
    """
    configure = getattr(converter, "configure", None)
    if configure is not None:
        configure(dict(options or {}))
    registration = Registration()
    converter.converter_for(column, registration)
    if registration.registered is None:
        return None
    schema, function, null, _default = registration.registered
    schema = schema.with_optional(schema.optional or column.optional)
    result = null if value is None else function(value)
    schema_check(schema)(result, f"column {column.name}")
    return Converted(schema, result)
