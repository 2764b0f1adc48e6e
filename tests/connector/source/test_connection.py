"""Connections to servers that are silent, close the connection, or attack the log-in."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import pymysql
import pytest

from rowtide.connector.config import from_properties
from rowtide.connector.config.model.database import DatabaseConfig
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.rows.text_protocol_rows import result_text_reader
from rowtide.connector.source.binlog_stream import BinlogStream, StreamBroken, StreamRefused
from rowtide.connector.source.connection import DatabaseUnreachableError, connect, log_in
from rowtide.connector.source.connection import client as client_module
from rowtide.connector.source.connection.open_connections import OpenConnections
from rowtide.connector.source.connection.result_set import result_rows
from tests.support.configurations import PROPERTIES
from tests.support.mysql.fake_server import SHUTDOWN, SYNTAX_ERROR, FakeMySQL, Peer

pytestmark = pytest.mark.timeout(60)

PASSWORD = PROPERTIES["database.password"].encode()


def configured(server: FakeMySQL, **more: str) -> DatabaseConfig:
    properties = {
        **PROPERTIES,
        "database.port": str(server.port),
        "connect.timeout.ms": "1000",
        **{name.replace("_", "."): value for name, value in more.items()},
    }
    return from_properties(properties).database


def silent(_peer: Peer) -> None:
    """Accept the connection, and send nothing."""
    threading.Event().wait()


def silent_after_login(peer: Peer) -> None:
    peer.greet()
    peer.read()
    threading.Event().wait()


def closes_in_tls_handshake(peer: Peer) -> None:
    peer.greet(tls=True)
    peer.read()


def closes_at_once(_peer: Peer) -> None:
    """Accept the connection, and close it."""


@pytest.mark.parametrize(
    ("serve", "mode"),
    [
        *product((silent, closes_at_once, closes_in_tls_handshake), ("disabled", "preferred", "required")),
        *product((silent_after_login,), ("disabled", "preferred")),
    ],
)
def test_a_server_that_does_not_answer_can_be_retried(serve: Callable[[Peer], None], mode: str) -> None:
    """A server closes the connection within the TLS handshake when it is restarted at that moment."""
    with FakeMySQL(serve) as server:
        config = configured(server, database_ssl_mode=mode)
        with pytest.raises(DatabaseUnreachableError, match=f"127.0.0.1:{server.port}") as caught:
            log_in(config)
        assert caught.value.retriable
        assert caught.value.problem.property == "database.hostname"
        assert "cannot be reached" in caught.value.problem.message
        with pytest.raises(StreamBroken, match=f"127.0.0.1:{server.port}"):
            next(BinlogStream(config, SourceOffset("b.1", 4), mariadb=False).events())


def test_a_port_of_another_program_is_not_waited_for_as_long_as_a_log_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "_GREETING_S", 0.2)
    late = pytest.raises(DatabaseUnreachableError, match="no greeting came within 0 s: another program may use")
    with FakeMySQL(silent) as server, late:
        log_in(configured(server, connect_timeout_ms="60000"))


@pytest.mark.parametrize("mode", ["required", "verify_ca", "verify_identity"])
def test_a_server_without_tls_is_refused_before_the_log_in(mode: str) -> None:
    with FakeMySQL(Peer.log_in) as server:
        config = configured(server, database_ssl_mode=mode)
        with pytest.raises(DatabaseUnreachableError, match=r"database\.ssl\.mode") as caught:
            log_in(config)
        assert not caught.value.retriable
        with pytest.raises(StreamRefused, match=r"database\.ssl\.mode"):
            next(BinlogStream(config, SourceOffset("b.1", 4), mariadb=False).events())
        assert [peer.received for peer in server.peers] in ([[], []], [[b""], [b""]])


def test_a_connection_in_plain_text_is_never_used_where_tls_is_required(monkeypatch: pytest.MonkeyPatch) -> None:
    """Older versions of PyMySQL continue in plain text."""

    def in_plain_text(self: pymysql.connections.Connection[pymysql.cursors.Cursor]) -> None:
        self.write_packet(b"user")  # type: ignore[attr-defined]
        self._read_ok_packet()  # type: ignore[attr-defined]

    monkeypatch.setattr(pymysql.connections.Connection, "_request_authentication", in_plain_text)

    def serve(peer: Peer) -> None:
        peer.log_in()
        peer.answer()

    with FakeMySQL(serve) as server:
        for mode in ("required", "verify_ca", "verify_identity"):
            with pytest.raises(DatabaseUnreachableError, match="is not encrypted") as caught:
                log_in(configured(server, database_ssl_mode=mode))
            assert not caught.value.retriable
        log_in(configured(server, database_ssl_mode="disabled")).close()
        log_in(configured(server, database_ssl_mode="preferred")).close()


@pytest.mark.parametrize("packet", [b"", b"\x07binlog", bytes(19)])
def test_a_packet_that_is_not_an_event_breaks_the_stream(packet: bytes) -> None:
    def serve(peer: Peer) -> None:
        peer.log_in()
        peer.answer()  # until COM_REGISTER_SLAVE
        peer.send(b"\x00\x00\x00\x02\x00\x00\x00")
        peer.read()
        peer.send(packet)
        peer.read()

    with FakeMySQL(serve) as server:
        stream = BinlogStream(configured(server, database_ssl_mode="disabled"), SourceOffset("b.1", 4), mariadb=False)
        with pytest.raises(StreamBroken, match=f"begins with {packet[:8].hex()}, which is not an event"):
            next(stream.events())


_NO_VERSION = b"\x0a\x00" + bytes(60)


@pytest.mark.parametrize("greeting", [b"", b"\x0a", _NO_VERSION])
def test_a_greeting_that_cannot_be_parsed_is_a_lost_connection(greeting: bytes) -> None:
    """PyMySQL raises IndexError, struct.error and others."""
    with FakeMySQL(lambda peer: peer.send(greeting)) as server:
        with pytest.raises(DatabaseUnreachableError, match="sent a packet that cannot be parsed") as caught:
            log_in(configured(server, database_ssl_mode="disabled"))
        assert caught.value.retriable


@pytest.mark.parametrize("answer", [b"\xfc", b"\xfe", b"\xfb/etc/passwd"])
def test_an_answer_that_cannot_be_parsed_is_a_lost_connection(answer: bytes) -> None:
    """The last answer requests a file of the client's host."""

    def serve(peer: Peer) -> None:
        peer.log_in()
        peer.answer(lambda statement: answer if statement == "SELECT 1" else b"")

    with FakeMySQL(serve) as server:
        client = log_in(configured(server, database_ssl_mode="disabled"))
        with pytest.raises(DatabaseUnreachableError) as caught:
            client.fetch("SELECT 1")
        assert caught.value.retriable
        with pytest.raises(DatabaseUnreachableError):
            client.fetch("SELECT 2")


