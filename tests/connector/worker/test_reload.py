"""Configuration files that are read again: what has changed starts, stops or restarts one connector, and no other."""

from __future__ import annotations

import asyncio
import os
import pty
import signal
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from rowtide_stack.ports import free_port

from rowtide.connector.config import Configuration, ConfigurationError, from_properties, load
from rowtide.connector.engine.task import ConnectorTask
from rowtide.connector.worker import process
from rowtide.connector.worker.connectors import Connectors
from rowtide.connector.worker.faust_app import create_app
from rowtide.connector.worker.process import Worker
from rowtide.connector.worker.reload import ConfigurationFiles, changes, read_each
from rowtide.connector.worker.web.connect_rest import BadRequest
from tests.support.configurations import PROPERTIES


def configured(name: str, **more: str) -> Configuration:
    own = {"name": name, "topic.prefix": name, "database.server.id": str(zlib.crc32(name.encode()) % 100_000 + 1)}
    return from_properties({**PROPERTIES, **own, **{key.replace("_", "."): text for key, text in more.items()}})


def test_changes_are_those_of_values_also_behind_references(tmp_path: Path) -> None:
    secret, file = tmp_path / "secret.properties", tmp_path / "shop.properties"
    lines = {**PROPERTIES, "database.password": f"${{file:{secret}:password}}"}
    file.write_text("".join(f"{name}={text}\n" for name, text in lines.items()))
    secret.write_text("password=one")
    before = {"f": load([str(file)])}
    assert changes(before, {"f": load([str(file)])}).unchanged == 1
    file.write_text("# a comment\n" + file.read_text())
    assert changes(before, {"f": load([str(file)])}).unchanged == 1, "the text of the file does not count"
    secret.write_text("password=another")
    assert list(changes(before, {"f": load([str(file)])}).changed) == ["f"]


def test_every_kind_of_change() -> None:
    error = ConfigurationError([("x", "y")])
    before = {name: configured(name) for name in ("same", "changed", "broken", "gone", "renamed")}
    found = changes(
        before,
        {
            "same": configured("same"),
            "changed": configured("changed", max_batch_size="7"),
            "broken": error,
            "renamed": configured("another"),
            "new": configured("new"),
            "worse": error,
        },
    )
    assert found.unchanged == 1
    assert (sorted(found.removed), list(found.changed)) == (["gone", "renamed"], ["changed"])
    assert {file: config.name for file, config in found.added.items()} == {"renamed": "another", "new": "new"}
    assert found.rejected == {"broken": error, "worse": error}


def test_connectors_that_cannot_run_together_change_nothing() -> None:
    before = {"a": configured("a"), "b": configured("b")}
    with pytest.raises(ConfigurationError, match="name: b and c have the same"):
        changes(before, {**before, "c": configured("b")})
    broken = ConfigurationError([("x", "y")])
    with pytest.raises(ConfigurationError, match="name: a and c have the same"):
        changes(before, {"a": broken, "b": configured("b"), "c": configured("a")})
    assert changes(before, {"c": configured("a"), "b": configured("b")}).removed == ["a"], "a file may be renamed"


class Folder:
    """A worker whose connectors are in files; tasks do nothing."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("a", "b", "c"):
            self.write(name)
        files = self.files()
        found = {file: load(paths) for file, paths in files.items()}
        running = {file: one.name for file, one in found.items()}
        self.connectors = Connectors(
            found.values(), files=ConfigurationFiles(lambda: read_each(self.files()), running, several=True)
        )

    def files(self) -> dict[str, list[str]]:
        return {path.name: [str(path)] for path in sorted(self.folder.glob("*.properties"))}

    def write(self, name: str, **more: str) -> None:
        lines = {**PROPERTIES, **configured(name).properties, **{k.replace("_", "."): v for k, v in more.items()}}
        (self.folder / f"{name}.properties").write_text("".join(f"{key}={text}\n" for key, text in lines.items()))

    def tasks(self) -> dict[str, ConnectorTask]:
        return {name: service.connector for name, service in self.connectors.services.items()}


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks that run and do nothing."""

    def stop(task: ConnectorTask, _timeout: float | None = None) -> bool:
        task._ended = "STOPPED"
        return True

    monkeypatch.setattr(ConnectorTask, "start", lambda task: setattr(task, "begun", True))
    monkeypatch.setattr(ConnectorTask, "stop", stop)
    monkeypatch.setattr(ConnectorTask, "over", property(lambda task: task.ended or not hasattr(task, "begun")))


