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


RULES: tuple[Rule, ...] = ()

STOPS: dict[str, str] = {}
"""Texts of the errors with which Debezium stops, and why it should not."""


def rule_for(difference: Difference, column_type: str) -> Rule | None:
    """The rule for a difference, if there is one."""
    return next((rule for rule in RULES if rule.applies(difference, column_type)), None)


def stop_for(trace: str) -> str | None:
    """Why Debezium should not have stopped, if that is known."""
    return next((reason for text, reason in STOPS.items() if text in trace), None)
