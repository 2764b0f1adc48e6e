"""Finds columns whose values a setting changes, and describes the change and the setting that keeps the values.

These settings are Debezium's defaults (``rowtide.values=debezium``), and some that a user chooses. With exact values,
no default changes a value.
"""

import logging
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from rowtide.connector.errors import some_of
from rowtide.connector.records.codecs.builder import table_schema
from rowtide.connector.records.codecs.recently_used import RecentlyUsed
from rowtide.connector.records.settings import PipelineSettings
from rowtide.envelope.settings import ValueSettings
from rowtide.envelope.table import RecordColumn
from rowtide.envelope.types.mapping import JDBC_BOOLEAN, JDBC_REAL
from rowtide.schema_history.model import Table

log = logging.getLogger(__name__)

_SHOWN = 20
_EXACT_DIGITS = 15
_MAX_REPORTED = 10_000
"""The number of columns whose warnings are remembered."""


@dataclass(frozen=True, slots=True)
class ConversionSettings:
    """The settings that can change values.

    Attributes:
        values: the settings of values.
        nulls_in_keys: ``key.converter.replace.null.with.default``.
        nulls_in_values: ``value.converter.replace.null.with.default``.
        tells_null: whether the converter of values distinguishes null from zero.
    """

    values: ValueSettings
    nulls_in_keys: bool = True
    nulls_in_values: bool = True
    tells_null: bool = True

    @classmethod
    def of(cls, settings: PipelineSettings) -> "ConversionSettings":
        """Return those of the pipeline."""
        if settings.transforms is not None:
            keys, values = settings.transforms.keys, settings.transforms.values
            return cls(settings.rules.values, keys.replaces_null, values.replaces_null, values.tells_null)
        formats = settings.keys.json_format, settings.values.json_format
        return cls(settings.rules.values, *(one.replace_null_with_default for one in formats))


DEBEZIUM = ConversionSettings(ValueSettings())
"""Debezium's defaults."""


@dataclass(frozen=True, slots=True)
class ColumnTraits:
    """The properties of a column on which conversions depend.

    Attributes:
        column_type: its type in information_schema, such as ``bigint unsigned``.
        nullable: whether it allows NULL.
        has_default: whether it has a default other than NULL.
        in_key: whether it is part of the record's key.
        jdbc_type: the type that Debezium gives it; ``None`` if the schema history, which has it, was not read.
    """

    column_type: str
    nullable: bool
    has_default: bool = False
    in_key: bool = False
    jdbc_type: int | None = None

    def is_a(self, *data_types: str) -> bool:
        """Return whether the column has one of these data types."""
        return re.split(r"\W", self.column_type.lower(), maxsplit=1)[0] in data_types

    @property
    def argument(self) -> int:
        """The number in parentheses after the data type, 0 without one."""
        match = re.match(r"\w+\((\d+)", self.column_type)
        return int(match[1]) if match else 0


@dataclass(frozen=True, slots=True)
class LossyConversion:
    """A setting that changes values of some columns.

    Attributes:
        setting: the property.
        active: whether the settings have it.
        affects: whether it can change values of a column.
        problem: the consequence, as the start of a sentence that ends with the names of the columns.
        remedy: the setting that keeps the values.
    """

    setting: str
    active: Callable[[ConversionSettings], bool]
    affects: Callable[[ColumnTraits], bool]
    problem: str
    remedy: str

    def message(self, columns: Sequence[str]) -> str:
        """Return the warning about columns, to follow the property's name."""
        return f"{self.problem} {some_of(columns, _SHOWN)}. {self.remedy}"


def _overflows(column: ColumnTraits) -> bool:
    return column.is_a("bigint") and ("unsigned" in column.column_type or "zerofill" in column.column_type)


def _holds_zero_dates(column: ColumnTraits) -> bool:
    return not column.nullable and column.is_a("date", "datetime", "timestamp")


def _has_escaped_label(column: ColumnTraits) -> bool:
    labels = re.findall(r"'((?:[^']|'')*)'", column.column_type) if column.is_a("enum") else []
    return any("," in label or "\\" in label for label in labels)


