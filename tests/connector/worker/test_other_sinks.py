"""``rowtide run`` with sinks other than Kafka, and without Kafka."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.processes.worker_process import SOON, Worker, WorkerConfig, eventually

if TYPE_CHECKING:
    from rowtide_stack import Database

pytestmark = pytest.mark.servers


def without_kafka(folder: Path, database: Database) -> WorkerConfig:
    """A configuration whose position and history are in files."""
    more = {
        "table.include.list": f"{database.name}.t",
        "schema.history.internal.file.filename": str(folder / "history.jsonl"),
        "offset.storage.file.filename": str(folder / "offsets.dat"),
        "offset.flush.interval.ms": "200",
        "include.schema.changes": "false",
    }
    config = WorkerConfig(folder, database.server, "", more)
    for name in [name for name in config.properties if "kafka" in name or name == "bootstrap.servers"]:
        del config.properties[name]
    return config


def ids(folder: Path) -> list[int]:
    """The keys of all records in the files of a directory."""
    return [
        json.loads(line)["key"]["id"]
        for path in sorted(folder.glob("records-*.jsonl"))
        for line in path.read_text().splitlines(keepends=True)
        if line.endswith("\n")
    ]


def test_files_have_every_change_after_kills(mysql_db: Database, tmp_path: Path) -> None:
    mysql_db.execute("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (0)")
    config, out = without_kafka(tmp_path, mysql_db), tmp_path / "out"
    for start in range(3):
        with Worker(config, "--sink", f"file:{out}").streaming() as worker:
            numbers = range(1 + start * 20, 21 + start * 20)
            mysql_db.execute(*(f"INSERT INTO t VALUES ({number})" for number in numbers))
            eventually(lambda last=numbers[-1]: last in ids(out), "the records")  # type: ignore[misc]
            if start < 2:
                worker.kill()
            else:
                worker.stop()
    found = ids(out)
    assert sorted(set(found)) == list(range(61))
    assert list(dict.fromkeys(found)) == list(range(61)), "in the order of commits, but for what came again"


def test_standard_output_has_records_and_nothing_else(mysql_db: Database, tmp_path: Path) -> None:
    mysql_db.execute("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1), (2)")
    config = without_kafka(tmp_path, mysql_db)
    config.properties["snapshot.mode"] = "initial_only"
    command = [sys.executable, "-m", "rowtide", "run", str(config.path), "--no-web", "--sink", "stdout"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SOON)
    assert done.returncode == 0, done.stderr
    assert [json.loads(line)["key"] for line in done.stdout.splitlines()] == [{"id": 1}, {"id": 2}]


def test_a_reader_of_standard_output_that_goes_away_ends_the_worker(mysql_db: Database, tmp_path: Path) -> None:
    mysql_db.execute("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    config = without_kafka(tmp_path, mysql_db)
    command = [sys.executable, "-m", "rowtide", "run", str(config.path), "--no-web", "--sink", "stdout"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as worker:
        assert worker.stdout is not None
        assert worker.stderr is not None
        assert json.loads(worker.stdout.readline())["key"] == {"id": 1}
        worker.stdout.close()
        mysql_db.execute("INSERT INTO t VALUES (2)")
        try:
            assert worker.wait(SOON) == 1
        finally:
            if worker.poll() is None:
                os.kill(worker.pid, signal.SIGKILL)
        assert b"standard output was closed by its reader" in worker.stderr.read()
