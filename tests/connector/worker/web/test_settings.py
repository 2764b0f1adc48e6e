"""The settings of the web server: HTTPS with a certificate that is renewed."""

from __future__ import annotations

import asyncio
import shutil
import ssl
from pathlib import Path

import aiohttp
import pytest
from rowtide_stack.ports import free_port
from rowtide_stack.servers.tls import TlsFiles

from rowtide.connector.config import from_properties
from rowtide.connector.config.errors import ConfigurationError
from rowtide.connector.worker.faust_app import create_app
from rowtide.connector.worker.web.server import WebServer
from rowtide.connector.worker.web.settings import WebSettings
from tests.support.configurations import PROPERTIES


def install(made: TlsFiles, folder: Path) -> None:
    """Put a certificate where the web server reads it."""
    for name in ("server.pem", "server.key"):
        shutil.copy(made.folder / name, folder / name)


async def status_code(port: int, made: TlsFiles) -> int:
    trusted = ssl.create_default_context(cafile=made.ca)
    connector = aiohttp.TCPConnector(ssl=trusted)
    async with (
        aiohttp.ClientSession(connector=connector) as client,
        client.get(f"https://127.0.0.1:{port}/health/live") as answer,
    ):
        return answer.status


@pytest.mark.parametrize("any_port", [False, True])
def test_it_serves_https_and_a_renewed_certificate(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, *, any_port: bool
) -> None:
    made = [TlsFiles.make(tmp_path / name) for name in "ab"]
    install(made[0], tmp_path)
    certificate, key = str(tmp_path / "server.pem"), str(tmp_path / "server.key")
    port = None if any_port else free_port()
    settings = WebSettings.choose(port=port, certificate=certificate, key=key)

    async def work() -> None:
        app = create_app(from_properties(PROPERTIES), web=settings)
        app.finalize()
        web = app.web
        assert isinstance(web, WebServer)
        await web.start_server()
        assert web.port is not None
        assert await status_code(web.port, made[0]) == 200
        shutil.copy(made[1].folder / "server.pem", certificate)  # the key follows later
        assert await status_code(web.port, made[0]) == 200
        assert "the former one remains" in caplog.text
        install(made[1], tmp_path)
        assert await status_code(web.port, made[1]) == 200
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await status_code(web.port, made[0])
        await web.stop_server()

    asyncio.run(work())


def test_files_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    made = TlsFiles.make(tmp_path / "tls")
    certificate, key = str(made.folder / "server.pem"), str(made.folder / "server.key")
    with pytest.raises(ConfigurationError, match=r"--web-tls-certificate: /nowhere cannot be read: No such file"):
        WebSettings.choose(certificate="/nowhere", key=key)
    with pytest.raises(ConfigurationError, match=r"--web-tls-key: /nowhere cannot be read"):
        WebSettings.choose(certificate=certificate, key="/nowhere")
    with pytest.raises(ConfigurationError, match=r"are not a PEM certificate and its key"):
        WebSettings.choose(certificate=certificate, key=str(made.client_key))
    with pytest.raises(ConfigurationError, match=r"are not a PEM certificate and its key"):
        WebSettings.choose(certificate=certificate)
    with pytest.raises(ConfigurationError, match=r"--web-tls-key: needs --web-tls-certificate"):
        WebSettings.choose(key=key)
    both = tmp_path / "both.pem"
    both.write_text(Path(certificate).read_text() + Path(key).read_text())
    assert WebSettings.choose(certificate=str(both)).tls is not None


def test_proofs_need_a_directory(tmp_path: Path) -> None:
    assert WebSettings.choose(proofs=str(tmp_path)).proofs == tmp_path
    with pytest.raises(ConfigurationError, match=r"--web-proofs: x+ is not a directory"):
        WebSettings.choose(proofs="x" * 300)  # longer than the system allows
    with pytest.raises(ConfigurationError, match=r"--web-proofs: .*/none is not a directory"):
        WebSettings.choose(proofs=str(tmp_path / "none"))
