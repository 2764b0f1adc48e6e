"""Connections of Canal's clients with TLS, which Canal itself does not have."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest
from rowtide_stack.servers.tls import TlsFiles

from rowtide.canal.service import CanalService
from rowtide.connector.config.errors import ConfigurationError
from rowtide.tcp_server import Address

HANDSHAKE = bytes.fromhex("10 01 18 01")


def service(folder: Path, tls: str) -> CanalService:
    (folder / "canal.properties").write_text(f"canal.port=0\ncanal.ip=127.0.0.1\n{tls}")
    (folder / "a").mkdir()
    (folder / "a" / "instance.properties").write_text(
        "canal.instance.master.address=127.0.0.1:1\ncanal.instance.dbUsername=canal\n"
    )
    return CanalService(folder)


def greeting(found: CanalService, context: ssl.SSLContext) -> bytes:
    """What the server sends first."""

    async def served() -> bytes:
        stop = asyncio.Event()
        address: asyncio.Future[Address | None] = asyncio.get_running_loop().create_future()
        running = asyncio.create_task(found.run(stop, address.set_result))
        place = await address
        assert place is not None
        try:
            reader, writer = await asyncio.open_connection(*place, ssl=context, server_hostname="localhost")
            sent = await reader.readexactly(8)
            writer.close()
            return sent
        finally:
            stop.set()
            await running

    return asyncio.run(served())


def test_a_client_with_tls_is_greeted(tmp_path: Path) -> None:
    files = TlsFiles.make(tmp_path / "tls")
    server = files.folder
    found = service(tmp_path, f"canal.tls.certificate={server}/server.pem\ncanal.tls.key={server}/server.key\n")
    context = ssl.create_default_context(cafile=files.ca)
    context.check_hostname = False
    assert greeting(found, context)[4:] == HANDSHAKE


def test_files_that_are_not_a_certificate_are_named(tmp_path: Path) -> None:
    (tmp_path / "x.pem").write_text("none")
    with pytest.raises(ConfigurationError, match=r"canal\.tls\.certificate: no certificate with its key can be read"):
        service(tmp_path, f"canal.tls.certificate={tmp_path / 'x.pem'}\n")


def test_a_key_needs_a_certificate(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"canal\.tls\.key: needs canal\.tls\.certificate"):
        service(tmp_path, f"canal.tls.key={__file__}\n")
