"""Temporal values against Python's own calendar."""

from datetime import date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowtide.envelope.types import temporal_values
from rowtide.envelope.types.temporal_values import DAYS_BY_PACKED_DATE, MICROS_PER_DAY, InvalidDate

FIRST = datetime(1970, 1, 1)  # noqa: DTZ001 - no zone on purpose


@given(st.dates())
def test_packed_dates_are_days_since_1970(day: date) -> None:
    packed = day.year << 9 | day.month << 5 | day.day
    assert DAYS_BY_PACKED_DATE[packed] == (day - date(1970, 1, 1)).days
    assert DAYS_BY_PACKED_DATE[packed] == DAYS_BY_PACKED_DATE[packed]


@pytest.mark.parametrize("parts", [(0, 0, 0), (2024, 0, 10), (2024, 5, 0), (2023, 2, 29), (0, 1, 1)])
def test_invalid_dates_keep_year_month_and_day(parts: tuple[int, int, int]) -> None:
    year, month, day = parts
    value = DAYS_BY_PACKED_DATE[year << 9 | month << 5 | day]
    assert value == InvalidDate(*parts)
    assert str(value) == f"{year:04d}-{month:02d}-{day:02d}"


def test_an_invalid_date_is_printed_with_its_time() -> None:
    assert str(InvalidDate(2024, 0, 1, 3_600_000_001)) == "2024-00-01 01:00:00.000001"


@given(st.datetimes(), st.integers(0, 6))
def test_zoned_texts_are_iso_timestamps_with_their_digits(moment: datetime, digits: int) -> None:
    micros = (moment - FIRST) // timedelta(microseconds=1)
    text = temporal_values.zoned_text(micros, digits)
    whole = moment.strftime("%H:%M:%S")
    fraction = f".{moment.microsecond:06d}"[: digits + 1] if digits else ""
    assert text == f"{moment.date().isoformat()}T{whole}{fraction}Z"
    trimmed = temporal_values.trimmed_zoned_text(micros)
    assert datetime.fromisoformat(trimmed).replace(tzinfo=None) == moment
    assert not trimmed.removesuffix("Z").endswith((".", "0")) or "." not in trimmed


@pytest.mark.parametrize(("year", "becomes"), [(1, 2001), (69, 2069), (70, 1970), (99, 1999)])
def test_two_digit_years_get_their_century(year: int, becomes: int) -> None:
    day = (date(year, 3, 1) - date(1970, 1, 1)).days
    moved = (date(becomes, 3, 1) - date(1970, 1, 1)).days
    assert day < temporal_values.DATE_YEARS.before
    assert temporal_values.DATE_YEARS.adjust(day) == moved
    assert temporal_values.DATETIME_YEARS.adjust(day * MICROS_PER_DAY + 5) == moved * MICROS_PER_DAY + 5


@pytest.mark.parametrize(
    ("micros", "text"),
    [(0, "00:00:00Z"), (3_661_000_000, "01:01:01Z"), (1_500_000, "00:00:01.5Z"), (MICROS_PER_DAY, "00:00:00Z")],
)
def test_iso_times(micros: int, text: str) -> None:
    assert temporal_values.time_encoding("isostring").convert(micros) == text


@pytest.mark.parametrize("mode", ["connect", "isostring"])
@pytest.mark.parametrize("micros", [-1, MICROS_PER_DAY + 1])
def test_a_time_outside_of_a_day_is_an_error_in_some_modes(mode: str, micros: int) -> None:
    with pytest.raises(ValueError, match="outside 00:00:00 to 24:00:00"):
        temporal_values.time_encoding(mode).convert(micros)


def test_a_datetime_out_of_the_range_of_nanoseconds_is_an_error() -> None:
    form = temporal_values.datetime_encoding("nanoseconds", 6)
    assert form.convert(1) == 1000
    assert form.convert((2**63 - 1) // 1000) == (2**63 - 1) // 1000 * 1000
    for micros in (2**63 // 1000 + 1, -(2**63) // 1000 - 1):
        with pytest.raises(ValueError, match="1677-09-21 to 2262-04-11"):
            form.convert(micros)


def test_the_digits_of_a_datetime_determine_its_unit_in_adaptive_mode() -> None:
    adaptive = "adaptive_time_microseconds"
    assert temporal_values.datetime_encoding(adaptive, 3).convert(-1) == -1
    assert temporal_values.datetime_encoding(adaptive, 4).convert(-1) == -1
    assert temporal_values.datetime_encoding(adaptive, 3).convert(1_999) == 1
    assert temporal_values.datetime_encoding(adaptive, 4).convert(1_999) == 1_999
