"""Records by HTTP: what is sent again, what is final; against a real server on the loopback interface."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from rowtide.connector.delivery.errors import DeliveryError, DeliveryInterrupted
from rowtide.connector.delivery.sinks import HttpSink, Record
from rowtide.connector.delivery.sinks import http as http_sink


class Server(ThreadingHTTPServer):
    """Answers with the given codes in turn, then 200; keeps what it took."""

    daemon_threads = True

    def __init__(self, *codes: int) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.codes = list(codes)
        self.taken: list[list[Any]] = []
        self.headers: list[dict[str, str]] = []
        self.asked = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/in?token=geheim"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        code = self.server.codes.pop(0) if self.server.codes else 200
        self.server.asked.set()
        if code == 200:
            self.server.taken.append([json.loads(line)["key"] for line in body.splitlines()])
            self.server.headers.append(dict(self.headers))
        self.send_response(code)
        if code in (301, 302, 307):
            self.send_header("Location", "/elsewhere")
        if code == 503:
            self.send_header("Retry-After", "9" * 30)
        self.end_headers()

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_arguments: object) -> None:
        """Print nothing."""


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with Server(*getattr(request, "param", ())) as made:
        threading.Thread(target=made.serve_forever, args=(0.01,), daemon=True).start()
        yield made
        made.shutdown()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_sink, "_FIRST_RETRY_S", 0.001)
    monkeypatch.setattr(http_sink, "_LONGEST_RETRY_AFTER_S", 0.002)


def records(count: int) -> list[Record]:
    return [Record("t", b"%d" % number, b"{}", ()) for number in range(count)]


def test_records_come_in_order_in_requests_of_limited_size(server: Server) -> None:
    sink = HttpSink(server.url, {"Authorization": "Bearer x"}, batch_size=2)
    sink.write(records(5))
    sink.flush()
    assert server.taken == [[0, 1], [2, 3], [4]]
    assert server.headers[0]["Authorization"] == "Bearer x"
    assert server.headers[0]["Content-Type"] == "application/x-ndjson"


@pytest.mark.parametrize("server", [(503, 429, 500)], indirect=True)
def test_what_may_pass_is_sent_again(server: Server) -> None:
    HttpSink(server.url).write(records(1))
    assert server.taken == [[0]]
    assert server.codes == []


@pytest.mark.parametrize("server", [(400,), (401,), (404,), (301,), (302,), (307,)], indirect=True)
def test_a_refusal_and_a_redirection_are_final(server: Server) -> None:
    with pytest.raises(
        DeliveryError, match=r"http://127\.0\.0\.1:\d+/in refuses records: (400|401|404|301|302|307)"
    ) as told:
        HttpSink(server.url).write(records(1))
    assert "geheim" not in str(told.value)
    assert server.taken == []


def test_a_server_that_is_away_is_tried_until_the_sink_is_closed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    sink = HttpSink(f"http://127.0.0.1:{port}/")
    failed: list[BaseException] = []

    def write() -> None:
        try:
            sink.write(records(1))
        except DeliveryError as error:
            failed.append(error)

    thread = threading.Thread(target=write)
    thread.start()
    sink.close()
    thread.join(20)
    assert not thread.is_alive()
    assert isinstance(failed[0], DeliveryInterrupted)


def test_only_http_is_taken() -> None:
    with pytest.raises(ValueError, match="not an http or https URL"):
        HttpSink("file:///etc/passwd")
