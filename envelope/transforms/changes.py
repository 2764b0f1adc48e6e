"""Debezium's ``ExtractChangedRecordState``, ``ReadToInsertEvent`` and ``SchemaChangeEventFilter``."""

from dataclasses import dataclass
from typing import Any

from rowtide.envelope.schema import OPTIONAL_STRING, Schema
from rowtide.envelope.transforms.options import Options
from rowtide.envelope.transforms.record import ConnectRecord, Header, require_struct


@dataclass(frozen=True, slots=True)
class ExtractChangedRecordState:
    """``io.debezium.transforms.ExtractChangedRecordState``: adds headers with the names of changed and other fields.

    Both are empty for a record that is not an update.

    Attributes:
        changed, unchanged: ``header.changed.name`` and ``header.unchanged.name``, ``None`` for no such header.
    """

    changed: str | None
    unchanged: str | None

    @classmethod
    def from_options(cls, options: Options) -> "ExtractChangedRecordState":
        """Read ``header.changed.name`` and ``header.unchanged.name``."""
        changed, unchanged = (options.text(f"header.{one}.name", "").strip() for one in ("changed", "unchanged"))
        return cls(changed or None, unchanged or None)

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        """Return the record with the headers; a record that is not a change remains unchanged."""
        if record.value is None or not record.is_envelope:
            return record
        schema, change = require_struct(record.value_schema, record.value)
        names: dict[bool, list[str]] = {True: [], False: []}
        before, after, row = change.get("before"), change.get("after"), schema.field("after")
        if before is not None and after is not None and row is not None:
            for one in row.schema.fields:
                names[before.get(one.name) != after.get(one.name)].append(one.name)
        wanted = ((self.changed, names[True]), (self.unchanged, names[False]))
        return record.with_headers(tuple(_names(name, found) for name, found in wanted if name is not None))


def _names(header: str, names: list[str]) -> Header:
    return Header(header, Schema("array", optional=True, name=header, items=OPTIONAL_STRING), names)


@dataclass(frozen=True, slots=True)
class ReadToInsertEvent:
    """``io.debezium.connector.mysql.transforms.ReadToInsertEvent``: makes the rows of snapshots insertions."""

    @classmethod
    def from_options(cls, _options: Options) -> "ReadToInsertEvent":
        """Read no options."""
        return cls()

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        """Return the record with ``op`` ``c`` instead of ``r``. Its headers stay; Debezium removes them."""
        if record.value is None or not record.is_envelope or record.value["op"] != "r":
            return record
        return record.with_content("value", record.value_schema, {**record.value, "op": "c"})


_EVENTS = ("CREATE", "ALTER", "DROP", "TRUNCATE", "DATABASE")


@dataclass(frozen=True, slots=True)
class SchemaChangeEventFilter:
    """``io.debezium.transforms.SchemaChangeEventFilter``: drops schema changes by their types.

    A statement of a database changes no table. Its type is ``DATABASE``.
    """

    excluded: frozenset[str]

    @classmethod
    def from_options(cls, options: Options) -> "SchemaChangeEventFilter":
        """Read ``schema.change.event.exclude.list``."""
        name = "schema.change.event.exclude.list"
        given = options.items(name)
        wrong = [one for one in given if one not in _EVENTS]
        if not given:
            options.problem(name, f"is required: {', '.join(_EVENTS)}")
        if wrong:
            options.problem(name, f"must have names of {', '.join(_EVENTS)}, not {', '.join(wrong)}")
        return cls(frozenset(given))

    def apply(self, record: ConnectRecord) -> ConnectRecord | None:
        """Return the record, ``None`` for a schema change of an excluded type."""
        if record.value is None or not record.is_schema_change:
            return record
        changes: list[Any] = record.value.get("tableChanges") or []
        kind = changes[0]["type"] if changes else "DATABASE"
        return None if kind in self.excluded else record
