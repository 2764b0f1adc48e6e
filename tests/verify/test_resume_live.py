"""``rowtide verify --resume``: a run that was interrupted continues with its chunk."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rowtide.verify import source
from tests.support.processes.worker_process import Worker, WorkerConfig
from tests.verify.damages import MORE, found, report, run

if TYPE_CHECKING:
    from rowtide_stack import Database, Kafka

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
        assert f"{file} is of a run with another value of --columns" in document["tables"][0]["reason"]

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
