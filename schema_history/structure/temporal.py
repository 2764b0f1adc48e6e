"""Parses dates and times in literals of DEFAULT clauses, and prints them like the servers."""

import re
import string
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal

_FRACTION = re.compile(r"\.(\d*)", re.ASCII)
_DIGITS = frozenset(string.digits)
_BETWEEN = frozenset(string.punctuation + string.whitespace)
_DAY, _SECOND = 2, 5
"""Places in year, month, day, hour, minute, second."""
_GREATEST = 12, 31, 23, 59, 59
"""Month, day, hour, minute, second."""
_MOST = 999_999
"""A greater number is not part of a date."""
_TIME = re.compile(
    r"([-+])?(?:(?P<days>\d*)\s+(?=\d.)(?P<h1>\d+)(?::(?P<m1>\d+)(?::(?P<s1>\d+))?)?"
    r"|(?P<h2>\d*)\s*:(?P<m2>\d+)(?::(?P<s2>\d+))?|(?P<number>\d+)\s*)(?:\.(?P<fraction>\d*))?\s*",
    re.DOTALL,
)
"""DAYS HH:MM:SS, HH:MM:SS or HHMMSS, as MySQL's ``str_to_time`` reads them: at least two characters follow the days."""
_SHORTEST_DATETIME = 12
"""Characters from which MySQL reads a literal of a TIME as a DATETIME, if it has no separators, or a space."""


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
        """Return the text as a DATE."""
        return f"{self.year:04d}-{self.month:02d}-{self.day:02d}"

    def text(self, fsp: int) -> str:
        """Return the text as a DATETIME with ``fsp`` fractional digits."""
        text = f"{self.date_text()} {self.hour:02d}:{self.minute:02d}:{self.second:02d}"
        return text + (f".{self.micro:06d}"[: fsp + 1] if fsp else "")


def _full_year(year: int, digits: int) -> int:
    if digits > 2:
        return year
    return year + (2000 if year < 70 else 1900)


def _fraction(digits: str, fsp: int, rounds: bool) -> tuple[int, int]:
    """Return the microseconds of a fraction, truncated or rounded to ``fsp`` digits, and the seconds carried over."""
    value = Decimal("0." + (digits or "0"))
    step = Decimal(1).scaleb(-fsp)
    micro = int(value.quantize(step, ROUND_HALF_UP if rounds else ROUND_DOWN).scaleb(6))
    return micro % 1000000, micro // 1000000


def parse_datetime(text: str, fsp: int, rounds: bool) -> Moment | None:
    """Parse a date with or without a time, as MySQL's ``str_to_datetime`` does; ``None`` if the text is not a date.

    Any punctuation separates parts of any length. Digits alone are parts of two digits, and a year of two or four.
    Without a strict ``sql_mode``, MySQL ignores what follows.
    """
    text = text.lstrip()
    head = len(text) - len(text.lstrip(string.digits + "T"))
    is_packed = text[head : head + 1] in ("", ".")
    year_digits = 4 if head in (4, 8) or head >= 14 else 2
    parts: list[int] = []
    lengths: list[int] = []
    at = 0
    while at < len(text) and text[at] in _DIGITS:
        most = len(text) if not is_packed else 2 if parts else year_digits
        end = at + 1
        while end < len(text) and end - at < most and text[end] in _DIGITS:
            end += 1
        place = len(parts)
        parts.append(int(text[at:end]))
        lengths.append(end - at)
        at = end
        if parts[-1] > _MOST:
            return None
        if place == _SECOND:
            break
        if place == _DAY and text[at : at + 1] == "T":
            at += 1
            continue
        while at < len(text) and text[at] in _BETWEEN:
            if text[at].isspace() and place != _DAY:
                return None
            at += 1
    if len(parts) <= _DAY:
        return None
    if lengths[0] == 2 and any(parts):
        parts[0] = _full_year(parts[0], 2)
    fraction = _FRACTION.match(text, at) if len(parts) > _SECOND else None
    micro, carry = _fraction(fraction[1] if fraction else "", fsp, rounds)
    year, month, day, hour, minute, second = (*parts, *[0] * (_SECOND + 1 - len(parts)))
    if any(part > most for part, most in zip((month, day, hour, minute, second), _GREATEST, strict=True)):
        return None
    moment = Moment(year, month, day, hour, minute, second, micro)
    return _later(moment) if carry else moment


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


def parse_time(text: str, fsp: int, *, mariadb: bool) -> str | None:
    """Parse a time and print it as a TIME; ``None`` if the text is not a time.

    Without a strict ``sql_mode``, MySQL ignores what follows a time: ``1::2`` is one second.
    """
    text = text.lstrip()
    match = _TIME.match(text)
    is_whole = match is not None and match.end() == len(text)
    number = match["number"] if match else None
    if _may_be_datetime(text.strip(), is_time=is_whole, mariadb=mariadb):
        moment = parse_datetime(text, fsp, not mariadb)
        if moment is not None:
            return _time_text(False, moment.hour, moment.minute, moment.second, moment.micro, fsp)
    if match is None:
        return None
    if number:
        hours, minutes, seconds = int(number) // 10000, int(number) // 100 % 100, int(number) % 100
    else:
        hours, minutes, seconds = (int(match[f"{part}1"] or match[f"{part}2"] or 0) for part in "hms")
        hours += 24 * int(match["days"] or 0)
    micro, carry = _fraction(match["fraction"] or "", fsp, not mariadb)
    total = hours * 3600 + minutes * 60 + seconds + carry
    if minutes > 59 or seconds > 59:
        return None
    return _time_text(match[1] == "-", total // 3600, total // 60 % 60, total % 60, micro, fsp)


def _may_be_datetime(text: str, *, is_time: bool, mariadb: bool) -> bool:
    if text.partition(".")[0].isalnum():  # digits
        return len(text) >= _SHORTEST_DATETIME
    return not is_time and (mariadb or (len(text) >= _SHORTEST_DATETIME and len(text.split()) > 1))


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
