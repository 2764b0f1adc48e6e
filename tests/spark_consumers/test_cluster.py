"""``rowtide tables`` on a standalone cluster of Spark, by ``spark-submit``."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from rowtide_demo.steps import tables
from rowtide_stack import Kafka, Spark, spark_jars

from tests.support.kafka.shop_topics import Shop
from tests.support.processes.worker_process import eventually
from tests.support.recordings.recorded_tables import fold, same_rows

pytestmark = [pytest.mark.servers, pytest.mark.spark]

PROGRAM = "from rowtide.cli import main\nmain()\n"
SMALL = {
    **tables.SMALL,
    "spark.executor.memory": "700m",
    "spark.executor.extraJavaOptions": tables.SMALL["spark.driver.extraJavaOptions"],
    "spark.ui.enabled": "false",
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Spark]:
    with Spark() as started:
        yield started


def submitted(cluster: Spark, folder: Path, *arguments: str) -> list[str]:
    """The command that runs ``rowtide tables`` on the cluster."""
    program = folder / "tables_job.py"
    program.write_text(PROGRAM)
    return [
        str(Path(sys.executable).with_name("spark-submit")), "--master", cluster.url,
        "--jars", ",".join(map(str, spark_jars())),
        *(part for name, value in SMALL.items() for part in ("--conf", f"{name}={value}")),
        str(program), "tables", "--json", *arguments,
    ]  # fmt: skip


def environment() -> dict[str, str]:
    return {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}


class Changes:
    """A topic of a table with a key, and one without."""

    def __init__(self, kafka: Kafka, prefix: str) -> None:
        self.shop = Shop(kafka, prefix, 1)
        self.shop.add("log", key=())
        self.topics = self.shop.topics

    def send(self, number: int) -> None:
        keyed, log = self.topics
        self.shop.change(keyed, number)
        self.shop.append(log, number)

    def options(self, kafka: Kafka, output: Path) -> list[str]:
        """The options of ``rowtide tables`` for these topics."""
        return ["--bootstrap-servers", kafka.bootstrap, "--topic-prefix", self.shop.prefix, "--output", str(output)]

    def check(self, rows_of: Callable[..., Any], output: Path) -> None:
        for topic in self.topics:
            path = output / topic.name.removeprefix(f"{self.shop.prefix}.").replace(".", "/")
            same_rows(rows_of(str(path)), fold(topic.records))


@pytest.mark.parametrize(
    "modes", [[["--available-now"]], pytest.param([[], ["--available-now"]], marks=pytest.mark.nightly)]
)
def test_tables_are_updated_on_a_cluster(
    cluster: Spark, kafka: Kafka, rows_of: Callable[..., Any], tmp_path: Path, modes: list[list[str]]
) -> None:
    changes = Changes(kafka, f"cluster{len(modes)}")
    for mode in modes:
        changes.send(30)
        command = submitted(cluster, tmp_path, *changes.options(kafka, tmp_path / "tables"), *mode)
        done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-3000:]
        assert all(line.startswith("{") for line in done.stdout.splitlines())
    changes.check(rows_of, tmp_path / "tables")


@pytest.mark.nightly
def test_killed_executors_lose_and_double_nothing(
    cluster: Spark, kafka: Kafka, rows_of: Callable[..., Any], tmp_path: Path
) -> None:
    changes, numbers = Changes(kafka, "killed-executors"), random.Random(0)
    command = submitted(cluster, tmp_path, *changes.options(kafka, tmp_path / "tables"), "--follow", "--trigger", "1s")
    output = tmp_path / "output.jsonl"

    def is_applied() -> bool:
        found = map(json.loads, output.read_text().splitlines())
        ends = {one["topic"]: one["offsets"]["0"][1] for one in found if one["event"] == "table" and one["offsets"]}
        return ends == {topic.name: len(topic.records) for topic in changes.topics}

    with output.open("w") as file, (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(command, env=environment(), stdout=file, stderr=log)
        try:
            for _ in range(20):
                changes.send(20)
                eventually(lambda: bool(executors(cluster)), "there is an executor", 120)
                time.sleep(numbers.random() * 4)
                for pid in executors(cluster)[: numbers.choice((1, 2))]:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
            changes.send(5)
            eventually(is_applied, "all tables are up to date", 240)
        finally:
            process.kill()
            process.wait()
    changes.check(rows_of, tmp_path / "tables")


def executors(cluster: Spark) -> list[int]:
    """The process ids of the executors of the cluster's workers."""
    workers = [f"Worker@{worker.address}".encode() for worker in cluster.workers]
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            command = (process / "cmdline").read_bytes()
            if b"ExecutorBackend" in command and any(worker in command for worker in workers):
                found.append(int(process.name))
    return found
