"""Reads a folder of binlog files, such as a mirror, as if a server sent them, even while they grow."""

import contextlib
import gzip
import threading
import zlib
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import BinaryIO, cast

from rowtide.connector.errors import OffsetError, PositionPurged, RemoteProtocolError, TruncatedEvent
from rowtide.connector.protocol.binlog_file import MAGIC
from rowtide.connector.protocol.decoder import EventDecoder
from rowtide.connector.protocol.events.control import CRC32
from rowtide.connector.protocol.header import ARTIFICIAL, HEADER, HEADER_LENGTH, EventType
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.source.files.folder import BinlogFile, binlog_files
from rowtide.connector.source.files.gtid_filter import BETWEEN_TRANSACTIONS, GtidFilter
from rowtide.connector.source.mirror.binlog_copy import FIRST_EVENT, is_next, without_in_use
from rowtide.connector.source.mirror.folder import origin_of
from rowtide.connector.source.position.rules import PositionCheck
from rowtide.connector.source.search.places import FolderFiles
from rowtide.connector.source.search.positions import file_of_gtids

_CHUNK = 1 << 20
_TICK_S = 0.25
_SHORT_TICK_S = 0.01


class MirrorStream:
    """The events of a mirror from a position, in the form in which the server sends them.

    Args:
        folder: the mirror.
        start: the start position; with ``gtids`` by GTID set, otherwise by file and position.
        connector: ``mysql`` or ``mariadb``.
        follow: wait for more events at the end. Otherwise, the stream ends after each file, and at the end of the
            mirror.
    """

    def __init__(self, folder: Path, start: SourceOffset, connector: str, *, follow: bool) -> None:
        self._folder = folder
        self._start = start
        self._connector = connector
        self._follow = follow
        self._tick_s = _TICK_S
        self._closed = threading.Event()
        self._read_bytes = 0
        self._gtids = None if start.gtids is None else start.gtid_set(connector)
        self._filter: GtidFilter | None = None
        self._checksum = False
        self._moved = False

    def events(self) -> Generator[list[bytes], None, None]:
        """Yield lists of events, each as its bytes; an empty list while there is nothing new.

        Raises:
            PositionPurged: the mirror does not have the start position or, without ``follow``, anything after it.
            OffsetError: the start position is inside an event.
            ProtocolError: a file is damaged.
        """
        file, position = self._begin()
        while True:
            yield from self._file(file, position)
            following = self._next(file)
            if following is None or self._closed.is_set():
                break
            if not self._follow:
                yield [self._rotate(following.name, FIRST_EVENT)]
                return
            file, position = following, FIRST_EVENT
        if not self._closed.is_set() and not self._moved:
            raise PositionPurged(f"the mirror {self._folder} ends there, too: nothing after it is mirrored")

    def yield_often(self, *, often: bool) -> None:
        """Yield an empty list more often while nothing is new, for a reader that also waits for something else."""
        self._tick_s = _SHORT_TICK_S if often else _TICK_S

    def requested_acknowledgement(self) -> None:
        """Return ``None``: no server waits for the events of a mirror."""

    def taken_bytes(self) -> int:
        """Return the bytes read since the last call."""
        taken, self._read_bytes = self._read_bytes, 0
        return taken

    def close(self) -> None:
        """End the stream; any thread may call this."""
        self._closed.set()

    def _begin(self) -> tuple[BinlogFile, int]:
        """Return the file and the position to begin with."""
        files = {file.name: file for file in binlog_files(self._folder)}
        found = place_of(self._folder, self._start, self._connector)
        if found is None:
            raise PositionPurged(f"the mirror {self._folder} does not have the position either: it has {_range(files)}")
        return files[found], FIRST_EVENT if self._gtids is not None else max(FIRST_EVENT, self._start.pos)

    def _next(self, file: BinlogFile) -> BinlogFile | None:
        files = binlog_files(self._folder)
        if files[0].number > file.number:
            raise PositionPurged(
                f"{file.name} was deleted from the mirror {self._folder} while it was read: keep its files longer "
                "(--keep-size, --keep-days)"
            )
        return next((one for one in files if is_next(file.name, one.name)), None)

    def _file(self, file: BinlogFile, start: int) -> Iterator[list[bytes]]:
        """Yield the events of a file after a position, until another file follows or the mirror ends."""
        yield [self._rotate(file.name, start)]
        with contextlib.closing(_opened(file.path)) as stream:
            position, data = 0, b""
            while not self._closed.is_set():
                finished = self._next(file) is not None  # before the read, which then has all of the file
                chunk = self._read(stream, _missing(data), f"{file.name}:{position}")
                self._read_bytes += len(chunk)
                data += chunk
                if not position and len(data) >= len(MAGIC):
                    data, position = _without_magic(data, file.name), FIRST_EVENT
                packets, data = _split(data, f"{file.name}:{position}") if position else ([], data)
                if packets:
                    yield list(self._sent(packets, file.name, position, start))
                    position += sum(map(len, packets))
                if chunk:
                    continue
                if finished and data:
                    raise TruncatedEvent("the file ends inside an event", f"{file.name}:{position}")
                if max(position, FIRST_EVENT) < start and (finished or not self._follow):
                    raise OffsetError(
                        f"the start {file.name}:{start} is after the end of the mirrored file, {position}"
                    )
                if finished or not self._follow:
                    return
                self._closed.wait(self._tick_s)
                yield []

    def _read(self, stream: BinaryIO, missing: int, place: str) -> bytes:
        try:
            return stream.read(max(_CHUNK, missing))
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise RemoteProtocolError(f"the gzip stream is damaged or incomplete: {error}", place) from None

    def _sent(self, packets: list[bytes], file: str, position: int, start: int) -> Iterator[bytes]:
        """Yield those of the events that a server would send."""
        for packet in packets:
            if packet[4] == EventType.FORMAT_DESCRIPTION:
                self._checksum = packet[-5] == CRC32
                if self._gtids is not None:
                    decoder = EventDecoder(file)
                    decoder.decode(packet)
                    self._filter = GtidFilter(self._gtids, decoder)
                sent = without_in_use(packet)
                yield sent if start == FIRST_EVENT else _detached(sent)
            elif position < start < position + len(packet):
                raise OffsetError(f"the start {file}:{start} is inside an event, which begins at {position}")
            elif position >= start and self._selects(packet):
                yield packet
            position += len(packet)

    def _selects(self, packet: bytes) -> bool:
        between = packet[4] in BETWEEN_TRANSACTIONS
        if self._filter is not None and not between and not self._filter.selects(packet):
            return False
        self._moved = self._moved or self._filter is None or not between
        return True

    def _rotate(self, file: str, position: int) -> bytes:
        """Return the ROTATE that a server sends before each file."""
        body = position.to_bytes(8, "little") + file.encode()
        size = HEADER_LENGTH + len(body) + (4 if self._checksum else 0)
        event = HEADER.pack(0, EventType.ROTATE, 0, size, 0, ARTIFICIAL) + body
        return event + zlib.crc32(event).to_bytes(4, "little") if self._checksum else event


