"""The rows that ``rowtide-reread-rows`` names by their keys: how to find them, and the records of those that are gone.

A value of a key is its canonical text without the letter of its type: a number in decimal digits, a text as it is,
bytes as hexadecimal digits, a date or time in ISO 8601 (TIMESTAMP in UTC), a TIME as its microseconds. Pure.
"""

import logging
import re
from collections.abc import Collection, Hashable, Sequence
from decimal import Decimal, InvalidOperation

from rowtide.connector.records.canonical import value_text
from rowtide.connector.records.lossy_conversions import may_name_another_row
from rowtide.connector.rows.text_protocol_rows import Rows
from rowtide.connector.snapshot.chunks.key_condition import clock_text, key_condition
from rowtide.connector.snapshot.chunks.key_ranges import row_key
from rowtide.connector.snapshot.incremental.keys.row_keys import RowKeys
from rowtide.connector.snapshot.records import SnapshotTable
from rowtide.schema_history.model import Column, Table

log = logging.getLogger(__name__)

KeyTexts = tuple[str, ...]

_NULL = b"\xfb"
_INTEGER, _HEX = re.compile(r"-?\d{1,20}"), re.compile(r"(?:[0-9a-f]{2})*")
_TIME = re.compile(r"(\d{4}-\d\d-\d\d)(?:T(\d\d:\d\d:\d\d)(?:\.(\d{1,6}))?(?:\+00:00)?)?")
_INTEGERS = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint", "year", "bit"})
_BYTES = frozenset({"varbinary", "tinyblob", "blob", "mediumblob", "longblob", "binary"})
_TIMES = frozenset({"date", "datetime", "timestamp"})
_NEUTRAL = {
    **dict.fromkeys((*_INTEGERS, "decimal", "float", "double"), b"0"),
    "year": b"1970",
    "date": b"1970-01-01",
    "datetime": b"1970-01-01 00:00:01",
    "timestamp": b"1970-01-01 00:00:01",
    "time": b"00:00:00",
    "json": b"{}",
}


class RequestedKeys:
    """Keys of a table.

    Args:
        names: the columns of the key, in the order of the values.
        keys: the values of each key.
        structure: the table's structure.
        table: makes its records.
        row_keys: decodes the keys of its rows.

    Attributes:
        condition: the condition for the rows, as SQL.

    Raises:
        ValueError: the rows cannot be told by these keys; the message says why.
    """

    def __init__(
        self,
        names: Sequence[str],
        keys: Sequence[Sequence[str]],
        structure: Table,
        table: SnapshotTable,
        row_keys: RowKeys,
    ) -> None:
        key = row_key(structure)
        if key is None:
            raise ValueError("the table has no key")
        columns = [column.name for column in key.columns]
        if sorted(names) != sorted(columns) or any(len(values) != len(names) for values in keys):
            raise ValueError(f"each key must have a value of {', '.join(columns)}")
        records = table.records
        if {structure.row_columns[index].name for index in records.key_columns} != {*columns}:
            raise ValueError("the key of its records is not that of its rows (message.key.columns)")
        changed = [one.column.name for one in records.columns if one.type.is_custom]
        if hidden := sorted({*columns} & {*changed}):
            raise ValueError(f"column {hidden[0]} of its key has a column converter")
        self._row_keys, self._table = row_keys, table
        self._names = [column.name for column in structure.columns]
        reader = row_keys.reader(self._names)
        self._payloads: dict[KeyTexts, bytes] = {}  # of those that are deleted if they are gone
        canonical = []
        for values in keys:
            given = dict(zip(names, values, strict=True))
            texts = tuple(given[name] for name in columns)
            literals = {one.name: _server_text(one, text) for one, text in zip(key.columns, texts, strict=True)}
            payload = b"".join(_packed(literals.get(one.name, _absent(one))) for one in structure.columns)
            (decoded,) = row_keys.of_rows([reader.row(payload)])
            if (found := self.texts(decoded)) != texts:
                raise ValueError(f"{list(texts)} is not how a key is written here: write {list(found)}")
            if not self._ambiguous(texts, [one.name for one in key.columns]):
                self._payloads[texts] = payload
            canonical.append([value_text(value) for value in decoded])  # type: ignore[attr-defined]
        condition = key_condition(key.columns, canonical)
        if condition is None:
            raise ValueError(f"values of {', '.join(columns)} cannot be written exactly in a query")
        self.condition = condition

    def _ambiguous(self, texts: KeyTexts, columns: Sequence[str]) -> bool:
        """Whether the records of another row may have this key: then no deletion of it is sent."""
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

    @staticmethod
    def texts(key: Hashable) -> KeyTexts:
        """The texts of a key that was decoded from a row."""
        return tuple(value_text(value)[1:] for value in key)  # type: ignore[attr-defined]

    def gone(self, found: Collection[Hashable]) -> dict[KeyTexts, bytes]:
        """The keys that are not among those of rows, each with the row of its record of deletion, as a packet."""
        there = {self.texts(key) for key in found}
        return {texts: payload for texts, payload in self._payloads.items() if texts not in there}

    def rows(self, payloads: Collection[bytes]) -> Rows:
        """The rows of records of deletion: they have their key only."""
        reader = self._table.reader(self._names)
        return [reader.row(payload) for payload in payloads]


def _packed(value: bytes | None) -> bytes:
    """A value in a packet of the text protocol."""
    if value is None:
        return _NULL
    size = len(value)
    if size < _NULL[0]:
        return bytes([size]) + value
    return (
        b"\xfc" + size.to_bytes(2, "little") + value if size < 1 << 16 else b"\xfd" + size.to_bytes(3, "little") + value
    )


def _server_text(column: Column, text: str) -> bytes:
    """A value as the server prints it."""
    kind = column.data_type
    try:
        if kind in _INTEGERS and _INTEGER.fullmatch(text):
            number = int(text)
            return number.to_bytes(((column.length or 1) + 7) // 8, "big") if kind == "bit" else str(number).encode()
        if kind == "decimal":
            return f"{Decimal(text):.{column.scale or 0}f}".encode()
        if kind in _BYTES and _HEX.fullmatch(text):
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
        if column.charset not in (None, "binary") and kind not in _BYTES:
            return text.encode()
    except (ValueError, OverflowError, InvalidOperation) as error:
        raise ValueError(f"{text!r:.100} is not a value of {column.name} ({column.column_type})") from error
    raise ValueError(f"{text!r:.100} is not a value of {column.name} ({column.column_type}), or it cannot be looked up")


def _absent(column: Column) -> bytes | None:
    """What stands for a column in a record of deletion: NULL, or in a NOT NULL column a value that means nothing."""
    kind = column.data_type
    if column.nullable:
        return None
    if kind == "bit":
        return bytes(((column.length or 1) + 7) // 8)
    if kind == "enum":
        return column.labels[0].encode() if column.labels else None
    if kind in _BYTES or column.charset is not None:
        return bytes(column.length or 1) if kind == "binary" else b""
    return _NEUTRAL.get(kind)


def _fraction(digits: str, column: Column) -> str:
    return f".{digits.ljust(6, '0')[: column.fsp]}" if column.fsp else ""
