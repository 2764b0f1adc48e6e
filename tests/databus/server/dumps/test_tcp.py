"""Dumps that are served: complete for each client, whatever the others do."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import pytest

from rowtide import tcp_server
from rowtide.databus.client.dump import DumpReader
from rowtide.databus.errors import DumpError
from rowtide.databus.events import RowsEvent
from rowtide.databus.server.dumps import tcp
from rowtide.databus.server.dumps.folder import DumpFolder
from rowtide.databus.server.dumps.source import DumpPart
from rowtide.databus.server.dumps.tcp import DumpServer
from rowtide.databus.tables import Cell
from rowtide.tcp_server import Address
from tests.support.databus.messages import ITEMS, ROW, item
from tests.support.mysql.dump_server import read_dump

NAME = "DB.Data1.Json"


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tcp, "_END_S", 0.2)
    monkeypatch.setattr(tcp, "_LATE_END_S", 0.2)


@pytest.fixture
def folder(tmp_path: Path) -> DumpFolder:
    return DumpFolder(tmp_path / "data")


def stored(folder: DumpFolder, *events: RowsEvent, name: str = NAME) -> None:
    with folder.writer(name) as writer:
        for event in events:
            writer.add(DumpPart(event.encoded(), len(event.rows)))
        writer.complete(17)


def inserted(*rows: tuple[Cell, ...]) -> RowsEvent:
    return RowsEvent(ITEMS, "insert", rows)


def served(folder: DumpFolder, use: Callable[[Address, DumpServer], Awaitable[None]], host: str = "127.0.0.1") -> None:
    """Serve while ``use`` runs."""

    async def run() -> None:
        server = DumpServer(folder)
        address = await server.start(host, 0)
        try:
            await asyncio.wait_for(use(address, server), 60)
        finally:
            await server.close()

    asyncio.run(run())


def raw(address: Address, *requests: bytes) -> bytes:
    """What a client that sends these bytes reads to the end of the connection."""
    with socket.create_connection(address, 10) as connection:
        for request in requests:
            connection.sendall(request)
        found = bytearray()
        while data := connection.recv(1 << 16):
            found += data
    return bytes(found)


def read_all(address: Address, *, end_marker: bool = True) -> list[RowsEvent]:
    """What our client reads."""
    return read_dump(DumpReader(*address, NAME, end_marker=end_marker))


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_our_client_reads_a_dump_to_its_end_marker(folder: DumpFolder, host: str) -> None:
    events = [inserted(ROW, item(1)), inserted(item(2))]
    stored(folder, *events)

    async def use(address: Address, _server: DumpServer) -> None:
        assert await asyncio.to_thread(read_all, address) == events

    served(folder, use, host)


def test_clients_of_the_original_get_single_rows_and_no_marker(folder: DumpFolder) -> None:
    """The original's ``Do`` has the statement of the last row of an event only."""
    stored(folder, inserted(ROW, item(1), item(2)), inserted(item(3)))

    async def use(address: Address, _server: DumpServer) -> None:
        found = await asyncio.to_thread(raw, address, f"{NAME}\n".encode())
        pong, *lines = found.splitlines(keepends=True)
        assert pong == b"PONG\n"
        assert [RowsEvent.decode(line).rows for line in lines] == [(ROW,), (item(1),), (item(2),), (item(3),)]
        events = await asyncio.to_thread(read_all, address, end_marker=False)
        assert [event.rows for event in events] == [(ROW,), (item(1),), (item(2),), (item(3),)]

    served(folder, use)


def test_an_end_that_arrives_late_still_gets_a_marker(folder: DumpFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tcp, "_LATE_END_S", 30.0)
    stored(folder, inserted(item(1)))

    async def use(address: Address, _server: DumpServer) -> None:
        reader, writer = await asyncio.open_connection(*address)
        writer.write(f"{NAME}\n".encode())
        lines = [await reader.readline(), await reader.readline()]
        writer.write(b"END\n")
        assert [*lines[:1], await reader.read()] == [b"PONG\n", b'{"End":true,"Rows":1,"Offset":17}\n']
        writer.close()
        await writer.wait_closed()

    served(folder, use)


def test_a_dump_of_an_earlier_version_is_served_without_the_end_of_its_events(folder: DumpFolder) -> None:
    (folder.path / NAME).write_bytes(inserted(item(1)).encoded() + b'\n{"End":true,"Rows":1}\n')
    ends: list[int | None] = []

    async def use(address: Address, _server: DumpServer) -> None:
        for _ in range(2):
            reader = await asyncio.to_thread(lambda: DumpReader(*address, NAME, end_marker=True))
            while not reader.ended:
                await asyncio.to_thread(reader.poll, 5.0)
            reader.close()
            ends.append(reader.end)
            stored(folder, inserted(item(1)))

    served(folder, use)
    assert ends == [None, 17]


def test_an_empty_dump_is_told_from_a_missing_one(folder: DumpFolder) -> None:
    stored(folder)

    async def use(address: Address, _server: DumpServer) -> None:
        assert await asyncio.to_thread(read_all, address) == []
        (folder.path / NAME).unlink()
        with pytest.raises(DumpError, match=r"dump DB.Data1.Json of .*: there is no such dump on this server\. Read"):
            await asyncio.to_thread(read_all, address)
        with pytest.raises(DumpError, match="there is no such dump"):
            await asyncio.to_thread(read_all, address, end_marker=False)
        found = await asyncio.to_thread(raw, address, f"{NAME}\n".encode())
        assert found.startswith(b"ERROR there is no such dump")

    served(folder, use)


