"""Incremental snapshots by a worker: killed in the middle, paused and stopped, with each kind of watermark."""

from __future__ import annotations

import json
import os
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from topic_tools import Topics
from worker_process import Worker, WorkerConfig, eventually

if TYPE_CHECKING:
    from rowtide_stack import Database, Kafka

pytestmark = pytest.mark.servers

ROWS = 2000
CHUNK = 1  # slow, so that it can be killed in the middle
KILLS = 3
WATERMARKS = {
    "positions": {},
    "insert_insert": {"signal.data.collection": "sig"},
    "insert_delete": {
        "signal.data.collection": "sig",
        "incremental.snapshot.watermarking.strategy": "insert_delete",
    },
    "read_only": {"signal.data.collection": "sig", "read.only": "true"},
}


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

    def signal(self, worker: Worker, kind: str, signal_id: str = "s") -> None:
        """Send a signal for the table."""
        data = {"data-collections": [rf"{self.database.name}\.t"]}
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


BY_HAND = pytest.mark.skipif(
    "ROWTIDE_CAMPAIGN" not in os.environ, reason="takes a minute; ROWTIDE_CAMPAIGN=30 runs all ways of watermarks"
)


@pytest.fixture
def database(request: pytest.FixtureRequest, flavor: str) -> Database:
    """A database of the server."""
    return request.getfixturevalue(f"{flavor}_db")  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("flavor", "watermarks"),
    [
        pytest.param("mysql", "positions", marks=BY_HAND),
        ("mysql", "insert_delete"),
        pytest.param("mysql", "read_only", marks=BY_HAND),
        pytest.param("mariadb", "insert_insert", marks=BY_HAND),
        ("mariadb", "read_only"),
    ],
)
def test_a_killed_worker_goes_on_behind_the_last_chunk(
    database: Database, kafka: Kafka, tmp_path: Path, watermarks: str
) -> None:
    table = Refilled(database, kafka, tmp_path, WATERMARKS[watermarks])
    with table.load():
        with Worker(table.config).streaming() as worker:
            table.signal(worker, "execute-snapshot")
            table.chunk_stored(worker)
            worker.kill()
        for _ in range(KILLS - 1):
            with Worker(table.config).wait_for_log("goes on behind its last chunk") as worker:
                table.chunk_stored(worker)
                worker.kill()
        with Worker(table.config).wait_for_log("goes on behind its last chunk") as worker:
            worker.wait_for_log("the incremental snapshot has read")
            worker.stop()
    with Worker(table.config).streaming() as worker:
        table.database.execute(f"INSERT INTO t VALUES ({ROWS + 1}, 0)")
        eventually(lambda: any(key == ROWS + 1 for key, _ in table.records()), "the last change")
        worker.stop()
    table.check()
    assert table.reads() <= 1.5 * ROWS, "the table is not read again from its beginning"
    marks = [row[0] for row in database.query("SELECT type FROM sig")]
    if watermarks in ("positions", "read_only"):
        assert marks == []
    elif watermarks == "insert_delete":
        assert marks in (["snapshot-window-open"] * number for number in range(4 * KILLS)), "of killed workers only"
    else:
        assert marks.count("snapshot-window-close") > ROWS / CHUNK / 2


@pytest.mark.parametrize("flavor", ["mysql", "mariadb"])
def test_a_snapshot_is_paused_and_stopped(database: Database, kafka: Kafka, tmp_path: Path) -> None:
    """A pause outlives a kill, and the stream goes on meanwhile."""
    table = Refilled(database, kafka, tmp_path, {})
    with Worker(table.config).streaming() as worker:
        table.signal(worker, "execute-snapshot")
        table.chunk_read(worker)
        table.signal(worker, "pause-snapshot", "pause")
        database.execute("UPDATE t SET ver = -1 WHERE id = 0", f"INSERT INTO t VALUES ({ROWS}, 0)")
        eventually(lambda: any(key == ROWS for key, _ in table.records()), "a change during the pause")
        worker.kill()
    read = table.reads()
    assert read < ROWS
    with Worker(table.config).streaming() as worker:
        database.execute(f"INSERT INTO t VALUES ({ROWS + 1}, 0)")
        eventually(lambda: any(key == ROWS + 1 for key, _ in table.records()), "a change after the kill")
        assert table.reads() == read
        table.signal(worker, "resume-snapshot", "resume")
        table.chunk_read(worker)
        table.signal(worker, "stop-snapshot", "stop")
        worker.wait_for_log(f"the incremental snapshot of {database.name}.t is stopped")
        worker.stop()
    read = table.reads()
    assert read < ROWS
    with Worker(table.config).streaming() as worker:
        database.execute(f"INSERT INTO t VALUES ({ROWS + 2}, 0)")
        eventually(lambda: any(key == ROWS + 2 for key, _ in table.records()), "a change after the stop")
        log = worker.stop()
    assert table.reads() == read
    assert "goes on behind its last chunk" not in log
