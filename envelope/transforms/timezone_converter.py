"""``io.debezium.transforms.TimezoneConverter``: converts time fields of change events to another time zone."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from rowtide.envelope.schema import Field, Schema
from rowtide.envelope.transforms.options import Options
from rowtide.envelope.transforms.record import ConnectRecord, TransformError, field_of, require_struct, value_of

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - a local time
_OFFSET = re.compile(r"([+-])(\d{2}):(\d{2})(?::(\d{2}))?")
_ZONED = re.compile(r"(.{19,})(Z|[+-]\d\d:\d\d(?::\d\d)?)")
# The pattern of an item of the lists. Debezium allows only word characters, quotes, dots and spaces.
_ITEM = re.compile(r"[^:,]+(?::[^:,]+){0,2}")
# Units per second of the values, by the name of the schema.
_UNITS = {
    "io.debezium.time.Timestamp": 1_000,
    "io.debezium.time.MicroTimestamp": 1_000_000,
    "io.debezium.time.NanoTimestamp": 1_000_000_000,
    "org.apache.kafka.connect.data.Timestamp": 1_000,
}
_ZONED_TIMESTAMP = "io.debezium.time.ZonedTimestamp"
_EPOCH_FIELDS = {"ts_ms": 1_000, "ts_us": 1_000_000, "ts_ns": 1_000_000_000}

Selected = Callable[[str], bool]
Names = Mapping[str, frozenset[str]]
"""Field names by table or topic; an empty set stands for all fields."""


@dataclass(frozen=True, slots=True)
class TimezoneConverter:
    """Interprets values without a zone as local times in the zone, and converts values with a zone to it.

    Attributes:
        zone: the time zone.
        including: true for ``include.list``, false for ``exclude.list``, ``None`` without a list.
        by_topic, by_table, by_either: the items of the list.
        replace_null_with_default: whether a column's default replaces NULL, as in Debezium.
    """

    zone: tzinfo
    including: bool | None
    by_topic: Names
    by_table: Names
    by_either: Names
    replace_null_with_default: bool = True

    @classmethod
    def from_options(cls, options: Options) -> "TimezoneConverter":
        """Read ``converted.timezone``, ``include.list`` and ``exclude.list``."""
        name = options.required_text("converted.timezone")
        zone = _zone(name)
        if zone is None:
            options.problem(
                "converted.timezone",
                f"{name!r} is neither a time zone such as Europe/Berlin nor an offset such as +08:00",
            )
        include, exclude = options.items("include.list"), options.items("exclude.list")
        if include and exclude:
            options.problem("exclude.list", "include.list and exclude.list must not both be set")
        for option, items in (("include.list", include), ("exclude.list", exclude)):
            wrong = [item for item in items if not _ITEM.fullmatch(item)]
            if wrong:
                options.problem(
                    option,
                    f"{wrong[0]!r} must be source:table, topic:topic or name, optionally followed by :field",
                )
        including = bool(include) if include or exclude else None
        return cls(zone or UTC, including, *_names(include or exclude), not options.exact)

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        """Return the event with converted times."""
        if record.value is None or not record.is_envelope:
            return record
        envelope, change = require_struct(record.value_schema, record.value)
        selected = self._selected(record.topic, _table_of(envelope, change))
        if selected is None:
            return record
        row_fields, source_fields = selected
        changed = dict(change)
        for part in ("before", "after"):
            if change.get(part) is not None:
                schema = field_of(envelope, part).schema
                changed[part] = self._converted(schema, change[part], partial(row_fields, part))
        if source_fields and change.get("source") is not None:
            changed["source"] = self._source(field_of(envelope, "source").schema, change["source"], source_fields)
        return record.with_content("value", envelope, changed)

    def _selected(self, topic: str, table: str | None) -> tuple[Callable[[str, str], bool], frozenset[str]] | None:
        """Return the fields of the rows and of ``source`` to convert, ``None`` for no field."""
        names = next(
            (
                known[name]
                for known, name in (
                    (self.by_topic, topic),
                    (self.by_table, table),
                    (self.by_either, topic),
                    (self.by_either, table),
                )
                if name is not None and name in known
            ),
            None,
        )
        if self.including is None or (names is None and not self.including):
            return _everything, frozenset()
        if names is None or (not names and not self.including):
            return None
        if not names:
            return _everything, frozenset()
        source = frozenset(name.removeprefix("source.") for name in names if name.startswith("source."))

        def named(part: str, name: str) -> bool:
            return name in names or f"{part}.{name}" in names

        if self.including:
            return named, source
        return (lambda part, name: not named(part, name)), source

    def _converted(self, schema: Schema, struct: Mapping[str, Any], selected: Selected) -> dict[str, Any]:
        return {
            field.name: self._value(schema, struct, field) if selected(field.name) else struct.get(field.name)
            for field in schema.fields
        }

    def _value(self, schema: Schema, struct: Mapping[str, Any], field: Field) -> Any:
        name = field.schema.name or ""
        if name not in _UNITS and name != _ZONED_TIMESTAMP:
            return struct.get(field.name)
        value = value_of(schema, struct, field.name, replace_null_with_default=self.replace_null_with_default)
        if value is None:
            return None
        try:
            if name == _ZONED_TIMESTAMP:
                return self._zoned(value)
            unit = _UNITS[name]
            offset = self._offset_at(_EPOCH + timedelta(seconds=value // unit))
        except (OverflowError, ValueError) as error:
            message = f"field {field.name!r}: the time is not one of the years 1 to 9999 in both zones"
            raise TransformError(message, str(value)) from error
        return _long(value - offset * unit)

    def _source(self, schema: Schema, source: Mapping[str, Any], fields: frozenset[str]) -> dict[str, Any]:
        """Add the zone's offset to the selected fields, as Debezium does for ``source`` only."""
        values = dict(source)
        for field in schema.fields:
            unit = _EPOCH_FIELDS.get(field.name)
            value = source.get(field.name)
            if unit is not None and value is not None and (field.name in fields) == self.including:
                instant = datetime.fromtimestamp(0, UTC) + timedelta(seconds=value // unit)
                values[field.name] = value + _seconds(instant.astimezone(self.zone)) * unit
        return values

    def _zoned(self, text: str) -> str:
        match = _ZONED.fullmatch(text)
        if match is None:
            return text
        local, fraction = _parsed(match[1])
        # Debezium looks up the offset as if this were a local time in the new zone.
        seconds = self._offset_at(local)
        moved = local + timedelta(seconds=seconds - _offset_seconds(match[2]))
        fraction = fraction.rstrip("0")
        return f"{moved.isoformat()}{'.' + fraction if fraction else ''}{_offset_text(seconds)}"

    def _offset_at(self, local: datetime) -> int:
        """Return the offset in seconds at a local time; of two, the earlier one, and in a gap, the one before it."""
        return _seconds(local.replace(tzinfo=self.zone))


def _long(value: int) -> int:
    """Wrap a value to 64 bits, as Debezium does with nanoseconds after the year 2262."""
    return (value + 2**63) % 2**64 - 2**63


def _everything(_part: str, _name: str) -> bool:
    return True


def _table_of(envelope: Schema, change: Mapping[str, Any]) -> str | None:
    source = envelope.field("source")
    if source is None or change.get("source") is None or source.schema.field("table") is None:
        return None
    table: str | None = change["source"].get("table")
    return table


def _parsed(text: str) -> tuple[datetime, str]:
    whole, _, fraction = text.partition(".")
    return datetime.fromisoformat(whole), fraction


def _seconds(moment: datetime) -> int:
    return int((moment.utcoffset() or timedelta()).total_seconds())


def _offset_seconds(text: str) -> int:
    match = _OFFSET.fullmatch(text)
    if match is None:  # Z
        return 0
    seconds = int(match[2]) * 3600 + int(match[3]) * 60 + int(match[4] or 0)
    return -seconds if match[1] == "-" else seconds


def _offset_text(seconds: int) -> str:
    if seconds == 0:
        return "Z"
    minutes, rest = divmod(abs(seconds), 60)
    text = f"{'-' if seconds < 0 else '+'}{minutes // 60:02d}:{minutes % 60:02d}"
    return f"{text}:{rest:02d}" if rest else text


def _zone(name: str) -> tzinfo | None:
    if _OFFSET.fullmatch(name):
        seconds = _offset_seconds(name)
        return timezone(timedelta(seconds=seconds)) if abs(seconds) <= 18 * 3600 else None
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        return None


def _names(items: tuple[str, ...]) -> tuple[Names, Names, Names]:
    """Return the items of a list by topic, by table, and by either.

    A prefix also applies to the items after it: ``source:a,b`` and ``source:a,source:b`` are the same.
    """
    found: dict[str, dict[str, set[str]]] = {"topic": {}, "source": {}, "": {}}
    prefix = ""
    for item in items:
        parts = item.split(":")
        if len(parts) > 1 and parts[0].lower() in ("source", "topic"):
            prefix = parts[0] if parts[0] in found else ""
            parts = parts[1:]
        named = found[prefix].setdefault(parts[0], set())
        if len(parts) > 1:
            named.add(parts[1])
    topic, table, either = (
        {name: frozenset(fields) for name, fields in found[kind].items()} for kind in ("topic", "source", "")
    )
    return topic, table, either
