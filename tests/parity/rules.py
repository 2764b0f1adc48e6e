"""Where rowtide is known not to be Debezium, and wanted so: each rule is narrow, and has its class and its reason.

The classes are those of ``tests/support/differences.py``: *damage*, Debezium loses or changes something and rowtide is
right; *stops*, Debezium ends there and rowtide goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.parity.compare import Difference

__all__ = ["RULES", "STOPS", "Rule", "rule_for", "stop_for"]


@dataclass(frozen=True, slots=True)
class Rule:
    """A known difference.

    Attributes:
        reason: what it is, with its class.
        applies: whether a difference of a column of this type is one.
    """

    reason: str
    applies: Callable[[Difference, str], bool]


_DAY_MS = 86_400_000


def _year_zero(difference: Difference, kind: str) -> bool:
    return kind.startswith("year") and difference.want in {"1900", "2000"} and difference.have == "0"


def _rounded_default(difference: Difference, kind: str) -> bool:
    # (A null of a column with a default is written as the default.)
    want, have = _integer(difference.want), _integer(difference.have)
    return kind.startswith("bigint") and abs(have) > 2**53 and want != have and float(want) == float(have)


def _undecoded(difference: Difference, kind: str) -> bool:
    return "\ufffd" in difference.want and "\ufffd" not in difference.have


def _gregorian(difference: Difference, kind: str) -> bool:
    days = _integer(difference.want) - _integer(difference.have)
    return kind.startswith("date") and days in {10, *(10 * _DAY_MS * unit for unit in (1, 10**3, 10**6))}


def _integer_unsigned(difference: Difference, kind: str) -> bool:
    wrapped = _integer(difference.have) - _integer(difference.want) == 2**32
    typed = (difference.want, difference.have) == ('"int32"', '"int64"')
    return kind.startswith("int(10) unsigned") and (wrapped or typed)


def _integer(text: str) -> int:
    return int(text) if text.lstrip("-").isdigit() else 0


RULES: tuple[Rule, ...] = (
    Rule("damage: YEAR 0 is made 1900 (stream) or 2000 (snapshot)", _year_zero),
    Rule("damage: a BIGINT's default is rounded to a double", _rounded_default),
    Rule("damage: text is read in another character set than the column's, and gives U+FFFD", _undecoded),
    Rule("damage: a snapshot moves the ten days that the calendar of 1582 left out", _gregorian),
    Rule("damage: MariaDB's INTEGER UNSIGNED of a statement is taken for signed (put right in Debezium 3.6)",
         _integer_unsigned),
)  # fmt: skip

STOPS: dict[str, str] = {}
"""Texts of the errors with which Debezium stops, and why it should not."""


def rule_for(difference: Difference, column_type: str) -> Rule | None:
    """The rule for a difference, if there is one."""
    return next((rule for rule in RULES if rule.applies(difference, column_type)), None)


def stop_for(trace: str) -> str | None:
    """Why Debezium should not have stopped, if that is known."""
    return next((reason for text, reason in STOPS.items() if text in trace), None)
