"""Parsers of QUERY events and of the other events that belong to statements logged as text."""

from struct import Struct

from rowtide.connector.errors import TruncatedEvent
from rowtide.connector.protocol.byte_reader import ByteReader
from rowtide.connector.protocol.events.classes import (
    DeleteFile,
    ExecuteLoadQuery,
    IntVar,
    LoadBlock,
    Query,
    Rand,
    RowsQuery,
    UserVar,
)
from rowtide.connector.protocol.events.compression import decompress
from rowtide.connector.protocol.events.query_status import parse_query_status
from rowtide.connector.protocol.header import EventHeader

_QUERY = Struct("<IIBHH")
_LOAD = Struct("<IIIB")


def parse_query(header: EventHeader, data: bytes, pos: int, end: int, *, extra: int = 0) -> Query:
    """Parse QUERY; a derived event has ``extra`` bytes between its post-header and its status variables."""
    thread_id, execution_time, database_size, error_code, status_size = _QUERY.unpack_from(data, pos)
    pos += 13 + extra
    status_end = pos + status_size
    database_end = status_end + database_size
    if database_end >= end:
        raise TruncatedEvent(f"QUERY event with {status_size} bytes of status and a database of {database_size} bytes")
    status = parse_query_status(data[pos:status_end])
    database = data[status_end:database_end].decode("utf-8")
    statement = data[database_end + 1 : end]
    return Query(header, thread_id, execution_time, error_code, database, statement, status)


def parse_query_compressed(header: EventHeader, data: bytes, pos: int, end: int) -> Query:
    """Parse MariaDB's QUERY_COMPRESSED."""
    query = parse_query(header, data, pos, end)
    return query._replace(statement=decompress(query.statement, 0, len(query.statement)))


def parse_execute_load_query(header: EventHeader, data: bytes, pos: int, end: int) -> ExecuteLoadQuery:
    """Parse EXECUTE_LOAD_QUERY: a QUERY with four more numbers in its post-header."""
    file_id, name_start, name_end, duplicates = _LOAD.unpack_from(data, pos + 13)
    query = parse_query(header, data, pos, end, extra=13)
    return ExecuteLoadQuery(header, query, file_id, name_start, name_end, duplicates)


def parse_load_block(header: EventHeader, data: bytes, pos: int, end: int) -> LoadBlock:
    """Parse BEGIN_LOAD_QUERY, APPEND_BLOCK."""
    reader = ByteReader(data, pos, end)
    return LoadBlock(header, reader.uint(4), reader.rest())


def parse_delete_file(header: EventHeader, data: bytes, pos: int, end: int) -> DeleteFile:
    """Parse DELETE_FILE."""
    return DeleteFile(header, ByteReader(data, pos, end).uint(4))


def parse_int_var(header: EventHeader, data: bytes, pos: int, end: int) -> IntVar:
    """Parse INTVAR."""
    reader = ByteReader(data, pos, end)
    return IntVar(header, reader.uint(1), reader.uint(8))


def parse_rand(header: EventHeader, data: bytes, pos: int, end: int) -> Rand:
    """Parse RAND."""
    reader = ByteReader(data, pos, end)
    return Rand(header, reader.uint(8), reader.uint(8))


def parse_user_var(header: EventHeader, data: bytes, pos: int, end: int) -> UserVar:
    """Parse USER_VAR."""
    reader = ByteReader(data, pos, end)
    name = reader.string(4).decode("utf-8", "replace")
    if reader.uint(1):
        return UserVar(header, name, None, 0, 0, 0)
    value_type, collation = reader.uint(1), reader.uint(4)
    value = reader.string(4)
    flags = reader.uint(1) if reader.remaining() else 0
    return UserVar(header, name, value, value_type, collation, flags)


def parse_rows_query(header: EventHeader, data: bytes, pos: int, end: int) -> RowsQuery:
    """Parse ROWS_QUERY: a length truncated to one byte, which is useless, then the statement."""
    return RowsQuery(header, data[pos + 1 : end])


def parse_annotate_rows(header: EventHeader, data: bytes, pos: int, end: int) -> RowsQuery:
    """Parse MariaDB's ANNOTATE_ROWS: the statement alone."""
    return RowsQuery(header, data[pos:end])
