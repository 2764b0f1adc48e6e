"""Makes the events of mysql-replication: instances of its own classes.

Row events and TABLE_MAPs are made from rowtide's; the constructors of all others parse the bytes of the event.
"""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from pymysql.protocol import MysqlPacket
from pymysqlreplication.column import Column
from pymysqlreplication.constants.CHARSET import charset_by_name
from pymysqlreplication.event import NotImplementedEvent, PreviousGtidsEvent, QueryEvent, RowsQueryLogEvent
from pymysqlreplication.packet import BinLogPacketWrapper
from pymysqlreplication.row_event import (
    DeleteRowsEvent,
    PartialUpdateRowsEvent,
    TableMapEvent,
    UpdateRowsEvent,
    WriteRowsEvent,
    find_charset,
)
from pymysqlreplication.table import Table as EventTable

from rowtide.connector.errors import ProtocolError
from rowtide.connector.protocol.byte_reader import ByteReader
from rowtide.connector.protocol.events.classes import PreviousGtids, Query, Rows, RowsKind, RowsQuery, TableMap
from rowtide.connector.protocol.events.query_status import QueryStatus
from rowtide.connector.protocol.events.table_structure import BinlogType, MappedColumn, TableStructure
from rowtide.connector.protocol.header import HEADER, HEADER_LENGTH, EventType
from rowtide.connector.rows.column_kinds import column_kind
from rowtide.mysql_replication.rows import EventRows
from rowtide.schema_history import model

_CHECKSUM = 4
_ROWS = {RowsKind.WRITE: WriteRowsEvent, RowsKind.UPDATE: UpdateRowsEvent, RowsKind.DELETE: DeleteRowsEvent}
_UNCOMPRESSED: dict[int, int] = {
    EventType.MARIADB_QUERY_COMPRESSED: EventType.QUERY,
    EventType.MARIADB_WRITE_ROWS_COMPRESSED_V1: EventType.WRITE_ROWS_V1,
    EventType.MARIADB_UPDATE_ROWS_COMPRESSED_V1: EventType.UPDATE_ROWS_V1,
    EventType.MARIADB_DELETE_ROWS_COMPRESSED_V1: EventType.DELETE_ROWS_V1,
    EventType.MARIADB_WRITE_ROWS_COMPRESSED: EventType.WRITE_ROWS,
    EventType.MARIADB_UPDATE_ROWS_COMPRESSED: EventType.UPDATE_ROWS,
    EventType.MARIADB_DELETE_ROWS_COMPRESSED: EventType.DELETE_ROWS,
}
"""The types that mysql-replication knows in place of MariaDB's compressed ones."""
_CLASSES: dict[int, type] = BinLogPacketWrapper._BinLogPacketWrapper__event_map  # noqa: SLF001
"""mysql-replication's classes of events by type."""
_LAST_METADATA = 12
"""The last optional metadata field that mysql-replication knows; the dimensions of a VECTOR follow it."""


@dataclass(frozen=True, slots=True)
class ConnectionProperties:
    """The properties of the query connection that events use.

    Attributes:
        charset: its character set.
        dbms: ``mysql`` or ``mariadb``.
    """

    charset: str
    dbms: str

    def _get_dbms(self) -> str:
        return self.dbms


@dataclass(frozen=True, slots=True)
class EventPacket:
    """The bytes of an event.

    Attributes:
        data: the event, with its header.
        checksum: whether it ends with a checksum.
        log_pos: its end in the binlog file.
    """

    data: bytes
    checksum: bool
    log_pos: int

    def with_checksum(self) -> bytes:
        """Return the bytes with a checksum and the position, as in the binlog."""
        data = self.data
        timestamp, code, server_id, size, log_pos, flags = HEADER.unpack_from(data)
        if self.checksum and log_pos:
            return data
        size += 0 if self.checksum else _CHECKSUM
        body = data[HEADER_LENGTH:-_CHECKSUM] if self.checksum else data[HEADER_LENGTH:]
        made = HEADER.pack(timestamp, code, server_id, size, log_pos or self.log_pos & 0xFFFFFFFF, flags) + body
        return made + zlib.crc32(made).to_bytes(_CHECKSUM, "little")


