"""A table that a worker reads again by signals, while its rows change."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from topic_tools import Topics
from worker_process import Worker, WorkerConfig, eventually

if TYPE_CHECKING:
    from rowtide_stack import Database, Kafka

__all__ = ["CHUNK", "ROWS", "Refilled"]

ROWS = 2000
CHUNK = 1  # slow, so that it can be killed in the middle


class Refilled:
    """A table that a connector reads again.

    Args:
        database: its database.
        kafka: the broker.
        folder: for the configuration.
        more: further properties.
    """

    def __init__(self, database: Database, kafka: Kafka, folder: Path, more: dict[str, str]) -> None:
        self.database = database
        rows = ", ".join(f"({key}, {key})" for key in range(ROWS))
        database.execute(
            "CREATE TABLE sig (id VARCHAR(64) PRIMARY KEY, type VARCHAR(32), data VARCHAR(2048))",
            "CREATE TABLE t (id INT PRIMARY KEY, ver INT)",
            f"INSERT INTO t VALUES {rows}",
        )
        signal_table = {"signal.data.collection": f"{database.name}.sig"} if "signal.data.collection" in more else {}
        properties = {
            "database.include.list": database.name,
            "table.include.list": f"{database.name}.t",
            "snapshot.mode": "no_data",
            "exactly.once.source.support": "enabled",
            "exactly.once.support": "required",
            "incremental.snapshot.chunk.size": str(CHUNK),
            "offset.flush.interval.ms": "200",
            **more,
            **signal_table,
        }
        self.config = WorkerConfig(folder, database.server, kafka.bootstrap, properties)
        self._topics = Topics(kafka.bootstrap)

    def signal(self, worker: Worker, kind: str, signal_id: str = "s", **more: object) -> None:
        """Send a signal for the table, with further data."""
        data = {"data-collections": [rf"{self.database.name}\.t"], **more}
        body = json.dumps({"id": signal_id, "type": kind, "data": data})
        status, text = worker.send("POST", f"/connectors/{self.config.name}/signals", body)
        assert status < 300, text

    def chunk_read(self, worker: Worker) -> None:
        """Wait until the worker has emitted rows of a chunk."""
        path = f"/connectors/{self.config.name}/notifications"
        eventually(lambda: "IN_PROGRESS" in worker.get(path)[1], "a chunk is read")

    def chunk_stored(self, worker: Worker) -> None:
        """Wait until the worker has delivered rows of a chunk, and stored the position. Rows change meanwhile."""
        self.chunk_read(worker)
        read = worker.health()["position"]["read"]["pos"]
        eventually(lambda: (worker.health()["position"]["stored"] or {"pos": 0})["pos"] > read, "a chunk is stored")

    def records(self) -> list[tuple[int, dict[str, Any] | None]]:
        """Key and value of the records in the topic."""
        topic = self.config.topic(f"{self.database.name}.t")
        return [
            (json.loads(record.key or b"")["id"], json.loads(record.value) if record.value else None)
            for record in self._topics.read(topic)
        ]

    def reads(self) -> int:
        """The number of rows that the snapshot has read."""
        return sum(value is not None and value["op"] == "r" for _, value in self.records())

    def check(self) -> None:
        """A consumer has the rows of the table, and none ever went back to an older state."""
        rows: dict[int, int] = {}
        newest: dict[int, int] = {}
        for key, value in self.records():
            if value is None:
                continue
            ver = (value["after"] or value["before"])["ver"]
            assert ver >= newest.get(key, -1), (key, value)
            newest[key] = ver
            if value["after"] is None:
                rows.pop(key, None)
            else:
                rows[key] = ver
        assert sorted(rows.items()) == [tuple(row) for row in self._rows()]

    def _rows(self) -> Any:
        return self.database.query("SELECT id, ver FROM t ORDER BY id")

    @contextmanager
    def load(self) -> Iterator[None]:
        """Change rows while the block runs; each change of a row has a larger ``ver``."""
        stop = threading.Event()
        thread = threading.Thread(target=self._change, args=(stop,))
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def _change(self, stop: threading.Event) -> None:
        chance = random.Random(4)
        ver = ROWS
        with self.database.server.connect(self.database.name) as connection, connection.cursor() as cursor:
            while not stop.wait(0.005):
                ver += 1
                key = chance.randrange(ROWS)
                change = chance.choice(("UPDATE t SET ver = {1} WHERE id = {0}", "REPLACE INTO t VALUES ({0}, {1})"))
                cursor.execute(chance.choice((change, change, "DELETE FROM t WHERE id = {0}")).format(key, ver))
                connection.commit()
