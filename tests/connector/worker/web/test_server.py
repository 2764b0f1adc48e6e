"""The web server: what it serves, and where it listens."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace

import aiohttp
import pytest
from rowtide_stack.ports import free_port

from rowtide.connector.config import from_properties
from rowtide.connector.engine.stream_attempts import ReaderStatus
from rowtide.connector.source.binlog_end import BinlogEnd
from rowtide.connector.worker.faust_app import create_app
from rowtide.connector.worker.web.server import WebServer, url
from rowtide.connector.worker.web.settings import WebSettings
from tests.support.configurations import PROPERTIES

PAGES = {"/health": 200, "/health/live": 200, "/health/ready": 503, "/metrics": 200, "/metrics/debezium": 200}
"""The pages, and what they answer while the connector starts."""


@pytest.fixture
def busy() -> Iterator[int]:
    """A port on which something else listens."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


def server(port: int, *, any_port: bool) -> WebServer:
    app = create_app(from_properties(PROPERTIES), web=WebSettings.choose(port=port))
    app.web_settings = replace(app.web_settings, address=replace(app.web_settings.address, any_port=any_port))
    app.finalize()
    web = app.web
    assert isinstance(web, WebServer)
    return web


async def status_codes(web: WebServer, paths: list[str]) -> dict[str, int]:
    found = {}
    await web.start_server()
    host, port = web._runner.addresses[0]
    async with aiohttp.ClientSession(f"http://{host}:{port}") as client:
        for path in paths:
            async with client.get(path) as answer:
                found[path] = answer.status
    await web.stop_server()
    return found


def test_it_serves_its_own_pages_and_none_of_fausts() -> None:
    web = server(free_port(), any_port=False)
    paths = ["/router/", "/table/", "/graph/", "/stats/", *PAGES]
    codes = asyncio.run(status_codes(web, paths))
    assert codes == {path: PAGES.get(path, 404) for path in paths}
    served = {route.resource.canonical for route in web.web_app.router.routes() if route.resource}
    others = ("/connectors", "/connector-plugins", "/admin/loggers", "/debezium/", "/page/")
    assert {path for path in served if not path.startswith(others)} == {"/", *PAGES}


def test_a_stop_does_not_wait_for_a_request_that_never_comes() -> None:
    async def stop_during(request: bytes) -> None:
        web = server(free_port(), any_port=False)
        await web.start_server()
        reader, writer = await asyncio.open_connection(*web._runner.addresses[0])
        writer.write(request)
        await writer.drain()
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n", "it waits for the body"
        async with asyncio.timeout(50):  # aiohttp itself waits for two minutes
            await web.stop_server()
        writer.close()

    path = f"/connectors/{PROPERTIES['name']}/signals".encode()
    head = b"POST " + path + b" HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\nExpect: 100-continue\r\n\r\n"
    asyncio.run(stop_during(head))


HALF = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n"


def test_connections_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each takes an open file, of which the connectors need some, too."""
    monkeypatch.setattr("rowtide.connector.worker.web.server._MOST_CONNECTIONS", 3)

    async def connect() -> None:
        web = server(free_port(), any_port=False)
        await web.start_server()
        address = web._runner.addresses[0]
        kept = [await asyncio.open_connection(*address) for _ in range(3)]
        for _, writer in kept:
            writer.write(HALF)
        refused, left = await asyncio.open_connection(*address)
        with contextlib.suppress(ConnectionError):
            assert await refused.read() == b""
        for reader, writer in kept:
            writer.write(b"\r\n")
            assert (await reader.readline()).startswith(b"HTTP/1.1 200"), "those before are served"
        for _, writer in [*kept, (refused, left)]:
            writer.close()
        await web.stop_server()

    asyncio.run(connect())


BODY = (
    f"POST /connectors/{PROPERTIES['name']}/signals HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\n".encode()
)


@pytest.mark.parametrize(("sent", "answer"), [(b"", b""), (HALF, b""), (BODY, b"HTTP/1.1 408 Request Timeout\r\n")])
def test_a_request_that_does_not_come_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, sent: bytes, answer: bytes
) -> None:
    monkeypatch.setattr("rowtide.connector.worker.web.server._SILENT_S", 0.1)

    async def connect() -> bytes:
        web = server(free_port(), any_port=False)
        await web.start_server()
        reader, writer = await asyncio.open_connection(*web._runner.addresses[0])
        writer.write(sent)
        line = await asyncio.wait_for(reader.readline(), 60)
        writer.close()
        await web.stop_server()
        return line

    assert asyncio.run(connect()) == answer


def test_an_answer_that_is_not_taken_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rowtide.connector.worker.web.server._SILENT_S", 0.1)
    monkeypatch.setattr("rowtide.connector.worker.web.metrics.render", lambda _statuses: "x" * (64 << 20))

    async def connect() -> None:
        web = server(free_port(), any_port=False)
        await web.start_server()
        _, writer = await asyncio.open_connection(*web._runner.addresses[0], limit=1)
        writer.write(b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        async with asyncio.timeout(60):
            while not web._runner.server or not web._runner.server.connections:
                await asyncio.sleep(0.01)
            while web._runner.server.connections:
                await asyncio.sleep(0.01)
        writer.close()
        await web.stop_server()

    asyncio.run(connect())


def test_a_worker_without_connectors_is_healthy() -> None:
    """One of a fleet may have none yet, and a directory may be empty."""
    app = create_app(from_properties(PROPERTIES), web=WebSettings.choose(port=free_port()))
    app.connectors.services.clear()
    app.finalize()
    web = app.web
    assert isinstance(web, WebServer)
    paths = ["/health", "/health/live", "/health/ready", "/metrics"]
    assert set(asyncio.run(status_codes(web, paths)).values()) == {200}


def test_probes_do_not_wait_for_the_database(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lag in bytes is a query, which takes up to two seconds; a probe often has one."""

    def query(*_given: object, **_more: object) -> int:
        raise AssertionError("a probe waits for the database")

    monkeypatch.setattr(BinlogEnd, "look", query)
    app = create_app(from_properties(PROPERTIES), web=WebSettings.choose(port=free_port()))
    app.finalize()
    reader = SimpleNamespace(status=ReaderStatus(connected=True))
    monkeypatch.setattr(next(iter(app.connectors.services.values())).connector.current, "reader", reader)
    web = app.web
    assert isinstance(web, WebServer)
    assert asyncio.run(status_codes(web, ["/health/live", "/health/ready"])) == {
        "/health/live": 200,
        "/health/ready": 503,
    }
    with pytest.raises(AssertionError, match="a probe waits"):
        asyncio.run(next(iter(app.connectors.services.values())).status())


