"""Values in the text protocol."""

import datetime as dt
from decimal import ROUND_HALF_UP, Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowtide.connector.rows.text_protocol_rows import longer
from rowtide.connector.rows.text_protocol_values import CLOCK, DATES, MIDNIGHTS, fraction_micros, time_micros, unscaled
from rowtide.envelope.types.temporal_values import InvalidDate

EPOCH = dt.date(1970, 1, 1)


@given(st.dates())
def test_dates_are_days_since_1970(day: dt.date) -> None:
    days = (day - EPOCH).days
    assert DATES[day.isoformat()] == days
    assert MIDNIGHTS[day.isoformat()] == days * 86_400_000_000


@pytest.mark.parametrize("text", ["0000-00-00", "2024-00-10", "2024-10-00", "2023-02-29", "2024-02-31"])
def test_invalid_dates_are_kept_apart(text: str) -> None:
    assert isinstance(DATES[text], InvalidDate)
    assert isinstance(MIDNIGHTS[text], InvalidDate)


@given(st.integers(-838, 838), st.integers(0, 59), st.integers(0, 59), st.integers(0, 999_999), st.integers(0, 6))
def test_times_are_microseconds(hours: int, minutes: int, seconds: int, micros: int, digits: int) -> None:
    kept = micros // 10 ** (6 - digits) * 10 ** (6 - digits)
    fraction = f".{micros:06}"[: digits + 1] if digits else ""
    total = ((abs(hours) * 60 + minutes) * 60 + seconds) * 1_000_000 + kept
    assert time_micros(f"{'-' if hours < 0 else ''}{abs(hours):02}:{minutes:02}:{seconds:02}{fraction}") == (
        -total if hours < 0 else total
    )
    if 0 <= hours < 24:
        assert CLOCK[f"{hours:02}:{minutes:02}:{seconds:02}"] == total - kept


@given(st.integers(0, 999_999), st.integers(0, 6))
def test_fractions_of_any_length_are_microseconds(micros: int, digits: int) -> None:
    text = f"{micros:06}"[:digits]
    assert fraction_micros(text) == int((text + "000000")[:6])


@given(
    st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**12), max_value=10**12, places=6),
    st.integers(0, 8),
)
def test_decimals_are_rounded_to_the_columns_digits(number: Decimal, scale: int) -> None:
    step = Decimal(1).scaleb(-scale)
    assert unscaled(format(number, "f"), scale) == int(number.quantize(step, ROUND_HALF_UP).scaleb(scale))


@given(st.integers(251, 1 << 40))
def test_lengths_of_values_that_do_not_fit_into_a_byte(size: int) -> None:
    code, width = (252, 2) if size < 1 << 16 else (253, 3) if size < 1 << 24 else (254, 8)
    assert longer(b"??" + size.to_bytes(width, "little") + b"?", 2, code) == (size, 2 + width)


def test_no_digit_of_a_long_decimal_is_lost() -> None:
    digits = "1234567890" * 6
    assert unscaled(f"{digits[:35]}.{digits[35:]}", 25) == int(digits)