def during(folder: Path, use: Callable[[Folder], Awaitable[None]]) -> None:
    async def life() -> None:
        found = Folder(folder)
        await found.connectors.start()
        await use(found)
        await found.connectors.stop()
        assert all(task.ended for task in found.tasks().values())

    asyncio.run(life())


@pytest.mark.usefixtures("quiet")
def test_only_what_has_changed_is_restarted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def use(worker: Folder) -> None:
        before = worker.tasks()
        await worker.connectors.reload()
        assert worker.tasks() == before
        worker.write("b", max_batch_size="7")
        worker.write("c", snapshot_mode="sometimes")
        worker.write("d")
        await worker.connectors.reload()
        after = worker.tasks()
        assert list(after) == ["a", "b", "c", "d"]
        assert (after["a"], after["c"]) == (before["a"], before["c"])
        assert after["b"] is not before["b"]
        assert before["b"].ended
        assert all(task.begun for task in after.values())  # type: ignore[attr-defined]
        assert worker.connectors.services["b"].config.properties["max.batch.size"] == "7"
        assert "connector b: changed: max.batch.size" in caplog.text
        assert "c.properties is not used, and its connector continues as it is: the configuration has" in caplog.text
        assert "1 connectors started, 1 changed, 0 stopped, 1 as before, 1 rejected" in caplog.text
        shown = {name: (await one.status_at_once()).rejected for name, one in worker.connectors.services.items()}
        assert {name for name, problem in shown.items() if problem} == {"c"}
        assert "snapshot.mode" in str(shown["c"])

        worker.write("c")
        (tmp_path / "a.properties").unlink()
        await worker.connectors.reload()
        assert list(worker.tasks()) == ["b", "c", "d"]
        assert before["a"].ended
        assert (await worker.connectors.services["c"].status_at_once()).rejected is None
        for path in tmp_path.iterdir():
            path.unlink()
        await worker.connectors.reload()
        assert worker.tasks() == {}
        assert worker.connectors.stop_timeout_s == 1.0
        assert worker.connectors.kafka is None
        worker.write("e")
        await worker.connectors.reload()
        assert list(worker.tasks()) == ["e"]

    caplog.set_level("INFO")
    during(tmp_path, use)


@pytest.mark.usefixtures("quiet")
def test_a_restart_reads_the_file_of_its_connector(tmp_path: Path) -> None:
    async def use(worker: Folder) -> None:
        before, services = worker.tasks(), worker.connectors.services
        for name in ("a", "b"):
            worker.write(name, max_batch_size="7")
        await services["a"].rerun()
        assert services["a"].config.properties["max.batch.size"] == "7"
        assert worker.tasks()["a"] is not before["a"]
        assert worker.tasks()["b"] is before["b"], "the other one waits for its own restart, or SIGHUP"

        changed = worker.tasks()["a"]
        worker.write("a", snapshot_mode="sometimes")
        with pytest.raises(BadRequest, match="so connector a was not restarted: the configuration has a problem"):
            await services["a"].rerun()
        assert worker.tasks()["a"] is changed
        await services["c"].rerun()
        assert worker.tasks()["c"] is not before["c"], "nothing has changed: it is restarted as it is"

        worker.write("a", database_hostname="elsewhere")
        await services["a"].hold("PAUSED")
        await services["a"].rerun()
        assert (await services["a"].connect_state()).state == "PAUSED"
        assert worker.tasks()["a"] is changed
        await services["a"].resume()
        assert worker.tasks()["a"].config.database.hostname == "elsewhere"

        (tmp_path / "b.properties").unlink()
        with pytest.raises(BadRequest, match="SIGHUP stops it"):
            await services["b"].rerun()
        worker.write("d", topic_prefix="c")
        with pytest.raises(BadRequest, match=r"topic.prefix: c.properties and d.properties have the same"):
            await services["c"].rerun()

    during(tmp_path, use)


