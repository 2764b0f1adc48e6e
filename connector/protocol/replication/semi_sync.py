"""Semi-synchronous replication: commits at the source wait until a replica acknowledges the position behind them.

Each packet of the stream has a header before the event, which says whether the server waits::

    00 | ef | 00 or 01 | event              from the server
    ef | position, 8 bytes | file name      an acknowledgement
"""

from typing import NamedTuple

from rowtide.connector.errors import RemoteProtocolError
from rowtide.connector.protocol.decoder import EventDecoder
from rowtide.connector.protocol.header import HEADER, HEADER_LENGTH, EventType

_MAGIC = 0xEF
_MUST_ACKNOWLEDGE = 0x01
_FOUR_GIB = 1 << 32
_EVENT = 3
_DECODED = frozenset({EventType.ROTATE, EventType.FORMAT_DESCRIPTION})


class Acknowledgement(NamedTuple):
    """Everything up to a position is received; it releases all commits up to there.

    Attributes:
        file: a binlog file of the server.
        position: behind the last event of a transaction, in that file.
    """

    file: str
    position: int

    def payload(self) -> bytes:
        """The packet's payload."""
        return bytes([_MAGIC]) + self.position.to_bytes(8, "little") + self.file.encode()


class SemiSyncStream:
    """Takes the headers off the packets of a semi-synchronous stream.

    Attributes:
        requested: the last acknowledgement that the server waits for, until the caller takes it.
    """

    def __init__(self) -> None:
        self.requested: Acknowledgement | None = None
        self._decoder = EventDecoder()  # sees the events that name the file only
        self._file = ""
        self._position = 0

    def event(self, payload: bytes) -> bytes:
        """The event in a packet.

        Raises:
            RemoteProtocolError: the packet has no header.
        """
        if payload[1] != _MAGIC or len(payload) < _EVENT + HEADER_LENGTH:
            raise RemoteProtocolError(
                f"the server sent a packet that begins with {payload[:8].hex()}, which has no header of "
                "semi-synchronous replication"
            )
        event = payload[_EVENT:]
        _, kind, _, _, log_pos, _ = HEADER.unpack_from(event)
        if kind in _DECODED:
            self._decoder.decode(event)
        if kind == EventType.ROTATE:
            self._file, self._position = self._decoder.file, self._decoder.position
        elif log_pos:  # it is a part of the position in files of more than 4 GiB
            self._position += (log_pos - self._position) % _FOUR_GIB
        if payload[2] & _MUST_ACKNOWLEDGE:
            self.requested = Acknowledgement(self._file, self._position)
        return event