def test_a_free_port_is_taken_if_none_was_chosen(busy: int, caplog: pytest.LogCaptureFixture) -> None:
    web = server(busy, any_port=True)
    with caplog.at_level(logging.INFO):
        assert asyncio.run(status_codes(web, ["/health"])) == {"/health": 200}
    (warning, address) = [record.getMessage() for record in caplog.records if record.name.startswith("rowtide")]
    start, _, port = warning.rpartition(" ")
    assert start == f"port {busy} is in use: the web server listens on port"
    assert int(port) != busy
    assert address == f"the state of the connector is at http://127.0.0.1:{port}/health"


def test_a_chosen_port_that_is_in_use_is_an_error(busy: int) -> None:
    with pytest.raises(OSError, match="address already in use"):
        asyncio.run(status_codes(server(busy, any_port=False), []))


def test_another_error_than_a_port_in_use_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEB_BIND", "192.0.2.1")  # an address of no interface
    with pytest.raises(OSError, match="assign requested address"):
        asyncio.run(status_codes(server(free_port(), any_port=True), []))


def test_a_port_of_the_environment_is_a_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    assert create_app(from_properties(PROPERTIES)).web_settings.address.any_port
    assert not WebSettings.choose(port=7000).address.any_port
    monkeypatch.setenv("WEB_PORT", "7000")
    app = create_app(from_properties(PROPERTIES))
    app.finalize()
    assert (app.web_settings.address.any_port, app.conf.web_port) == (False, 7000)


def test_options_override_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEB_PORT", "7001")
    monkeypatch.setenv("WEB_BIND", "0.0.0.0")
    app = create_app(from_properties(PROPERTIES), web=WebSettings.choose("127.0.0.1", 7000))
    app.finalize()
    assert (app.conf.web_bind, app.conf.web_port) == ("127.0.0.1", 7000)


def test_the_token_is_that_of_the_option_or_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert WebSettings.choose().token is None
    monkeypatch.setenv("WEB_TOKEN", "from the environment")
    assert WebSettings.choose().token == "from the environment"
    assert WebSettings.choose(token="given").token == "given"
    monkeypatch.setenv("WEB_TOKEN", "")
    assert WebSettings.choose().token is None


def test_the_service_named_web_of_kubernetes_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEB_PORT", "tcp://10.0.0.1:80")
    app = create_app(from_properties(PROPERTIES))
    app.finalize()
    assert (app.conf.web_port, app.web_settings.address.any_port) == (6066, True)


def test_the_log_says_that_it_listens_on_all_interfaces(caplog: pytest.LogCaptureFixture) -> None:
    port = free_port()
    app = create_app(from_properties(PROPERTIES), web=WebSettings.choose("0.0.0.0", port))
    app.finalize()
    web = app.web
    assert isinstance(web, WebServer)
    with caplog.at_level("INFO", "rowtide"):
        assert asyncio.run(status_codes(web, ["/health/live"])) == {"/health/live": 200}
    assert f"http://127.0.0.1:{port}/health, and at every other address of this machine" in caplog.text


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("127.0.0.1", "http://127.0.0.1:80"),
        ("0.0.0.0", "http://127.0.0.1:80"),
        ("::", "http://[::1]:80"),
        ("fd00::7", "http://[fd00::7]:80"),
    ],
)
def test_the_address_that_is_logged_can_be_opened(host: str, address: str) -> None:
    assert url(host, 80) == address
