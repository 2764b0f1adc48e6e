"""A schema registry that fails in every way while tables change: no record is lost, doubled or unreadable."""

from __future__ import annotations

import random
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from tests.connector.worker.test_schema_registry import in_avro, received
from tests.support.kafka.topic_tools import Topics
from tests.support.processes.worker_process import Worker, WorkerConfig, eventually

if TYPE_CHECKING:
    from rowtide_stack import Database, Registry

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(1200)]

SEED = 20261129
FAULTS: dict[str, tuple[int, bytes] | None] = {
    "killed": None,
    "overloaded": (503, b""),
    "full": (500, b'{"error_code": 50001, "message": "No space left on device"}'),
    "a proxy in its place": (502, b"<html>Bad Gateway</html>"),
    "wrong": (200, b'{"error_code": 0}'),
    "no JSON": (200, b"It works!"),
}
"""The answers of a registry, or none: the connection is closed."""


class FaultyProxy(ThreadingHTTPServer):
    """Forwards requests to a registry, slowly or not at all, or answers in its place.

    Args:
        registry: the URL of the registry.

    Attributes:
        fault: the name of the present fault; ``None`` to forward.
        delay_s: how long each answer takes.
        faults: how many requests met a fault, by its name.
    """

    daemon_threads = True

    def __init__(self, registry: str) -> None:
        super().__init__(("127.0.0.1", 0), _Forwarding)
        self.registry = registry
        self.fault: str | None = None
        self.delay_s = 0.0
        self.faults: Counter[str] = Counter()
        self._thread = threading.Thread(target=self.serve_forever)
        self._thread.start()

    @property
    def url(self) -> str:
        """The URL of the proxy."""
        return f"http://127.0.0.1:{self.server_port}"

    def close(self) -> None:
        """Stop."""
        self.shutdown()
        self.server_close()
        self._thread.join()


class _Forwarding(BaseHTTPRequestHandler):
    server: FaultyProxy

    def do_GET(self) -> None:
        self._forward(None)

    def do_POST(self) -> None:
        self._forward(self.rfile.read(int(self.headers["Content-Length"])))

    def _forward(self, body: bytes | None) -> None:
        server, fault = self.server, self.server.fault
        time.sleep(server.delay_s)
        if fault is not None:
            server.faults[fault] += 1
            answer = FAULTS[fault]
            if answer is not None:
                self._answer(*answer)
            self.close_connection = True
            return
        headers = {name: text for name, text in self.headers.items() if name.lower() in ("content-type", "accept")}
        request = urllib.request.Request(server.registry + self.path, body, headers, method=self.command)
        try:
            with urllib.request.urlopen(request, timeout=30) as found:
                self._answer(found.status, found.read())
        except urllib.error.HTTPError as error:
            self._answer(error.code, error.read())

    def _answer(self, status: int, body: bytes) -> None:
        with suppress(OSError):  # the connector has not waited
            self._send(status, body)

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_args: object) -> None:
        """Print nothing."""


@pytest.fixture
def proxy(registry: Registry) -> Iterator[FaultyProxy]:
    made = FaultyProxy(registry.url)
    yield made
    made.close()


def change(database: Database, stop: threading.Event) -> int:
    """Insert rows, and change the structure often, so that schemas are registered all the time."""
    number = 0
    while not stop.is_set():
        number += 1
        if number % 5 == 0:
            database.execute(f"ALTER TABLE t ADD COLUMN c{number} INT DEFAULT {number}")
        database.execute(f"INSERT INTO t (id) VALUES ({number})")
        time.sleep(0.05)
    return number


def misbehave(proxy: FaultyProxy, chance: random.Random) -> None:
    """Let the registry have a fault for some time, in which it may be slow, too."""
    proxy.delay_s = chance.choice([0.0, 0.0, 1.0])
    proxy.fault = chance.choice(list(FAULTS))
    time.sleep(chance.uniform(0.5, 4.0))
    proxy.fault = None
    time.sleep(chance.uniform(0.5, 2.0))


def test_no_record_is_lost_or_doubled(
    mysql_db: Database,
    topics: Topics,
    registry: Registry,
    proxy: FaultyProxy,
    configured: Callable[..., WorkerConfig],
) -> None:
    chance = random.Random(SEED)
    mysql_db.execute("CREATE TABLE t (id INT PRIMARY KEY)")
    more: dict[str, Any] = {"value_converter_http_read_timeout_ms": "500", "key_converter_http_read_timeout_ms": "500"}
    config = configured(exactly_once=True, **in_avro(proxy.url, **more))
    topic = config.topic(f"{mysql_db.name}.t")
    stop, written = threading.Event(), list[int]()
    writer = threading.Thread(target=lambda: written.append(change(mysql_db, stop)))
    with ExitStack() as stack:
        worker = stack.enter_context(Worker(config)).streaming()
        writer.start()
        try:
            for _ in range(25):
                misbehave(proxy, chance)
                if not worker.running:  # as a supervisor does
                    worker = stack.enter_context(Worker(config))
        finally:
            proxy.fault, proxy.delay_s = None, 0.0
            stop.set()
            writer.join()
        if not worker.running:
            worker = stack.enter_context(Worker(config))
        eventually(lambda: len(topics.read(topic)) >= written[0], "all records are in Kafka")
        worker.stop()
    assert sum(proxy.faults.values()) > 20
    assert set(proxy.faults) == set(FAULTS)
    records = received(topics, topic, registry.url)
    assert [key["id"] for key, _ in records] == list(range(1, written[0] + 1))
    for key, value in records:
        columns = list(range(5, key["id"] + 1, 5))
        assert value["after"] == {"id": key["id"], **{f"c{number}": number for number in columns}}
