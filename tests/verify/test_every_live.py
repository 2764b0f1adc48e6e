"""``rowtide verify --every`` as a process: rounds, metrics, and a graceful end."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.processes.worker_process import Worker, WorkerConfig, eventually
from tests.verify.damages import MORE

if TYPE_CHECKING:
    from rowtide_stack import Database, Kafka

pytestmark = pytest.mark.servers


def page(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_rounds_follow_each_other_until_sigterm(tmp_path: Path, mysql_db: Database, kafka: Kafka) -> None:
    config = WorkerConfig(tmp_path, mysql_db.server, kafka.bootstrap, MORE | {"database.include.list": mysql_db.name})
    mysql_db.execute("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1), (2)")
    proofs = tmp_path / "proofs"
    command = [sys.executable, "-m", "rowtide", "verify", "--config", str(config.path), "--topics", "--every", "1s"]
    command += ["--proofs", str(proofs), "--web-port", "0", "--json", "--max-load", "50"]
    with Worker(config).streaming() as worker:
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            try:
                assert process.stderr is not None
                assert process.stdout is not None
                url = process.stderr.readline().removeprefix("metrics: ").strip()

                def proof() -> dict[str, Any]:
                    found: dict[str, Any] = json.loads(proofs.read_text())["tables"].get(f"{mysql_db.name}.t", {})
                    return found.get("topic", {})

                eventually(lambda: proof().get("proved"), "the first proof")
                table = f'{{connector="{config.name}",table="{mysql_db.name}.t",of="topic"}}'
                assert f"rowtide_verified_differences{table} 0" in page(url)[1]
                assert page(url.replace("/metrics", "/health"))[0] == 200
                mysql_db.execute("SET sql_log_bin = 0", "DELETE FROM t WHERE id = 2")
                eventually(lambda: proof()["differences"] == 1, "the difference")
                assert proof()["proved"] < proof()["checked"]
                eventually(lambda: f"rowtide_verified_differences{table} 1" in page(url)[1], "the metric")
                assert page(url.replace("/metrics", "/health"))[0] == 503
                process.send_signal(signal.SIGTERM)
                output, errors = process.communicate(timeout=60)
            finally:
                process.kill()
        assert (process.returncode, errors) == (0, "")
        assert "equal" in json.loads(output.splitlines()[0])["outcome"]
        assert "different" in {json.loads(line)["outcome"] for line in output.splitlines()}
        worker.stop()
