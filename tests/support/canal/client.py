"""A client of Canal's protocol for tests, and the rows of the entries that it gets."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from rowtide.canal.entries import protobuf
from rowtide.canal.server.packets import frame
from rowtide.envelope.protobuf import wire

__all__ = ["CanalClient", "Change", "changes", "connected"]


class Change(NamedTuple):
    """A row of an entry, or a statement: its kind, its table, and the values of the row by column."""

    kind: int
    table: str
    before: dict[str, str | None]
    after: dict[str, str | None]
    sql: str = ""


def fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The numbers and the contents of the fields of a message."""
    return ((number, value) for number, _, value in wire.fields(message))


class CanalClient:
    """One connection of the client 1001 to a destination."""

    def __init__(self, address: tuple[str, int], destination: str) -> None:
        self._socket = socket.create_connection(address, timeout=60)
        self._who = protobuf.text(1, destination) + protobuf.text(2, "1001")
        try:
            self._read()
            assert self._ask(2) == b""
            self._send(12)
            assert self._ask(4) == b""
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._socket.close()

    def get(self, size: int = 100, timeout_ms: int = 500) -> tuple[int, list[bytes]]:
        """The number of the next batch and its entries; -1 if there is nothing."""
        number, batch = self.get_raw(size, timeout_ms)
        return number, [value for field, value in fields(batch) if field == 2 and isinstance(value, bytes)]

    def get_raw(self, size: int, timeout_ms: int) -> tuple[int, bytes]:
        """The number of the next batch, and the batch as a message ``Messages``; -1 if there is nothing."""
        wanted = protobuf.integer(3, size) + protobuf.integer(4, timeout_ms) + protobuf.integer(5, 2)
        batch = self._ask(6, wanted)
        number = next(wire.signed(value) for field, value in fields(batch) if field == 1 and isinstance(value, int))
        return number, batch

    def ack(self, batch: int) -> None:
        self._send(8, protobuf.integer(3, batch))

    def _ask(self, kind: int, body: bytes = b"") -> bytes:
        self._send(kind, body)
        return self._read()

    def _send(self, kind: int, body: bytes = b"") -> None:
        who = b"" if kind == 2 else self._who
        self._socket.sendall(frame(protobuf.integer(3, kind) + protobuf.data(5, who + body)))

    def _read(self) -> bytes:
        size = int.from_bytes(self._exactly(4), "big")
        body = dict(fields(self._exactly(size))).get(5, b"")
        assert isinstance(body, bytes)
        return body

    def _exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            piece = self._socket.recv(size - len(data))
            if not piece:
                raise ConnectionError("the server has closed the connection")
            data += piece
        return bytes(data)


@contextmanager
def connected(address: tuple[str, int], destination: str) -> Iterator[CanalClient]:
    client = CanalClient(address, destination)
    try:
        yield client
    finally:
        client.close()


def changes(entries: list[bytes]) -> Iterator[Change]:
    """The rows and statements of entries."""
    for entry in entries:
        found = dict(fields(entry))
        if found[2] != 2:
            continue
        header = dict(fields(_bytes(found[1])))
        table = _bytes(header.get(9, b"")).decode()
        content = list(fields(_bytes(found[3])))
        scalars = dict(content)
        kind = int(scalars[2]) if isinstance(scalars[2], int) else 0
        if 11 in scalars:
            yield Change(kind, table, {}, {}, _bytes(scalars[11]).decode())
        for number, row in content:
            if number == 12:
                images: tuple[dict[str, str | None], dict[str, str | None]] = ({}, {})
                for image, column in fields(_bytes(row)):
                    parts = dict(fields(_bytes(column)))
                    value = parts.get(8)
                    images[image - 1][_bytes(parts[3]).decode()] = None if value is None else _bytes(value).decode()
                yield Change(kind, table, *images)


def _bytes(value: int | bytes) -> bytes:
    assert isinstance(value, bytes)
    return value
