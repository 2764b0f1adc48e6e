"""Events for tests: from captured streams, from recorded binlog files, and built byte by byte."""

import zlib
from collections.abc import Iterator
from pathlib import Path

from rowtide.connector.protocol.binlog_file import binlog_packets
from rowtide.connector.protocol.decoder import EventDecoder
from rowtide.connector.protocol.header import HEADER, EventType

_PROTOCOL = Path(__file__).parents[2] / "connector" / "protocol"
_GOLDEN = Path(__file__).parents[2] / "golden"


def captured(server: str) -> list[bytes]:
    """The events of a stream captured from a real server (``mysql`` or ``mariadb``)."""
    lines = (_PROTOCOL / "packets" / f"{server}.hex").read_text().splitlines()
    return [bytes.fromhex(line.split()[1]) for line in lines if not line.startswith("#")]


def captured_one(server: str, event_type: EventType, number: int = 0) -> bytes:
    """An event of that stream."""
    return [packet for packet in captured(server) if packet[4] == event_type][number]


def golden_files() -> list[Path]:
    """All recorded binlog files."""
    return sorted(_GOLDEN.glob("*/golden/binlog/*.gz"))


def golden_packets(file: Path) -> Iterator[bytes]:
    """The events of a recorded binlog file."""
    with file.open("rb") as stream:
        yield from binlog_packets(stream, file.name)


def event(event_type: int, body: bytes, *, flags: int = 0, log_pos: int = 1000, checksum: bool = True) -> bytes:
    """An event with this body."""
    size = 19 + len(body) + (4 if checksum else 0)
    packet = HEADER.pack(1_700_000_000, event_type, 1, size, log_pos, flags) + body
    return packet + zlib.crc32(packet).to_bytes(4, "little") if checksum else packet


def started(server: str = "mysql", *, verify_checksum: bool = True) -> EventDecoder:
    """A decoder after the first events of a stream."""
    decoder = EventDecoder(verify_checksum=verify_checksum)
    for packet in captured(server)[:2]:
        decoder.decode(packet)
    return decoder
