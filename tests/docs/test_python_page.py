"""The programs of the page on Python, as a reader copies them, with another address and topic."""

from __future__ import annotations

import itertools
import os
import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.pages import blocks
from tests.support.processes.terminal import terminal
from tests.support.processes.worker_process import Worker, WorkerConfig, eventually

if TYPE_CHECKING:
    from rowtide_stack import Database, Kafka

    from tests.support.kafka.topic_tools import Topics

pytestmark = pytest.mark.servers

LOOP, GROUP, _, FAUST = blocks("python", "python")


@pytest.fixture
def topic(tmp_path: Path, mysql_db: Database, kafka: Kafka, topics: Topics) -> str:
    """A topic with two rows of a snapshot."""
    mysql_db.execute("CREATE TABLE t (id INT PRIMARY KEY, name TEXT)", "INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    config = WorkerConfig(tmp_path, mysql_db.server, kafka.bootstrap, {"database.include.list": mysql_db.name})
    name = config.topic(f"{mysql_db.name}.t")
    with Worker(config) as worker:
        worker.streaming()
        eventually(lambda: len(topics.read(name)) == 2, "both rows are in Kafka")
        worker.stop()
    return name


def printed(folder: Path, *command: str) -> list[str]:
    """The rows that a program prints which does not end by itself; what Faust prints before them does not count."""
    environment = {**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONPATH": str(folder)}
    with terminal(["sh", "-c", f"exec {shlex.join([sys.executable, *command])} 2>&1"], folder, environment) as program:
        assert program.stdout is not None
        rows = (found[1] for line in program.stdout if (found := re.search(r"\b(r \{.*\})", line)))
        return list(itertools.islice(rows, 2))


def test_the_programs_print_the_rows(kafka: Kafka, topic: str, tmp_path: Path) -> None:
    rows = ["r {'id': 1} {'id': 1, 'name': 'a'}", "r {'id': 2} {'id': 2, 'name': 'b'}"]
    (tmp_path / "loop.py").write_text(
        LOOP.replace("localhost:9092", kafka.bootstrap).replace("shop.shop.orders", topic)
    )
    assert printed(tmp_path, "loop.py") == rows

    program = f"import rowtide\n\n\ndef handle(change):\n    print(change.op, change.key, change.after)\n\n\n{GROUP}"
    program = program.replace("localhost:9092", kafka.bootstrap).replace("^shop[.]shop[.]", f"^{re.escape(topic)}$")
    (tmp_path / "group.py").write_text(program.replace("audit", f"{topic}-audit"))
    assert printed(tmp_path, "group.py") == rows

    program = FAUST.replace("localhost:9092", kafka.bootstrap).replace("shop.shop.orders", topic)
    program = program.replace("shop-audit", f"{topic}-faust")
    (tmp_path / "shop_audit.py").write_text(program)
    command = ("-m", "faust", "-A", "shop_audit", "worker", "-l", "info", "--without-web")
    assert printed(tmp_path, *command) == ["r {'id': 1, 'name': 'a'}", "r {'id': 2, 'name': 'b'}"]
