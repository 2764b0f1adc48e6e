"""Single values in Python's types."""

import datetime as dt

import pytest

from rowtide.connector.records.codecs import python_values


def test_hours_after_the_last_day_are_damage() -> None:
    epoch = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - DATETIME has no zone
    moment, last = python_values._moment(epoch, 0), dt.datetime(9999, 12, 31)  # noqa: DTZ001
    micros = int((last - epoch).total_seconds()) * 1_000_000
    assert moment(micros) == last
    with pytest.raises(ValueError, match="after the end of the year 9999"):
        moment(micros + 25 * 3_600_000_000)
