"""``rowtide verify --resume``: a run that was interrupted continues with its chunk."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rowtide.verify import source
from tests.support.processes.worker_process import Worker, WorkerConfig
from tests.verify.damages import KEYED, MORE, Damages, fill, found, load, repaired, report, run

if TYPE_CHECKING:
    from rowtide_stack import Database, Kafka

    from tests.support.kafka.topic_tools import Topics

pytestmark = pytest.mark.servers

ROWS = 100


def test_an_interrupted_run_continues_with_its_chunk(
    tmp_path: Path, mysql_db: Database, kafka: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = WorkerConfig(tmp_path, mysql_db.server, kafka.bootstrap, MORE | {"database.include.list": mysql_db.name})
    mysql_db.execute(
        "CREATE TABLE t (id VARCHAR(9) COLLATE utf8mb4_general_ci PRIMARY KEY, n INT)",
        "INSERT INTO t VALUES " + ", ".join(f"('k{i:03}', {i})" for i in range(ROWS)),
    )
    monkeypatch.setattr(source, "_CHUNK_ROWS", 10)
    read, kept = source.TableSource.rows, tmp_path / "kept"
    kept.mkdir()
    file = kept / f"{config.name}.{mysql_db.name}.t.verify"
    wanted = list[str]()

    def rows(self: source.TableSource, table: source.SourceTable, where: str, more: str = "") -> Iterator[Any]:
        wanted.append(where)
        if len(wanted) == 5:
            raise SystemExit(143)
        return read(self, table, where, more)

    monkeypatch.setattr(source.TableSource, "rows", rows)
    resume = ("--resume", str(kept))
    with Worker(config).streaming() as worker:
        assert run(config, *resume).exit_code == 143
        status, document = report(config, *resume, "--columns", "n")
        assert status == 2
        assert f"{file} belongs to a run with a different value of --columns" in document["tables"][0]["reason"]

        mysql_db.execute(  # what was read already is changed, and so is what was not
            "UPDATE t SET n = -1 WHERE id IN ('k001', 'k091')",
            "DELETE FROM t WHERE id IN ('k002', 'k092')",
            "INSERT INTO t VALUES ('K0011', 1), ('K0911', 1)",
            "SET sql_log_bin = 0",
            "UPDATE t SET n = -2 WHERE id IN ('k081')",
        )
        status, document = report(config, *resume)
        assert wanted[4] == wanted[5], "the chunk that was interrupted"
        (table,) = document["tables"]
        assert (status, table["resumed_rows"], table["source_rows"]) == (1, 40, ROWS)
        assert found(document) == {("t", "stale", "k081", "n")}
        assert not file.exists()

        file.write_bytes(b"no database" * 999)
        status, document = report(config, *resume)
        assert (status, document["tables"][0]["outcome"]) == (2, "undecided")
        assert f"{file} is damaged" in document["tables"][0]["reason"]
        worker.stop()


@pytest.mark.nightly
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("server", ["mysql", "mariadb"])
def test_runs_that_are_killed_end_with_the_same_differences(
    server: str, tmp_path: Path, request: pytest.FixtureRequest, kafka: Kafka, topics: Topics
) -> None:
    """``kill -9`` at random moments of a run with several tables under load."""
    database: Database = request.getfixturevalue(f"{server}_db")
    config = WorkerConfig(tmp_path, database.server, kafka.bootstrap, MORE | {"database.include.list": database.name})
    chance, kept = random.Random(server), tmp_path / "kept"
    kept.mkdir()
    fill(database)
    rows = ", ".join(f"({i}, {i}, 1, 'more', NULL)" for i in range(1_000_000, 1_020_000))
    database.execute(f"INSERT INTO orders VALUES {rows}")
    damages = Damages(database, topics, config, chance)
    command = [sys.executable, "-m", "rowtide", "verify", "--config", str(config.path), "--topics", "--json"]
    resumed = [*command, "--parallel", "3", "--resume", str(kept), "--max-load", "30"]
    with Worker(config).streaming() as worker, load(database):
        expected = {damages.kinds[name]() for name in KEYED}
        for _ in range(6):
            with subprocess.Popen(resumed, stdout=subprocess.DEVNULL) as process:
                time.sleep(chance.uniform(1, 8))
                process.kill()
        ended = subprocess.run(resumed, capture_output=True, text=True, check=False)
        assert (ended.returncode, found(json.loads(ended.stdout))) == (1, expected), ended.stdout
        assert not [*kept.iterdir()]
        worker.stop()


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("server", ["mysql", "mariadb"])
def test_repairs_that_are_killed_are_completed_by_the_next_run(
    server: str, tmp_path: Path, request: pytest.FixtureRequest, kafka: Kafka, topics: Topics
) -> None:
    """``kill -9`` at random moments of repairs under load: only damaged rows are ever sent again."""
    database: Database = request.getfixturevalue(f"{server}_db")
    config = WorkerConfig(tmp_path, database.server, kafka.bootstrap, MORE | {"database.include.list": database.name})
    chance, kept = random.Random(server), tmp_path / "kept"
    kept.mkdir()
    fill(database)
    calm = ", ".join(f"({i}, {i})" for i in range(10_000))
    database.execute("CREATE TABLE calm (id INT PRIMARY KEY, n INT)", f"INSERT INTO calm VALUES {calm}")
    damages = Damages(database, topics, config, chance)

    def sent(rows: list[int]) -> list[int]:
        """How many records healthy rows, and tables without a damage, have in the topics."""
        read = {name: topics.read(config.topic(f"{database.name}.{name}")) for name in ("orders", "calm", "flags")}
        keys = Counter(one.key for one in read["orders"])
        return [len(read["calm"]), len(read["flags"]), *(keys[f'{{"id":{i}}}'.encode()] for i in rows)]

    command = [sys.executable, "-m", "rowtide", "verify", "--config", str(config.path), "--topics", "--json"]
    with Worker(config).streaming() as worker, load(database):
        repair = [*command, "--repair", "--channel", "http", "--web", f"http://127.0.0.1:{worker.port}"]
        resumed = [*repair, "--resume", str(kept)]
        for _ in range(int(os.environ.get("ROWTIDE_CAMPAIGN", "3"))):
            expected = {damages.kinds[name]() for name in chance.choices(KEYED[:-1], k=8)}
            healthy = list(damages.undamaged)
            before = sent(healthy)
            for _ in range(3):
                with subprocess.Popen(resumed, stdout=subprocess.DEVNULL) as process:
                    time.sleep(chance.uniform(1, 15))
                    process.kill()
            ended = subprocess.run(resumed, capture_output=True, text=True, check=False)
            assert ended.returncode == 0, ended.stdout + ended.stderr
            assert repaired(json.loads(ended.stdout)) <= expected, "others were repaired by the runs before"
            assert report(config)[0] == 0
            assert not [*kept.iterdir()]
            assert sent(healthy) == before
            damages.mend()
        worker.stop()
