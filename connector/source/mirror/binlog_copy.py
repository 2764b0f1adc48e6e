"""Turns the events of a replication stream back into the bytes of the server's binlog files. Pure.

The server sends the events of its files, and its own events between them: ROTATE at the start of each file,
heartbeats, and the FORMAT_DESCRIPTION again if a dump begins in the middle of a file. These events are not in any file.
:func:`whole_part` finds the complete part of a copied file after a crash in the middle of a write.
"""

import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

from rowtide.connector.errors import ChecksumMismatch, MirrorError, RemoteProtocolError, TruncatedEvent
from rowtide.connector.protocol.binlog_file import MAGIC
from rowtide.connector.protocol.decoder import EventDecoder
from rowtide.connector.protocol.events import FormatDescription, Rotate
from rowtide.connector.protocol.events.control import CRC32
from rowtide.connector.protocol.header import (
    ARTIFICIAL,
    HEADER,
    HEADER_LENGTH,
    HEARTBEATS,
    IGNORABLE,
    IN_USE,
    EventType,
    end_of_event,
    type_name,
)
from rowtide.schema_history.position.binlog_position import file_number

FIRST_EVENT = len(MAGIC)
_FLAGS = 17
_CRC_RESIDUE = 0x2144DF1C
"""The CRC32 of any bytes followed by their own CRC32."""
_ALGORITHMS = (0, CRC32)
_LAST = frozenset({EventType.ROTATE, EventType.STOP})
_DUMP_LIMIT = 2**32
_NOT_IN_FILES = HEARTBEATS | {EventType.MARIADB_START_ENCRYPTION}
_ENCRYPTION_EVENTS = range(36, 41)
"""Sizes of START_ENCRYPTION, without and with a checksum."""


@dataclass(frozen=True, slots=True)
class NextFile:
    """The server has begun another file.

    Attributes:
        name: the new file.
        closed: whether the server has closed the file before; it has not if it crashed.
    """

    name: str
    closed: bool


@dataclass(frozen=True, slots=True)
class CopyPosition:
    """The progress of copying a file.

    Attributes:
        file: the file.
        end: the size of the copy: 0, or the end of its last event.
        last: the last event, without the in-use flag; empty if there is none.
    """

    file: str
    end: int = 0
    last: bytes = b""

    @property
    def start(self) -> int:
        """The position of the last event; of the first one if there is none."""
        return max(FIRST_EVENT, self.end - len(self.last))

    @property
    def dump_start(self) -> int:
        """The position at which a dump must begin to continue the copy.

        This is the last event, to verify it. COM_BINLOG_DUMP cannot express a position beyond 4 GiB: such a dump
        begins at the start of the file.
        """
        return self.start if self.start < _DUMP_LIMIT else FIRST_EVENT

    @property
    def complete(self) -> bool:
        """Whether the file ends with the event with which a server closes it."""
        return bool(self.last) and self.last[4] in _LAST


