"""The commands that a replica sends, as payloads of MySQL packets; the connection adds the packet header."""

from rowtide.connector.errors import LocalProtocolError
from rowtide.schema_history.position.gtid import GtidSet

COM_BINLOG_DUMP = 0x12
COM_REGISTER_SLAVE = 0x15
COM_BINLOG_DUMP_GTID = 0x1E

NON_BLOCK = 0x01
"""BINLOG_DUMP_NON_BLOCK: end the stream at the end of the log instead of waiting for more."""
SEND_ANNOTATE_ROWS = 0x02
"""BINLOG_SEND_ANNOTATE_ROWS_EVENT, MariaDB only: send ANNOTATE_ROWS events."""
THROUGH_GTID = 0x04
"""BINLOG_THROUGH_GTID, for COM_BINLOG_DUMP_GTID: start by the GTID set."""

_FIRST_POSITION = 4


def register_replica(server_id: int, *, host: str = "", user: str = "", port: int = 0) -> bytes:
    """Return COM_REGISTER_SLAVE, which registers for ``SHOW REPLICAS``; without password, since that command shows it.

    Raises:
        LocalProtocolError: a value does not fit its field.
    """
    parts = [bytes([COM_REGISTER_SLAVE]), _uint("server id", server_id, 4)]
    parts += [_short_string("report host", host), _short_string("report user", user), b"\0"]
    parts += [_uint("report port", port, 2), bytes(4), bytes(4)]  # rank and source id, both unused
    return b"".join(parts)


def binlog_dump(server_id: int, file: str, position: int = _FIRST_POSITION, *, flags: int = 0) -> bytes:
    """Return COM_BINLOG_DUMP, which requests the log from a file and position.

    For MariaDB with GTIDs, set ``@slave_connect_state`` first and pass an empty file name.

    Raises:
        LocalProtocolError: the position is at 4 GiB or beyond, which the command cannot express, or a value does not
            fit its field.
    """
    if position >= 2**32:
        raise LocalProtocolError(
            f"binlog position {file}:{position} is beyond 4 GiB, which COM_BINLOG_DUMP cannot express; "
            "start from a GTID set, or at the start of the next file"
        )
    head = bytes([COM_BINLOG_DUMP]) + _uint("binlog position", position, 4) + _uint("dump flags", flags, 2)
    return head + _uint("server id", server_id, 4) + file.encode()


def binlog_dump_gtid(server_id: int, gtids: GtidSet, *, flags: int = THROUGH_GTID) -> bytes:
    """Return COM_BINLOG_DUMP_GTID, which requests all transactions that are not in the set.

    Raises:
        LocalProtocolError: a value does not fit its field.
    """
    data = gtids.encode()
    head = bytes([COM_BINLOG_DUMP_GTID]) + _uint("dump flags", flags, 2) + _uint("server id", server_id, 4)
    no_file = _uint("file name length", 0, 4)
    return head + no_file + _uint("binlog position", _FIRST_POSITION, 8) + _uint("set size", len(data), 4) + data


def _uint(what: str, value: int, size: int) -> bytes:
    try:
        return value.to_bytes(size, "little")
    except OverflowError:
        raise LocalProtocolError(f"{what} {value} does not fit into {size} bytes") from None


def _short_string(what: str, text: str) -> bytes:
    raw = text.encode()
    if len(raw) > 255:
        raise LocalProtocolError(f"{what} {text!r} is longer than 255 bytes")
    return bytes([len(raw)]) + raw
