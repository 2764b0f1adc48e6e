"""The rows that ``rowtide-reread-rows`` names by their keys: the query for them, and records for deleted ones.

A value of a key is its canonical text without the letter of its type: a number in decimal digits, a text as it is,
bytes as hexadecimal digits, a date or time in ISO 8601 (TIMESTAMP in UTC), a TIME as its microseconds, a DOUBLE with as
many digits as it needs. Pure.
"""

import logging
import re
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from ipaddress import IPv4Address, IPv6Address
from typing import Any
from uuid import UUID

from rowtide.connector.errors import ConnectorError
from rowtide.connector.records.canonical import value_text
from rowtide.connector.records.lossy_conversions import may_name_another_row
from rowtide.connector.rows.layouts import inet6_text
from rowtide.connector.snapshot.chunks.key_condition import clock_text, key_condition, value_in_records
from rowtide.connector.snapshot.chunks.key_ranges import row_key
from rowtide.connector.snapshot.incremental.keys.deletions import key_row, misdirection
from rowtide.connector.snapshot.incremental.keys.row_keys import RowKeys
from rowtide.connector.snapshot.records import SnapshotTable
from rowtide.schema_history.model import Column, Table
from rowtide.schema_history.structure.type_names import BINARY_TYPES, INTEGERS

log = logging.getLogger(__name__)

KeyTexts = tuple[str, ...]

_INTEGER, _HEX = re.compile(r"-?\d{1,20}"), re.compile(r"(?:[0-9a-f]{2})*")
_TIME = re.compile(r"(\d{4}-\d\d-\d\d)(?:T(\d\d:\d\d:\d\d)(?:\.(\d{1,6}))?(?:\+00:00)?)?")
_INTEGERS = INTEGERS | {"year", "bit"}
_TIMES = frozenset({"date", "datetime", "timestamp"})
_PARSED: Mapping[str, Callable[[str], str]] = {
    "double": lambda text: repr(float(text)),
    "uuid": lambda text: str(UUID(text)),
    "inet4": lambda text: str(IPv4Address(text)),
    "inet6": lambda text: inet6_text(IPv6Address(text).packed),
}
VARIANTS = 8
"""This many values of the other columns show whether a deletion record depends on them."""