class BinlogCopy:
    """Copies a stream that begins with the last event of the copy, or at the start of a file.

    The server must send the last copied event again with the same bytes: a server whose binlog was reset has other
    events under the same names.

    Args:
        at: the progress of the first file. The stream must begin at ``at.dump_start``.

    Attributes:
        timestamp: of the last event, in seconds since the epoch; 0 before the first one.
    """

    def __init__(self, at: CopyPosition) -> None:
        self.timestamp = 0
        self._file, self._end, self._last = at.file, at.end, at.last
        self._decoder = EventDecoder(at.file)
        self._checksum: bool | None = None
        self._verify = at.last
        self._passed = at.dump_start

    @property
    def at(self) -> CopyPosition:
        """The progress of the current file."""
        return CopyPosition(self._file, self._end, without_in_use(self._last) if self._last else b"")

    def receive(self, packets: Iterable[bytes]) -> Iterator[NextFile | list[bytes]]:
        """Yield the actions in order: append bytes to the current file, or begin the next file.

        Raises:
            MirrorError: the stream does not continue the copy.
            RemoteProtocolError: an event is damaged.
        """
        pieces: list[bytes] = []
        for packet in packets:
            timestamp, kind, _, size, log_pos, flags = self._header(packet)
            if kind == EventType.ROTATE and (flags & ARTIFICIAL or not log_pos):
                following = self._rotated(packet)
                if following is not None:
                    yield pieces
                    pieces = []
                    yield following
            elif kind == EventType.FORMAT_DESCRIPTION and not log_pos:
                self._format(packet)
            elif kind in _NOT_IN_FILES or flags & ARTIFICIAL:
                continue
            elif self._verify and self._passed < self.at.start:
                self._passed = end_of_event(self._passed, size, log_pos)
                if kind == EventType.FORMAT_DESCRIPTION:
                    self._format(packet)
            elif self._verify:
                self._verified(packet)
            else:
                pieces += self._copied(packet, kind, size, log_pos)
                self.timestamp = timestamp or self.timestamp
        yield pieces

    def _header(self, packet: bytes) -> tuple[int, ...]:
        header = HEADER.unpack_from(packet) if len(packet) >= HEADER_LENGTH else ()
        if not header or header[3] != len(packet):
            raise TruncatedEvent(f"an event of {len(packet)} bytes, which is not the size in its header", self._place())
        return header

    def _rotated(self, packet: bytes) -> NextFile | None:
        event = self._decoder.decode(packet)
        assert isinstance(event, Rotate)
        at, name = self.at, event.next_file
        if name == at.file:
            return None
        if self._verify:
            raise self._other("it sends nothing there")
        if not is_next(at.file, name):
            raise MirrorError(f"the server sends {name} after {at.file}: the binlog files in between are missing")
        self._file, self._end, self._last = name, 0, b""
        return NextFile(name, at.complete)

    def _format(self, packet: bytes) -> None:
        event = self._decoder.decode(packet)
        assert isinstance(event, FormatDescription)
        self._checksum = event.checksum == "CRC32"

    def _verified(self, packet: bytes) -> None:
        expected, self._verify = self._verify, b""
        if without_in_use(packet) != expected:
            raise self._other(f"it has a {type_name(packet[4])} event with other contents there")
        if packet[4] == EventType.FORMAT_DESCRIPTION:
            self._format(packet)

    def _copied(self, packet: bytes, kind: int, size: int, log_pos: int) -> list[bytes]:
        pieces, end, is_format = [], self._end, kind == EventType.FORMAT_DESCRIPTION
        if not end:
            if not is_format:
                raise RemoteProtocolError(f"{type_name(kind)} event before the FORMAT_DESCRIPTION", self._place())
            pieces.append(MAGIC)
            end = FIRST_EVENT
        if is_format:
            self._format(packet)
        if (self._checksum or is_format) and zlib.crc32(packet) != _CRC_RESIDUE:
            raise ChecksumMismatch(f"{type_name(kind)} event with a wrong checksum", self._place())
        start, end = end, end_of_event(end, size, log_pos)
        if end - size > start:
            pieces.append(self._filler(end - size - start, start))
        self._end, self._last = end, packet
        pieces.append(with_in_use(packet) if is_format else packet)
        return pieces

    def _filler(self, size: int, start: int) -> bytes:
        """Return an ignorable event in place of START_ENCRYPTION, because the following events are not encrypted.

        Positions stay the same. MariaDB sends START_ENCRYPTION, and sends it again before a dump that begins after it.
        """
        if size not in _ENCRYPTION_EVENTS:
            raise MirrorError(
                f"the server sends an event after {self._file}:{start} that begins {size} bytes later: the "
                "events in between are missing"
            )
        body = bytes(size - HEADER_LENGTH - (4 if self._checksum else 0))
        event = HEADER.pack(0, EventType.IGNORABLE, 0, size, start + size, IGNORABLE) + body
        return event + zlib.crc32(event).to_bytes(4, "little") if self._checksum else event

    def _other(self, why: str) -> MirrorError:
        at = self.at
        return MirrorError(
            f"the server's {at.file} is not the mirrored one: the mirror has an event at {at.start}, and {why}. Its "
            "binlog was reset, or this is another server: begin a mirror in another directory, and keep this one as an "
            "archive"
        )

    def _place(self) -> str:
        return f"{self._file}:{self._end}"


def is_next(file: str, other: str) -> bool:
    """Return whether a server writes the other file after this one."""
    number, following = file_number(file), file_number(other)
    same = file.rpartition(".")[0] == other.rpartition(".")[0]
    return same and number is not None and following == number + 1


def with_in_use(packet: bytes) -> bytes:
    """Return a FORMAT_DESCRIPTION with the in-use flag, which is not part of its checksum."""
    return packet[:_FLAGS] + bytes([packet[_FLAGS] | IN_USE]) + packet[_FLAGS + 1 :]


def without_in_use(packet: bytes) -> bytes:
    """Return a FORMAT_DESCRIPTION without the in-use flag; any other event is unchanged."""
    if packet[4] != EventType.FORMAT_DESCRIPTION or not packet[_FLAGS] & IN_USE:
        return packet
    return packet[:_FLAGS] + bytes([packet[_FLAGS] & ~IN_USE & 0xFF]) + packet[_FLAGS + 1 :]


def whole_part(stream: BinaryIO, file: str) -> CopyPosition:
    """Return the end of the complete consecutive events in a file, with correct positions and checksums.

    Args:
        stream: the file at its first byte.
        file: its name.
    """
    if stream.read(len(MAGIC)) != MAGIC:
        return CopyPosition(file)
    position = end = FIRST_EVENT
    last, checksum = b"", False
    while event := _next_event(stream, position, checksum=checksum):
        if not last:
            if event[4] != EventType.FORMAT_DESCRIPTION or event[-5] not in _ALGORITHMS:
                break
            checksum = event[-5] == CRC32
            event = without_in_use(event)
            if zlib.crc32(event) != _CRC_RESIDUE:  # it always has a checksum
                break
        position += len(event)
        # An ignorable event there replaces START_ENCRYPTION, and is written together with the event after it.
        if event[4] != EventType.IGNORABLE or last[4] != EventType.FORMAT_DESCRIPTION:
            end, last = position, event
    return CopyPosition(file, end, last) if last else CopyPosition(file)


def _next_event(stream: BinaryIO, position: int, *, checksum: bool) -> bytes:
    """Return the next event; no bytes if there is no complete one."""
    head = stream.read(HEADER_LENGTH)
    if len(head) < HEADER_LENGTH:
        return b""
    _, _, _, size, log_pos, _ = HEADER.unpack(head)
    if size < HEADER_LENGTH or (log_pos and log_pos != (position + size) & 0xFFFFFFFF):
        return b""
    event = head + stream.read(size - HEADER_LENGTH)
    if len(event) < size or (checksum and zlib.crc32(event) != _CRC_RESIDUE):
        return b""
    return event