OVERFLOW = LossyConversion(
    "bigint.unsigned.handling.mode",
    lambda settings: settings.values.bigint_unsigned_handling_mode == "long",
    _overflows,
    "is long: values of 2^63 and above become negative in",
    "precise or string keeps them, with another type in the schema; long_exact stops at such a value",
)
ZERO_DATES = LossyConversion(
    "zero.date.handling.mode",
    lambda settings: settings.values.zero_date_handling_mode == "epoch",
    _holds_zero_dates,
    "is epoch: zero dates and partial dates become 1970-01-01, or the default, in the NOT NULL columns",
    "null distinguishes them, with optional fields in the schema",
)
ZERO_TIMESTAMPS = LossyConversion(
    "zero.date.handling.mode",
    lambda settings: settings.values.zero_date_handling_mode == "epoch" and settings.values.connector == "mariadb",
    lambda column: column.nullable and column.is_a("timestamp"),
    "is epoch: zero dates become 1970-01-01 in the stream in",
    "null makes them null, as in snapshots",
)
YEARS = LossyConversion(
    "enable.time.adjuster",
    lambda settings: settings.values.enable_time_adjuster,
    lambda column: column.is_a("date", "datetime"),
    "is true: the years 1 to 99 become 2001 to 2069 and 1970 to 1999 in",
    "false keeps them",
)
_CONVERTER = "org.apache.kafka.connect.json.JsonConverter"
NULLS = LossyConversion(
    "value.converter.replace.null.with.default",
    lambda settings: settings.nulls_in_values,
    lambda column: column.nullable and column.has_default,
    "is true: NULL becomes the column's default in",
    f"false keeps NULL, together with value.converter={_CONVERTER}; with AvroConverter, "
    "value.converter.ignore.default.for.nullables=true does",
)
NULLS_IN_KEYS = LossyConversion(
    "key.converter.replace.null.with.default",
    lambda settings: settings.nulls_in_keys,
    lambda column: column.nullable and column.has_default and column.in_key,
    "is true: NULL becomes the column's default in the keys of",
    f"false keeps NULL, together with key.converter={_CONVERTER}; with AvroConverter, "
    "key.converter.ignore.default.for.nullables=true does",
)
ZEROS = LossyConversion(
    "value.converter.optional.for.nullables",
    lambda settings: not settings.tells_null,
    lambda column: column.nullable and not column.is_a("decimal"),
    "is false: Protobuf does not distinguish NULL from zero and an empty text in",
    "true distinguishes them",
)
BOOLEANS = LossyConversion(
    "rowtide.bool.handling.mode",
    lambda settings: settings.values.bool_handling_mode == "boolean",
    lambda column: column.jdbc_type == JDBC_BOOLEAN,
    "is boolean: numbers other than 0 and 1 become true, or stop the connector if they are in a key, in",
    "int16 keeps them, with the type that snapshots have",
)
REALS = LossyConversion(
    "rowtide.values",
    lambda settings: not settings.values.exact,
    lambda column: column.jdbc_type == JDBC_REAL,
    "is debezium: numbers are rounded to a FLOAT of seven digits in the stream in the columns declared REAL",
    "exact keeps them, with the type that snapshots have",
)
FLOATS = LossyConversion(
    "rowtide.values",
    lambda settings: not settings.values.canonical,
    lambda column: column.column_type.lower().split()[0] == "float",
    "is debezium: a snapshot has six digits of the numbers in",
    "exact reads all digits",
)
LABELS = LossyConversion(
    "rowtide.values",
    lambda settings: not settings.values.canonical,
    _has_escaped_label,
    "is debezium: labels with a comma or a backslash get another backslash in the stream in",
    "exact keeps them",
)
TIMESTAMP_KEYS = LossyConversion(
    "rowtide.values",
    lambda settings: not settings.values.canonical,
    lambda column: column.in_key and column.is_a("timestamp") and column.argument > 0,
    "is debezium: snapshot (12:00:00.1Z) and stream (12:00:00.100Z) write different keys for one row in",
    "exact writes one form",
)
DOUBLES = LossyConversion(
    "decimal.handling.mode",
    lambda settings: settings.values.decimal_handling_mode == "double",
    lambda column: column.is_a("decimal") and column.argument > 15,
    "is double: numbers of more than 15 digits are rounded in",
    "precise or string keeps them",
)
FRACTIONS = LossyConversion(
    "time.precision.mode",
    lambda settings: settings.values.time_precision_mode == "connect",
    lambda column: column.is_a("datetime", "time") and column.argument > 3,
    "is connect: microseconds are cut off in",
    "adaptive_time_microseconds keeps them",
)
TIMES = LossyConversion(
    "time.precision.mode",
    lambda settings: (
        settings.values.time_precision_mode in {"connect", "isostring"}
        and settings.values.event_converting_failure_handling_mode != "fail"
    ),
    lambda column: column.is_a("time"),
    "holds times of a day only: others become null or the default in",
    "adaptive_time_microseconds keeps them",
)
_ALL = (
    OVERFLOW,
    ZERO_DATES,
    ZERO_TIMESTAMPS,
    YEARS,
    NULLS,
    NULLS_IN_KEYS,
    ZEROS,
    BOOLEANS,
    FLOATS,
    REALS,
    LABELS,
    TIMESTAMP_KEYS,
    DOUBLES,
    FRACTIONS,
    TIMES,
)


