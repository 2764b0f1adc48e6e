"""Temporal values from decoders, and their Connect encodings.

A valid temporal value is an ``int`` in the unit of its type. Zero dates, partial dates and dates such as February 31st
(ALLOW_INVALID_DATES) are an :class:`InvalidDate`, which the settings replace later.

=============  ===============================================================
MySQL type     value
=============  ===============================================================
DATE           days since 1970-01-01 (proleptic Gregorian)
DATETIME       microseconds since 1970-01-01 00:00:00, without a zone
TIMESTAMP      microseconds since the epoch, UTC
TIME           signed microseconds
YEAR           the year, 0 for 0000
=============  ===============================================================
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import Any

from rowtide.envelope.schema import INT32, INT64, STRING, Schema

MICROS_PER_DAY = 86_400_000_000
EPOCH_ORDINAL = date(1970, 1, 1).toordinal()


@dataclass(frozen=True, slots=True)
class InvalidDate:
    """A date, possibly with a time of day, that does not exist in the calendar: 0000-00-00, 2024-02-31."""

    year: int
    month: int
    day: int
    micros: int = 0

    def __str__(self) -> str:
        """Return the text that the server prints."""
        text = f"{self.year:04d}-{self.month:02d}-{self.day:02d}"
        return f"{text} {time_of_day(self.micros, 6)}" if self.micros else text


class _Days(dict[int, "int | InvalidDate"]):
    """Days since the epoch by ``year << 9 | month << 5 | day``, computed on first use."""

    def __missing__(self, packed: int) -> "int | InvalidDate":
        year, month, day = packed >> 9, packed >> 5 & 15, packed & 31
        value: int | InvalidDate
        try:
            value = date(year, month, day).toordinal() - EPOCH_ORDINAL
        except ValueError:
            value = InvalidDate(year, month, day)
        if len(self) > 200_000:
            self.clear()
        self[packed] = value
        return value


DAYS_BY_PACKED_DATE = _Days()
"""Days since the epoch, or an :class:`InvalidDate`, by the packed date ``year << 9 | month << 5 | day``."""


class _DateTexts(dict[int, str]):
    """ISO dates by days since the epoch."""

    def __missing__(self, days: int) -> str:
        if len(self) > 200_000:
            self.clear()
        text = self[days] = date.fromordinal(days + EPOCH_ORDINAL).isoformat()
        return text


DATE_TEXT_BY_DAY = _DateTexts()
"""ISO dates by days since the epoch: 0 is ``1970-01-01``."""


class _SecondTexts(dict[int, str]):
    """``HH:MM:SS`` by second of the day."""

    def __missing__(self, second: int) -> str:
        text = self[second] = f"{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}"
        return text


TIME_TEXT_BY_SECOND = _SecondTexts()


def time_of_day(micros: int, digits: int) -> str:
    """Return ``HH:MM:SS`` with ``digits`` fractional digits."""
    second, fraction = divmod(micros, 1_000_000)
    text = TIME_TEXT_BY_SECOND[second]
    return f"{text}.{fraction:06d}"[: len(text) + 1 + digits] if digits else text


def trimmed_time(micros: int) -> str:
    """Return ``HH:MM:SS`` without trailing zeros in the fraction, as Java's ISO_LOCAL_TIME."""
    second, fraction = divmod(micros, 1_000_000)
    return f"{TIME_TEXT_BY_SECOND[second]}.{fraction:06d}".rstrip("0") if fraction else TIME_TEXT_BY_SECOND[second]


def zoned_text(micros: int, digits: int) -> str:
    """Return ``2020-01-01T10:00:00.123456Z`` with ``digits`` fractional digits: a TIMESTAMP(n) of the binlog."""
    return f"{DATE_TEXT_BY_DAY[micros // MICROS_PER_DAY]}T{time_of_day(micros % MICROS_PER_DAY, digits)}Z"


def trimmed_zoned_text(micros: int) -> str:
    """Return :func:`zoned_text` without trailing zeros in the fraction: a TIMESTAMP of a snapshot."""
    return f"{DATE_TEXT_BY_DAY[micros // MICROS_PER_DAY]}T{trimmed_time(micros % MICROS_PER_DAY)}Z"


@dataclass(frozen=True, slots=True)
class TwoDigitYears:
    """Conversion of two-digit years (``enable.time.adjuster``): 1 to 69 to 2001 to 2069, 70 to 99 to 1970 to 1999.

    Attributes:
        before: the first value that is not adjusted.
        unit: units of a value in a day.
    """

    before: int
    unit: int

    def adjust(self, value: int) -> int:
        """Return the value with a four-digit year."""
        days, rest = divmod(value, self.unit)
        day = date.fromordinal(days + EPOCH_ORDINAL)
        moved = day.replace(year=day.year + (2000 if day.year < 70 else 1900))
        return (moved.toordinal() - EPOCH_ORDINAL) * self.unit + rest


_YEAR_100 = date(100, 1, 1).toordinal() - EPOCH_ORDINAL
DATE_YEARS = TwoDigitYears(_YEAR_100, 1)
DATETIME_YEARS = TwoDigitYears(_YEAR_100 * MICROS_PER_DAY, MICROS_PER_DAY)


@dataclass(frozen=True, slots=True)
class TemporalEncoding:
    """The Connect encoding of a temporal type.

    Attributes:
        schema: its Connect schema, not optional.
        convert: converts a valid value to the Connect value; raises ``ValueError`` if it is out of range.
        expression: the same as Python source with ``{v}`` for the value; empty if it must be called.
        epoch: the Connect value of 1970-01-01, for an invalid date in a NOT NULL column.
        form: the name of :class:`~rowtide.envelope.types.column_type.Form`.
        digits: the number of digits of the fraction, in forms that have a fixed one.
    """

    schema: Schema
    convert: Callable[[int], Any]
    expression: str
    epoch: Any
    form: str
    digits: int = 0