@pytest.mark.usefixtures("quiet")
def test_what_is_wrong_with_all_changes_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def use(worker: Folder) -> None:
        before = worker.tasks()
        worker.write("b", max_batch_size="7")
        worker.write("d", topic_prefix="c")
        await worker.connectors.reload()
        assert worker.tasks() == before
        assert "the configuration files are not used, and nothing changes" in caplog.text

    during(tmp_path, use)


@pytest.mark.usefixtures("quiet")
def test_a_connector_that_stands_by_from_now_on_is_another_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rowtide.connector.worker.group_lock.GroupLock.start", lambda _lock: None)

    async def use(worker: Folder) -> None:
        worker.write("b", rowtide_standby="true")
        await worker.connectors.reload()
        standing = worker.connectors.services["b"]
        assert standing.stands_by
        worker.write("b", rowtide_standby="true", database_hostname="elsewhere")
        await worker.connectors.reload()
        assert worker.connectors.services["b"] is standing
        assert standing.stands_by
        assert standing.connector.config.database.hostname == "elsewhere", "it begins with the new configuration"
        worker.write("b", rowtide_standby="false")
        await worker.connectors.reload()
        assert not worker.connectors.services["b"].stands_by

    during(tmp_path, use)


@pytest.mark.usefixtures("quiet")
def test_a_paused_connector_stays_paused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rowtide.connector.worker.group_lock.GroupLock.start", lambda _lock: None)

    async def use(worker: Folder) -> None:
        paused = worker.connectors.services["b"]
        await paused.hold("PAUSED")
        worker.write("b", bootstrap_servers="elsewhere:9092")
        await worker.connectors.reload()
        assert worker.connectors.services["b"] is paused, "it has no lock, so it is the same one"
        for standby in ("true", "false"):
            worker.write("b", rowtide_standby=standby)
            await worker.connectors.reload()
            other = worker.connectors.services["b"]
            assert (await other.connect_state()).state == "PAUSED"
            assert not hasattr(other.connector, "begun")
        await other.resume()
        assert hasattr(other.connector, "begun")

    during(tmp_path, use)


@pytest.mark.usefixtures("quiet")
def test_a_reload_waits_for_the_start(tmp_path: Path) -> None:
    async def life() -> None:
        worker = Folder(tmp_path)
        worker.write("c", max_batch_size="7")
        starting, start = asyncio.Event(), worker.connectors.services["a"].start

        async def slow() -> None:
            await starting.wait()
            await start()

        worker.connectors.services["a"].start = slow  # type: ignore[method-assign]
        both = asyncio.gather(worker.connectors.start(), worker.connectors.reload())
        await asyncio.sleep(0.1)
        assert worker.connectors.services["c"].config.properties.get("max.batch.size") is None
        starting.set()
        await both
        assert worker.tasks()["c"].config.properties["max.batch.size"] == "7"
        assert hasattr(worker.tasks()["c"], "begun")
        await worker.connectors.stop()

    asyncio.run(life())


@pytest.mark.usefixtures("quiet")
def test_a_stop_waits_for_a_connector_that_a_reload_stops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stopping, go_on, stopped = threading.Event(), threading.Event(), list[str]()

    def stop(task: ConnectorTask, _timeout: float | None = None) -> bool:
        if task.config.name == "b":
            stopping.set()
            assert go_on.wait(30)
        stopped.append(task.config.name)
        task._ended = "STOPPED"
        return True

    monkeypatch.setattr(ConnectorTask, "stop", stop)

    async def use(worker: Folder) -> None:
        (tmp_path / "b.properties").unlink()
        reload = asyncio.ensure_future(worker.connectors.reload())
        await asyncio.to_thread(stopping.wait, 30)
        end = asyncio.ensure_future(worker.connectors.stop())
        await asyncio.sleep(0.1)
        assert not end.done()
        go_on.set()
        await end
        assert sorted(stopped) == ["a", "b", "c"]
        await reload

    during(tmp_path, use)


