"""The address of the web server, and who uses its port."""

from __future__ import annotations

import json
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from click.testing import CliRunner
from rowtide_stack.ports import free_port

from rowtide.cli import main
from rowtide.connector.check import Severity
from rowtide.connector.config import ConfigurationError
from rowtide.connector.worker.web.address import WebAddress, port_findings, require_address
from tests.support.configurations import PROPERTIES


@contextmanager
def serving(status: int, body: bytes) -> Iterator[int]:
    """A web server that answers every request so; yields its port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # the name is the base class's
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_args: object) -> None:
            """Stay quiet."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


def address(port: int, *, any_port: bool = True) -> WebAddress:
    return WebAddress("127.0.0.1", port, any_port)


def test_the_address_is_that_of_the_options_the_environment_or_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    assert WebAddress.choose() == WebAddress("127.0.0.1", 6066, any_port=True)
    monkeypatch.setenv("WEB_PORT", "7000")
    monkeypatch.setenv("WEB_BIND", "0.0.0.0")
    assert WebAddress.choose() == WebAddress("0.0.0.0", 7000, any_port=False)
    assert WebAddress.choose("::1", 7001) == WebAddress("::1", 7001, any_port=False)


@pytest.mark.parametrize("text", ["", "tcp://10.0.0.1:80", "udp://10.0.0.1:80"])
def test_what_kubernetes_sets_for_a_service_named_web_is_not_a_port(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEB_PORT", text)
    assert WebAddress.choose() == WebAddress("127.0.0.1", 6066, any_port=True)


@pytest.mark.parametrize("text", ["http", "65536", "-1", "6066.0"])
def test_a_variable_that_is_not_a_port_is_an_error(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEB_PORT", text)
    with pytest.raises(ConfigurationError, match="WEB_PORT: must be a port"):
        WebAddress.choose()


def test_a_free_port_is_not_a_finding() -> None:
    assert port_findings(address(free_port()), "shop") == []


def test_a_port_of_another_program() -> None:
    with serving(200, b"hello") as port:
        (found,) = port_findings(address(port), "shop")
        assert found.severity is Severity.REMARK
        assert "the web server will take a free port" in found.message
        (found,) = port_findings(address(port, any_port=False), "shop")
        assert found.severity is Severity.ERROR
        assert f"cannot listen on 127.0.0.1 port {port}: Address already in use" in found.message


@pytest.mark.parametrize("status", [200, 503])
def test_a_port_of_a_worker(status: int) -> None:
    with serving(status, json.dumps({"connector": "shop"}).encode()) as port:
        (found,) = port_findings(address(port, any_port=False), "shop")
        assert "by rowtide with connector shop. If it is this one, stop it" in found.message
        assert found.severity is Severity.REMARK
        (found,) = port_findings(address(port), "other")
        assert "by rowtide with connector shop; the web server will take" in found.message


def test_a_program_that_does_not_speak_http() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            connection, _ = listening.accept()
            connection.sendall(b"5.7.1-no-http\r\n\r\n")
            connection.close()

        thread = threading.Thread(target=answer)
        thread.start()
        (found,) = port_findings(address(listening.getsockname()[1]), "shop")
        thread.join()
        assert "by rowtide" not in found.message


@pytest.mark.parametrize("host", ["203.0.113.9", "nosuch.invalid", "a..b", "é\u2028x", "2001:db8::1"])
def test_an_address_of_another_machine(host: str) -> None:
    """It was a traceback at the start, and "in use" in the check."""
    with pytest.raises(ConfigurationError, match=f"--web-bind: {re.escape(host)} is not an address of this machine"):
        require_address(host, free_port(), any_port=True)
    (found,) = port_findings(WebAddress(host, free_port(), any_port=True), "shop")
    assert (found.severity, found.subject) == (Severity.ERROR, "--web-bind")


def test_a_port_that_was_asked_for_is_in_use() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        require_address("127.0.0.1", port, any_port=True)
        with pytest.raises(ConfigurationError, match=f"--web-port: port {port} of 127.0.0.1 cannot be used: Address"):
            require_address("127.0.0.1", port, any_port=False)
    require_address("127.0.0.1", port, any_port=False)


@pytest.mark.parametrize("log_file", ["nosuch/x.log", "properties/x.log"])
def test_a_log_file_that_cannot_be_written(tmp_path: Path, log_file: str) -> None:
    (tmp_path / "properties").write_text("".join(f"{name}={value}\n" for name, value in PROPERTIES.items()))
    result = CliRunner().invoke(main, ["run", str(tmp_path / "properties"), "--log-file", str(tmp_path / log_file)])
    assert result.exit_code == 1
    assert f"--log-file: {tmp_path / log_file} cannot be written" in result.output