class EventFactory:
    """Makes mysql-replication's events.

    Args:
        allowed: the classes of events that are wanted.
        connection: the properties of the query connection that events use.
        options: the options of the reader that events keep: ``only_tables`` and others.

    Attributes:
        table_map: mysql-replication's tables, by table id.
        mysql_version: the version of the server that wrote the file.
    """

    def __init__(self, allowed: frozenset[type], connection: ConnectionProperties, options: dict[str, Any]) -> None:
        self.allowed = allowed
        self.table_map: dict[int, Any] = {}
        self.mysql_version: tuple[int, ...] = (0, 0, 0)
        self._connection = connection
        self._options = options
        self._made: dict[int, model.Table] = {}

    def forget_tables(self) -> None:
        """Forget the table ids of a file that has ended."""
        self.table_map = {}
        self._made = {}

    def wants_rows(self, event: Rows) -> bool:
        """Return whether events of this kind are wanted."""
        return _class_of(event) in self.allowed

    def other(self, packet: EventPacket) -> Any:
        """Make an event that holds neither rows nor a table; ``None`` if it is not wanted."""
        if _CLASSES.get(packet.data[4], NotImplementedEvent) not in self.allowed:
            return None
        data = packet.with_checksum()
        options = self._options
        wrapper = BinLogPacketWrapper(
            MysqlPacket(b"\0" + data, "utf8"),
            self.table_map,
            self._connection,
            self.mysql_version,
            True,
            self.allowed,
            options["only_tables"],
            options["ignored_tables"],
            options["only_schemas"],
            options["ignored_schemas"],
            options["freeze_schema"],
            options["ignore_decode_errors"],
            options["verify_checksum"],
            True,
            options["enable_logging"],
            options["use_column_name_cache"],
        )
        return wrapper.event

    def query(self, packet: EventPacket, event: Query) -> Any:
        """Make the event of a statement; ``None`` if it is not wanted.

        mysql-replication's own constructor refuses status variables of newer servers.
        """
        database, data = event.database.encode(), packet.data
        return self._event(
            QueryEvent,
            packet,
            slave_proxy_id=event.thread_id,
            execution_time=event.execution_time,
            schema_length=len(database),
            error_code=event.error_code,
            status_vars_length=int.from_bytes(data[HEADER_LENGTH + 11 : HEADER_LENGTH + 13], "little"),
            schema=database,
            query=event.statement.decode("utf-8", "backslashreplace"),
            **_status(event.status, mariadb=self._connection.dbms == "mariadb"),
        )

    def rows_query(self, packet: EventPacket, event: RowsQuery) -> Any:
        """Make the event of a statement with its rows; ``None`` if it is not wanted."""
        if packet.data[4] != EventType.ROWS_QUERY:
            return self.other(packet)
        return self._event(RowsQueryLogEvent, packet, query=event.text)

    def previous_gtids(self, packet: EventPacket, event: PreviousGtids) -> Any:
        """Make the event of the GTIDs of earlier files, which may have tags; ``None`` if it is not wanted."""
        text = str(event.gtids)
        return self._event(PreviousGtidsEvent, packet, _gtids=text.split(",") if text else [], _previous_gtids=text)

    def _event(self, kind: type, packet: EventPacket, **attributes: Any) -> Any:
        if kind not in self.allowed:
            return None
        made = self._new(kind, self._wrapper(packet, _uncompressed(packet.data[4])))
        made.__dict__.update(attributes)
        return made

    def table(self, packet: EventPacket, event: TableMap, known: model.Table) -> Any:
        """Make the event of a TABLE_MAP; ``None`` if the schema is frozen and the table is known."""
        if self._options["freeze_schema"] and event.table_id in self.table_map:
            return None
        table, structure = self._table(event.table_id, event.structure, known), event.structure
        data = packet.with_checksum()
        reader = ByteReader(data, HEADER_LENGTH + 8, len(data) - _CHECKSUM)
        reader.take(reader.uint(1) + 1)
        reader.take(reader.uint(1) + 1)
        reader.take(reader.packed())
        reader.packed_string()
        nulls = reader.take((len(structure.columns) + 7) // 8)
        metadata = b"".join(_known_metadata(reader))
        wrapper = self._wrapper(packet, event.header.type_code)
        wrapper.packet = MysqlPacket(metadata + bytes(_CHECKSUM), "utf8")
        wrapper.read_bytes = 0
        made = self._new(TableMapEvent, wrapper)
        made.__dict__.update(
            table_id=event.table_id,
            flags=event.flags,
            schema_length=len(structure.database.encode()),
            schema=structure.database,
            table_length=len(structure.table.encode()),
            table=structure.table,
            column_count=len(structure.columns),
            columns=table.columns,
            null_bitmask=nulls,
            table_obj=table,
            _TableMapEvent__optional_meta_data=True,
        )
        made.optional_metadata = made._get_optional_meta_data()  # noqa: SLF001 - parsed as users of it expect
        wrapper.read_bytes = made.event_size
        return made

    def rows(
        self, packet: EventPacket, event: Rows, structure: TableStructure, known: model.Table, rows: EventRows, at: str
    ) -> Any:
        """Make a row event; its rows are decoded when they are first used.

        Args:
            packet: its bytes.
            event: the event.
            structure: its TABLE_MAP.
            known: the structure of its table.
            rows: decodes it.
            at: its position, for error messages.
        """
        table = self._table(event.table_id, structure, known)
        made = self._new(_class_of(event), self._wrapper(packet, _uncompressed(event.header.type_code)))
        made.__dict__.update(
            table_id=event.table_id,
            primary_key=table.primary_key,
            schema=structure.database,
            table=structure.table,
            flags=event.flags,
            number_of_columns=event.column_count,
            columns=table.columns,
            columns_present_bitmap=event.columns,
            _RowsEvent__rows=None,
            _RowsEvent__none_sources={},
            **_extra_data(event),
        )
        if event.kind is RowsKind.UPDATE:
            made.columns_present_bitmap2 = event.columns_after
        made._fetch_rows = partial(_fetch_rows, made, event, rows, at)  # noqa: SLF001 - what the property rows calls
        return made

    def _new(self, kind: Any, wrapper: Any) -> Any:
        made = kind.__new__(kind)
        made.__dict__.update(
            packet=wrapper,
            table_map=self.table_map,
            event_type=wrapper.event_type,
            timestamp=wrapper.timestamp,
            event_size=wrapper.event_size - HEADER_LENGTH,
            mysql_version=self.mysql_version,
            dbms=self._connection.dbms,
            complete=True,
            _post_header_lengths=None,
            _ctl_connection=self._connection,
            _ignore_decode_errors=self._options["ignore_decode_errors"],
            _verify_checksum=self._options["verify_checksum"],
            _is_event_valid=True if self._options["verify_checksum"] else None,  # rowtide verifies all of them
            _processed=True,
        )
        if wrapper.checksum:
            made.event_size -= _CHECKSUM
        wrapper.read_bytes, wrapper.event = made.event_size, made
        return made

    def _wrapper(self, packet: EventPacket, code: int) -> Any:
        """Return a packet that exposes the header; rowtide reads its body."""
        timestamp, _, server_id, size, _, flags = HEADER.unpack_from(packet.data)
        wrapper = BinLogPacketWrapper.__new__(BinLogPacketWrapper)
        wrapper.__dict__.update(
            packet=None,
            charset=self._connection.charset,
            timestamp=timestamp,
            event_type=code,
            server_id=server_id,
            event_size=size,
            log_pos=packet.log_pos,
            flags=flags,
            checksum=packet.checksum,
            _BinLogPacketWrapper__data_buffer=b"",
        )
        return wrapper

    def _table(self, table_id: int, structure: TableStructure, known: model.Table) -> Any:
        if self._made.get(table_id) is not known:
            columns = [
                _column(mapped, column, known, self._connection.dbms)
                for mapped, column in zip(structure.columns, known.row_columns, strict=True)
            ]
            self._made[table_id] = known
            self.table_map[table_id] = EventTable(
                table_id, structure.database, structure.table, columns, column_name_flag=True
            )
        return self.table_map[table_id]


def _status(status: QueryStatus, *, mariadb: bool) -> dict[str, Any]:
    """Return the status variables of a statement, as mysql-replication names them."""
    increment, offset = status.auto_increment or (None, None)
    client, connection, server = status.charset or (None, None, None)
    user, host = status.invoker or (None, None)
    found = {
        "flags2": status.flags2,
        "sql_mode": status.sql_mode,
        "catalog_nz_code": _bytes(status.catalog),
        "auto_increment_increment": increment,
        "auto_increment_offset": offset,
        "character_set_client": client,
        "collation_connection": connection,
        "collation_server": server,
        "time_zone": _bytes(status.time_zone),
        "lc_time_names_number": status.lc_time_names,
        "charset_database_number": status.charset_database,
        "table_map_for_update": status.table_map_for_update,
        "user": _bytes(user),
        "host": _bytes(host),
        "mts_accessed_db_names": [name.encode() for name in status.updated_databases or ()] or None,
        "hrnow" if mariadb else "microseconds": status.microseconds,
        "explicit_defaults_ts": status.explicit_defaults_for_timestamp,
        "xid" if mariadb else "ddl_xid": status.xid,
        "default_collation_for_utf8mb4_number": status.default_collation_for_utf8mb4,
        "sql_require_primary_key": status.sql_require_primary_key,
        "default_table_encryption": status.default_table_encryption,
    }
    return {name: value for name, value in found.items() if value is not None}


def _bytes(text: str | None) -> bytes | None:
    return text.encode() if text else None


def _uncompressed(code: int) -> int:
    return _UNCOMPRESSED.get(code, code)


def _class_of(event: Rows) -> type:
    found: type = PartialUpdateRowsEvent if event.partial else _ROWS[event.kind]
    return found


def _fetch_rows(made: Any, event: Rows, rows: EventRows, at: str) -> None:
    """Decode the rows of an event.

    Raises:
        ProtocolError: the images do not match the structure.
    """
    try:
        made._RowsEvent__rows = rows.dictionaries(event)  # noqa: SLF001
    except ProtocolError as error:
        error.location = error.location or at
        raise
    except ValueError as error:
        raise ProtocolError(str(error), at) from error
    del made.__dict__["_fetch_rows"]  # it refers to the event, and holds its bytes


def _known_metadata(reader: ByteReader) -> Iterator[bytes]:
    """Yield the optional metadata fields of a TABLE_MAP that mysql-replication knows."""
    while reader.remaining():
        start = reader.pos
        kind = reader.uint(1)
        reader.packed_string()
        if kind <= _LAST_METADATA:
            yield reader.data[start : reader.pos]


def _extra_data(event: Rows) -> dict[str, Any]:
    """Return the attributes of the extra data of a row event: partitions, NDB."""
    code = event.header.type_code
    if code not in {EventType.WRITE_ROWS, EventType.UPDATE_ROWS, EventType.DELETE_ROWS, EventType.PARTIAL_UPDATE_ROWS}:
        return {}
    extra = event.extra
    found: dict[str, Any] = {"extra_data_length": len(extra) + 2}
    if not extra:
        return found
    found["extra_data_type"] = extra[0]
    if extra[0] == 0:
        found.update(nbd_info_length=extra[1], nbd_info_format=extra[2], nbd_info=extra[3:])
    elif extra[0] == 1:
        found["partition_id"] = int.from_bytes(extra[1:3], "little")
        if event.kind is RowsKind.UPDATE:
            found["source_partition_id"] = int.from_bytes(extra[3:5], "little")
    else:
        found["extra_data"] = extra[1:]
    return found


def _column(mapped: MappedColumn, column: model.Column, table: model.Table, dbms: str) -> Any:
    """Return a column as mysql-replication describes it."""
    encoding, collation = column.charset, column.collation
    if mapped.collation is not None:
        encoding, collation, _ = find_charset(str(mapped.collation), dbms=dbms)
    elif column_kind(column) == "bytes":
        encoding = collation = "binary"
    elif encoding is not None and (known := charset_by_name(encoding, dbms)) is not None:
        encoding = known.encoding
    return Column(
        type=int(mapped.type),
        name=column.name,
        unsigned=column.unsigned if mapped.unsigned is None else mapped.unsigned,
        is_primary=column.name in table.primary_key,
        charset_id=None,
        character_set_name=encoding,
        collation_name=collation,
        enum_values=["", *column.labels] if mapped.type == BinlogType.ENUM else None,
        set_values=list(column.labels) if mapped.type == BinlogType.SET else None,
        visibility=bool(mapped.visible),
        **_sizes(mapped),
    )


def _sizes(mapped: MappedColumn) -> dict[str, int]:
    """Return the attributes of a column's size, by its type."""
    metadata = mapped.metadata
    match mapped.type:
        case BinlogType.VARCHAR | BinlogType.VAR_STRING | BinlogType.STRING:
            return {"max_length": metadata}
        case BinlogType.FLOAT | BinlogType.DOUBLE | BinlogType.ENUM | BinlogType.SET:
            return {"size": metadata}
        case BinlogType.TIMESTAMP2 | BinlogType.DATETIME2 | BinlogType.TIME2:
            return {"fsp": metadata}
        case BinlogType.BLOB | BinlogType.GEOMETRY | BinlogType.JSON:
            return {"length_size": metadata}
        case BinlogType.NEWDECIMAL:
            return {"precision": metadata >> 8, "decimals": metadata & 255}
        case BinlogType.BIT:
            return {"bits": metadata, "bytes": (metadata + 7) // 8}
        case _:
            return {}
