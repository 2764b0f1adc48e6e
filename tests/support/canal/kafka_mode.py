"""Canal's Kafka mode for tests: its folder, its process, and the rows in its topic."""

from __future__ import annotations

import json
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.kafka.topic_tools import Topics
from tests.support.processes.child_process import ChildProcess

if TYPE_CHECKING:
    from rowtide_stack import Database

__all__ = ["ROWS", "CanalProcess", "assert_every_value_in_order", "configured", "rows", "writing"]

ROWS = 5
_MAIN = "from rowtide.cli import main; main()"


class CanalProcess(ChildProcess):
    """A process of ``rowtide canal``.

    Args:
        preparation: statements of Python before it.
    """

    def __init__(self, preparation: str = "") -> None:
        super().__init__()
        self._code = f"{preparation}; {_MAIN}" if preparation else _MAIN

    def start(self, folder: Path) -> None:
        """Start it."""
        self._run([sys.executable, "-c", self._code, "canal", str(folder)], folder / "rowtide.log")

    def kill(self) -> None:
        """End it immediately, as a crash does."""
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        self.stop()


def configured(
    folder: Path, database: Database, topics: Topics, topic: str, destination: str = "example", **more: str
) -> Path:
    """A folder with one destination, whose table ``t`` goes to three partitions of a topic by its ``id``."""
    server = database.server
    (folder / destination).mkdir(parents=True, exist_ok=True)
    of_server = {
        "canal.serverMode": "kafka",
        "canal.auto.scan": "false",
        "kafka.bootstrap.servers": topics.client["bootstrap.servers"],
        "kafka.retries": "0",
        "canal.mq.offsetsTopic": f"{topic}-offsets",
    }
    of_instance = {
        "canal.instance.master.address": f"{server.host}:{server.port}",
        "canal.instance.dbUsername": server.user,
        "canal.instance.dbPassword": server.password,
        "canal.instance.filter.regex": rf"{database.name}\\.t",
        "canal.mq.topic": topic,
        "canal.mq.partitionsNum": "3",
        "canal.mq.partitionHash": r".*\\..*:id",
    }
    for path, properties in (
        ("canal.properties", of_server | more),
        (f"{destination}/instance.properties", of_instance),
    ):
        (folder / path).write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
    return folder


def rows(topics: Topics, topic: str) -> dict[int, list[tuple[int, int]]]:
    """The id and the value of all rows, by partition."""
    found: dict[int, list[tuple[int, int]]] = {0: [], 1: [], 2: []}
    for record in topics.read(topic):
        message = json.loads(record.value or b"")
        if not message["isDdl"]:
            found[record.partition] += [(int(row["id"]), int(row["v"])) for row in message["data"] or ()]
    return found


@contextmanager
def writing(database: Database, transactions: int, pause_s: float = 0.02) -> Iterator[None]:
    """Update the rows of ``t`` meanwhile: each transaction sets the next value in all; waits for the last one."""

    def write() -> None:
        with database.connect() as connection, connection.cursor() as cursor:
            for value in range(1, transactions + 1):
                cursor.execute(f"UPDATE t SET v = {value}")
                time.sleep(pause_s)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def assert_every_value_in_order(
    found: dict[int, list[tuple[int, int]]], transactions: int, *, exactly_once: bool
) -> None:
    """A value may come again unless delivery is exactly once, but none is omitted, and none is late."""
    keys = [key for part in found.values() for key in {key for key, _ in part}]
    assert sorted(keys) == list(range(ROWS))
    for part in found.values():
        for key in {key for key, _ in part}:
            values = [value for one, value in part if one == key]
            newest = 0
            for value in values:
                assert value <= newest + 1
                newest = max(newest, value)
            assert newest == transactions
            if exactly_once:
                assert values == list(range(1, transactions + 1))