@pytest.mark.usefixtures("quiet")
def test_the_process_ends_if_a_reload_leaves_only_connectors_that_have_ended(tmp_path: Path) -> None:
    async def use(worker: Folder) -> None:
        ended = list[bool]()
        worker.connectors.on_end = lambda: ended.append(True)
        worker.tasks()["a"]._ended = "FAILED"
        await worker.connectors.reload()
        assert not ended
        for name in ("b", "c"):
            (tmp_path / f"{name}.properties").unlink()
        await worker.connectors.reload()
        assert (list(worker.tasks()), ended) == (["a"], [True])

    during(tmp_path, use)


@pytest.fixture
def hung_up(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[list[bool]], list[str]]]:
    """Send SIGHUP to a worker; returns what it does."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)

    def send(terminals: list[bool], *, files: bool = True) -> list[str]:
        config, done = from_properties(PROPERTIES), list[str]()
        again = ConfigurationFiles(dict, {"f": config.name}) if files else None
        worker = Worker(create_app(config, files=again), loop=loop)
        monkeypatch.setattr(process, "has_terminal", lambda: terminals.pop(0))
        monkeypatch.setattr(Worker, "_signalled", lambda _worker, number: done.append(f"stop by {number.name}"))

        async def reload() -> None:
            done.append("reload")
            raise OSError("no such luck")

        monkeypatch.setattr(worker.app.connectors, "reload", reload)
        worker.install_signal_handlers()
        if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:
            return ["end"]
        os.kill(os.getpid(), signal.SIGHUP)
        loop.run_until_complete(asyncio.sleep(0.05))
        loop.remove_signal_handler(signal.SIGHUP)
        return done

    yield send
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.remove_signal_handler(number)
    loop.close()


def test_sighup_reads_the_files_again_unless_the_terminal_was_closed(
    hung_up: Callable[..., list[str]], caplog: pytest.LogCaptureFixture
) -> None:
    assert hung_up([False]) == ["reload"], "a service"
    assert "the files were read only in part" in caplog.text
    assert "no such luck" in caplog.text
    assert hung_up([True, True]) == ["reload"], "a terminal that is still there: kill -HUP"
    assert hung_up([True, False]) == ["stop by SIGHUP"], "a terminal that was closed"
    assert hung_up([], files=False) == ["end"], "without files, the signal ends the process as before"


IN_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""
"""Runs Python with standard input as its controlling terminal."""


def test_the_end_of_a_terminal_stops_the_worker(tmp_path: Path) -> None:
    config, log = tmp_path / "shop.properties", tmp_path / "log"
    away = {"database.port": str(free_port()), "bootstrap.servers": f"127.0.0.1:{free_port()}"}
    config.write_text("".join(f"{name}={text}\n" for name, text in {**PROPERTIES, **away}.items()))
    window, terminal = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", IN_TERMINAL, "-m", "rowtide", "run", str(config), "--no-web", "--log-file", str(log)],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        start_new_session=True,
    ) as worker:
        os.close(terminal)
        try:
            wait_for(log, "checking the database", worker)
            worker.send_signal(signal.SIGHUP)
            wait_for(log, "the configuration files were read again: 0 connectors started", worker)
            os.close(window)
            assert worker.wait(120) == 0
            assert "SIGHUP: delivering what was read, then stopping" in log.read_text()
        finally:
            worker.kill()


def wait_for(log: Path, text: str, worker: subprocess.Popen[bytes]) -> None:
    while not log.exists() or text not in log.read_text():
        assert worker.poll() is None, log.read_text()
        time.sleep(0.05)
