"""The recorded exchanges of Canal's real clients and server (``tests/canal/wire``), and how to repeat them."""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from rowtide.canal.entries.entry import EntryType
from rowtide.canal.server.destination import Destination
from rowtide.canal.server.stored_entry import BatchMode, LogPosition, StoredEntry
from rowtide.connector.delivery.event_store import Store
from rowtide.connector.records.offset import SourceOffset

__all__ = ["Connection", "Recording", "comparable", "recorded_destination", "recordings"]

FOLDER = Path(__file__).parents[2] / "canal" / "wire"
ENTRIES = Path(__file__).parents[2] / "golden_canal" / "bigint-unsigned-precise.jsonl.gz"
OFFSET = SourceOffset("binlog.000001", 4)


@dataclass
class Connection:
    """One connection: what the client sent, each with the answers that came before the next frame of the client."""

    greeting: bytes = b""
    exchanges: list[tuple[bytes, list[bytes]]] = field(default_factory=list)


@dataclass
class Recording:
    """One file: its connections, and the order of the frames of all clients as (connection, exchange)."""

    name: str
    credentials: tuple[str, str]
    counts_entries: bool
    connections: dict[str, Connection]
    order: list[tuple[str, int]]


def recordings() -> Iterator[Recording]:
    """All recordings."""
    for path in sorted(FOLDER.glob("*.txt")):
        yield _recording(path)


def _recording(path: Path) -> Recording:
    connections: dict[str, Connection] = {}
    order: list[tuple[str, int]] = []
    user, password, counts_entries = "", "", False
    for line in path.read_text().splitlines():
        if line.startswith("# server:"):
            words = line.split()
            if len(words) == 6:  # "# server: canal serve USER HASH"
                user, password = words[4:]
            counts_entries = "ITEMSIZE" in line
        if line.startswith("#"):
            continue
        side, _, content = line.partition(" ")
        if content == "end" or content.startswith("incomplete"):
            continue
        connection = connections.setdefault(side[1:], Connection())
        data = bytes.fromhex(content)
        if side[0] == "C":
            order.append((side[1:], len(connection.exchanges)))
            connection.exchanges.append((data, []))
        elif connection.exchanges:
            connection.exchanges[-1][1].append(data)
        else:
            connection.greeting = data
    return Recording(path.stem, (user, password), counts_entries, connections, order)


def recorded_destination(counts_entries: bool) -> Destination:
    """The destination ``example`` with the entries of the recordings."""
    store: Store[StoredEntry] = Store()
    with gzip.open(ENTRIES, "rt") as lines:
        for line in lines:
            fields = json.loads(line)
            if fields["type"] in EntryType.__members__:
                raw = base64.b64decode(fields["entry"])
                position = LogPosition(fields["file"], fields["pos"], 1, 0, "", OFFSET)
                store.put([StoredEntry(raw, position, True, False, fields["type"] != "ROWDATA")])
    return Destination("example", store, BatchMode(counts_entries, 1 if counts_entries else 1024))


def comparable(frame: bytes) -> bytes:
    """A frame without what differs between two runs: ids of connections, ports, lengths of texts, stack traces."""
    found = re.search(rb"something goes wrong with channel:\[.*?\], exception=([^\n]*)", frame, re.DOTALL)
    if found is None:
        return frame
    return b"error 400: " + found[1] if frame[:4] == b"\x10\x01\x18\x03" and b"\x08\x90\x03" in frame[:10] else frame
