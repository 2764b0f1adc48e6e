"""Messages without schemas (``schemas.enable=false``): their columns come from schemas that the user supplies.

JSON distinguishes numbers, text and booleans only. A date is a number of days and a decimal is base64 text, so the
type of a field cannot be derived from its value: a field without a schema is an error.
"""

from collections.abc import Collection, Mapping
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from rowtide.spark_consumers.columns.conversion import ConverterSettings
from rowtide.spark_consumers.errors import NotAnEnvelopeError, SchemaMissingError
from rowtide.spark_consumers.messages.versions import KeyVersion, ValueVersion, key_version, value_version

FIELD_NAMES = "json_object_keys(get_json_object(value, '$.{image}'))"
"""SQL of the names in ``before`` or ``after``."""


def key_without_schema(
    names: tuple[str, ...] | None, schema: Mapping[str, Any] | None, settings: ConverterSettings, topic: str
) -> KeyVersion:
    """Return the schema of keys with these fields; ``names`` is ``None`` for records without a key.

    Raises:
        SchemaMissingError: a field has no schema.
    """
    if names is None:
        return KeyVersion(None)
    known = {column.name: column for column in key_version(None, schema, settings, topic).columns} if schema else {}
    _require("key", names, known, topic)
    return KeyVersion(None, tuple(known[name] for name in names))


def value_without_schema(
    records: DataFrame, schema: Mapping[str, Any] | None, settings: ConverterSettings, topic: str, *, truncations: bool
) -> ValueVersion:
    """Return the schema of the envelopes without one; ``truncations`` are enough if they are rows.

    Raises:
        NotAnEnvelopeError: the records are not change events.
        SchemaMissingError: a field has no schema.
    """
    plain = records.where("value_version IS NULL AND value IS NOT NULL AND op <> 't'")
    names = _field_names(plain)
    if not names and not (schema and truncations):
        raise NotAnEnvelopeError(
            f"topic {topic}: the records have neither before nor after. Exclude the topic with --topics"
        )
    version = value_version(None, schema, settings, topic) if schema else ValueVersion(None, ())
    _require("value", names, {column.name for column in version.columns}, topic)
    return version


def _field_names(records: DataFrame) -> list[str]:
    """Return the names of all fields of the rows."""
    images = [FIELD_NAMES.replace("{image}", image) for image in ("before", "after")]
    rows = records.select(F.explode(F.expr(f"concat({', '.join(f'coalesce({i}, array())' for i in images)})")))
    return sorted(row[0] for row in rows.distinct().collect())


def _require(side: str, names: Collection[str], known: Collection[str], topic: str) -> None:
    missing = [name for name in names if name not in known]
    if missing:
        raise SchemaMissingError(
            f"topic {topic}: the messages have no schemas (schemas.enable=false), and field {missing[0]!r} of the "
            f"{side} has none either: its type cannot be derived from JSON. Give the connector's configuration with "
            f"--config, to take the columns from its schema history, or Connect schemas with --schemas FILE"
        )
