"""Parses dates and times in literals of DEFAULT clauses, and prints them, as the servers do."""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal

_DATETIME = re.compile(
    r"\s*(\d{1,4})[^\w\s]+(\d{1,2})[^\w\s]+(\d{1,2})(?:(?:T|\s+|[^\w\s]+)(\d{1,2})(?:[^\w\s]+(\d{1,2})(?:[^\w\s]+(\d{1,2}))?)?"
    r"(?:\.(\d*))?)?\s*(?:[+-]\d{2}:\d{2})?\s*"
)
_PACKED = re.compile(r"\s*(\d+)(?:T(\d+))?(?:\.(\d*))?\s*")
_TIME = re.compile(r"\s*(-)?(?:(\d+)\s+)?(\d+)(?::(\d+))?(?::(\d+))?(?:\.(\d*))?\s*")


@dataclass(frozen=True, slots=True)
class Moment:
    """A date and a time of day, in microseconds."""

    year: int
    month: int
    day: int
    hour: int = 0
    minute: int = 0
    second: int = 0
    micro: int = 0

    def date_text(self) -> str:
        """Its text as a DATE."""
        return f"{self.year:04d}-{self.month:02d}-{self.day:02d}"

    def text(self, fsp: int) -> str:
        """Its text as a DATETIME with ``fsp`` fractional digits."""
        text = f"{self.date_text()} {self.hour:02d}:{self.minute:02d}:{self.second:02d}"
        return text + (f".{self.micro:06d}"[: fsp + 1] if fsp else "")


def _full_year(year: int, digits: int) -> int:
    if digits > 2:
        return year
    return year + (2000 if year < 70 else 1900)


def _fraction(digits: str, fsp: int, rounds: bool) -> tuple[int, int]:
    """The microseconds of a fraction, truncated or rounded to ``fsp`` digits, and the seconds carried over."""
    value = Decimal("0." + (digits or "0"))
    step = Decimal(1).scaleb(-fsp)
    micro = int(value.quantize(step, ROUND_HALF_UP if rounds else ROUND_DOWN).scaleb(6))
    return micro % 1000000, micro // 1000000


def parse_datetime(text: str, fsp: int, rounds: bool) -> Moment | None:
    """Parse a date with or without a time; ``None`` if the text is not a date."""
    match = _DATETIME.fullmatch(text)
    if match:
        parts = [int(p or 0) for p in match.groups()[:6]]
        parts[0] = _full_year(parts[0], len(match[1]))
        digits = match[7] or ""
    else:
        packed = _PACKED.fullmatch(text)
        if packed is None:
            return None
        whole = packed[1] + (packed[2] or "")
        found = _packed(whole)
        if found is None:
            return None
        parts, digits = found, packed[3] or ""
    micro, carry = _fraction(digits, fsp, rounds)
    year, month, day, hour, minute, second = parts
    moment = Moment(year, month, day, hour, minute, second, micro)
    return _later(moment) if carry else moment


def _packed(digits: str) -> list[int] | None:
    size = len(digits)
    if size in (8, 14):
        year, rest = int(digits[:4]), digits[4:]
    elif size in (6, 12, 10):
        year, rest = _full_year(int(digits[:2]), 2), digits[2:]
    else:
        return None
    parts = [int(rest[i : i + 2]) for i in range(0, len(rest), 2)]
    return [year, *parts, *[0] * (5 - len(parts))]


def number_to_datetime(number: str, fsp: int, rounds: bool) -> Moment | None:
    """Parse a date from a number: 20200131, 200131, 20200131235959, 200131235959; 0 is the zero date."""
    whole, _, fraction = number.partition(".")
    value = int(whole or 0)
    if value == 0:
        return Moment(0, 0, 0, micro=_fraction(fraction, fsp, rounds)[0])
    digits = str(value)
    size = next((size for size in (6, 8, 12, 14) if len(digits) <= size), len(digits))
    if not fraction or size <= 8:  # a date has no fraction
        return parse_datetime(digits.rjust(size, "0"), fsp, rounds)
    return parse_datetime(f"{digits.rjust(size, '0')}.{fraction}", fsp, rounds)


def _later(moment: Moment) -> Moment:
    try:
        start = datetime(moment.year, moment.month, moment.day, moment.hour, moment.minute, moment.second)  # noqa: DTZ001
    except ValueError:
        return moment
    later = start + timedelta(seconds=1)
    return Moment(later.year, later.month, later.day, later.hour, later.minute, later.second, 0)


def parse_time(text: str, fsp: int, rounds: bool) -> str | None:
    """Parse a time and print it as a TIME; ``None`` if the text is not a time."""
    match = _TIME.fullmatch(text)
    if match is None:
        moment = parse_datetime(text, fsp, rounds)
        return (
            None if moment is None else _time_text(False, moment.hour, moment.minute, moment.second, moment.micro, fsp)
        )
    sign, days, first, second, third, fraction = match.groups()
    if second is None and days is None:
        number = int(first)
        if len(first) >= 12:
            moment = parse_datetime(text, fsp, rounds)
            if moment is not None:
                return _time_text(False, moment.hour, moment.minute, moment.second, moment.micro, fsp)
        hours, minutes, seconds = number // 10000, number // 100 % 100, number % 100
    else:
        hours, minutes, seconds = int(first), int(second or 0), int(third or 0)
        if days is not None:
            hours += 24 * int(days)
    micro, carry = _fraction(fraction or "", fsp, rounds)
    total = hours * 3600 + minutes * 60 + seconds + carry
    if minutes > 59 or seconds > 59:
        return None
    return _time_text(sign is not None, total // 3600, total // 60 % 60, total % 60, micro, fsp)


def _time_text(negative: bool, hours: int, minutes: int, seconds: int, micro: int, fsp: int) -> str:
    fraction = f".{micro:06d}"[: fsp + 1] if fsp else ""
    text = f"{hours:02d}:{minutes:02d}:{seconds:02d}{fraction}"
    return f"-{text}" if negative and text.strip("0:.") else text


def year_text(value: str, from_string: bool) -> str | None:
    """Parse a year and print it with four digits; ``0`` is 2000 as a string and 0000 as a number."""
    value = value.strip()
    if not re.fullmatch(r"\d+(\.\d*)?(?:[eE]\d+)?", value):
        return None
    number = int(Decimal(value).quantize(Decimal(1), ROUND_HALF_UP))
    if number == 0:
        return "2000" if from_string and len(value) != 4 else "0000"
    if number < 100:
        number = _full_year(number, 2)
    return f"{number:04d}"