class RequestedKeys:
    """Keys of a table.

    Args:
        names: the columns of the key, in the order of the values.
        keys: the values of each key.
        structure: the table's structure.
        table: makes its records.
        row_keys: decodes the keys of its rows.
        topics: those of other captured tables, before the transforms.

    Attributes:
        condition: the condition for the rows, as SQL.

    Raises:
        ValueError: the rows cannot be identified by these keys; the message says why.
    """

    def __init__(
        self,
        names: Sequence[str],
        keys: Sequence[Sequence[str]],
        structure: Table,
        table: SnapshotTable,
        row_keys: RowKeys,
        topics: Iterable[str] = (),
    ) -> None:
        key = row_key(structure)
        if key is None:
            raise ValueError("the table has no key")
        self._columns = key.columns
        columns = [column.name for column in key.columns]
        if sorted(names) != sorted(columns) or any(len(values) != len(names) for values in keys):
            raise ValueError(f"each key must have a value of {', '.join(columns)}")
        records = table.records
        if {structure.row_columns[index].name for index in records.key_columns} != {*columns}:
            raise ValueError("the key of its records is not that of its rows (message.key.columns)")
        changed = [one.column.name for one in records.columns if one.type.is_custom]
        if hidden := sorted({*columns} & {*changed}):
            raise ValueError(f"column {hidden[0]} of its key has a column converter")
        self._table = table
        names_of_all = [column.name for column in structure.columns]
        keys_reader, self._reader = row_keys.reader(names_of_all), table.reader(names_of_all)
        self._rows: dict[KeyTexts, tuple[Any, ...]] = {}  # of those that are deleted if they are gone
        misdirected: bool | None = None
        canonical = []
        for values in keys:
            given = dict(zip(names, values, strict=True))
            texts = tuple(given[name] for name in columns)
            literals = {one.name: server_text(one, text) for one, text in zip(key.columns, texts, strict=True)}
            payload = key_row(structure.columns, literals)
            (decoded,) = row_keys.of_rows([keys_reader.row(payload)])
            if (found := tuple(value_text(value)[1:] for value in decoded)) != texts:  # type: ignore[attr-defined]
                raise ValueError(f"{list(texts)} is not the form of a key here: write {list(found)}")
            if misdirected is None:
                variants = [key_row(structure.columns, literals, variant) for variant in range(VARIANTS)]
                misdirected = self._is_misdirected(variants, topics)
            if not misdirected and not self._ambiguous(texts, [one.name for one in key.columns]):
                self._rows[self.texts(decoded)] = self._reader.row(payload)
            canonical.append(self._canonical(decoded))
        condition = key_condition(key.columns, canonical, table.settings.rules.values)
        if condition is None:
            raise ValueError(f"values of {', '.join(columns)} cannot be written exactly in a query")
        self.condition = condition

    def _ambiguous(self, texts: KeyTexts, columns: Sequence[str]) -> bool:
        """Return whether the records of another row may have this key. If so, no deletion is sent."""
        records = {one.column.name: one for one in self._table.records.columns}
        for name, text in zip(columns, texts, strict=True):
            found = may_name_another_row(records[name], text, self._table.settings)
            if found is not None:
                shown = text if self._table.settings.show_values else "..."
                log.warning(
                    "%s: the row with %s=%s is read again, and not deleted if it does not exist: records may have this "
                    "key for another row, because %s %s %s",
                    self._table.table.id, name, shown, found.setting, found.problem, name,
                )  # fmt: skip
                return True
        return False

    def _is_misdirected(self, variants: Sequence[bytes], topics: Iterable[str]) -> bool:
        """Return whether a deletion record cannot be made, or may concern another row. If so, none is sent."""
        try:
            self._reader.row(variants[0])
            reason = misdirection(self._table, variants, topics)
        except (ConnectorError, ValueError) as error:  # of a column converter or a transform
            reason = str(error)
        if reason is not None:
            log.warning(
                "%s: the rows are read again, and not deleted if they do not exist: %s", self._table.table.id, reason
            )
        return reason is not None

    def _canonical(self, key: Hashable) -> list[str]:
        values = self._table.settings.rules.values
        pairs = zip(self._columns, key, strict=True)  # type: ignore[call-overload]
        return [value_in_records(column, value_text(value), values) for column, value in pairs]

    def texts(self, key: Hashable) -> KeyTexts:
        """Return the texts of a key decoded from a row, in the form of the record's key."""
        return tuple(text[1:] for text in self._canonical(key))

    def gone(self, found: Collection[Hashable]) -> dict[KeyTexts, tuple[Any, ...]]:
        """Return the keys that are not among those of rows, each with the row for its deletion record."""
        there = {self.texts(key) for key in found}
        return {texts: row for texts, row in self._rows.items() if texts not in there}


def server_text(column: Column, text: str) -> bytes:
    """Return a value in the server's text form.

    Raises:
        ValueError: it is not a value of the column.
    """
    kind = column.data_type
    try:
        if kind in _INTEGERS and _INTEGER.fullmatch(text):
            number = int(text)
            return number.to_bytes(((column.length or 1) + 7) // 8, "big") if kind == "bit" else str(number).encode()
        if kind == "decimal":
            return f"{Decimal(text):.{column.scale or 0}f}".encode()
        if kind in BINARY_TYPES and _HEX.fullmatch(text):
            return bytes.fromhex(text).ljust((column.length or 1) if kind == "binary" else 0, b"\0")
        if kind in _TIMES and (match := _TIME.fullmatch(text)):
            date, clock, digits = match.groups()
            if kind == "date" and clock is None:
                return text.encode()
            if kind != "date" and clock is not None:
                return f"{date} {clock}{_fraction(digits or '', column)}".encode()
        if kind == "time" and _INTEGER.fullmatch(text):
            clock, _, digits = clock_text(int(text)).partition(".")
            return (clock + _fraction(digits, column)).encode()
        if kind in _PARSED:
            return _PARSED[kind](text).encode()
        if column.charset not in (None, "binary") and kind not in BINARY_TYPES:
            return text.encode()
    except (ValueError, OverflowError, InvalidOperation) as error:
        raise ValueError(f"{text!r:.100} is not a value of {column.name} ({column.column_type})") from error
    raise ValueError(f"{text!r:.100} is not a value of {column.name} ({column.column_type}), or it cannot be looked up")


def _fraction(digits: str, column: Column) -> str:
    return f".{digits.ljust(6, '0')[: column.fsp]}" if column.fsp else ""