def place_of(folder: Path, start: SourceOffset, connector: str) -> str | None:
    """Return the file of a mirror in which a stream from a position begins; ``None`` if the mirror does not have it.

    Raises:
        OffsetError: the folder has no binlog files, or one is missing.
        ConnectorError: a file is damaged.
    """
    files = FolderFiles(folder)
    if start.gtids is not None:
        return file_of_gtids(files, start.gtid_set(connector))
    return start.file if start.file in files.names else None


def mirror_check(folder: Path, start: SourceOffset, connector: str) -> PositionCheck:
    """Check whether a mirror has the events after a position that its server has purged.

    Raises:
        ConnectorError: the mirror is damaged, or a file of it is missing.
    """
    origin = origin_of(folder)
    if origin is None:
        return PositionCheck(available=False, reason=f"{folder} is not a mirror: it has no mirror.json")
    if origin.flavor != connector:
        return PositionCheck(available=False, reason=f"the mirror {folder} is one of {origin.flavor}")
    if start.gtids is None and start.server not in (None, origin.server):
        reason = f"the mirror {folder} is one of server {origin.server}, and the position of server {start.server}"
        return PositionCheck(available=False, reason=reason)
    if place_of(folder, start, connector) is None:
        return PositionCheck(available=False, reason=f"the mirror {folder} does not have it either")
    return PositionCheck(available=True)


def _range(files: dict[str, BinlogFile]) -> str:
    names = list(files)
    return f"{names[0]} to {names[-1]}"


def _opened(path: Path) -> BinaryIO:
    return cast("BinaryIO", gzip.open(path)) if path.suffix == ".gz" else path.open("rb")


def _without_magic(data: bytes, file: str) -> bytes:
    if not data.startswith(MAGIC):
        raise RemoteProtocolError(
            f"not a binlog file: it starts with {data[:4].hex()} instead of fe62696e", f"{file}:0"
        )
    return data[len(MAGIC) :]


def _split(data: bytes, place: str) -> tuple[list[bytes], bytes]:
    """Return the whole events at the beginning of some bytes, and the rest."""
    packets, position = [], 0
    while len(data) - position >= HEADER_LENGTH:
        size = HEADER.unpack_from(data, position)[3]
        if size < HEADER_LENGTH:
            raise RemoteProtocolError(f"an event with a size of {size} bytes", place)
        if position + size > len(data):
            break
        packets.append(data[position : position + size])
        position += size
    return packets, data[position:]


def _missing(data: bytes) -> int:
    """Return the number of bytes missing in the event at the beginning of some bytes; 0 if it is not known yet."""
    return HEADER.unpack_from(data)[3] - len(data) if len(data) >= HEADER_LENGTH else 0


def _detached(packet: bytes) -> bytes:
    """Return a FORMAT_DESCRIPTION for use before events that are not the first ones of their file."""
    packet = packet[:13] + bytes(4) + packet[17:]
    return packet[:-4] + zlib.crc32(packet[:-4]).to_bytes(4, "little")
