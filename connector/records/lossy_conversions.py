"""Finds columns whose values Debezium's default schema type cannot represent, and describes the consequence.

A correct representation needs another type in the schema, so Debezium's type remains the default.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from rowtide.connector.records.codecs.recently_used import RecentlyUsed
from rowtide.envelope.table import RecordRules
from rowtide.schema_history.model import Table

log = logging.getLogger(__name__)

_SHOWN = 20
_MAX_REPORTED = 10_000
"""For how many columns it is cached that the warning was given."""


@dataclass(frozen=True, slots=True)
class LossyConversion:
    """A setting under which values of some columns are not represented correctly.

    Attributes:
        setting: the property that chooses the conversion.
        affects: whether a column is affected, by its ``column_type`` in information_schema and its nullability.
        problem: the consequence, as the start of a sentence that ends with the names of the columns.
        remedy: the setting that avoids it.
    """

    setting: str
    affects: Callable[[str, bool], bool]
    problem: str
    remedy: str

    def message(self, columns: Sequence[str]) -> str:
        """The warning about columns, to follow the property's name."""
        more = f" and {len(columns) - _SHOWN} more" if len(columns) > _SHOWN else ""
        return f"{self.problem} {', '.join(columns[:_SHOWN])}{more}. {self.remedy}"


def _overflows(column_type: str, nullable: bool) -> bool:
    text = column_type.lower()
    return text.startswith("bigint") and ("unsigned" in text or "zerofill" in text)


def _holds_zero_dates(column_type: str, nullable: bool) -> bool:
    return not nullable and column_type.lower().startswith(("date", "timestamp"))


OVERFLOW = LossyConversion(
    "bigint.unsigned.handling.mode",
    _overflows,
    "is long: values of 2^63 and above become negative in",
    "precise keeps them, with another type in the schema",
)
ZERO_DATES = LossyConversion(
    "zero.date.handling.mode",
    _holds_zero_dates,
    "is epoch: zero dates and partial dates become 1970-01-01, or the default, in the NOT NULL columns",
    "null distinguishes them, with optional fields in the schema",
)


def lossy_columns(table: Table, rules: RecordRules) -> Iterator[tuple[LossyConversion, list[str]]]:
    """The published columns of a table that are converted with loss, by setting."""
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
    """Warns once about each affected column as the stream creates and changes tables.

    The check at the start covers the tables that exist then.
    """

    def __init__(self, rules: RecordRules) -> None:
        self._rules = rules
        self._reported: RecentlyUsed[tuple[str, str], bool] = RecentlyUsed(_MAX_REPORTED)

    def table_changed(self, table: Table) -> None:
        """Warn about new columns of a captured table."""
        for conversion, columns in lossy_columns(table, self._rules):
            new = [column for column in columns if not self._reported.get((conversion.setting, column))]
            for column in new:
                self._reported.put((conversion.setting, column), True)
            if new:
                log.warning("%s %s", conversion.setting, conversion.message(new))
