"""The real Canal and ``rowtide canal`` take over from each other with one folder: no row is lost or out of order."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from rowtide_stack import Database, MariaDB

from tests.support.canal.client import CanalClient, changes
from tests.support.canal.real_server import real_canal
from tests.support.canal.server import configured

JARS = os.environ.get("ROWTIDE_CANAL_SERVER", "")
pytestmark = [
    pytest.mark.servers,
    pytest.mark.skipif(not JARS, reason="ROWTIDE_CANAL_SERVER names a folder with the jars of Canal 1.1.7"),
]
TURNS = int(os.environ.get("ROWTIDE_CAMPAIGN", "4"))
ROWS_OF_A_TURN = 200


@contextmanager
def running(command: list[str], log: Path, end: signal.Signals) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("ab") as output:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=output, stderr=output)
    try:
        yield process
        process.send_signal(end)
        process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()


def connected(port: int) -> CanalClient:
    end = time.monotonic() + 90
    while True:
        try:
            return CanalClient(("127.0.0.1", port), "example")
        except (OSError, AssertionError):
            assert time.monotonic() < end
            time.sleep(0.2)


def read(client: CanalClient, wanted: int) -> list[int]:
    """Read and acknowledge so many rows or more."""
    found: list[int] = []
    end = time.monotonic() + 90
    while len(found) < wanted:
        assert time.monotonic() < end, found[-3:]
        number, entries = client.get(size=16)
        found += [int(change.after["id"] or 0) for change in changes(entries) if not change.sql]
        if number != -1:
            client.ack(number)
    client.get(size=1, timeout_ms=-1)  # the server has handled the acknowledgement; this batch comes again
    return found


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_canal_and_rowtide_take_over_from_each_other(tmp_path: Path, end: signal.Signals) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    # Canal takes positions from events, and since 11.4 row events have none.
    with MariaDB({"binlog_legacy_event_pos": 1}) as server:
        server.execute("CREATE DATABASE d")
        database = Database(server, "d")
        database.execute("CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(20))")
        folder = configured(tmp_path / "conf", database)
        text = (folder / "canal.properties").read_text().replace("canal.port=0", f"canal.port={port}")
        (folder / "canal.properties").write_text(text)
        canal = [*real_canal(Path(JARS), tmp_path), str(folder), "example", str(port)]
        rowtide = [str(Path(sys.executable).parent / "rowtide"), "canal", str(folder)]
        stop = threading.Event()

        def write() -> None:
            number = 0
            while not stop.wait(0.005):
                number += 1
                rows = ",".join(["('a')"] * (1 + number % 3))
                database.execute(f"INSERT INTO t (name) VALUES {rows}")
                if number % 100 == 0:
                    database.execute("FLUSH BINARY LOGS", f"ALTER TABLE t COMMENT '{number}'")

        writer = threading.Thread(target=write)
        found: list[int] = []
        try:
            for turn in range(TURNS):
                command = canal if turn % 2 == 0 else rowtide
                with running(command, tmp_path / "log", end):
                    client = connected(port)
                    if not turn:
                        time.sleep(3)  # the real Canal begins with the present, some time after it is up
                        writer.start()
                    rows = read(client, ROWS_OF_A_TURN)
                    client.close()
                    time.sleep(1.5)  # positions are written each second
                newest = found[-1] if found else 0
                assert rows[0] <= newest + 1, f"turn {turn}: rows after {newest} are missing before {rows[0]}"
                assert rows == list(range(rows[0], rows[0] + len(rows)))
                found += rows
        finally:
            stop.set()
            if writer.ident is not None:
                writer.join()
