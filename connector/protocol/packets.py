"""Splits the byte stream of a MySQL server into packet payloads.

A packet has a header of four bytes: the length of its payload (three bytes, little-endian) and a sequence number. A
payload of 2^24-1 bytes continues in the next packet.
"""

_LARGEST = 0xFFFFFF


class PacketBuffer:
    """Takes chunks of any size and returns complete payloads."""

    __slots__ = ("_parts", "_rest")

    def __init__(self) -> None:
        self._rest = b""
        self._parts: list[bytes] = []

    def feed(self, chunk: bytes) -> list[bytes]:
        """The payloads that are complete with this chunk, in order."""
        data = self._rest + chunk if self._rest else chunk
        payloads = []
        pos, end = 0, len(data)
        while end - pos >= 4:
            length = data[pos] | data[pos + 1] << 8 | data[pos + 2] << 16
            stop = pos + 4 + length
            if stop > end:
                break
            if length == _LARGEST:
                self._parts.append(data[pos + 4 : stop])
            elif self._parts:
                payloads.append(b"".join((*self._parts, data[pos + 4 : stop])))
                self._parts = []
            else:
                payloads.append(data[pos + 4 : stop])
            pos = stop
        self._rest = data[pos:]
        return payloads

    @property
    def missing(self) -> int:
        """The minimum number of bytes that the current packet still lacks; 0 between packets."""
        rest = self._rest
        if len(rest) < 4:
            return 4 - len(rest) if rest else 0
        return (rest[0] | rest[1] << 8 | rest[2] << 16) + 4 - len(rest)
