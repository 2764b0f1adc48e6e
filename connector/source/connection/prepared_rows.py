"""Streams the rows of a query with a prepared statement, whose result has the stored values of FLOAT.

A result set in text has FLOAT with six digits. The rows become packets of the text protocol with all digits, so that
one reader decodes both.
"""

import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from pymysql.constants import COMMAND, FIELD_TYPE, FLAG
from pymysql.protocol import FieldDescriptorPacket

from rowtide.connector.rows.text_protocol_rows import ResultReader, Rows
from rowtide.connector.source.connection.result_set import result_rows

_BATCH = 1 << 16
"""Bytes of the rows of a batch."""
_LARGEST = 0xFFFFFF
"""Bytes of a packet; longer rows are not packets, and are parsed separately."""
_NULL = 0xFB
_INTEGERS = {
    FIELD_TYPE.TINY: "b",
    FIELD_TYPE.SHORT: "h",
    FIELD_TYPE.YEAR: "h",
    FIELD_TYPE.INT24: "i",
    FIELD_TYPE.LONG: "i",
    FIELD_TYPE.LONGLONG: "q",
}
_FLOATS = {FIELD_TYPE.FLOAT: "f", FIELD_TYPE.DOUBLE: "d"}
_DATES = {FIELD_TYPE.DATE, FIELD_TYPE.NEWDATE}
_DATETIMES = {FIELD_TYPE.DATETIME, FIELD_TYPE.TIMESTAMP}


class ResultField(NamedTuple):
    """A column of a result, as the server describes it."""

    name: str
    type_code: int
    flags: int
    scale: int


def prepared_rows(connection: Any, query: str, reader: Callable[[Sequence[str]], ResultReader]) -> Iterator[Rows]:
    """Run a query and yield its rows in batches, as :func:`result_rows` does, and FLOAT with all digits.

    Args:
        connection: the client; this uses private methods of PyMySQL.
        query: one statement that returns a result set.
        reader: creates the row reader from the names of the columns.

    Raises:
        pymysql.MySQLError: the server refuses the query or aborts it.
        OSError: the connection is lost.
    """
    statement, columns = _prepare(connection, query)
    if all(column.type_code != FIELD_TYPE.FLOAT for column in columns):
        _close(connection, statement)
        yield from result_rows(connection, query, reader)
        return
    with connection.parsing():
        connection._execute_command(COMMAND.COM_STMT_EXECUTE, struct.pack("<IBI", statement, 0, 1))  # noqa: SLF001
        columns = _columns(connection, connection._read_packet().read_length_encoded_integer())  # noqa: SLF001
    compiled = reader([column.name for column in columns])
    batch = bytearray()
    while not (packet := connection._read_packet()).is_eof_packet():  # noqa: SLF001
        with connection.parsing():
            payload = text_payload(packet.get_all_data(), columns)
        if len(payload) >= _LARGEST:
            if batch:
                yield compiled.rows(bytes(batch))[0]
                batch.clear()
            yield [compiled.row(payload)]
            continue
        batch += len(payload).to_bytes(4, "little") + payload
        if len(batch) >= _BATCH:
            yield compiled.rows(bytes(batch))[0]
            batch.clear()
    if batch:
        yield compiled.rows(bytes(batch))[0]
    _close(connection, statement)


def _prepare(connection: Any, query: str) -> tuple[int, Sequence[ResultField]]:
    """Prepare the query, and return the number of the statement and the columns of its result."""
    with connection.parsing():
        connection._execute_command(COMMAND.COM_STMT_PREPARE, query)  # noqa: SLF001
        answer = connection._read_packet().get_all_data()  # noqa: SLF001
        statement, columns, parameters = struct.unpack_from("<IHH", answer, 1)
        _columns(connection, parameters)
        return statement, _columns(connection, columns)


def _columns(connection: Any, count: int) -> Sequence[ResultField]:
    if not count:
        return ()
    found: list[Any] = [connection._read_packet(FieldDescriptorPacket) for _ in range(count)]  # noqa: SLF001
    connection._read_packet()  # noqa: SLF001 - the end of the descriptions
    return [ResultField(one.name, one.type_code, one.flags, one.scale) for one in found]


def _close(connection: Any, statement: int) -> None:
    connection._execute_command(COMMAND.COM_STMT_CLOSE, struct.pack("<I", statement))  # noqa: SLF001 - has no answer


def text_payload(data: bytes, columns: Sequence[ResultField]) -> bytes:
    """Return the row of a prepared statement in the form of the text protocol, with all digits of FLOAT.

    Args:
        data: the payload of the row's packet.
        columns: the columns of the result.
    """
    pos = 1 + (len(columns) + 9) // 8
    nulls = int.from_bytes(data[1:pos], "little") >> 2
    out = bytearray()
    for place, column in enumerate(columns):
        if nulls >> place & 1:
            out.append(_NULL)
            continue
        text, pos = _text(data, pos, column)
        size = len(text)
        out += size.to_bytes(1, "little") if size < _NULL else b"\xfe" + size.to_bytes(8, "little")
        out += text
    return bytes(out)


def _text(data: bytes, pos: int, column: ResultField) -> tuple[bytes, int]:
    """Return the text of the value at an offset, and the offset after the value."""
    kind = column.type_code
    if kind in _INTEGERS or kind in _FLOATS:
        letter = _FLOATS.get(kind) or _INTEGERS[kind]
        format_ = "<" + (letter.upper() if column.flags & FLAG.UNSIGNED and kind in _INTEGERS else letter)
        [number] = struct.unpack_from(format_, data, pos)
        return repr(number).removesuffix(".0").replace("e+", "e").encode(), pos + struct.calcsize(format_)
    start, size = _length(data, pos)
    value = data[start : start + size]
    if kind in _DATES or kind in _DATETIMES:
        value = _date_text(value, column.scale, time=kind in _DATETIMES)
    elif kind == FIELD_TYPE.TIME:
        value = _time_text(value, column.scale)
    return value, start + size


def _length(data: bytes, pos: int) -> tuple[int, int]:
    """Return the start of a value with a length in front, and the length."""
    first = data[pos]
    if first < _NULL:
        return pos + 1, first
    size = {0xFC: 2, 0xFD: 3, 0xFE: 8}[first]
    return pos + 1 + size, int.from_bytes(data[pos + 1 : pos + 1 + size], "little")


def _date_text(value: bytes, digits: int, *, time: bool) -> bytes:
    year, month, day, hour, minute, second, micros = struct.unpack("<HBBBBBI", value.ljust(11, b"\0"))
    text = f"{year:04d}-{month:02d}-{day:02d}"
    if time:
        text += f" {hour:02d}:{minute:02d}:{second:02d}{_fraction(micros, digits)}"
    return text.encode()


def _time_text(value: bytes, digits: int) -> bytes:
    negative, days, hour, minute, second, micros = struct.unpack("<BIBBBI", value.ljust(12, b"\0"))
    sign = "-" if negative else ""
    return f"{sign}{days * 24 + hour:02d}:{minute:02d}:{second:02d}{_fraction(micros, digits)}".encode()


def _fraction(micros: int, digits: int) -> str:
    return f".{micros:06d}"[: digits + 1] if 0 < digits <= 6 else ""
