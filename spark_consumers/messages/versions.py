"""The schemas in a batch of records: a version for each different schema of a key or an envelope."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rowtide.spark_consumers.columns.conversion import Column, ConverterSettings, JsonSchema, column_of
from rowtide.spark_consumers.columns.spark_types import quote
from rowtide.spark_consumers.errors import NotAnEnvelopeError

_ENVELOPE_FIELDS = {"before", "after", "source", "op"}


@dataclass(frozen=True, slots=True)
class KeyVersion:
    """The schema of a key. ``id`` is ``None`` without a schema, ``columns`` is empty for records without a key."""

    id: int | None
    columns: tuple[Column, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the key's columns."""
        return tuple(column.name for column in self.columns)


@dataclass(frozen=True, slots=True)
class ValueVersion:
    """The schema of a row.

    Attributes:
        id: its version, ``None`` for messages without schemas.
        columns: of the row.
        offsets: windows (first and last) of the offsets of its rows; ``None`` if all rows with the schema are meant.
    """

    id: int | None
    columns: tuple[Column, ...]
    offsets: tuple[tuple[int, int], ...] | None = None

    @property
    def names(self) -> frozenset[str]:
        """The names of the columns, in lower case."""
        return frozenset(column.name.lower() for column in self.columns)


def key_version(version: int | None, schema: JsonSchema, settings: ConverterSettings, topic: str) -> KeyVersion:
    """Return the version of a key's Connect schema.

    Raises:
        NotAnEnvelopeError: the key has no fields, which name columns.
    """
    if "fields" not in schema:
        raise NotAnEnvelopeError(
            f"topic {topic}: the keys are values of type {schema.get('type')}, without the names of the key's columns. "
            f"Exclude the topic with --topics, or remove the transform that extracts a field of the key"
        )
    return KeyVersion(version, _columns(schema["fields"], settings, topic))


def value_version(version: int | None, schema: JsonSchema, settings: ConverterSettings, topic: str) -> ValueVersion:
    """Return the version of an envelope's Connect schema.

    Raises:
        NotAnEnvelopeError: it is not the schema of a change event.
    """
    fields = {field.get("field"): field for field in schema.get("fields", ()) if isinstance(field, dict)}
    if schema.get("type") != "struct" or not fields.keys() >= _ENVELOPE_FIELDS or "fields" not in fields["after"]:
        found = ", ".join(sorted(str(name) for name in fields)) or str(schema.get("type"))
        raise NotAnEnvelopeError(
            f"topic {topic} holds no change events: expected an envelope with before, after, source and op, found "
            f"{found}. Exclude the topic with --topics, or remove the transform that unwraps the envelope"
        )
    return ValueVersion(version, _columns(fields["after"]["fields"], settings, topic))


def _columns(fields: Iterable[JsonSchema], settings: ConverterSettings, topic: str) -> tuple[Column, ...]:
    """Return the columns of a struct schema, which a user may have written by hand."""
    found = []
    for field in fields:
        try:
            found.append(column_of(field, settings))
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            reason = f"{error} is missing" if isinstance(error, KeyError) else str(error)
            raise NotAnEnvelopeError(
                f"topic {topic}: {json.dumps(field)[:200]} is not the Connect schema of a column ({reason}). Correct "
                f"it in the file of --schemas, or exclude the topic with --topics"
            ) from error
    return tuple(found)


def parse_schema(text: str, topic: str) -> Mapping[str, Any]:
    """Parse the Connect schema of a message.

    Raises:
        NotAnEnvelopeError: the text is not a JSON object.
    """
    try:
        schema = json.loads(text)
    except ValueError as error:
        raise NotAnEnvelopeError(f"topic {topic}: a message's schema is not JSON ({error})") from error
    if not isinstance(schema, dict):
        raise NotAnEnvelopeError(
            f"topic {topic}: a message's schema is {text[:80]}, which is not the schema of a struct"
        )
    return schema


def wire_struct(columns: Iterable[Column]) -> str:
    """Return the DDL with which ``from_json`` reads a row."""
    return f"STRUCT<{', '.join(f'{quote(column.field)}: {column.wire}' for column in columns)}>"
