"""The files in which positions are searched: those of a server, or those of a folder."""

import contextlib
import time
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path

from rowtide.connector.config.model.database import DatabaseConfig
from rowtide.connector.protocol.binlog_file import binlog_packets
from rowtide.connector.protocol.header import ARTIFICIAL, HEADER, HEARTBEATS, EventType, end_of_event
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.source.binlog_stream import StreamBroken, second_stream
from rowtide.connector.source.files.folder import binlog_files

_FIRST_EVENT = 4
_SILENCE_S = 30.0


class ServerFiles:
    """The binlog files of a server.

    Args:
        config: address and account.
        files: names and sizes of the files, oldest first.
        mariadb: whether the server is MariaDB.
    """

    def __init__(self, config: DatabaseConfig, files: Sequence[tuple[str, int]], *, mariadb: bool) -> None:
        self._config = config
        self._sizes = dict(files)
        self._mariadb = mariadb

    @property
    def names(self) -> Sequence[str]:
        """The names of the files, oldest first."""
        return list(self._sizes)

    def events(self, file: str) -> Generator[bytes, None, None]:
        """Yield the events of a file, up to the size that it had when the files were listed.

        Raises:
            ConnectorError: the server does not send them.
        """
        end, position = self._sizes[file], _FIRST_EVENT
        start = SourceOffset(file, _FIRST_EVENT)
        stream = second_stream(self._config, start, mariadb=self._mariadb, send_annotations=True)
        heard = time.monotonic()
        with contextlib.closing(stream.events()) as pieces:
            for packets in pieces:
                for packet in packets:
                    _, kind, _, size, log_pos, flags = HEADER.unpack_from(packet)
                    if flags & ARTIFICIAL or kind in HEARTBEATS:
                        if kind == EventType.ROTATE and position > _FIRST_EVENT:
                            return  # the next file begins: this one has shrunk, or ends without an event
                        continue
                    yield packet
                    position = end_of_event(position, size, log_pos)
                    if position >= end:
                        return
                if packets:
                    heard = time.monotonic()  # the caller may take its time
                elif time.monotonic() - heard > _SILENCE_S:
                    raise StreamBroken(f"no event of {file} came for {_SILENCE_S:.0f} s")


class FolderFiles:
    """The binlog files of a folder, such as a mirror.

    Raises:
        OffsetError: the folder has no binlog files, or one is missing.
    """

    def __init__(self, folder: Path) -> None:
        self._files = {file.name: file for file in binlog_files(folder)}

    @property
    def names(self) -> Sequence[str]:
        """The names of the files, oldest first."""
        return list(self._files)

    def sizes(self) -> dict[str, int]:
        """Return the sizes of the files on disk, by their names."""
        return {name: file.path.stat().st_size for name, file in self._files.items()}

    def events(self, file: str) -> Iterator[bytes]:
        """Yield the events of a file.

        Raises:
            ProtocolError: the file is damaged.
        """
        with self._files[file].path.open("rb") as stream:
            yield from binlog_packets(stream, file, active=file == self.names[-1])