def _semantic(schema: Schema, name: str) -> Schema:
    return Schema(schema.type, name=name, version=1)


def _identity(value: int) -> int:
    return value


def _floor_thousand(value: int) -> int:
    return value // 1000


def _times_thousand(value: int) -> int:
    return value * 1000


def _nanos_of_datetime(micros: int) -> int:
    nanos = micros * 1000
    # Java multiplies the whole seconds first, so a fraction of a second at the lower limit is out of range too.
    if nanos // 1_000_000_000 * 1_000_000_000 < -(2**63) or nanos >= 2**63:
        raise ValueError("time.precision.mode=nanoseconds cannot represent a DATETIME outside 1677-09-21 to 2262-04-11")
    return nanos


def _connect_time(micros: int) -> int:
    _require_day(micros)
    return micros // 1000


def _iso_time(micros: int) -> str:
    _require_day(micros)
    return trimmed_time(micros % MICROS_PER_DAY) + "Z"  # 24:00:00 is 00:00:00 in Java's LocalTime


def _require_day(micros: int) -> None:
    if not 0 <= micros <= MICROS_PER_DAY:
        raise ValueError("this time.precision.mode cannot represent a TIME outside 00:00:00 to 24:00:00")


def _iso_date(days: int) -> str:
    return DATE_TEXT_BY_DAY[days] + "Z"


DATE_DAYS = TemporalEncoding(_semantic(INT32, "io.debezium.time.Date"), _identity, "{v}", 0, "integer")
DATE_CONNECT = TemporalEncoding(_semantic(INT32, "org.apache.kafka.connect.data.Date"), _identity, "{v}", 0, "integer")
DATE_ISO = TemporalEncoding(_semantic(STRING, "io.debezium.time.IsoDate"), _iso_date, "", "1970-01-01Z", "date text")

TIME_MICROS = TemporalEncoding(_semantic(INT64, "io.debezium.time.MicroTime"), _identity, "{v}", 0, "integer")
TIME_NANOS = TemporalEncoding(_semantic(INT64, "io.debezium.time.NanoTime"), _times_thousand, "{v} * 1000", 0, "nanos")
TIME_CONNECT = TemporalEncoding(
    _semantic(INT32, "org.apache.kafka.connect.data.Time"), _connect_time, "", 0, "time millis"
)
TIME_ISO = TemporalEncoding(_semantic(STRING, "io.debezium.time.IsoTime"), _iso_time, "", "00:00:00Z", "time text")

DATETIME_MILLIS = TemporalEncoding(
    _semantic(INT64, "io.debezium.time.Timestamp"), _floor_thousand, "{v} // 1000", 0, "millis"
)
DATETIME_MICROS = TemporalEncoding(_semantic(INT64, "io.debezium.time.MicroTimestamp"), _identity, "{v}", 0, "integer")
DATETIME_NANOS = TemporalEncoding(
    _semantic(INT64, "io.debezium.time.NanoTimestamp"), _nanos_of_datetime, "", 0, "datetime nanos"
)
DATETIME_CONNECT = TemporalEncoding(
    _semantic(INT64, "org.apache.kafka.connect.data.Timestamp"), _floor_thousand, "{v} // 1000", 0, "millis"
)
DATETIME_ISO = TemporalEncoding(
    _semantic(STRING, "io.debezium.time.IsoTimestamp"), trimmed_zoned_text, "", "1970-01-01T00:00:00Z", "zoned trimmed"
)

ZONED = _semantic(STRING, "io.debezium.time.ZonedTimestamp")
ZONED_EPOCH = "1970-01-01T00:00:00Z"
YEAR = _semantic(INT32, "io.debezium.time.Year")


def date_encoding(mode: str) -> TemporalEncoding:
    """Return the encoding of DATE for a ``time.precision.mode``."""
    return {"connect": DATE_CONNECT, "isostring": DATE_ISO}.get(mode, DATE_DAYS)


def time_encoding(mode: str) -> TemporalEncoding:
    """Return the encoding of TIME for a ``time.precision.mode``."""
    return {"connect": TIME_CONNECT, "isostring": TIME_ISO, "nanoseconds": TIME_NANOS}.get(mode, TIME_MICROS)


def datetime_encoding(mode: str, digits: int) -> TemporalEncoding:
    """Return the encoding of DATETIME with ``digits`` fractional digits for a ``time.precision.mode``."""
    fixed = {
        "connect": DATETIME_CONNECT,
        "isostring": DATETIME_ISO,
        "microseconds": DATETIME_MICROS,
        "nanoseconds": DATETIME_NANOS,
    }
    return fixed.get(mode) or (DATETIME_MILLIS if digits <= 3 else DATETIME_MICROS)


def timestamp_encoding(digits: int, *, trimmed: bool) -> TemporalEncoding:
    """Return the encoding of TIMESTAMP. Debezium trims the fraction in a snapshot and pads it in the stream."""

    def padded(micros: int) -> str:
        return zoned_text(micros, digits)

    if trimmed:
        return TemporalEncoding(ZONED, trimmed_zoned_text, "", ZONED_EPOCH, "zoned trimmed")
    return TemporalEncoding(ZONED, padded, "", ZONED_EPOCH, "zoned", digits)
