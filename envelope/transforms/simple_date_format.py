"""Java's ``SimpleDateFormat`` in UTC and English: formats and parses times.

Java's calendar is Julian before 1582-10-15, and lenient: day 32 is the first of the next month, and all digits of a
fraction are milliseconds: .123456 becomes two minutes. ``exact`` uses MySQL's calendar, and refuses such texts.
"""

import re
from datetime import UTC, datetime
from typing import Final

from rowtide.envelope.transforms.record import RejectedValue

_DAY = 86_400_000
_EPOCH = 2_440_588  # 1970-01-01 as a Julian day number
_REFORM = 2_299_161  # 1582-10-15, the first day of the Gregorian calendar
_TOKEN = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']+")
_MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_WEEKS: Final = "YwWF"
_LETTERS: Final = "GyMLdDEuaHkKhmsSzZX"
_DIGITS = re.compile(r"-?\d+")
_ZONE = re.compile(r"(?:GMT)?([+-])(\d{1,2}):?(\d{2})|GMT|UTC", re.IGNORECASE)
_ISO_ZONE = (re.compile(r"Z|([+-])(\d\d)"), re.compile(r"Z|([+-])(\d\d)(\d\d)"), re.compile(r"Z|([+-])(\d\d):(\d\d)"))
_LIMITS = {"M": (1, 12), "L": (1, 12), "d": (1, 31), "D": (1, 366), "u": (1, 7), "H": (0, 23), "k": (1, 24)} | {
    "K": (0, 11), "h": (1, 12), "m": (0, 59), "s": (0, 59), "S": (0, 999), "y": (1, 9999),
}  # fmt: skip


