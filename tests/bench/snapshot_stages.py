"""Where the time of a snapshot's rows goes: from the packets of a result set to batches, without a server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.snapshot.records import ReadTime, SnapshotTable
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.server.query_event import Flavor, QueryEvent, Server

__all__ = ["snapshot_stages"]

_TABLE = """CREATE TABLE orders(
    id bigint unsigned NOT NULL AUTO_INCREMENT PRIMARY KEY, customer_id bigint NOT NULL, sku varchar(40) NOT NULL,
    price decimal(12,2) NOT NULL, note varchar(255), created_at datetime(3) NOT NULL, weight double)"""
_CHUNK = 1 << 16
"""Bytes of packets in one buffer, as the connector reads them."""


def snapshot_stages(settings: Any, rows: int) -> dict[str, Callable[[], None]]:
    """The stages of the rows of a table with seven columns, by name."""
    tables = Tables(Server(Flavor.MYSQL))
    for statement in ("create database bench", _TABLE):
        tables.apply(QueryEvent(statement, database="bench"))
    structure = tables.table("bench", "orders")
    assert structure is not None
    table = SnapshotTable(structure, settings)
    reader = table.reader([column.name for column in table.columns])
    buffers = _buffers(rows)
    texts = [reader.rows(buffer)[0] for buffer in buffers]
    offset = SourceOffset("binlog.000001", 4)
    read_time = ReadTime(1_700_000_000_000_000, offset, lambda: 1_700_000_000_000_000_000)

    def read() -> None:
        for buffer in buffers:
            reader.rows(buffer)

    def messages() -> None:
        for found in texts:
            table.batch(table.messages(found, "true", read_time), 0, offset)

    return {"snapshot: rows to JSON text": read, "snapshot: messages from the text": messages}


def _buffers(rows: int) -> list[bytes]:
    """The packets of rows, in buffers of the usual size."""
    found, buffer = [], b""
    for number in range(1, rows + 1):
        values = (number, number * 7, f"SKU-{number:032}", f"{number % 1000}.25", "note " * (number % 20))
        cells = [*values, "2024-02-29 10:11:12.345", number / 7]
        payload = b"".join(bytes([len(text)]) + text for text in (str(cell).encode() for cell in cells))
        buffer += len(payload).to_bytes(3, "little") + bytes([number & 255]) + payload
        if len(buffer) >= _CHUNK or number == rows:
            found.append(buffer)
            buffer = b""
    return found