@pytest.mark.parametrize(
    "name", [b"", b"../secret", b"/etc/passwd", b"DB.Data1.Json.part", b"DB.Data\xff.Json", b"DB.Data1.Json\0"]
)
def test_only_dumps_are_served(folder: DumpFolder, name: bytes) -> None:
    (folder.path.parent / "secret").write_text("secret")
    (folder.path / "DB.Data1.Json.part").write_text("secret")

    async def use(address: Address, _server: DumpServer) -> None:
        assert (await asyncio.to_thread(raw, address, name + b"\n")).startswith(b"ERROR there is no such dump")

    served(folder, use)


@pytest.mark.parametrize("end", [b"", b"\n{}", b'{"End":true,"Rows":1', b'x{"End":true,"Rows":1}\n'])
def test_a_dump_without_its_end_is_not_served(folder: DumpFolder, end: bytes) -> None:
    (folder.path / NAME).write_bytes(inserted(item(1)).encoded() + end)

    async def use(address: Address, _server: DumpServer) -> None:
        with pytest.raises(DumpError, match="has no end marker"):
            await asyncio.to_thread(read_all, address)

    served(folder, use)


def test_a_request_without_end_is_refused(folder: DumpFolder, caplog: pytest.LogCaptureFixture) -> None:
    async def use(address: Address, server: DumpServer) -> None:
        reader, writer = await asyncio.open_connection(*address)
        writer.write(b"x" * 100_000)
        with suppress(ConnectionResetError):  # with bytes that were not read
            assert await reader.read() == b""
        writer.close()
        while server.connections:
            await asyncio.sleep(0.01)

    with caplog.at_level(logging.INFO):
        served(folder, use)
    assert "a line of its request is longer than 1024 bytes" in caplog.text


def test_clients_that_do_not_read_or_vanish_hold_up_nobody(folder: DumpFolder) -> None:
    wide = inserted(*[(b"1", b"x" * 3000, None, None, None, None)] * 40)
    stored(folder, *[wide] * 200)  # 30 MB: more than the buffers of a connection

    async def use(address: Address, server: DumpServer) -> None:
        slow = [await asyncio.open_connection(*address) for _ in range(20)]
        for _, writer in slow:
            writer.write(f"{NAME}\nEND\n".encode())
        for reader, _ in slow:
            assert await reader.readline() == b"PONG\n"
        silent = await asyncio.open_connection(*address)
        for _, writer in slow[:10]:
            writer.transport.abort()
        assert sum(len(event.rows) for event in await asyncio.to_thread(read_all, address)) == 8000
        while server.connections > 11:
            await asyncio.sleep(0.01)
        rest = (await slow[10][0].read()).splitlines()
        assert json.loads(rest[-1]) == {"End": True, "Rows": 8000, "Offset": 17}
        assert len(rest) == 201
        for _, writer in [*slow[10:], silent]:
            writer.transport.abort()

    served(folder, use)


@pytest.mark.parametrize("requests", [(), (f"{NAME}\nEND\n".encode(),)])
def test_a_client_that_stalls_is_disconnected(
    folder: DumpFolder, requests: tuple[bytes, ...], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tcp, "_STALLED_S", 0.2)
    monkeypatch.setattr(tcp, "_REQUEST_S", 0.2)
    monkeypatch.setattr(tcp_server, "_CLOSE_S", 0.2)
    wide = inserted(*[(b"1", b"x" * 3000, None, None, None, None)] * 40)
    stored(folder, *[wide] * 200)

    async def use(address: Address, server: DumpServer) -> None:
        _, writer = await asyncio.open_connection(*address, limit=1 << 10)
        for request in requests:
            writer.write(request)
        while not server.connections:
            await asyncio.sleep(0.01)
        while server.connections:
            await asyncio.sleep(0.01)
        writer.transport.abort()

    served(folder, use)
    assert "sends or reads nothing; it is disconnected" in caplog.text


def test_a_dump_that_is_deleted_meanwhile_is_read_to_its_end(folder: DumpFolder) -> None:
    stored(folder, inserted(item(1)))
    opened = folder.open(NAME)
    assert opened is not None
    stored(folder, name="DB.Data2.Json")
    stored(folder, name="DB.Data3.Json")
    folder.keep("DB.Data2.Json", 2)
    assert sorted(path.name for path in folder.path.iterdir()) == ["DB.Data2.Json", "DB.Data3.Json"]
    assert RowsEvent.decode(opened.read()) == inserted(item(1))
    assert opened.read() == b""
    opened.close()
    assert folder.open(NAME) is None


def test_a_dump_that_is_not_complete_leaves_nothing(folder: DumpFolder) -> None:
    def interrupted() -> None:
        with folder.writer(NAME) as writer:
            writer.add(DumpPart(inserted(item(1)).encoded(), 1))
            assert folder.open(NAME) is None
            raise KeyError

    with pytest.raises(KeyError):
        interrupted()
    assert list(folder.path.iterdir()) == []
    (folder.path / "DB.Data0.Json.part").touch()  # of a server that was killed
    stored(folder)
    assert [path.name for path in folder.path.iterdir()] == [NAME]


def test_a_stop_while_a_client_is_connected_logs_no_error(folder: DumpFolder, caplog: pytest.LogCaptureFixture) -> None:
    async def use(address: Address, server: DumpServer) -> None:
        _, writer = await asyncio.open_connection(*address)
        while not server.connections:
            await asyncio.sleep(0.01)
        await server.close()
        writer.close()

    served(folder, use)
    assert not caplog.records
