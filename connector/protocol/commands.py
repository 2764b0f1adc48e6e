"""The commands of a replica, as payloads of MySQL packets (the 4-byte packet header is the connection's business)."""

from rowtide.connector.errors import LocalProtocolError
from rowtide.schema_history.position.gtid import GtidSet

COM_BINLOG_DUMP = 0x12
COM_REGISTER_SLAVE = 0x15
COM_BINLOG_DUMP_GTID = 0x1E

NON_BLOCK = 0x01
"""Dump flag: end the stream at the end of the log instead of waiting."""
SEND_ANNOTATE_ROWS = 0x02
"""Dump flag of MariaDB: send ANNOTATE_ROWS events."""
THROUGH_GTID = 0x04
"""Dump flag of COM_BINLOG_DUMP_GTID: the GTID set counts."""

_FIRST_POSITION = 4


def register_replica(server_id: int, *, host: str = "", user: str = "", port: int = 0) -> bytes:
    """COM_REGISTER_SLAVE: be listed in ``SHOW REPLICAS``. The password field, which that command shows, stays empty.

    Raises:
        LocalProtocolError: a number or a name does not fit its field.
    """
    parts = [bytes([COM_REGISTER_SLAVE]), _uint("server id", server_id, 4)]
    parts += [_short_string("report host", host), _short_string("report user", user), b"\0"]
    parts += [_uint("report port", port, 2), bytes(4), bytes(4)]  # rank and source id, both unused
    return b"".join(parts)


def binlog_dump(server_id: int, file: str, position: int = _FIRST_POSITION, *, flags: int = 0) -> bytes:
    """COM_BINLOG_DUMP: send the log from a file and position on.

    For MariaDB with GTIDs, set ``@slave_connect_state`` before and give an empty file name.

    Raises:
        LocalProtocolError: the position is beyond the 4 GiB that the command can express, or a field does not fit.
    """
    if position >= 2**32:
        raise LocalProtocolError(
            f"binlog position {file}:{position} is beyond 4 GiB, which COM_BINLOG_DUMP cannot express; "
            "start by GTID set, or at the beginning of the next file"
        )
    head = bytes([COM_BINLOG_DUMP]) + _uint("binlog position", position, 4) + _uint("dump flags", flags, 2)
    return head + _uint("server id", server_id, 4) + file.encode()


def binlog_dump_gtid(server_id: int, gtids: GtidSet, *, flags: int = THROUGH_GTID) -> bytes:
    """COM_BINLOG_DUMP_GTID: send all transactions that are not in the set.

    Raises:
        LocalProtocolError: a field does not fit.
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
