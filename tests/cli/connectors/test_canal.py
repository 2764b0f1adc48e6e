"""``rowtide canal``: what stops it at the start. Its work is tested in ``tests/canal``."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from rowtide_stack.ports import free_port

from rowtide.canal.service import CanalService
from rowtide.cli import main
from rowtide.cli.connectors.canal import _listening
from rowtide.connector.worker import logs


@pytest.fixture(autouse=True)
def _log_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """The log of the process that runs the tests stays as it is."""
    monkeypatch.setattr(logs, "set_up", lambda *_arguments, **_more: None)


def run(folder: Path) -> Result:
    return CliRunner().invoke(main, ["canal", str(folder)])


def test_all_problems_of_the_folder_are_reported(tmp_path: Path) -> None:
    (tmp_path / "canal.properties").write_text("canal.port=no\n")
    (tmp_path / "example").mkdir()
    (tmp_path / "example" / "instance.properties").write_text("canal.instance.dbUsername=canal\n")
    result = run(tmp_path)
    assert result.exit_code == 1
    assert "canal.properties: canal.port: must be an integer" in result.output
    assert "example/instance.properties: canal.instance.master.address: is required" in result.output


def test_the_address_in_the_log_can_be_copied(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    for address in (("::", 11911), ("127.0.0.1", 11111)):
        _listening(address)
    assert caplog.messages == [f"serving Canal's clients at {place}" for place in ("[::]:11911", "127.0.0.1:11111")]


def test_lines_of_the_log_name_the_thread_of_the_destination(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, object] = {}
    monkeypatch.setattr(logs, "set_up", lambda _level, **options: given.update(options))
    run(tmp_path)
    assert given["threads"]


def test_a_port_in_use_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as busy:
        port = busy.getsockname()[1]
        (tmp_path / "canal.properties").write_text(f"canal.port={port}\ncanal.ip=127.0.0.1\n")
        (tmp_path / "example").mkdir()
        (tmp_path / "example" / "instance.properties").write_text(
            "canal.instance.master.address=127.0.0.1:1\ncanal.instance.dbUsername=canal\n"
        )
        result = run(tmp_path)
    assert result.exit_code == 1
    assert f"cannot listen at canal.ip=127.0.0.1 and canal.port={port}: " in result.output


def test_what_ends_a_part_of_it_ends_it_with_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    async def serve(_service: CanalService, stop: asyncio.Event, _listening: object) -> None:
        threading.Thread(target=fail, name="canal-meta-example").start()
        await asyncio.wait_for(stop.wait(), 60)

    monkeypatch.setattr(CanalService, "run", serve)
    (tmp_path / "canal.properties").write_text("")
    (tmp_path / "example").mkdir()
    (tmp_path / "example" / "instance.properties").write_text(
        "canal.instance.master.address=127.0.0.1:1\ncanal.instance.dbUsername=canal\n"
    )
    result = run(tmp_path)
    assert result.exit_code == 1
    assert "too many files are open in this process" in result.output
    assert "in the thread canal-meta-example" in result.output


@pytest.mark.parametrize("limit", [128, 300])
def test_it_survives_more_connections_than_files(tmp_path: Path, limit: int) -> None:
    """Every connection that is closed makes place, and the server then serves others."""
    port = free_port()
    (tmp_path / "canal.properties").write_text(f"canal.port={port}\ncanal.auto.scan.interval=1\n")
    (tmp_path / "example").mkdir()
    (tmp_path / "example" / "instance.properties").write_text(
        "canal.instance.master.address=127.0.0.1:1\ncanal.instance.dbUsername=canal\n"
    )
    command = f'ulimit -Sn {limit}; exec "{sys.executable}" -m rowtide canal "{tmp_path}"'
    with subprocess.Popen(["bash", "-c", command], stderr=subprocess.PIPE) as process:
        try:
            _greeting(port)
            many = [socket.create_connection(("127.0.0.1", port), 60) for _ in range(limit + 120)]
            time.sleep(3)  # several scans of the folder
            assert process.poll() is None
            for one in many:
                one.close()
            assert _greeting(port)
        finally:
            process.terminate()
            said = process.communicate(timeout=60)[1].decode()
    assert process.returncode == 0, said
    assert "no more are accepted" in said


def _greeting(port: int) -> bytes:
    """The server's first bytes; waits until there is one."""
    deadline = time.monotonic() + 120
    while True:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 30) as client:
            if found := client.recv(100):
                return found
        assert time.monotonic() < deadline
        time.sleep(0.1)
