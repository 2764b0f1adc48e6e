"""The readers of the race that are written in Python: each counts the row images of binlog files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from rowtide.connector.engine.replay import replay
from rowtide.connector.protocol.decoder import EventDecoder
from rowtide.connector.protocol.events.classes import Rows
from rowtide.connector.records.batch import Batch
from tests.bench.stages import packets, record, settings

FORM = "without schemas"


def rowtide_rows(folder: Path, *, values: bool) -> Callable[[], int]:
    """From the files to key and row as JSON text, or as Python values.

    The structures and what depends on them are made before: only reading and decoding count.
    """
    codecs = {event.table_id: codec for codec, event in record(folder, _settings(values=values)).rows}

    def read() -> int:
        images, decoder = 0, EventDecoder()
        for packet in packets(folder):
            event = decoder.decode(packet)
            if isinstance(event, Rows) and event.table_id in codecs:
                images += len(codecs[event.table_id].rows(event))
        return images

    return read


def rowtide_messages(folder: Path) -> Callable[[], int]:
    """From the files to Debezium's messages, with the recovery of the structures; it counts messages."""

    def read() -> int:
        outputs = replay(folder, _settings(values=False), None)
        return sum(len(output.messages) for output in outputs if isinstance(output, Batch))

    return read


def _settings(*, values: bool) -> Any:
    made = settings(FORM)
    return replace(made, changes=True, schema_changes=False) if values else made


def mysql_replication(folder: Path) -> Callable[[], int]:
    """From the files to mysql-replication's rows; column names need a server, so it numbers them."""
    from pymysql.protocol import MysqlPacket
    from pymysqlreplication.constants.BINLOG import TABLE_MAP_EVENT
    from pymysqlreplication.event import FormatDescriptionEvent
    from pymysqlreplication.packet import BinLogPacketWrapper
    from pymysqlreplication.row_event import DeleteRowsEvent, TableMapEvent, UpdateRowsEvent, WriteRowsEvent

    classes = frozenset({FormatDescriptionEvent, TableMapEvent, WriteRowsEvent, UpdateRowsEvent, DeleteRowsEvent})
    options = {
        "mysql_version": (9, 7, 0), "use_checksum": True, "allowed_events": classes, "only_tables": None,
        "ignored_tables": ["seq"], "only_schemas": None, "ignored_schemas": None, "freeze_schema": False,
        "ignore_decode_errors": True, "verify_checksum": False, "optional_meta_data": False, "enable_logging": False,
    }  # fmt: skip

    def read() -> int:
        images = 0
        tables: dict[int, Any] = {}
        for packet in packets(folder):
            wrapper = BinLogPacketWrapper(MysqlPacket(b"\0" + packet, "utf8"), tables, _NoServer(), **options)
            if wrapper.event is None:
                continue
            if wrapper.event_type == TABLE_MAP_EVENT:
                tables[wrapper.event.table_id] = wrapper.event.get_table()
            elif isinstance(wrapper.event, (WriteRowsEvent, UpdateRowsEvent, DeleteRowsEvent)):
                each = 2 if isinstance(wrapper.event, UpdateRowsEvent) else 1
                images += each * len(wrapper.event.rows)
        return images

    return read


class _NoServer:
    """The connection that mysql-replication takes settings from."""

    charset = "utf8mb4"

    def _get_dbms(self) -> str:
        return "mysql"


READERS: Mapping[str, Callable[[Path], Callable[[], int]]] = {
    "JSON text": partial(rowtide_rows, values=False),
    "Python values": partial(rowtide_rows, values=True),
    "messages": rowtide_messages,
    "mysql-replication": mysql_replication,
}
"""By name, the function that prepares a reader of a folder's files."""
