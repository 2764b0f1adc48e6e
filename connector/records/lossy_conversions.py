"""Columns with values that Debezium's form of them does not hold: which they are, and what is said of them.

Being right there needs another type in the schema, so Debezium's form stays until the configuration asks for another.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from rowtide.envelope.table import RecordRules
from rowtide.schema_history.model import Table

log = logging.getLogger(__name__)

_SHOWN = 20


@dataclass(frozen=True, slots=True)
class LossyConversion:
    """A kind of such columns.

    Attributes:
        setting: the property that chooses the form.
        affects: whether a column is one, by its type as information_schema has it and by whether it may be null.
        problem: what happens, as the beginning of a sentence that the columns' names end.
        remedy: what helps.
    """

    setting: str
    affects: Callable[[str, bool], bool]
    problem: str
    remedy: str

    def message(self, columns: Sequence[str]) -> str:
        """What is said of columns, behind the property's name."""
        more = f" and {len(columns) - _SHOWN} more" if len(columns) > _SHOWN else ""
        return f"{self.problem} {', '.join(columns[:_SHOWN])}{more}. {self.remedy}"


def _overflows(column_type: str, nullable: bool) -> bool:
    words = column_type.lower()
    return words.startswith("bigint") and ("unsigned" in words or "zerofill" in words)


def _holds_zero_dates(column_type: str, nullable: bool) -> bool:
    return not nullable and column_type.lower().startswith(("date", "timestamp"))


OVERFLOW = LossyConversion(
    "bigint.unsigned.handling.mode",
    _overflows,
    "is long: values from 2^63 on become negative in",
    "precise keeps them right, with another type in the schema",
)
ZERO_DATES = LossyConversion(
    "zero.date.handling.mode",
    _holds_zero_dates,
    "is epoch: zero dates and partial ones become 1970-01-01, or the default, in the NOT NULL columns",
    "null keeps them apart, with optional fields in the schema",
)


def lossy_columns(table: Table, rules: RecordRules) -> Iterator[tuple[LossyConversion, list[str]]]:
    """The published columns of a table that a setting puts at conversion."""
    chosen = []
    if rules.values.bigint_unsigned_handling_mode == "long":
        chosen.append(OVERFLOW)
    if rules.values.zero_date_handling_mode == "epoch":
        chosen.append(ZERO_DATES)
    database, name = table.id.database, table.id.table
    for conversion in chosen:
        columns = [
            f"{table.id}.{column.name}"
            for column in table.columns
            if conversion.affects(column.column_type, column.nullable)
            and (rules.columns.captures(database, name, column.name) or column.name in table.debezium.primary_key)
        ]
        if columns:
            yield conversion, columns


class LossyConversionWarnings:
    """Says once of each column that it is at risk, as tables are made and changed in the stream.

    Those that were there at the start are told by the check.
    """

    def __init__(self, rules: RecordRules) -> None:
        self._rules = rules
        self._reported: set[tuple[str, str]] = set()

    def table_changed(self, table: Table) -> None:
        """A captured table has this structure now."""
        for conversion, columns in lossy_columns(table, self._rules):
            new = [column for column in columns if (conversion.setting, column) not in self._reported]
            self._reported.update((conversion.setting, column) for column in new)
            if new:
                log.warning("%s %s", conversion.setting, conversion.message(new))
