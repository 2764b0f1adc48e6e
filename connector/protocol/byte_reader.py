"""A bounds-checked cursor over the bytes of an event. Frequent events are decoded with `struct` instead, for speed."""

from rowtide.connector.errors import TruncatedEvent


class ByteReader:
    """Reads little-endian numbers, packed integers and strings from ``data[pos:end]``."""

    __slots__ = ("data", "end", "pos")

    def __init__(self, data: bytes, pos: int, end: int) -> None:
        self.data = data
        self.pos = pos
        self.end = end

    def remaining(self) -> int:
        """Return the number of bytes left."""
        return self.end - self.pos

    def take(self, size: int) -> bytes:
        """Return the next ``size`` bytes. Raises `TruncatedEvent` if fewer are left."""
        start, stop = self.pos, self.pos + size
        if stop > self.end:
            raise TruncatedEvent(f"needs {size} bytes where {self.end - start} are left")
        self.pos = stop
        return self.data[start:stop]

    def rest(self) -> bytes:
        """Return all remaining bytes."""
        return self.take(self.end - self.pos)

    def uint(self, size: int) -> int:
        """Return an unsigned integer of ``size`` bytes."""
        return int.from_bytes(self.take(size), "little")

    def sint(self, size: int) -> int:
        """Return a signed integer of ``size`` bytes."""
        return int.from_bytes(self.take(size), "little", signed=True)

    def packed(self) -> int:
        """Return MySQL's packed integer ("length-encoded"): 1, 3, 4 or 9 bytes."""
        first = self.uint(1)
        if first < 251:
            return first
        if first in {251, 255}:
            raise TruncatedEvent(f"a packed integer cannot start with byte 0x{first:02x}")
        return self.uint({252: 2, 253: 3, 254: 8}[first])

    def string(self, length_size: int) -> bytes:
        """Return a string prefixed by its length, an integer of ``length_size`` bytes."""
        return self.take(self.uint(length_size))

    def packed_string(self) -> bytes:
        """Return a string prefixed by its length, a packed integer."""
        return self.take(self.packed())

    def terminated(self) -> bytes:
        """Return a zero-terminated string; the zero byte is consumed."""
        stop = self.data.find(b"\0", self.pos, self.end)
        if stop < 0:
            raise TruncatedEvent("a string lacks its terminating zero byte")
        value = self.data[self.pos : stop]
        self.pos = stop + 1
        return value
