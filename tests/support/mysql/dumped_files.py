"""A stub of a server's dump: what it sends of some binlog files from a position on."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from rowtide.connector.protocol.binlog_file import binlog_packets
from rowtide.connector.protocol.header import ARTIFICIAL, HEADER, EventType

__all__ = ["RecordedFiles", "dumped", "golden_binlogs", "heartbeat"]

_GOLDEN = Path(__file__).parents[2] / "golden"


def golden_binlogs(case: str) -> dict[str, bytes]:
    """The binlog files of a recorded case, by name."""
    paths = sorted((_GOLDEN / case / "golden/binlog").iterdir())
    return {path.name.removesuffix(".gz"): gzip.decompress(path.read_bytes()) for path in paths}


def dumped(files: Mapping[str, bytes], file: str, position: int) -> Iterator[bytes]:
    """What a server sends from a position on: its own ROTATE and FORMAT_DESCRIPTION, heartbeats, and the events."""
    names = list(files)
    for name in names[names.index(file) :]:
        start = position if name == file else 4
        yield _rotate(name, start)
        at = 4
        for packet in binlog_packets(io.BytesIO(files[name]), name):
            sent = packet if at > 4 else packet[:17] + bytes([packet[17] & 0xFE]) + packet[18:]
            if at == 4 < start:
                yield _detached(sent)
            if at >= start:
                yield sent
                yield heartbeat(name, at)
            at += len(packet)


def heartbeat(file: str, position: int) -> bytes:
    """A heartbeat of the server."""
    return _event(EventType.HEARTBEAT, file.encode(), position, 0)


def _rotate(file: str, position: int) -> bytes:
    return _event(EventType.ROTATE, position.to_bytes(8, "little") + file.encode(), 0, ARTIFICIAL)


def _detached(packet: bytes) -> bytes:
    """A FORMAT_DESCRIPTION in front of events that are not the first ones of their file."""
    packet = packet[:13] + bytes(4) + packet[17:]
    return packet[:-4] + zlib.crc32(packet[:-4]).to_bytes(4, "little") if packet[-5] == 1 else packet


def _event(kind: EventType, body: bytes, log_pos: int, flags: int) -> bytes:
    head = HEADER.pack(0, kind, 1, 19 + len(body) + 4, log_pos, flags) + body
    return head + zlib.crc32(head).to_bytes(4, "little")


class RecordedFiles:
    """Binlog files in memory, for the search of positions.

    Args:
        files: their bytes by name.

    Attributes:
        read: the names of the files that were read, in order.
    """

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self._files = files
        self.read: list[str] = []

    @property
    def names(self) -> list[str]:
        """The names, oldest first."""
        return list(self._files)

    def events(self, file: str) -> Iterator[bytes]:
        """The events of a file."""
        self.read.append(file)
        yield from binlog_packets(io.BytesIO(self._files[file]), file)
