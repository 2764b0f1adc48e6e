"""Incremental snapshots by a worker: killed in the middle, paused and stopped, with each kind of watermark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.changing_rows import CHUNK
from tests.support.mysql.refilled_table import ROWS, Refilled
from tests.support.processes.worker_process import Worker, eventually

if TYPE_CHECKING:
    from rowtide_stack import Database, Kafka

pytestmark = pytest.mark.servers

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


@pytest.fixture
def database(request: pytest.FixtureRequest, flavor: str) -> Database:
    """A database of the server."""
    return request.getfixturevalue(f"{flavor}_db")  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("flavor", "watermarks"),
    [
        pytest.param("mysql", "positions", marks=pytest.mark.nightly),
        ("mysql", "insert_delete"),
        pytest.param("mysql", "read_only", marks=pytest.mark.nightly),
        pytest.param("mariadb", "insert_insert", marks=pytest.mark.nightly),
        pytest.param("mariadb", "read_only", marks=pytest.mark.nightly),
    ],
)
def test_a_killed_worker_continues_after_the_last_chunk(
    database: Database, kafka: Kafka, tmp_path: Path, watermarks: str
) -> None:
    table = Refilled(database, kafka, tmp_path, WATERMARKS[watermarks])
    with table.load():
        with Worker(table.config).streaming() as worker:
            table.signal(worker, "execute-snapshot")
            table.chunk_stored(worker)
            worker.kill()
        for _ in range(KILLS - 1):
            with Worker(table.config).wait_for_log("continues after its last chunk") as worker:
                table.chunk_stored(worker)
                worker.kill()
        with Worker(table.config).wait_for_log("continues after its last chunk") as worker:
            worker.wait_for_log("the incremental snapshot has read")
            worker.stop()
    with Worker(table.config).streaming() as worker:
        table.database.execute(f"INSERT INTO t VALUES ({ROWS + 1}, 0)")
        eventually(lambda: any(key == ROWS + 1 for key, _ in table.records()), "the last change")
        worker.stop()
    table.check_rows()
    assert table.reads() <= 1.5 * ROWS, "the table is not read again from its beginning"
    marks = [row[0] for row in database.query("SELECT type FROM sig")]
    if watermarks in ("positions", "read_only"):
        assert marks == []
    elif watermarks == "insert_delete":
        assert marks in (["snapshot-window-open"] * number for number in range(4 * KILLS)), "of killed workers only"
    else:
        assert marks.count("snapshot-window-close") > ROWS / CHUNK / 2


@pytest.mark.parametrize("flavor", ["mysql", pytest.param("mariadb", marks=pytest.mark.nightly)])
def test_a_snapshot_is_paused_and_stopped(database: Database, kafka: Kafka, tmp_path: Path) -> None:
    """A pause outlives a kill, and the stream continues during it."""
    table = Refilled(database, kafka, tmp_path, {})
    slowly = {"data-collection": f"{database.name}.t", "filter": "SLEEP(0.02) = 0"}
    with Worker(table.config).streaming() as worker:
        table.signal(worker, "execute-snapshot", **{"additional-conditions": [slowly]})
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
    assert "continues after its last chunk" not in log
