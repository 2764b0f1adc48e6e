"""Whole binlog files, plain and gzipped: how they are split into events, and the decoder's state between events."""

from __future__ import annotations

import gzip
import io
from functools import cache
from random import Random

from rowtide.connector.errors import ProtocolError
from rowtide.connector.protocol.binlog_file import binlog_packets
from rowtide.connector.protocol.decoder import EventDecoder
from tests.fuzz.mutators import mutated, spliced
from tests.fuzz.targets.packets import check_location
from tests.support.mysql.packets import golden_files

_SHORTEST, _LONGEST, _FILES = 500, 20_000, 40


class BinlogFiles:
    """An input is a byte of options, and the file."""

    declared = (ProtocolError,)

    def make(self, random: Random) -> bytes:
        """A damaged file."""
        data = random.choice(_files())
        action = random.random()
        if action < 0.2:
            data = spliced(random, data, random.choice(_files()))
        if action < 0.9:
            data = mutated(random, data)
        if random.random() < 0.3:
            data = mutated(random, gzip.compress(data, 1))
        return bytes((random.randrange(4),)) + data

    def run(self, data: bytes) -> None:
        """Decode all events."""
        options, file = data[:1] or b"\0", data[1:]
        decoder = EventDecoder("f.1", verify_checksum=bool(options[0] & 1))
        try:
            for packet in binlog_packets(io.BytesIO(file), "f.1", active=bool(options[0] & 2)):
                decoder.decode(packet)
        except ProtocolError as error:
            check_location(error)
            raise


@cache
def _files() -> tuple[bytes, ...]:
    found = []
    for path in golden_files():
        data = gzip.decompress(path.read_bytes())
        if len(data) >= _SHORTEST:
            found.append(data[:_LONGEST])
    return tuple(found[:: max(1, len(found) // _FILES)])
