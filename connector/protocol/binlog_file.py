"""Splits a binlog file into events.

The caller opens the stream, so plain files, gzipped files and bytes in memory work alike.
"""

import gzip
import io
import logging
import zlib
from collections.abc import Iterator
from typing import BinaryIO, cast

from rowtide.connector.errors import EncryptedBinlog, RemoteProtocolError, TruncatedEvent
from rowtide.connector.protocol.header import HEADER, HEADER_LENGTH, type_name

log = logging.getLogger(__name__)

MAGIC = b"\xfebin"
ENCRYPTED_MAGIC = b"\xfdbin"
_GZIP_MAGIC = b"\x1f\x8b"
_IN_USE = 1
"""LOG_EVENT_BINLOG_IN_USE_F in the first event's flags: the server has not closed the file, or crashed before it
could."""


def binlog_packets(stream: BinaryIO, file: str, *, active: bool = False) -> Iterator[bytes]:
    """Yield the bytes of each event of a binlog file, for ``EventDecoder.decode``.

    Args:
        stream: the file at its first byte, plain or gzipped; a gzipped one must be seekable.
        file: its name, for messages.
        active: the server may still be writing to the file. If the file's header confirms it, an incomplete event at
            the end is skipped with a warning instead of raising `TruncatedEvent`. A file that was just begun may be
            empty.

    Raises:
        EncryptedBinlog: the server encrypted the file.
        TruncatedEvent: the file ends inside an event.
        RemoteProtocolError: this is not a binlog file, or the gzip stream is damaged.
    """
    position = 0
    try:
        magic = stream.read(4)
        if magic[:2] == _GZIP_MAGIC:
            stream.seek(-len(magic), io.SEEK_CUR)
            stream = cast("BinaryIO", gzip.GzipFile(fileobj=stream))
            magic = stream.read(4)
        if active and magic != MAGIC and MAGIC.startswith(magic):
            return
        _check_magic(magic, file)
        position = 4
        while packet := _next_packet(stream, file, position, active):
            if position == 4:
                active = active and bool(HEADER.unpack_from(packet)[5] & _IN_USE)
            yield packet
            position += len(packet)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise RemoteProtocolError(f"the gzip stream is damaged or incomplete: {error}", f"{file}:{position}") from None


def _check_magic(magic: bytes, file: str) -> None:
    if magic == ENCRYPTED_MAGIC:
        raise EncryptedBinlog(
            "the binlog file is encrypted (binlog_encryption=ON); only its server can read it: stream from the server, "
            "or copy the file with mysqlbinlog --read-from-remote-server --raw",
            f"{file}:0",
        )
    if magic != MAGIC:
        raise RemoteProtocolError(
            f"not a binlog file: it starts with {magic.hex() or 'nothing'} instead of fe62696e", f"{file}:0"
        )


def _next_packet(stream: BinaryIO, file: str, position: int, active: bool) -> bytes:
    """Return the bytes of the next event, or no bytes at the end of the file."""
    head = stream.read(HEADER_LENGTH)
    if len(head) == HEADER_LENGTH:
        _, code, _, size, _, _ = HEADER.unpack(head)
        if size < HEADER_LENGTH:
            raise RemoteProtocolError(f"{type_name(code)} event with a size of {size} bytes", f"{file}:{position}")
        body = stream.read(size - HEADER_LENGTH)
        if len(body) == size - HEADER_LENGTH:
            return head + body
        found = len(head) + len(body)
        message = f"the file ends inside a {type_name(code)} event, after {found} of {size} bytes"
    elif not head:
        return b""
    else:
        message = f"the file ends inside the header of an event, after {len(head)} bytes"
    if active:
        log.warning("%s (at %s:%d): the server was still writing it, so the event is skipped", message, file, position)
        return b""
    raise TruncatedEvent(message, f"{file}:{position}")
