"""Damaged binlogs in a search for XA transactions and for statements."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from functools import cache
from random import Random

from rowtide.connector.config import from_properties
from rowtide.connector.config.model.database import DatabaseConfig
from rowtide.connector.errors import ConnectorError
from rowtide.connector.protocol.header import HEADER_LENGTH, EventType
from rowtide.connector.records.offset import PreparedXa, SourceOffset
from rowtide.connector.source.search.binlog_search import BinlogSearch
from tests.fuzz.mutators import mutated
from tests.fuzz.recorded import single_events
from tests.fuzz.targets.packets import SERVERS, with_size
from tests.fuzz.targets.rows import events_of, framed
from tests.support.configurations import PROPERTIES
from tests.support.mysql.packets import captured

_FILE = "binlog.000001"
_XIDS = ("X'61',X'',1", "X'62',X'63',4660", "")
_START, _END = SourceOffset(_FILE, 4), SourceOffset(_FILE, 1 << 31)
_GTIDS = {"mysql": "aa7d5f2e-e591-11f1-904d-02fc00000001:1-5", "mariadb": "0-1-42"}
_STATEMENTS = ("XA START {}", "XA END {}", "XA PREPARE {}", "XA COMMIT {}", "XA ROLLBACK {}", "xa commit  {} ONE PHASE")
_NEW_XA = 0x80
_TOKENS = (b"XA ", b"XA START ", b"XA COMMIT ", b"X'61',X'',1", b"X'", b"'", b",", b"\0")


class Searches:
    """An input is a byte that selects server and search, and events without checksums, each with its length."""

    declared = (ConnectorError,)

    def make(self, random: Random) -> bytes:
        """Damaged events among those of XA transactions."""
        number = random.randrange(len(SERVERS))
        events = [_event(random, SERVERS[number]) for _ in range(random.randint(1, 10))]
        for _ in range(random.choice((0, 1, 1, 2))):
            place = random.randrange(len(events))
            events[place] = events[place][:HEADER_LENGTH] + mutated(random, events[place][HEADER_LENGTH:], _TOKENS)
        return bytes((number | random.randrange(4) << 1,)) + framed(events)

    def run(self, data: bytes) -> None:
        """Search for transactions or statements, or read a transaction."""
        kind = data[0] if data else 0
        server, action = SERVERS[kind & 1], kind >> 1 & 3
        search = _Search(_config(), mariadb=server == "mariadb")
        search.events = [*captured(server)[:2], *map(_with_checksum, events_of(data[1:]))]
        if action == 0:
            search.prepared(_XIDS[:1], [_FILE], _END)
        elif action == 1:
            search.first_events({*_XIDS}, _START, _END)
        elif action == 2:
            for _ in search.statements(_START, _END):
                pass
        else:
            before = SourceOffset(_FILE, 4, _GTIDS[server]) if kind & 8 else None
            for _ in search.packets(PreparedXa(_XIDS[0], _FILE, 4, before)):
                pass


class _Search(BinlogSearch):
    """Reads given events instead of those of a server."""

    events: list[bytes]

    def _packets(self, file: str, pos: int, gtids: str | None = None) -> Iterator[bytes]:
        return iter(self.events)


@cache
def _config() -> DatabaseConfig:
    return from_properties(PROPERTIES).database


def _event(random: Random, server: str) -> bytes:
    if random.random() < 0.5:
        return random.choice(single_events(server))
    xid = random.choice(_XIDS)
    if random.random() < 0.3:
        parts = b"".join(len(part).to_bytes(4, "little") for part in (b"a", b""))
        return _header(EventType.XA_PREPARE) + b"\0" + bytes((1, 0, 0, 0)) + parts + b"a"
    statement = random.choice(_STATEMENTS).format(xid).encode()
    return _header(EventType.QUERY) + bytes(8) + b"\0" + bytes(4) + b"\0" + statement


def _header(kind: int) -> bytes:
    return bytes(4) + bytes((kind,)) + b"\1\0\0\0" + bytes(4) + b"\0\x10\0\0\0\0"


def _with_checksum(event: bytes) -> bytes:
    body = with_size(event)[:-4]
    return body + zlib.crc32(body).to_bytes(4, "little")
