"""Streams the rows of a query, one batch in memory at a time.

PyMySQL reads packet by packet, which costs more than decoding the rows. From the first row, this module reads the
socket in large chunks.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pymysql.constants import COMMAND, CR
from pymysql.err import OperationalError, raise_mysql_exception
from pymysql.protocol import FieldDescriptorPacket

from rowtide.connector.protocol.packets import PacketBuffer
from rowtide.connector.rows.text_protocol_rows import ResultReader, Rows

_CHUNK = 1 << 16
"""Bytes of one read; the rows in them become one batch."""
_LARGE = 2 * _CHUNK
"""Larger rows are read separately, so that the buffer stays small and no row is parsed twice."""
_ERROR = 0xFF


def result_rows(connection: Any, query: str, reader: Callable[[Sequence[str]], ResultReader]) -> Iterator[Rows]:
    """Run a query and yield its rows in batches.

    The connection runs no other statement before the last batch is consumed; close it to stop earlier.

    Args:
        connection: the client; this uses private methods of PyMySQL.
        query: one statement that returns a result set.
        reader: creates the row reader from the names of the columns.

    Raises:
        pymysql.MySQLError: the server refuses the query or aborts it.
        OSError: the connection is lost.
    """
    compiled = reader(_begin(connection, query))
    source = connection._rfile  # noqa: SLF001 - there is no public way to the bytes
    rest = b""
    while True:
        buffer = rest + _some(source.read1(_CHUNK))
        rows, stop = compiled.rows(buffer)
        rest = buffer[stop:]
        if rows:
            yield rows
        if len(rest) <= 4:
            continue
        length = rest[0] | rest[1] << 8 | rest[2] << 16
        if length > _LARGE:
            yield [compiled.row(_large(source, rest))]
            rest = b""
        elif len(rest) >= length + 4:  # complete, but not a row: the end of the result set, or an error
            if rest[4] == _ERROR:
                with connection.parsing():
                    raise_mysql_exception(rest[4 : length + 4])
            return


def _begin(connection: Any, query: str) -> list[str]:
    """Send the query and return the names of the result set's columns."""
    with connection.parsing():
        connection._execute_command(COMMAND.COM_QUERY, query)  # noqa: SLF001
        packet = connection._read_packet()  # noqa: SLF001
        if packet.is_ok_packet():
            raise OperationalError(0, f"the statement returns no rows: {query}")
        count = packet.read_length_encoded_integer()
        fields = [connection._read_packet(FieldDescriptorPacket) for _ in range(count)]  # noqa: SLF001
        connection._read_packet()  # noqa: SLF001 - the end of the descriptions
    return [field.name for field in fields]


def _large(source: Any, begun: bytes) -> bytes:
    """Return the payload of a row larger than a chunk, whose first bytes are ``begun``."""
    packets = PacketBuffer()
    packets.space()[: len(begun)] = begun
    payloads = packets.received(len(begun))
    while not payloads:
        with packets.space() as space:
            count = source.readinto(space[: packets.missing or 4])
        if not count:
            raise _lost()
        payloads = packets.received(count)
    return payloads[0]


def _some(data: bytes) -> bytes:
    if not data:
        raise _lost()
    return data


def _lost() -> OperationalError:
    return OperationalError(CR.CR_SERVER_LOST, "Lost connection to MySQL server during query")
