"""Repairs rows of topics with signals, on which a running connector reads the rows again.

Only the connector can do it: its records are in the order of the stream, so none replaces a newer one.
"""

import base64
import datetime as dt
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from rowtide.connector.records.canonical import value_text
from rowtide.connector.records.lossy_conversions import may_name_another_row
from rowtide.connector.snapshot.chunks.key_condition import key_condition
from rowtide.connector.snapshot.incremental.keys.deletions import key_row, misdirection
from rowtide.connector.snapshot.incremental.keys.requested_keys import VARIANTS, server_text
from rowtide.errors import ConnectorError
from rowtide.schema_history.model import Column
from rowtide.verify.source import SourceTable
from rowtide.verify.texts import Key

_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - DATETIME has no zone
_MILLIS = 3
SIGNAL = "rowtide-reread-rows"


class RepairError(ConnectorError):
    """A signal was not carried out; the message says why, and what to do."""


@dataclass(slots=True)
class RepairSignals:
    """Sends the signals.

    Attributes:
        send: sends a signal with these fields, and waits until it is carried out; raises :class:`RepairError`.
        largest: the bytes that the data of a signal may have.
        dry_run: whether to only show the signals.
        problem: the reason why a signal was not carried out; no other signal is sent then.
    """

    send: Callable[[Mapping[str, Any]], None]
    largest: int
    dry_run: bool = False
    problem: str = ""

    def signals(self, table: SourceTable, keys: Sequence[Key]) -> Iterator[Mapping[str, Any]]:
        """Yield the signals for some keys, each with as many keys as allowed."""
        columns = [column.name for column in table.key_columns]
        head = {"data-collection": str(table.id), "key-columns": columns}
        rest, size = list[list[str]](), len(json.dumps(head))
        most = self.largest - size - 16
        length = 0
        for key in keys:
            texts = [text[1:] for text in exact_key(table, key) or key]
            more = len(json.dumps(texts)) + 2
            if rest and length + more > most:
                yield {"type": SIGNAL, "data": {**head, "keys": rest}}
                rest, length = [], 0
            rest.append(texts)
            length += more
        if rest:
            yield {"type": SIGNAL, "data": {**head, "keys": rest}}


def exact_key(table: SourceTable, key: Key) -> Key | None:
    """Return the texts by which the row of a key can be looked up; ``None`` if there are none.

    Records without schemas have dates, times and bytes as numbers and strings, in Debezium's default forms. A text
    mistaken for another form names a row that does not exist, and a deletion record for it changes nothing.
    """
    if table.hidden_key:
        return None
    pairs = list(zip(table.key_columns, key, strict=True))
    texts = {column.name: _exact(column, text) for column, text in pairs}
    if texts.keys() != {column.name for column in table.key}:
        return None  # message.key.columns
    if key_condition(table.key, [[texts[column.name] for column in table.key]]) is None:
        return None
    return tuple(texts[column.name] for column, _ in pairs)


def never_deleted(table: SourceTable, key: Key) -> str | None:
    """Return the reason why the connector does not delete the row of a key, which the source lacks, from the topic.

    It reads the row again, and sends no record. ``None`` if it deletes the row.
    """
    texts = dict(zip((column.name for column in table.key_columns), exact_key(table, key) or key, strict=True))
    try:
        values = {column.name: server_text(column, texts[column.name][1:]) for column in table.key}
        rows = [key_row(table.structure.columns, values, variant) for variant in range(VARIANTS)]
        if (reason := misdirection(table.form, rows, ())) is not None:
            return reason
    except (ConnectorError, ValueError) as error:  # of a column converter or a transform
        return str(error)
    for record in table.form.records.columns:
        name = record.column.name
        if name in texts and (found := may_name_another_row(record, texts[name][1:], table.form.settings)):
            return f"records of another row may have their key, because {found.setting} {found.problem} {name}"
    return None


def _exact(column: Column, text: str) -> str:
    kind, tag, value = column.data_type, text[0], text[1:]
    with suppress(ValueError, OverflowError, ArithmeticError):
        match kind:
            case "date" if tag == "i":
                return f"t{(_EPOCH + dt.timedelta(days=int(value))).date().isoformat()}"
            case "datetime" if tag == "i":
                unit = 1000 if column.fsp <= _MILLIS else 1
                return f"t{(_EPOCH + dt.timedelta(microseconds=int(value) * unit)).isoformat()}"
            case "timestamp" if tag == "s":
                return f"t{dt.datetime.fromisoformat(value).astimezone(dt.UTC).isoformat()}"
            case "time" if tag == "i":
                return f"h{value}"
            case "decimal" if tag == "s":
                return value_text(Decimal(value))
            case "binary" | "varbinary" | "tinyblob" | "blob" | "mediumblob" | "longblob" if tag == "s":
                found = base64.b64decode(value, validate=True)
                return "x" + (found.rstrip(b"\0") if kind == "binary" else found).hex()
    return text