class SimpleDateFormat:
    """A pattern of ``java.text.SimpleDateFormat``.

    Attributes:
        pattern: the pattern.
        exact: see the module.
    """

    def __init__(self, pattern: str, *, exact: bool) -> None:
        """Read a pattern.

        Raises:
            ValueError: it is not a pattern, or has weeks, whose numbers depend on the country.
        """
        self.pattern = pattern
        self.exact = exact
        self._tokens = _tokens(pattern)
        if exact and any(letter == "S" and len(text) > 3 for letter, text in self._tokens):
            raise ValueError("use SSS: S is the number of milliseconds, and more would write 0.123 s as .000123")
        self._century = datetime.now(UTC).year - 80  # of years with two digits

    def format(self, milliseconds: int) -> str:
        """Return the text of a time in milliseconds since the epoch."""
        day, time = divmod(milliseconds, _DAY)
        year, month, day_of_month = self._date(day)
        found = []
        for letter, text in self._tokens:
            count = len(text)
            match letter:
                case "":
                    found.append(text)
                case "G":
                    found.append("AD" if year > 0 else "BC")
                case "y":
                    shown = year if year > 0 else 1 - year
                    found.append(str(shown % 100 if count == 2 else shown).zfill(count))
                case "M" | "L" if count > 2:
                    found.append(_MONTHS[month - 1][: None if count > 3 else 3])
                case "E":
                    found.append(_WEEKDAYS[(day + 3) % 7][: None if count > 3 else 3])
                case "a":
                    found.append("AM" if time < _DAY // 2 else "PM")
                case "z":
                    found.append("Coordinated Universal Time" if count > 3 else "UTC")
                case "Z":
                    found.append("+0000")
                case "X":
                    found.append("Z")
                case "M" | "L":
                    found.append(str(month).zfill(count))
                case "d":
                    found.append(str(day_of_month).zfill(count))
                case "D":
                    found.append(str(day - self._day(year, 1, 1) + 1).zfill(count))
                case "u":
                    found.append(str((day + 3) % 7 + 1).zfill(count))
                case _:
                    found.append(str(_part_of_day(letter, time)).zfill(count))
        return "".join(found)

    def parse(self, text: str) -> int:
        """Return the time in milliseconds since the epoch; as in Java, text after it is ignored.

        Raises:
            ValueError: the text does not match the pattern; with ``exact``, also a date that does not exist.
        """
        numbers: dict[str, int] = {}
        at = offset = 0
        for index, (letter, token) in enumerate(self._tokens):
            if not letter:
                if not text.startswith(token, at):
                    raise self._mismatch(text)
                at += len(token)
                continue
            while text[at : at + 1] in (" ", "\t"):
                at += 1
            if letter in "zZX":
                at, offset = self._zone(text, at, letter, len(token))
            elif letter in "GEa" or (letter in "ML" and len(token) > 2):
                at, numbers[letter] = self._name(text, at, letter)
            else:
                adjacent = index + 1 < len(self._tokens) and self._tokens[index + 1][0] != ""
                at, numbers[letter] = self._number(text, at, letter, len(token), adjacent=adjacent)
        return self._time(text, numbers) - offset

    def _mismatch(self, text: str) -> ValueError:
        return RejectedValue(f"the text does not match the format {self.pattern}", f"{text!r:.60}")

    def _zone(self, text: str, at: int, letter: str, count: int) -> tuple[int, int]:
        """Return the position after a zone, and its offset in milliseconds."""
        match = (_ISO_ZONE[count - 1] if letter == "X" else _ZONE).match(text, at)
        if match is None:
            raise self._mismatch(text)
        if match[1] is None:
            return match.end(), 0
        minutes = int(match[2]) * 60 + int((match.re.groups > 2 and match[3]) or 0)
        return match.end(), minutes * (-60_000 if match[1] == "-" else 60_000)

    def _name(self, text: str, at: int, letter: str) -> tuple[int, int]:
        """Return the position after a name, and its number from 1."""
        names = {"G": ("AD", "BC"), "a": ("AM", "PM"), "E": _WEEKDAYS}.get(letter, _MONTHS)
        for length in (None, 3):
            for number, name in enumerate(names, 1):
                wanted = name[:length].lower()
                if text[at : at + len(wanted)].lower() == wanted:
                    return at + len(wanted), number
        raise self._mismatch(text)

    def _number(self, text: str, at: int, letter: str, count: int, *, adjacent: bool) -> tuple[int, int]:
        """Return the position after a number, and the number; one with no delimiter has as many digits as letters."""
        found = _DIGITS.match(text, at, at + count if adjacent else len(text))
        if found is None or (adjacent and len(text) < at + count):
            raise self._mismatch(text)
        digits = found.group()
        number = int(digits)
        if letter == "y" and count <= 2 and len(digits) == 2:
            number += self._century // 100 * 100
            number += 100 if number < self._century else 0
        if self.exact:
            if letter == "S" and len(digits) != 3:
                raise RejectedValue(f"milliseconds have three digits, not {len(digits)}", f"{text!r:.60}")
            low, high = _LIMITS[letter]
            if not low <= number <= high or digits.startswith("-"):
                raise RejectedValue(
                    f"a number is not from {low} to {high} ({letter} in {self.pattern})", f"{digits} in {text!r:.60}"
                )
        return found.end(), number

    def _time(self, text: str, numbers: dict[str, int]) -> int:
        year = numbers.get("y", 1970)
        year = 1 - year if numbers.get("G") == 2 else year
        month = numbers.get("M", numbers.get("L", 1))
        day_of_month = numbers.get("d", 1)
        day = self._day(year + (month - 1) // 12, (month - 1) % 12 + 1, day_of_month)
        if self.exact and self._date(day) != (year, month, day_of_month):
            raise RejectedValue("there is no such date", f"{text!r:.60}")
        if "D" in numbers and "d" not in numbers:
            day = self._day(year, 1, 1) + numbers["D"] - 1
            if self.exact and self._date(day)[0] != year:
                raise RejectedValue("there is no such date", f"{text!r:.60}")
        hours = numbers.get("H")
        if hours is None and "k" in numbers:
            hours = 0 if numbers["k"] == 24 else numbers["k"]
        if hours is None:
            half = numbers.get("K", 0 if numbers.get("h") == 12 else numbers.get("h", 0))
            hours = half + (12 if numbers.get("a") == 2 else 0)
        minutes = hours * 60 + numbers.get("m", 0)
        return day * _DAY + (minutes * 60 + numbers.get("s", 0)) * 1000 + numbers.get("S", 0)

    def _date(self, day: int) -> tuple[int, int, int]:
        """Return year, month and day of a day since the epoch (the algorithm of E. G. Richards)."""
        number = day + _EPOCH
        shifted = number + 1401
        if self.exact or number >= _REFORM:
            shifted += (4 * number + 274_277) // 146_097 * 3 // 4 - 38
        years, rest = divmod(4 * shifted + 3, 1461)
        months, days = divmod(5 * (rest // 4) + 2, 153)
        month = (months + 2) % 12 + 1
        return years - 4716 + (14 - month) // 12, month, days // 5 + 1

    def _day(self, year: int, month: int, day: int) -> int:
        """Return the day since the epoch; ``day`` may be any number."""
        before = (14 - month) // 12
        years = year + 4800 - before
        julian = day + (153 * (month + 12 * before - 3) + 2) // 5 + 365 * years + years // 4 - 32_083
        gregorian = julian + 38 - years // 100 + years // 400
        return (gregorian if self.exact or gregorian >= _REFORM else julian) - _EPOCH


def _tokens(pattern: str) -> list[tuple[str, str]]:
    """Return letters with their repetitions, and texts with an empty letter."""
    tokens: list[tuple[str, str]] = []
    at = 0
    while at < len(pattern):
        match = _TOKEN.match(pattern, at)
        if match is None:
            raise ValueError(f"a quote is not closed in the format {pattern}")
        at = match.end()
        letter = match[2] or ""
        if letter and letter in _WEEKS:
            year = ": use y for years" if letter == "Y" else ""
            raise ValueError(f"{letter} counts weeks, whose numbers depend on the country{year}")
        if letter and letter not in _LETTERS:
            raise ValueError(f"{letter} is not a letter of SimpleDateFormat; text is written in single quotes")
        if letter == "X" and len(match[0]) > 3:
            raise ValueError("X may have up to three letters")
        text = match[0] if match[1] is None else match[1].replace("''", "'") or "'"
        tokens.append((letter, text))
    return tokens


def _part_of_day(letter: str, time: int) -> int:
    """Return an hour, minute, second or millisecond of a time of day in milliseconds."""
    hours = time // 3_600_000
    match letter:
        case "H":
            return hours
        case "k":
            return hours or 24
        case "K":
            return hours % 12
        case "h":
            return hours % 12 or 12
        case "m":
            return time // 60_000 % 60
        case "s":
            return time // 1000 % 60
        case _:
            return time % 1000
