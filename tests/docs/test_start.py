"""The page Start, pasted block by block into shells."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest
from pages import blocks
from rowtide_stack import Kafka, MySQL
from rowtide_stack.ports import free_port

pytestmark = pytest.mark.servers

*FIRST_TERMINAL, RUN, WATCH, CHANGE = blocks("start", "bash")


@contextlib.contextmanager
def terminal(block: str, folder: Path, environment: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    """Paste a block into a shell of its own; the end of ``with`` stops what runs in it, as Ctrl-C does."""
    command = ["bash", "-e", "-c", block]
    with subprocess.Popen(
        command, cwd=folder, env=environment, text=True, stdout=subprocess.PIPE, start_new_session=True
    ) as process:
        late = threading.Timer(90, os.killpg, (process.pid, signal.SIGKILL))
        late.start()
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGINT)
            process.wait()
            late.cancel()


def pasted(block: str, folder: Path, environment: dict[str, str]) -> str:
    """The output of a block that ends by itself."""
    with terminal(block, folder, environment) as process:
        assert process.stdout is not None
        output = process.stdout.read()
    assert process.returncode == 0, output
    return output


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
        checked = [pasted(block, tmp_path, environment) for block in FIRST_TERMINAL][-1]
        with (
            terminal(RUN, tmp_path, environment) as worker,
            terminal(WATCH, tmp_path, environment) as watch,
        ):
            assert watch.stdout is not None
            operations = [operation(watch.stdout) for _ in range(2)]
            pasted(CHANGE, tmp_path, environment)
            operations += [operation(watch.stdout) for _ in range(3)]
            last_key = watch.stdout.readline()
    (promised,) = blocks("start", "text")
    assert checked.endswith(promised)
    assert worker.returncode == 0
    assert operations == ["read", "read", "update", "delete", "tombstone"]
    assert last_key.split() == ["key", "id=2"]
