"""A connector whose tables have versioned rows, which change while a snapshot reads them."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support.kafka.topic_tools import Topics
from tests.support.processes.worker_process import Worker, WorkerConfig, eventually

if TYPE_CHECKING:
    from rowtide_stack import Database, Kafka

__all__ = ["CHUNK", "ChangingRows"]

CHUNK = 1
"""Rows of a chunk of an incremental snapshot, which so takes long enough to be killed in the middle."""

_CHANGES = (
    "UPDATE {2} SET ver = {1} WHERE id = {0}",
    "REPLACE INTO {2} VALUES ({0}, {1})",
    "DELETE FROM {2} WHERE id = {0}",
)


def _place(position: Mapping[str, Any] | None) -> tuple[str, int]:
    """A position of /health, to compare."""
    return ("", 0) if position is None else (position["file"], position["pos"])


class ChangingRows:
    """A connector with exactly-once delivery, and its tables: ``id INT PRIMARY KEY, ver INT``.

    Args:
        database: the database of the tables.
        kafka: the broker.
        folder: for the configuration.
        rows: the number of rows that ``load`` changes; larger than any ``ver`` before.
        pause_s: seconds between two changes of ``load``.
        properties: of the connector.
    """

    def __init__(
        self,
        database: Database,
        kafka: Kafka,
        folder: Path,
        rows: int,
        pause_s: float,
        properties: Mapping[str, str],
    ) -> None:
        self.database = database
        always = {
            "exactly.once.source.support": "enabled",
            "exactly.once.support": "required",
            "incremental.snapshot.chunk.size": str(CHUNK),
            "offset.flush.interval.ms": "200",
        }
        self.config = WorkerConfig(folder, database.server, kafka.bootstrap, {**always, **properties})
        self._topics = Topics(kafka.bootstrap)
        self._rows = rows
        self._pause_s = pause_s

    def chunk_read(self, worker: Worker) -> None:
        """Wait until the worker has emitted rows of a chunk."""
        path = f"/connectors/{self.config.name}/notifications"
        eventually(lambda: "IN_PROGRESS" in worker.get(path)[1], "a chunk is read")

    def chunk_stored(self, worker: Worker) -> None:
        """Wait until the worker has delivered rows of a chunk, and stored the position. Rows change meanwhile."""
        self.chunk_read(worker)
        read = _place(worker.health()["position"]["read"])
        eventually(lambda: _place(worker.health()["position"]["stored"]) > read, "a chunk is stored")

    def records(self, table: str = "t") -> list[tuple[int, dict[str, Any] | None]]:
        """Key and value of the records of a table."""
        return [
            (json.loads(record.key or b"")["id"], json.loads(record.value) if record.value else None)
            for record in self._topics.read(self.config.topic(f"{self.database.name}.{table}"))
        ]

    def reads(self, table: str = "t") -> int:
        """The number of rows that were read by snapshots."""
        return sum(value is not None and value["op"] == "r" for _, value in self.records(table))

    def check_rows(self, table: str = "t") -> None:
        """A consumer has the rows of a table, and none ever went back to an older state."""
        rows: dict[int, int] = {}
        newest: dict[int, int] = {}
        for key, value in self.records(table):
            if value is None:
                continue
            ver = (value["after"] or value["before"])["ver"]
            assert ver >= newest.get(key, -1), (key, value)
            newest[key] = ver
            if value["after"] is None:
                rows.pop(key, None)
            else:
                rows[key] = ver
        found = self.database.query(f"SELECT id, ver FROM {table} ORDER BY id")
        assert sorted(rows.items()) == [tuple(row) for row in found]

    @contextmanager
    def load(self, table: str = "t") -> Iterator[None]:
        """Change rows while the block runs; each change of a row has a larger ``ver``."""
        stop = threading.Event()
        thread = threading.Thread(target=self._change, args=(table, stop))
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def _change(self, table: str, stop: threading.Event) -> None:
        chance = random.Random(4)
        ver = self._rows
        with self.database.server.connect(self.database.name) as connection, connection.cursor() as cursor:
            while not stop.wait(self._pause_s):
                ver += 1
                cursor.execute(chance.choice(_CHANGES).format(chance.randrange(self._rows), ver, table))
                connection.commit()
