"""Semi-synchronous replication: commits at the source wait until a replica acknowledges the position after them.

Each packet of the stream has a header before the event, which says whether the server waits::

    00 | ef | 00 or 01 | event              from the server
    ef | position, 8 bytes | file name      an acknowledgement
"""

from typing import NamedTuple

from rowtide.connector.errors import RemoteProtocolError
from rowtide.connector.protocol.decoder import EventDecoder
from rowtide.connector.protocol.header import ARTIFICIAL, HEADER, HEADER_LENGTH, EventType

_MAGIC = 0xEF
_MUST_ACKNOWLEDGE = 0x01
_FOUR_GIB = 1 << 32
_EVENT = 3
_DECODED = frozenset({EventType.ROTATE, EventType.FORMAT_DESCRIPTION})


class Acknowledgement(NamedTuple):
    """The acknowledgement that everything up to a position is received, which releases all commits up to it.

    Attributes:
        file: a binlog file of the server.
        position: after the last event of a transaction, in that file.
    """

    file: str
    position: int

    def payload(self) -> bytes:
        """Return the packet's payload."""
        return bytes([_MAGIC]) + self.position.to_bytes(8, "little") + self.file.encode()


class SemiSyncStream:
    """Removes the headers from the packets of a semi-synchronous stream.

    A heartbeat is acknowledged, too, if its position is new. A server that starts a stream by GTIDs does not send
    the transactions of the set. If the acknowledgement of such a transaction was lost with the previous connection, its
    commit would wait for the next acknowledgement. The heartbeat after the transaction releases it.

    Attributes:
        requested: the last acknowledgement that the server waits for, until the caller takes it.
    """

    def __init__(self) -> None:
        self.requested: Acknowledgement | None = None
        self._decoder = EventDecoder()  # sees the events that name the file only
        self._file = ""
        self._position = 0
        self._last: Acknowledgement | None = None

    def event(self, payload: bytes) -> bytes:
        """Return the event in a packet.

        Raises:
            RemoteProtocolError: the packet has no header.
        """
        if payload[1] != _MAGIC or len(payload) < _EVENT + HEADER_LENGTH:
            raise RemoteProtocolError(
                f"the server sent a packet that begins with {payload[:8].hex()}, which lacks the header of "
                "semi-synchronous replication"
            )
        event = payload[_EVENT:]
        _, kind, _, _, log_pos, flags = HEADER.unpack_from(event)
        if kind in _DECODED:
            self._decoder.decode(event)
        if kind == EventType.ROTATE:
            self._file, self._position = self._decoder.file, self._decoder.position
        elif log_pos and not flags & ARTIFICIAL:
            self._advance(log_pos)
        if payload[2] & _MUST_ACKNOWLEDGE or (kind == EventType.HEARTBEAT and self._here() != self._last):
            self.requested = self._last = self._here()
        return event

    def _here(self) -> Acknowledgement:
        return Acknowledgement(self._file, self._position)

    def _advance(self, log_pos: int) -> None:
        """Advance to the end of an event, which is stored modulo 4 GiB.

        A smaller number is either after a multiple of 4 GiB that was passed, or wrong. It is treated as wrong if it is
        more than 2 GiB ahead: an acknowledgement too far ahead would release commits that are not received.
        """
        ahead = (log_pos - self._position) % _FOUR_GIB
        if log_pos >= self._position % _FOUR_GIB or ahead < _FOUR_GIB // 2:
            self._position += ahead
