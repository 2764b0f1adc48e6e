"""Splits the byte stream of a MySQL server into packet payloads.

A packet has a header of four bytes: the length of its payload (three bytes, little-endian) and a sequence number. A
payload of 2^24-1 bytes continues in the next packet.
"""

_HEADER = 4
_LARGEST = 0xFFFFFF


class PacketBuffer:
    """A buffer to receive into, which returns complete payloads.

    ::

        count = sock.recv_into(buffer.space())
        payloads = buffer.received(count)

    A packet that is larger than the buffer gets its own buffer, until its payload is complete. Every byte is therefore
    copied a fixed number of times, even if it arrives in small pieces.

    Args:
        size: bytes that can be received in one call.
    """

    __slots__ = ("_data", "_end", "_parts", "_size")

    def __init__(self, size: int = 1 << 20) -> None:
        self._size = size
        self._data = bytearray(size)
        self._end = 0
        self._parts: list[bytes] = []

    def space(self) -> memoryview:
        """Return the free part of the buffer, at least one byte; use it before the next call of :meth:`received`."""
        return memoryview(self._data)[self._end :]

    @property
    def missing(self) -> int:
        """The minimum number of bytes that the current packet still lacks; 0 between packets."""
        if not self._end:
            return 0
        return (_HEADER if self._end < _HEADER else self._packet_size()) - self._end

    def received(self, count: int) -> list[bytes]:
        """Return the payloads that are complete with ``count`` more bytes in the buffer, in order."""
        end = self._end = self._end + count
        if end >= _HEADER and self._packet_size() <= end:
            return self._complete()
        self._grow()
        return []

    def _packet_size(self) -> int:
        """Return the size of the first packet, with its header."""
        data = self._data
        return (data[0] | data[1] << 8 | data[2] << 16) + _HEADER

    def _complete(self) -> list[bytes]:
        """Take the complete packets out of the buffer."""
        with memoryview(self._data) as view:
            data = bytes(view[: self._end])
        payloads = []
        pos, end = 0, len(data)
        while end - pos >= _HEADER:
            length = data[pos] | data[pos + 1] << 8 | data[pos + 2] << 16
            stop = pos + _HEADER + length
            if stop > end:
                break
            payload = data[pos + _HEADER : stop]
            if length == _LARGEST:
                self._parts.append(payload)
            elif self._parts:
                payloads.append(b"".join((*self._parts, payload)))
                self._parts = []
            else:
                payloads.append(payload)
            pos = stop
        self._keep(data[pos:])
        return payloads

    def _keep(self, rest: bytes) -> None:
        """Start again with an incomplete packet."""
        if len(self._data) > self._size and not self._parts:
            self._data = bytearray(max(self._size, len(rest) + 1))
        self._end = len(rest)
        self._data[: self._end] = rest
        self._grow()

    def _grow(self) -> None:
        """Make space for the first packet, if its size is known."""
        needed = self._packet_size() if self._end >= _HEADER else self._end + 1
        if needed > len(self._data):
            begun = self._data[: self._end]
            self._data = bytearray(needed)
            self._data[: self._end] = begun
