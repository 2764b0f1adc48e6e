"""The process of a worker: how it ends."""

from __future__ import annotations

import asyncio
import errno
import os
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from rowtide.connector.config import from_properties
from rowtide.connector.delivery.errors import DeliveryError
from rowtide.connector.engine.task import ConnectorTask
from rowtide.connector.worker import memory_release
from rowtide.connector.worker.faust_app import create_app
from rowtide.connector.worker.process import Worker
from rowtide.connector.worker.service import ConnectorService
from tests.support.configurations import PROPERTIES


class Exited(Exception):
    """The process has ended, with this code."""


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Iterator[Worker]:
    """A worker whose process can end in a test."""

    def end(code: int) -> None:
        raise Exited(code)

    monkeypatch.setattr(os, "_exit", end)
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield Worker(create_app(from_properties(PROPERTIES)), loop=loop)
    loop.close()


@pytest.mark.parametrize("hangs", ["the connector", "something else"])
def test_what_hangs_decides_about_the_exit_code(worker: Worker, capsys: pytest.CaptureFixture[str], hangs: str) -> None:
    (service,) = worker.app.connectors.services.values()
    if hangs == "something else":
        service.connector._ended = "STOPPED"
    with pytest.raises(Exited, match="1" if hangs == "the connector" else "0"):
        worker._give_up()
    assert ("did not stop within" in capsys.readouterr().err) == (hangs == "the connector")


def exit_code(worker: Worker) -> int:
    """Run a worker to its end, and return the exit code."""
    worker.app.finalize()
    worker.app.conf.web_enabled = False
    with pytest.raises(SystemExit) as end:
        worker.execute_from_commandline()
    return int(str(end.value.code))


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Connectors that run, and read nothing; what limits the time of a stop is noted, and would end the tests."""
    limited: list[str] = []

    def stop(task: ConnectorTask, _timeout: float | None = None) -> bool:
        task._ended = "STOPPED"
        return True

    monkeypatch.setattr(ConnectorTask, "start", lambda _task: None)
    monkeypatch.setattr(ConnectorTask, "stop", stop)
    monkeypatch.setattr(Worker, "_limit_stop", lambda _worker: limited.append("limited"))
    return limited


TOO_MANY = OSError(errno.EMFILE, "Too many open files")
REASONS = [
    (TOO_MANY, "too many files are open in this process"),
    (OSError(errno.ENOSPC, "No space left on device", "/var/x"), "/var/x: no space is left on the disk"),
    (MemoryError(), "no memory is left"),
    (RuntimeError("can't start new thread"), "no thread can be started"),
    (DeliveryError("Kafka refuses it"), "Kafka refuses it"),
]


@pytest.mark.parametrize(("reason", "text"), REASONS)
def test_a_part_of_the_process_that_fails_ends_it_with_1_and_one_line(
    worker: Worker,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    quiet: list[str],
    reason: Exception,
    text: str,
) -> None:
    def resident() -> int:
        raise reason

    monkeypatch.setattr(memory_release, "resident", resident)
    assert exit_code(worker) == 1
    lines = capfd.readouterr().err.split("\n")
    assert len([line for line in lines if text in line]) == 1
    assert not any("Traceback" in line for line in lines)
    assert quiet == ["limited"], "a part that hangs does not keep the process"


@pytest.mark.usefixtures("quiet")
def test_a_thread_that_fails_ends_the_process_with_1(
    worker: Worker, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise MemoryError

    def start(_task: ConnectorTask) -> None:
        threading.Thread(target=fail, name="w/topics").start()

    monkeypatch.setattr(ConnectorTask, "start", start)
    before = threading.excepthook
    assert exit_code(worker) == 1
    assert "no memory is left" in (shown := capfd.readouterr().err)
    assert "in the thread w/topics" in shown
    assert threading.excepthook is before


@pytest.mark.usefixtures("quiet")
def test_a_stop_that_fails_is_not_a_success(
    worker: Worker, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def stop(*_given: object) -> bool:
        raise TOO_MANY

    def start(task: ConnectorTask) -> None:
        worker.loop.call_soon(worker._all_ended)

    monkeypatch.setattr(ConnectorTask, "start", start)
    monkeypatch.setattr(ConnectorTask, "stop", stop)
    assert exit_code(worker) == 1
    assert "too many files are open" in capfd.readouterr().err


@pytest.mark.usefixtures("quiet")
def test_a_stop_without_a_failure_is_a_success(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ConnectorTask, "start", lambda _task: worker.loop.call_soon(worker._all_ended))
    assert exit_code(worker) == 0


@pytest.mark.parametrize("where", ["_new_run", "_runs"])
def test_a_task_that_fails_outside_of_its_runs_has_failed(monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    """Otherwise its thread would end, and the connector would look as if it worked."""

    def fail(*_given: Any, **_more: Any) -> None:
        raise TOO_MANY

    ended: list[BaseException | None] = []
    service = ConnectorService(from_properties({**PROPERTIES, "retriable.restart.connector.wait.ms": "1"}))
    task = service.connector
    task._on_end = ended.append
    monkeypatch.setattr(task.current, "run", lambda: DeliveryError("once"))
    monkeypatch.setattr(task, "_passes", lambda _failure: True)
    monkeypatch.setattr(task, where, fail)
    task.start()
    assert task.wait(60)
    assert (task.state, task.failure, ended) == ("FAILED", TOO_MANY, [TOO_MANY])


def test_a_connector_that_stands_by_is_not_late(worker: Worker, capsys: pytest.CaptureFixture[str]) -> None:
    (service,) = worker.app.connectors.services.values()
    service.stand_by()
    with pytest.raises(Exited, match="0"):
        worker._give_up()
    assert capsys.readouterr().err == ""
