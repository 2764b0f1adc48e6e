"""The page Start, pasted block by block into shells."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import IO

import pytest
from rowtide_stack import Kafka, MySQL
from rowtide_stack.ports import free_port

from tests.support.pages import blocks
from tests.support.processes.terminal import finished, terminal

pytestmark = pytest.mark.servers

*FIRST_TERMINAL, RUN, WATCH, CHANGE = blocks("start", "bash")


def shell(block: str) -> list[str]:
    return ["bash", "-e", "-c", block]


def operation(output: IO[str]) -> str:
    """The operation of the next record that ``rowtide peek`` prints."""
    for line in output:
        word = line.split()[0]
        if word in {"read", "create", "update", "delete", "tombstone"}:
            return word
    return "nothing"


def test_the_blocks_of_the_page_lead_to_the_records_that_it_promises(tmp_path: Path) -> None:
    assert "rowtide run" in RUN
    with MySQL() as mysql, Kafka() as kafka:
        environment = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "MYSQL_PORT": str(mysql.port),
            "KAFKA": kafka.bootstrap,
            "WEB_PORT": str(free_port()),
        }
        checked = [finished(shell(block), tmp_path, environment) for block in FIRST_TERMINAL][-1]
        with (
            terminal(shell(RUN), tmp_path, environment) as worker,
            terminal(shell(WATCH), tmp_path, environment) as watch,
        ):
            assert watch.stdout is not None
            operations = [operation(watch.stdout) for _ in range(2)]
            finished(shell(CHANGE), tmp_path, environment)
            operations += [operation(watch.stdout) for _ in range(3)]
            last_key = watch.stdout.readline()
    promised, _ = blocks("start", "text")
    assert checked.endswith(promised)
    assert worker.returncode == 0
    assert operations == ["read", "read", "update", "delete", "tombstone"]
    assert last_key.split() == ["key", "id=2"]