@pytest.mark.parametrize("plugin", ["mysql_clear_password", "dialog", "mysql_old_password"])
@pytest.mark.parametrize("mode", ["disabled", "preferred"])
def test_the_password_is_not_sent_in_a_readable_form(mode: str, plugin: str) -> None:
    def serve(peer: Peer) -> None:
        peer.greet()
        peer.read()
        peer.send(b"\xfe" + plugin.encode() + b"\x00\x02Password: ")
        peer.read()

    with FakeMySQL(serve) as server:
        config = configured(server, database_ssl_mode=mode)
        with pytest.raises(DatabaseUnreachableError, match=f"clear text or nearly so .{plugin}") as caught:
            log_in(config)
        assert "verify_identity" in str(caught.value)
        assert not caught.value.retriable
        with pytest.raises(StreamRefused, match="clear text"):
            next(BinlogStream(config, SourceOffset("b.1", 4), mariadb=False).events())
        for peer in server.peers:
            assert not any(PASSWORD in packet for packet in peer.received)


def serving(answer: Callable[[str], bytes | None]) -> Callable[[Peer], None]:
    def serve(peer: Peer) -> None:
        peer.log_in()
        peer.answer(answer)

    return serve


@pytest.mark.parametrize("statement", ["SET NAMES", "SET SESSION time_zone", "SELECT initial", "DO 1"])
@pytest.mark.parametrize("end", [None, SHUTDOWN])
def test_a_connection_lost_at_any_statement_can_be_retried(statement: str, end: bytes | None) -> None:
    with FakeMySQL(serving(lambda sql: end if sql.startswith(statement) else b"")) as server:
        more = {"database_connectionTimeZone": "UTC", "database_initial_statements": "SELECT initial"}
        with pytest.raises(DatabaseUnreachableError) as caught:
            connect(configured(server, **more)).fetch("DO 1")
        assert caught.value.retriable
        assert f"127.0.0.1:{server.port}" in str(caught.value)


