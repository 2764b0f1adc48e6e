"""Finds the complete part of a mirrored file after a crash in the middle of a write. Pure."""

import zlib
from typing import BinaryIO

from rowtide.connector.protocol.binlog_file import MAGIC
from rowtide.connector.protocol.events.control import CRC32
from rowtide.connector.protocol.header import HEADER, HEADER_LENGTH, EventType
from rowtide.connector.source.mirror.binlog_copy import FIRST_EVENT, CopyPosition, without_in_use

_CRC_RESIDUE = 0x2144DF1C
_ALGORITHMS = (0, CRC32)


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
