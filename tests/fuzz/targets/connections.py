"""What a database server sends outside the binlog: the log-in, the answers to statements, and the rows of tables."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import chain, repeat
from random import Random
from typing import Any
from unittest.mock import patch

import pymysql
from pymysql.constants import CLIENT, FIELD_TYPE

from rowtide.connector.config import from_properties
from rowtide.connector.config.model.database import DatabaseConfig
from rowtide.connector.engine.pipeline_settings import pipeline_settings
from rowtide.connector.errors import SnapshotError
from rowtide.connector.rows import text_protocol_decoder
from rowtide.connector.rows.text_protocol_rows import ResultReader
from rowtide.connector.snapshot.records import SnapshotTable
from rowtide.connector.source.connection import DatabaseUnreachableError, client, log_in
from rowtide.connector.source.session import Session
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.model import TableId
from rowtide.schema_history.server.query_event import Flavor, QueryEvent, Server
from tests.fuzz.mutators import mutated
from tests.fuzz.targets.packets import packed
from tests.support.configurations import PROPERTIES

_MODES = *("disabled",) * 150, *("required",) * 49, "preferred"
"""With their weights: ``preferred`` loads the certificates of the system each time."""
_PASSWORD = "geheim-und-lang"
_PLUGINS = (
    "mysql_native_password", "caching_sha2_password", "sha256_password", "client_ed25519", "mysql_clear_password",
    "dialog", "mysql_old_password", "unknown", "", "é",
)  # fmt: skip
_VERSIONS = (b"8.4.0", b"5.5.5-10.11.2-MariaDB-log", b"11.4.2-MariaDB", b"x", b"")
_OK = b"\x00\x00\x00\x02\x00\x00\x00"
_EOF = b"\xfe\x00\x00\x02\x00"
_DENIED = b"\xff\x15\x04#28000Access denied"
_FAST, _FULL = b"\x01\x03", b"\x01\x04"
_PUBLIC_KEY = b"""\x01-----BEGIN PUBLIC KEY-----
MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQC/DUqcLFoZi3nqJ+haQNqHL6fC
2SsQfmrgRDSeaPt1G1nV62pi/YCBs/+hRooIqUoqXhzTh2CKKV29sHorsFV4f3a0
vCLBPsTWMaRorCTnyP4cxFBuc2rFdfwrYLPjCfcd5kbsjl5avC6hF6S6CXghI3KM
E9FkdvU60Fpc5HnQFwIDAQAB
-----END PUBLIC KEY-----
"""
_CAPABILITIES = (
    CLIENT.PROTOCOL_41 | CLIENT.SECURE_CONNECTION | CLIENT.PLUGIN_AUTH | CLIENT.CONNECT_WITH_DB
    | CLIENT.PLUGIN_AUTH_LENENC_CLIENT_DATA | CLIENT.CONNECT_ATTRS
)  # fmt: skip
_TOKENS = (*(f"{name}\0".encode() for name in _PLUGINS), b"\xfe", b"\xff", b"\xfb", b"\x01\x02", _FAST, _FULL)


_QUERY = "SELECT it"
_TABLE = TableId("d", "t")
_COLUMNS = {
    "id": "INT PRIMARY KEY", "big": "BIGINT UNSIGNED", "text": "VARCHAR(99)", "price": "DECIMAL(9,2)", "r": "DOUBLE",
    "day": "DATE", "at": "DATETIME(6)", "moment": "TIMESTAMP", "span": "TIME", "y": "YEAR", "flags": "BIT(9)",
    "kind": "ENUM('a','b')", "kinds": "SET('a','b')", "doc": "JSON", "raw": "BLOB", "place": "POINT",
}  # fmt: skip
_NAMES = tuple(_COLUMNS)
_VALUES = (
    b"1", b"-7", b"18446744073709551615", b"text", "é😀".encode(), b"12.30", b"-0.5e300", b"2024-02-29", b"0000-00-00",
    b"2024-02-29 11:12:13.000001", b"-838:59:59", b"2155", b"\1\xff", b"a", b"a,b", b'{"k": [1, null]}', bytes(25),
    b"x" * 300, b"9" * 5000, b"", b"NaN", b"\xff\xfe",
)  # fmt: skip


class LogIn:
    """An input is the number of a TLS mode, and the packets of the server, each with its length."""

    declared = (DatabaseUnreachableError,)

    def make(self, random: Random) -> bytes:
        """A conversation with damaged packets."""
        tls = CLIENT.SSL if random.random() < 0.3 else 0
        greeting = _greeting(random.choice(_VERSIONS), random.choice(_PLUGINS), tls)
        packets = [greeting, *random.choice(_CONVERSATIONS)]
        if random.random() < 0.4:
            packets.insert(1, b"\xfe" + random.choice(_PLUGINS).encode() + b"\0" + random.randbytes(20) + b"\0")
        return bytes((random.randrange(len(_MODES)),)) + _framed(_damaged(random, packets))

    def run(self, data: bytes) -> None:
        """Log in; the password must not be readable on the way."""
        mode = _MODES[data[0] % len(_MODES)] if data else "disabled"
        with _connected_to(_Server(_payloads(data[1:]))) as server:
            try:
                log_in(_config(mode)).abort()
            finally:
                assert _PASSWORD.encode() not in server.received, "the password is readable"


class Results:
    """An input is a byte that selects what reads, and the packets of a result set, each with its length."""

    declared = (DatabaseUnreachableError, SnapshotError, pymysql.MySQLError)

    def make(self, random: Random) -> bytes:
        """A damaged result set of a few rows."""
        names = random.choice((_NAMES, _NAMES, _NAMES[::-1], _NAMES[:3], (*_NAMES, "other")))
        rows = [_row(random, len(names)) for _ in range(random.choice((0, 1, 1, 3, 10)))]
        packets = [packed(len(names)), *(_field(random, name) for name in names), _EOF, *rows, _EOF]
        if random.random() < 0.1:
            packets.insert(random.randrange(len(packets) + 1), random.choice((_DENIED, _OK, b"\xfb/etc/passwd", b"")))
        return bytes((random.randrange(4),)) + _framed(_damaged(random, packets))

    def run(self, data: bytes) -> None:
        """Read it as a small result, or as the rows of a table."""
        script = chain((_greeting(b"8.4.0", _PLUGINS[0], 0),), repeat(_OK))
        with _connected_to(_Server(script, _payloads(data[1:]))):
            session = Session.__new__(Session)  # without the statements of its constructor, which take most of the time
            session.client = log_in(_config("disabled"))
            number = data[0] % 4 if data else 0
            if number == 0:
                session.query(_QUERY)
            else:
                for _ in session.rows(_TABLE, _QUERY, _readers()[number - 1]):
                    pass
            session.close()


class _Server(socket.socket):
    """The client's end of a connection to a server that sends packets, whatever it receives.

    Args:
        packets: the payloads that it sends before it closes the connection.
        result: instead of the others after the query.
    """

    def __init__(self, packets: Iterable[bytes], result: Iterable[bytes] = ()) -> None:
        super().__init__(socket.AF_UNIX)
        self._packets = iter(packets)
        self._result = result
        self._unread = b""
        self._sequence = 0
        self.received = b""

    def setsockopt(self, *_: Any) -> None:
        """Options of TCP are of no use here."""

    def sendall(self, data: Any, *_: Any) -> None:
        """Receive from the client."""
        self.received += data
        self._sequence = data[3] + 1
        if _QUERY.encode() in data:
            self._packets = iter(self._result)

    def recv_into(self, buffer: Any, *_: Any) -> int:
        """Send to the client."""
        if not self._unread:
            payload = next(self._packets, None)
            if payload is None:
                return 0
            self._unread = len(payload).to_bytes(3, "little") + bytes((self._sequence % 256,)) + payload
            self._sequence += 1
        count = min(len(self._unread), len(buffer))
        buffer[:count], self._unread = self._unread[:count], self._unread[count:]
        return count


@contextmanager
def _connected_to(server: _Server) -> Iterator[_Server]:
    with server, patch.object(client, "open_tcp", lambda *_, **__: server):
        yield server


@cache
def _config(mode: str) -> DatabaseConfig:
    return from_properties(
        {**PROPERTIES, "database.password": _PASSWORD, "database.ssl.mode": mode, "database.query.timeout.ms": "0"}
    ).database


@cache
def _readers() -> tuple[Callable[[Sequence[str]], ResultReader], ...]:
    """Rows of the table in compiled code, if there is any, in Python, and of the query of a user."""
    tables = Tables(Server(Flavor.MYSQL))
    columns = ", ".join(f"`{name}` {kind}" for name, kind in _COLUMNS.items())
    for statement in ("CREATE DATABASE d", f"CREATE TABLE t ({columns})"):
        tables.apply(QueryEvent(statement, "d"))
    table = tables.table("d", "t")
    assert table is not None
    properties = {**PROPERTIES, "event.converting.failure.handling.mode": "skip"}  # read on after a damaged value
    settings = pipeline_settings(from_properties(properties), "run")
    own, given = SnapshotTable(table, settings), SnapshotTable(table, settings, custom_query=True)

    def in_python(names: Sequence[str]) -> ResultReader:
        with patch.object(text_protocol_decoder, "native", None):
            return own.reader(names)

    return own.reader, in_python, given.reader


def _greeting(version: bytes, plugin: str, tls: int) -> bytes:
    capabilities = _CAPABILITIES | tls
    low, high = capabilities & 0xFFFF, capabilities >> 16
    head = b"\x0a" + version + b"\0" + struct.pack("<I", 7) + b"saltsalt\0"
    return head + struct.pack("<HBHHB10x", low, 45, 2, high, 21) + b"moresaltmore\0" + plugin.encode() + b"\0"


_CONVERSATIONS = (
    (_OK, _OK, _OK), (_OK, _OK), (_DENIED,), (_FAST, _OK, _OK, _OK), (_FULL, _PUBLIC_KEY, _OK, _OK, _OK),
    (_PUBLIC_KEY, _OK, _OK, _OK), (b"\x03Password: ", _OK, _OK, _OK), (),
)  # fmt: skip


def _field(random: Random, name: str) -> bytes:
    kind = random.choice((FIELD_TYPE.VAR_STRING, FIELD_TYPE.LONG, FIELD_TYPE.BLOB, FIELD_TYPE.DATETIME, FIELD_TYPE.BIT))
    texts = b"".join(packed(len(text)) + text for text in (b"def", b"d", b"t", b"t", name.encode(), name.encode()))
    return texts + struct.pack("<BHIBHBH", 12, random.choice((45, 63, 255)), 99, kind, 0, 0, 0)


def _row(random: Random, columns: int) -> bytes:
    values = (None if random.random() < 0.2 else random.choice(_VALUES) for _ in range(columns))
    return b"".join(b"\xfb" if value is None else packed(len(value)) + value for value in values)


def _damaged(random: Random, packets: list[bytes]) -> list[bytes]:
    for _ in range(random.choice((0, 1, 1, 1, 2))):
        place = random.randrange(len(packets))
        action = random.random()
        if action < 0.8:
            packets[place] = mutated(random, packets[place], _TOKENS)
        elif action < 0.9:
            packets.insert(place, packets[place])
        elif len(packets) > 1:
            del packets[place]
    return packets


def _framed(packets: Iterable[bytes]) -> bytes:
    return b"".join(len(packet).to_bytes(3, "little") + packet for packet in packets)


def _payloads(data: bytes) -> list[bytes]:
    payloads, at = [], 0
    while at + 3 <= len(data):
        size = int.from_bytes(data[at : at + 3], "little")
        payloads.append(data[at + 3 : at + 3 + size])
        at += 3 + size
    return payloads