def test_a_refused_statement_keeps_the_connection() -> None:
    with FakeMySQL(serving(lambda sql: SYNTAX_ERROR if sql == "NONSENSE" else b"")) as server:
        client = connect(configured(server))
        with pytest.raises(pymysql.MySQLError):
            client.fetch("NONSENSE")
        assert client.fetch("DO 1") == []
        client.abort()
        with pytest.raises(DatabaseUnreachableError):
            client.fetch("DO 1")


def test_a_query_waits_as_long_as_the_server_accepts_log_ins() -> None:
    """A query is silent for longer than ``connect.timeout.ms``, and further log-ins succeed."""
    others = threading.Event()

    def answer(sql: str) -> bytes:
        if sql == "DO SLEEP(1)":
            assert others.wait(30)
        return b""

    def serve(peer: Peer) -> None:
        if len(server.peers) == 3:
            others.set()
        peer.log_in()
        peer.answer(answer)

    with FakeMySQL(serve) as server:
        assert connect(configured(server)).fetch("DO SLEEP(1)") == []
        assert len(server.peers) >= 3


@pytest.mark.parametrize("more", [silent, closes_at_once])
def test_a_query_ends_when_the_server_hangs(more: Callable[[Peer], None]) -> None:
    """Long before ``database.query.timeout.ms``, which is ten minutes."""

    def answer(sql: str) -> bytes:
        if sql == "DO 1":
            threading.Event().wait()
        return b""

    def serve(peer: Peer) -> None:
        if len(server.peers) > 1:
            more(peer)
        else:
            serving(answer)(peer)

    with FakeMySQL(serve) as server:
        with pytest.raises(DatabaseUnreachableError, match="a new connection cannot log in") as caught:
            connect(configured(server)).fetch("DO 1")
        assert caught.value.retriable


def test_a_query_is_limited() -> None:
    def answer(sql: str) -> bytes:
        if sql == "DO 1":
            threading.Event().wait()
        return b""

    with FakeMySQL(serving(answer)) as server:
        config = configured(server, database_query_timeout_ms="500")
        with pytest.raises(DatabaseUnreachableError, match=r"database\.query\.timeout\.ms"):
            connect(config).fetch("DO 1")


def test_an_error_without_a_number_in_the_middle_of_rows_is_a_lost_connection() -> None:
    column = b"\x03def\x00\x00\x00\x01c\x01c\x0c\x2d\x00\x04\x00\x00\x00\x03\x00\x00\x00\x00\x00"

    def serve(peer: Peer) -> None:
        peer.log_in()
        peer.answer(lambda sql: None if sql.startswith("SELECT c") else b"")
        for packet in (b"\x01", column, b"\xfe\x00\x00\x02\x00", b"\xff\x15"):
            peer.send(packet)
        peer.read()

    with FakeMySQL(serve) as server:
        client = log_in(configured(server, database_ssl_mode="disabled"))
        with pytest.raises((DatabaseUnreachableError, pymysql.MySQLError), match="cannot be parsed"):
            list(result_rows(client, "SELECT c FROM t", lambda names: result_text_reader([], [], names)))


