"""``rowtide mirror``: its options, and its pages."""

import contextlib
import errno
import json
import signal
import socket
import struct
import threading
import urllib.error
import urllib.request
from http import HTTPStatus
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from rowtide.cli import main, metrics_server
from rowtide.cli.binlog.mirror import SizeText
from rowtide.cli.binlog.mirror_web import PAGES, Page, served
from rowtide.connector.source.mirror.mirror import Mirror, MirrorStatus


@pytest.mark.parametrize(
    ("text", "size"),
    [("10", 10), ("3K", 3072), ("500M", 500 << 20), ("2g", 2 << 30), ("1 TiB", 1 << 40), ("5MB", 5 << 20)],
)
def test_sizes(text: str, size: int) -> None:
    assert SizeText().convert(text, None, None) == size


@pytest.mark.parametrize("text", ["", "G", "-1", "1.5G", "10 apples"])
def test_what_is_not_a_size(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is not a size such as 500M or 200G"):
        SizeText().convert(text, None, None)


def test_a_server_that_is_not_there_ends_nothing_but_a_wrong_configuration_does(tmp_path: Path) -> None:
    config = tmp_path / "c.properties"
    config.write_text("database.flavor=mysql\ndatabase.user=u\n")
    result = CliRunner().invoke(main, ["mirror", str(config), "--to", str(tmp_path / "m")])
    assert result.exit_code == 1
    assert "database.hostname" in result.output


def get(port: int, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=20) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_the_pages_show_the_status() -> None:
    status = MirrorStatus(error="no connection")
    with served(status, "127.0.0.1", 0) as port:
        code, text = get(port, "/health")
        assert code == 503
        assert json.loads(text)["error"] == "no connection"
        status.connected, status.error = True, None
        status.file, status.pos, status.copied_bytes = "binlog.000042", 1234, 99
        code, text = get(port, "/health?x")
        assert code == 200
        assert json.loads(text)["position"] == {"file": "binlog.000042", "pos": 1234}
        code, text = get(port, "/metrics")
        assert code == 200
        for line in ("connected{} 1", "file_number{} 42", "position_bytes{} 1234", "copied_bytes_total{} 99"):
            assert f"rowtide_mirror_{line}\n" in text
        assert get(port, "/other")[0] == 404


def test_a_client_that_goes_away_leaves_nothing_in_the_log(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """Such as a probe of an orchestrator whose time is up."""
    asked, gone = threading.Event(), threading.Event()

    def page(_: MirrorStatus) -> Page:
        asked.set()
        assert gone.wait(20)
        return HTTPStatus.OK, "text/plain", "x" * 10_000_000

    monkeypatch.setitem(PAGES, "/slow", page)
    with served(MirrorStatus(), "127.0.0.1", 0) as port:
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # ends with a reset
            client.sendall(b"GET /slow HTTP/1.0\r\n\r\n")
            assert asked.wait(20)
        threads = [thread for thread in threading.enumerate() if "process_request_thread" in thread.name]
        gone.set()
        for thread in threads:
            thread.join(20)
        assert threads
    assert (capfd.readouterr().err, caplog.messages) == ("", [])


def half_request(port: int) -> socket.socket:
    client = socket.create_connection(("127.0.0.1", port), 60)
    client.sendall(b"GET /health HTTP/1.0\r\n")
    return client


def test_connections_to_the_pages_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each takes a thread and an open file, which the mirror needs, too."""
    monkeypatch.setattr(metrics_server, "_MOST_CONNECTIONS", 2)
    with served(MirrorStatus(), "127.0.0.1", 0) as port:
        kept = [half_request(port) for _ in range(2)]
        with half_request(port) as refused, contextlib.suppress(ConnectionError):
            assert refused.recv(1) == b""
        for client in kept:
            client.sendall(b"\r\n")
            assert client.recv(12) == b"HTTP/1.0 503"
            client.close()


def test_a_request_that_does_not_come_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_server, "_LONGEST_S", 0.1)
    with served(MirrorStatus(), "127.0.0.1", 0) as port, half_request(port) as client:
        assert client.recv(1) == b""


def test_what_ends_a_part_of_a_mirror_ends_it_with_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise MemoryError

    def run(running: Mirror) -> None:
        threading.Thread(target=fail).start()
        assert running._stop.wait(60), "it is told to stop"

    config = tmp_path / "c.properties"
    config.write_text("database.flavor=mysql\ndatabase.user=u\ndatabase.hostname=127.0.0.1\n")
    monkeypatch.setattr(Mirror, "run", run)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    result = CliRunner().invoke(main, ["mirror", str(config), "--to", str(tmp_path / "m")])
    assert result.exit_code == 1
    assert "no memory is left" in result.output


def test_an_error_of_the_disk_is_not_one_of_the_web_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(_running: Mirror) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "/archive/binlog.000001")

    config = tmp_path / "c.properties"
    config.write_text("database.flavor=mysql\ndatabase.user=u\ndatabase.hostname=127.0.0.1\n")
    monkeypatch.setattr(Mirror, "run", run)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    result = CliRunner().invoke(main, ["mirror", str(config), "--to", str(tmp_path / "m")])
    assert result.exit_code == 1
    assert "/archive/binlog.000001: no space is left on the disk" in result.output
    assert "listen" not in result.output
