"""Recorded binlogs as events of ``rowtide.mysql_replication``, and the same row events decoded by mysql-replication."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pymysql.protocol import MysqlPacket
from pymysqlreplication.packet import BinLogPacketWrapper
from pymysqlreplication.row_event import (
    DeleteRowsEvent,
    PartialUpdateRowsEvent,
    TableMapEvent,
    UpdateRowsEvent,
    WriteRowsEvent,
)

from rowtide.connector.config import from_properties
from rowtide.connector.engine.pipeline_settings import pipeline_settings
from rowtide.connector.errors import StructureUncertain
from rowtide.connector.protocol.binlog_file import binlog_packets
from rowtide.connector.records.change import SourcePosition
from rowtide.connector.records.offset import SourceOffset
from rowtide.mysql_replication import BinLogStreamReader
from rowtide.mysql_replication.events import ConnectionProperties, EventFactory, EventPacket
from rowtide.mysql_replication.structures import TableStructures
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.model import TableId
from rowtide.schema_history.server.query_event import Flavor, Server
from tests.support.recordings.golden import Case

__all__ = ["library_rows", "recorded_events", "recorded_reader"]

_CLASSES = frozenset({TableMapEvent, WriteRowsEvent, UpdateRowsEvent, DeleteRowsEvent, PartialUpdateRowsEvent})


class _NoServer:
    def statement(self, table: TableId, _since: SourcePosition) -> str:
        raise StructureUncertain(f"there is no server to ask about {table}")

    def is_view(self, name: TableId) -> bool:
        raise StructureUncertain(f"there is no server to ask about {name}")


class _Factory(EventFactory):
    """Keeps the bytes of row events."""

    def rows(self, packet: EventPacket, *arguments: Any) -> Any:
        made = super().rows(packet, *arguments)
        made.test_bytes = packet.with_checksum()
        return made


def recorded_reader(case: Case, **arguments: Any) -> Any:
    """A reader that knows the server of a recorded case, and has no connection to it."""
    mariadb = case.description.get("server") == "mariadb"
    reader: Any = BinLogStreamReader({"host": "127.0.0.1"}, 1, enable_logging=False, **arguments)
    reader.dbms = "mariadb" if mariadb else "mysql"
    config = reader._config = from_properties(case.properties())
    tables = Tables(Server(Flavor(reader.dbms), str(case.server.get("version", ""))))
    reader._structures = TableStructures(pipeline_settings(config, reader.dbms), tables, _NoServer())
    reader._factory = _Factory(reader._allowed, ConnectionProperties("utf8", reader.dbms), reader._options)
    return reader


def recorded_events(case: Case, **arguments: Any) -> Iterator[Any]:
    """The events of a recorded binlog as a reader with these arguments yields them."""
    reader = recorded_reader(case, **arguments)
    for path in sorted(case.binlog.iterdir()):
        name = path.name.removesuffix(".gz")
        reader._begin_at(SourceOffset(name, 4))
        with path.open("rb") as stream:
            for packet in binlog_packets(stream, name, active=True):
                yield from reader._packet(packet)


def library_rows(event: Any) -> list[dict[str, Any]]:
    """The rows of a row event as mysql-replication decodes them, with the columns that rowtide knows."""
    wrapper = BinLogPacketWrapper(
        MysqlPacket(b"\0" + event.test_bytes, "utf8"), event.table_map, event._ctl_connection,
        mysql_version=(8, 0, 0), use_checksum=True, allowed_events=_CLASSES, only_tables=None, ignored_tables=None,
        only_schemas=None, ignored_schemas=None, freeze_schema=False, ignore_decode_errors=False,
        verify_checksum=False, optional_meta_data=False, enable_logging=False,
    )  # fmt: skip
    return list(wrapper.event.rows)
