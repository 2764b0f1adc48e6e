"""Kafka Connect's ``TimestampConverter``, and ``TimestampRouter``, which chooses topics by the time."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from rowtide.envelope.schema import INT64, STRING, Field, Schema
from rowtide.envelope.transforms.options import Options
from rowtide.envelope.transforms.record import (
    ConnectRecord,
    SchemaCache,
    Side,
    TransformError,
    convert_fields,
    require_struct,
    with_fields,
)
from rowtide.envelope.transforms.simple_date_format import SimpleDateFormat

_DAY = 86_400_000
_DATA = "org.apache.kafka.connect.data."
_SCHEMAS = {
    "string": STRING,
    "unix": INT64,
    "date": Schema("int32", name=_DATA + "Date", version=1),
    "time": Schema("int32", name=_DATA + "Time", version=1),
    "timestamp": Schema("int64", name=_DATA + "Timestamp", version=1),
}
"""The schemas of the formats of times, by their names in ``target.type``."""
_FORMATS = {schema.name: name for name, schema in _SCHEMAS.items() if schema.name is not None}
_PRECISIONS = {"seconds": (1, 1000), "milliseconds": (1, 1), "microseconds": (1000, 1), "nanoseconds": (1_000_000, 1)}
"""How many units are in a millisecond, and how many milliseconds in a unit."""
_INT32, _INT64 = 1 << 31, 1 << 63

Convert = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class TimestampConverter:
    """``org.apache.kafka.connect.transforms.TimestampConverter``: converts a field, or the whole key or value.

    A time is a text, a number (``unix``), or Connect's ``Date``, ``Time`` or ``Timestamp``. All of them are in UTC, and
    are converted through milliseconds.

    Attributes:
        side: the key or the value.
        name: a field, empty for the whole key or value.
        target: ``target.type`` in lower case.
        format: the format of texts, ``None`` if it is not set.
        precision: ``unix.precision``.
        exact: whether a time that does not fit its type is an error, and digits of times before 1970 are cut off.
        replace_null_with_default: whether a field's default replaces null.
    """

    side: Side
    name: str
    target: str
    format: SimpleDateFormat | None
    precision: str
    exact: bool
    replace_null_with_default: bool
    _plans: SchemaCache[tuple[Schema, Convert]] = field(default_factory=SchemaCache, repr=False, compare=False)

    @classmethod
    def from_options(cls, side: Side, options: Options) -> "TimestampConverter":
        """Read ``field``, ``target.type``, ``format`` and ``unix.precision``."""
        target = "timestamp"
        if options.required_text("target.type"):
            target = options.choice("target.type", tuple(_SCHEMAS), target)
        pattern = None
        if options.text("format", "").strip():
            pattern = _pattern(options, "format", "")
        elif target == "string":
            options.problem("format", "is required with target.type=string, for example yyyy-MM-dd")
        precision = options.choice("unix.precision", tuple(_PRECISIONS), "milliseconds")
        name = options.text("field", "")
        return cls(side, name, target, pattern, precision, options.exact, options.replaces_nulls())

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        """Return the record with the converted time; one without the field keeps its values."""
        schema, value = record.schema_of(self.side), record.content(self.side)
        if schema is None:
            return record
        if self.name and value is not None:
            require_struct(schema, value)
        made, convert = self._plans.get(self._plan, schema)
        try:
            return record.with_content(self.side, made, None if value is None else convert(value))
        except TransformError:
            raise
        except ValueError as error:
            raise TransformError(f"the {self.side}: {error}") from error

    def _plan(self, schema: Schema) -> tuple[Schema, Convert]:
        if not self.name:
            return _SCHEMAS[self.target].with_optional(schema.optional), self._conversion(schema)
        fields = []
        changes: list[tuple[str, Convert]] = []
        for one in schema.fields:
            if one.name == self.name:
                changes.append((one.name, self._conversion(one.schema)))
                fields.append(Field(one.name, _SCHEMAS[self.target].with_optional(one.schema.optional)))
            else:
                fields.append(one)
        made = with_fields(schema, tuple(fields)).with_optional(schema.optional)
        keep = self.replace_null_with_default
        return made, lambda struct: convert_fields(schema, struct, changes, replace_null_with_default=keep)

    def _conversion(self, schema: Schema) -> Convert:
        read, write = self._reader(schema), self._writer()
        return lambda value: write(read(value))

    def _reader(self, schema: Schema) -> Callable[[Any], int]:
        """Return the function from a value to milliseconds since the epoch."""
        given = _FORMATS.get(schema.name or "") or {"string": "string", "int64": "unix"}.get(schema.type)
        if given == "date":
            return lambda days: int(days * _DAY)
        if given in ("time", "timestamp"):
            return int
        if given == "unix":
            finer, coarser = _PRECISIONS[self.precision]
            return lambda number: self._scaled(number * coarser, finer)
        if given == "string":
            return self._parsed
        name = f"{schema.type} ({schema.name})" if schema.name else schema.type
        raise TransformError(
            f"{self._place} has type {name}, which is not a time here: times are text, int64, and Connect's Date, "
            "Time and Timestamp, which time.precision.mode=connect makes of all columns"
        )

    def _writer(self) -> Callable[[int], Any]:
        """Return the function from milliseconds since the epoch to the target."""
        match self.target:
            case "string":
                assert self.format is not None
                return self.format.format
            case "unix":
                finer, coarser = _PRECISIONS[self.precision]
                return lambda milliseconds: self._scaled(milliseconds * finer, coarser)
            case "date":
                return self._day
            case "time":
                return lambda milliseconds: milliseconds % _DAY
            case _:
                return int

    def _parsed(self, text: str) -> int:
        if self.format is None:
            raise ValueError("the time is text: set format, for example yyyy-MM-dd")
        return self.format.parse(text)

    def _scaled(self, number: int, by: int) -> int:
        if not self.exact:
            # Java rounds towards zero: the last microsecond of 1969 becomes 1970.
            quotient = -(-number // by) if number < 0 else number // by
            return max(-_INT64, min(quotient, _INT64 - 1))
        if not -_INT64 <= number // by < _INT64:
            raise ValueError(f"the time does not fit an int64 in {self.precision}")
        return number // by

    def _day(self, milliseconds: int) -> int:
        day = milliseconds // _DAY
        if self.exact and not -_INT32 <= day < _INT32:
            raise ValueError("the time does not fit a Date: check unix.precision")
        return (day + _INT32) % (2 * _INT32) - _INT32

    @property
    def _place(self) -> str:
        return f"field {self.name!r}" if self.name else f"the {self.side}"


@dataclass(frozen=True, slots=True)
class TimestampRouter:
    """``org.apache.kafka.connect.transforms.TimestampRouter``: writes to topics by the records' timestamps.

    Attributes:
        topic: ``topic.format``.
        time: ``timestamp.format``.
    """

    topic: str
    time: SimpleDateFormat

    @classmethod
    def from_options(cls, options: Options) -> "TimestampRouter":
        """Read ``topic.format`` and ``timestamp.format``."""
        time = _pattern(options, "timestamp.format", "yyyyMMdd")
        topic = options.text("topic.format", "${topic}-${timestamp}")
        return cls(topic, time or SimpleDateFormat("yyyyMMdd", exact=options.exact))

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        """Return the record in its new topic."""
        if record.timestamp is None:
            raise TransformError("it has no timestamp: limit the transform with a predicate to records that have one")
        topic = self.topic.replace("${topic}", record.topic)
        return replace(record, topic=topic.replace("${timestamp}", self.time.format(record.timestamp)))


def _pattern(options: Options, name: str, default: str) -> SimpleDateFormat | None:
    """Read a pattern; ``None`` if it is wrong."""
    try:
        return SimpleDateFormat(options.text(name, default), exact=options.exact)
    except ValueError as error:
        options.problem(name, str(error))
        return None
