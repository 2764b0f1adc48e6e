"""FlatMessages: entries as JSON, which Canal writes to Kafka by default.

The form is that of fastjson2: keys in alphabetical order, null for what is not set, no spaces, no escapes beyond ASCII.
"""

import json
from collections.abc import Sequence
from typing import Any

from rowtide.canal.entries.entry import Absent, Entry, EntryColumn, EntryStatement, EventType, RowChange, Values

Json = dict[str, Any]


def flat_message(entry: Entry, batch_id: int, ts: int) -> str | None:
    """Return the FlatMessage of an entry; ``None`` for the bounds of a transaction, which have none.

    Args:
        entry: the entry.
        batch_id: ``id``, that of the batch that the entry belongs to.
        ts: the time when the message is made, in milliseconds since the epoch.
    """
    found = flat_messages(entry, batch_id, ts, 0)
    return found[0][1] if found else None


def flat_messages(entry: Entry, batch_id: int, ts: int, places: int | Sequence[int]) -> list[tuple[int, str]]:
    """Return the FlatMessages of an entry, with their partitions; none for the bounds of a transaction.

    Args:
        entry: the entry.
        batch_id: ``id``, that of the batch that the entry belongs to.
        ts: the time when the messages are made, in milliseconds since the epoch.
        places: the partition of the entry, or one for each of its rows.
    """
    content = entry.content
    if not isinstance(content, RowChange | EntryStatement):
        return []
    header = entry.header
    message: Json = {
        "data": None,
        "database": header.database or "",
        "es": header.execute_time,
        "gtid": header.gtid,
        "id": batch_id,
        "isDdl": False,
        "mysqlType": None,
        "old": None,
        "pkNames": None,
        "sql": "",
        "sqlType": None,
        "table": header.table or "",
        "ts": ts,
        "type": content.type.name,
    }
    if isinstance(content, EntryStatement):
        message["isDdl"], message["sql"] = bool(content.ddl), content.sql
    else:
        message |= _rows(content)
    if isinstance(places, int):
        return [(places, _text(message))]
    return [(place, _text(message | _part(message, places, place))) for place in sorted(set(places))]


def _part(message: Json, places: Sequence[int], place: int) -> Json:
    """Return the rows of one partition. The descriptions of the columns are those of all rows."""
    return {
        name: [row for row, at in zip(message[name], places, strict=True) if at == place]
        for name in ("data", "old")
        if message[name] is not None
    }


def _text(message: Json) -> str:
    return json.dumps(message, ensure_ascii=False, separators=(",", ":"))


def _rows(change: RowChange) -> Json:
    images = [(after if after is not None else before) or () for before, after in change.rows]
    present = [column for column in change.columns if any(_held(image, column) for image in images)]
    found: Json = {
        "data": [row for image in images if (row := _row(change.columns, image))] or None,
        "mysqlType": {column.name: column.mysql_type for column in present} or None,
        "sqlType": {column.name: _last_type(column, images) for column in present} or None,
        "pkNames": [column.name for column in present if column.key] or None,
    }
    if change.type is EventType.UPDATE:
        found["old"] = [_old(change.columns, before or (), after or ()) for before, after in change.rows] or None
    return found


def _row(columns: Sequence[EntryColumn], image: Values) -> Json:
    return {column.name: image[column.index] for column in columns if _held(image, column)}


def _old(columns: Sequence[EntryColumn], before: Values, after: Values) -> Json:
    """Return the earlier values of the columns that an update has changed."""
    return {
        column.name: before[column.index]
        for column in columns
        if _held(before, column) and _held(after, column) and before[column.index] != after[column.index]
    }


def _held(image: Values, column: EntryColumn) -> bool:
    return not isinstance(image[column.index], Absent)


def _last_type(column: EntryColumn, images: Sequence[Values]) -> int:
    """Return the SQL type of the last row's value: Canal's types may differ from row to row, and the last one stays."""
    values = [value for image in images if not isinstance(value := image[column.index], Absent)]
    return column.type_of(values[-1])
