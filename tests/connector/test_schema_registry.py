"""The client of a schema registry: log-in, TLS, several URLs, and the errors of each answer.

A registry with accounts and certificates cannot run here, so a small server gives the answers of Confluent's interface.
"""

from __future__ import annotations

import base64
import json
import pickle
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

import pytest
from rowtide_stack.servers.tls import TlsFiles

from rowtide.connector.config.kafka.clients import ClientSettings
from rowtide.connector.config.model import RegistryConfig
from rowtide.connector.config.secret import Secret
from rowtide.connector.errors import RegistryError, RegistryUnreachable
from rowtide.connector.schema_registry import SchemaRegistry
from rowtide.envelope.avro.differences import DifferenceKind, SchemaDifference

OLD = '{"type":"record","name":"E","fields":[{"name":"a","type":"int"}]}'
NEW = '{"type":"record","name":"E","fields":[{"name":"a","type":"int"},{"name":"b","type":"int"}]}'
GUID = "01234567-89ab-cdef-0123-456789abcdef"


class Answers(ThreadingHTTPServer):
    """A registry that gives prepared answers, and keeps the requests.

    Attributes:
        answers: status and body by the end of the path, given one after the other; the last one is repeated.
        requests: method, path and authorization.
    """

    daemon_threads = True

    def __init__(self, tls: TlsFiles | None = None, *, client: bool = False) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers: dict[str, list[tuple[int, Any]]] = {}
        self.requests: list[tuple[str, str, str | None]] = []
        self.scheme = "http"
        if tls is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(tls.folder / "server.pem", tls.folder / "server.key")
            if client:
                context.load_verify_locations(tls.ca)
                context.verify_mode = ssl.CERT_REQUIRED
            self.socket = context.wrap_socket(self.socket, server_side=True)
            self.scheme = "https"
        self._thread = threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_args: object) -> None:
        self.shutdown()
        self.server_close()
        self._thread.join()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a client that does not trust the certificate."""

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self._answer("GET")

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self._answer("POST")

    def _answer(self, method: str) -> None:
        server = self.server
        assert isinstance(server, Answers)
        path = self.path.partition("?")[0]
        server.requests.append((method, path, self.headers["Authorization"]))
        left = next(found for end, found in server.answers.items() if path.endswith(end))
        status, body = left.pop(0) if len(left) > 1 else left[0]
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_args: object) -> None:
        """Print nothing."""


@pytest.fixture
def server() -> Iterator[Answers]:
    with Answers() as found:
        yield found


@pytest.fixture
def clients() -> Iterator[list[SchemaRegistry]]:
    """The clients of a test, which are closed at its end."""
    found: list[SchemaRegistry] = []
    yield found
    for one in found:
        one.close()


def made(clients: list[SchemaRegistry], *urls: str, **more: Any) -> SchemaRegistry:
    given = {
        "user_info": None, "token": None, "tls": ClientSettings(), "auto_register": True, "latest_version": False,
        "normalize": False, "timeout_s": 2.0, "prefix": "value.converter.", **more,
    }  # fmt: skip
    clients.append(SchemaRegistry(RegistryConfig(urls=urls, **given)))
    return clients[-1]


REGISTERED = [(200, {"id": 7, "guid": GUID, "version": 1, "schema": OLD})]


def test_a_schema_is_registered_once(server: Answers, clients: list[SchemaRegistry]) -> None:
    server.answers["/versions"] = REGISTERED
    registry = made(clients, server.url)
    found = registry.registered("t-value", "AVRO", OLD)
    assert (found.id, found.text, str(found.guid)) == (7, OLD, GUID)
    assert registry.registered("t-value", "AVRO", OLD) is found
    assert [request[:2] for request in server.requests] == [("POST", "/subjects/t-value/versions")]


def test_user_password_and_token_are_sent_and_never_shown(server: Answers, clients: list[SchemaRegistry]) -> None:
    server.answers["/versions"] = REGISTERED
    named = made(clients, server.url, user_info=Secret("me:geheim"))
    other = pickle.loads(pickle.dumps(named))
    clients.append(other)
    other.registered("a-value", "AVRO", OLD)
    made(clients, server.url, token=Secret("tok")).registered("b-value", "AVRO", OLD)
    basic = base64.b64encode(b"me:geheim").decode()
    assert [authorization for _, _, authorization in server.requests] == [f"Basic {basic}", "Bearer tok"]
    server.answers["/versions"] = [(401, {"error_code": 401, "message": "Unauthorized"})]
    with pytest.raises(RegistryError, match="denies access to subject c-value") as caught:
        named.registered("c-value", "AVRO", OLD)
    assert "geheim" not in str(caught.value)


@pytest.mark.parametrize("as_text", [False, True])
def test_tls_with_the_connectors_certificate(tmp_path: Path, clients: list[SchemaRegistry], as_text: bool) -> None:
    files = TlsFiles.make(tmp_path / "tls")
    form = "pem" if as_text else "location"
    paths = {"ssl.ca": files.ca, "ssl.certificate": files.client_certificate, "ssl.key": files.client_key}
    tls = ClientSettings({f"{name}.{form}": path.read_text() if as_text else str(path) for name, path in paths.items()})
    with Answers(files, client=True) as server:
        server.answers["/versions"] = REGISTERED
        assert made(clients, server.url, tls=tls).registered("t-value", "AVRO", OLD).id == 7
        with pytest.raises(RegistryUnreachable, match="cannot be reached"):
            made(clients, server.url).registered("t-value", "AVRO", OLD)
    wrong = ClientSettings({"ssl.ca.location": str(tmp_path / "missing.pem")})
    with pytest.raises(RegistryError, match="TLS cannot be set up"):
        made(clients, "https://127.0.0.1:1", tls=wrong).registered("t-value", "AVRO", OLD)


def test_the_next_url_is_tried_and_a_passing_error_is_retried(server: Answers, clients: list[SchemaRegistry]) -> None:
    server.answers["/versions"] = [(503, {"error_code": 50301, "message": "busy"}), *REGISTERED]
    assert made(clients, "http://127.0.0.1:1", server.url).registered("t-value", "AVRO", OLD).id == 7


@pytest.mark.parametrize(
    ("status", "body", "kind", "message"),
    [
        (503, {"error_code": 50301, "message": "busy"}, RegistryUnreachable, "answers 503: busy"),
        (403, {"error_code": 403, "message": "no"}, RegistryError, "denies access to subject t-value: no"),
        (
            422,
            {"error_code": 42201, "message": "Bad."},
            RegistryError,
            "cannot read the schema of subject t-value: Bad. If",
        ),
        (
            422,
            {"error_code": 42205, "message": "read only"},
            RegistryError,
            r"refuses subject t-value: read only \(422\)",
        ),
        (200, b"<html>", RegistryError, "is not a schema registry: its answers are not those"),
        (200, {}, RegistryError, "is not a schema registry: its answers are not those"),
        (200, [], RegistryError, "is not a schema registry: its answers are not those"),
        (404, b"<html>", RegistryError, "is not a schema registry: it answers 404.*/apis/ccompat/v7"),
        (404, {"error_code": 404, "message": "HTTP 404"}, RegistryError, "Check value.converter.schema.registry.url"),
        (500, b"<html>", RegistryUnreachable, "answers 500"),
    ],
)
def test_each_answer_has_its_error(
    server: Answers, clients: list[SchemaRegistry], status: int, body: Any, kind: type[Exception], message: str
) -> None:
    server.answers["/versions"] = [(status, body)]
    with pytest.raises(kind, match=message) as caught:
        made(clients, server.url).registered("t-value", "AVRO", OLD)
    assert type(caught.value) is kind


def test_a_refusal_names_version_and_field(server: Answers, clients: list[SchemaRegistry]) -> None:
    server.answers["/compatibility/subjects/t-value/versions/latest"] = [(200, {"is_compatible": False})]
    server.answers["/versions/latest"] = [(200, {"subject": "t-value", "id": 1, "version": 3, "schema": OLD})]
    server.answers["/versions"] = [(409, {"error_code": 409, "message": "incompatible"})]
    registry = made(clients, server.url)
    with pytest.raises(RegistryError, match="incompatible with version 3: the field b is new and has no default"):
        registry.registered("t-value", "AVRO", NEW)
    new = SchemaDifference(DifferenceKind.NEW, "version 3: the field b is new and has no default")
    assert registry.incompatibilities("t-value", "AVRO", NEW) == [new]
    assert registry.incompatibilities("t-value", "PROTOBUF", "message E {}") == [SchemaDifference(None, "version 3")]


def test_a_conflict_of_two_requests_is_not_a_refusal(server: Answers, clients: list[SchemaRegistry]) -> None:
    """As after a request that took longer than the connector waited for."""
    server.answers["/compatibility/subjects/t-value/versions/latest"] = [(200, {"is_compatible": True})]
    server.answers["/versions"] = [(409, {"error_code": 409, "message": "An artifact with ID t-value already exists"})]
    registry = made(clients, server.url)
    with pytest.raises(RegistryUnreachable, match=r"answers 409: .* already exists.* another request registers one"):
        registry.registered("t-value", "AVRO", OLD)
    server.answers["/versions"] = REGISTERED
    assert registry.registered("t-value", "AVRO", OLD).id == 7


@pytest.mark.parametrize("body", [b"<html>", {"error_code": 404, "message": "HTTP 404 Not Found"}])
def test_another_server_is_not_taken_for_a_registry_without_the_subject(
    server: Answers, clients: list[SchemaRegistry], body: Any
) -> None:
    registry = made(clients, server.url)
    server.answers["/latest"] = [(404, {"error_code": 40401, "message": "Subject not found"})]
    assert registry.incompatibilities("t-value", "AVRO", NEW) == []
    server.answers["/latest"] = [(404, body)]
    with pytest.raises(RegistryError, match="is not a schema registry"):
        registry.incompatibilities("t-value", "AVRO", NEW)
    server.answers["/latest"] = [(200, {})]
    with pytest.raises(RegistryError, match="is not a schema registry"):
        registry.incompatibilities("t-value", "AVRO", NEW)


def test_without_registration_a_schema_must_be_there(server: Answers, clients: list[SchemaRegistry]) -> None:
    server.answers["/t-value"] = [(404, {"error_code": 40403, "message": "Schema not found"})]
    with pytest.raises(
        RegistryError, match=r"does not have this schema under subject t-value.*auto\.register\.schemas"
    ):
        made(clients, server.url, auto_register=False).registered("t-value", "AVRO", OLD)
    server.answers["/versions/latest"] = [(200, {"subject": "t-value", "id": 1, "version": 3, "schema": OLD})]
    latest = made(clients, server.url, auto_register=False, latest_version=True)
    assert latest.registered("t-value", "AVRO", NEW).text == OLD