@pytest.fixture
def unresponsive() -> Iterator[int]:
    """The port of a server that accepts no connections: its queue of new ones is full."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener, socket.socket() as first:
        first.connect(listener.getsockname())
        yield listener.getsockname()[1]


def test_a_connection_that_is_not_accepted(unresponsive: int) -> None:
    config = from_properties(PROPERTIES | {"database.port": str(unresponsive), "connect.timeout.ms": "1000"}).database
    with pytest.raises(DatabaseUnreachableError, match=r"cannot be reached: Can't connect .*timed out") as caught:
        log_in(config)
    assert caught.value.retriable


@pytest.mark.parametrize("name", ["db..example.com", f"{'x' * 64}.example.com"])
def test_a_name_that_no_host_can_have(name: str) -> None:
    with pytest.raises(DatabaseUnreachableError, match=rf"cannot be reached: .*{name} is not a host name"):
        log_in(from_properties(PROPERTIES | {"database.hostname": name}).database)


def interrupted_attempt(config: DatabaseConfig, connections: OpenConnections, waits: threading.Event) -> list[bool]:
    """Log in, and interrupt that when it waits; returns whether the failure is retriable, nothing without one."""
    failures: list[DatabaseUnreachableError] = []

    def attempt() -> None:
        with connections, pytest.raises(DatabaseUnreachableError) as caught:
            log_in(config)
        failures.append(caught.value)

    thread = threading.Thread(target=attempt, daemon=True)
    thread.start()
    assert waits.wait(30)
    connections.interrupt()
    thread.join(30)
    return [error.retriable for error in failures]


@pytest.mark.parametrize("before", [True, False])
def test_connecting_is_interrupted(unresponsive: int, monkeypatch: pytest.MonkeyPatch, *, before: bool) -> None:
    """At every moment: before the socket connects, and while the server does not answer."""
    config = from_properties(PROPERTIES | {"database.port": str(unresponsive), "connect.timeout.ms": "600000"}).database
    connections, connecting = OpenConnections(), threading.Event()

    class Socket(socket.socket):
        def connect(self, address: Any) -> None:
            if before:
                connections.interrupt()
            try:
                super().connect(address)
            finally:
                connecting.set()

    monkeypatch.setattr(socket, "socket", Socket)
    assert interrupted_attempt(config, connections, connecting) == [True]


def test_the_look_up_of_a_name_is_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A resolver asks a server that does not answer again and again, for tens of seconds."""
    config = from_properties(PROPERTIES | {"database.hostname": "db.example.com"}).database
    connections, asked, answer = OpenConnections(), threading.Event(), threading.Event()

    def unanswered(*_: Any) -> list[Any]:
        asked.set()
        answer.wait()
        return []

    monkeypatch.setattr(socket, "getaddrinfo", unanswered)
    found = interrupted_attempt(config, connections, asked)
    answer.set()
    assert found == [True]


def test_a_query_is_interrupted() -> None:
    """Also one that is begun afterwards, by a thread that tries again."""
    runs, ended = threading.Event(), threading.Event()

    def answer(sql: str) -> bytes:
        if sql == "DO SLEEP(1)":
            runs.set()
            ended.wait(60)
        return b""

    failures: list[BaseException] = []
    connections = OpenConnections()

    def query(server: FakeMySQL) -> None:
        with connections:
            for _ in range(2):
                try:
                    connect(configured(server, connect_timeout_ms="60000")).fetch("DO SLEEP(1)")
                except DatabaseUnreachableError as error:
                    failures.append(error)

    with FakeMySQL(serving(answer)) as server:
        thread = threading.Thread(target=query, args=(server,))
        thread.start()
        assert runs.wait(30)
        (session,) = connections.interrupt()
        thread.join(30)
        assert not thread.is_alive()
        ended.set()
        assert [error.retriable for error in failures if isinstance(error, DatabaseUnreachableError)] == [True, True]
        assert len(server.peers) == 1
        assert session.config.port == server.port
        assert connect(configured(server)).fetch("DO 1") == [], "outside of the block, connections are opened"