def active_conversions(settings: ConversionSettings) -> list[LossyConversion]:
    """Return the conversions by which the settings change values."""
    return [conversion for conversion in _ALL if conversion.active(settings)]


def lossy_columns(table: Table, settings: PipelineSettings) -> Iterator[tuple[LossyConversion, list[str]]]:
    """Yield the published columns of a table that are converted with loss, by setting."""
    records = table_schema(table, "", settings.rules, "stream", lambda _table, _column: None)
    traits = [
        (f"{table.id}.{one.column.name}", _traits(one, in_key=one.index in records.key_columns))
        for one in records.columns
        if not one.type.is_custom
    ]
    for conversion in active_conversions(ConversionSettings.of(settings)):
        columns = [name for name, column in traits if conversion.affects(column)]
        if columns:
            yield conversion, columns


def _traits(record: RecordColumn, *, in_key: bool) -> ColumnTraits:
    column = record.column
    return ColumnTraits(
        column.column_type,
        column.nullable,
        record.schema.default is not None,
        in_key,
        None if column.debezium is None else column.debezium.jdbc_type,
    )


def may_name_another_row(record: RecordColumn, text: str, settings: PipelineSettings) -> LossyConversion | None:
    """Return the conversion by which another value of a column of the key has the same form in records.

    Args:
        record: the column.
        text: the value, in the texts of :mod:`rowtide.connector.records.canonical` without the letter of its type.
        settings: of the pipeline.
    """
    traits = _traits(record, in_key=True)
    certain = {
        ZERO_DATES: not traits.has_default and not text.startswith("1970-01-01"),
        ZERO_TIMESTAMPS: not traits.has_default and not text.startswith("1970-01-01"),
        LABELS: "\\" not in text,
        DOUBLES: sum(sign.isdecimal() for sign in text) <= _EXACT_DIGITS,
        **dict.fromkeys(
            (NULLS, ZEROS, BOOLEANS, TIMESTAMP_KEYS, OVERFLOW, YEARS), True
        ),  # null is in no key, key_condition finds rows of the last two, and the others keep rows apart
    }
    for conversion in active_conversions(ConversionSettings.of(settings)):
        if conversion.affects(traits) and not certain.get(conversion, False):
            return conversion
    return None


class LossyConversionWarnings:
    """Warns once about each affected column as the stream creates and changes tables.

    The check at the start covers the tables that exist then.
    """

    def __init__(self, settings: PipelineSettings) -> None:
        self._settings = settings
        self._reported: RecentlyUsed[tuple[str, str], bool] = RecentlyUsed(_MAX_REPORTED)

    def table_changed(self, table: Table) -> None:
        """Warn about new columns of a captured table."""
        for conversion, columns in lossy_columns(table, self._settings):
            new = [column for column in columns if not self._reported.get((conversion.problem, column))]
            for column in new:
                self._reported.put((conversion.problem, column), True)
            if new:
                log.warning("%s %s", conversion.setting, conversion.message(new))
