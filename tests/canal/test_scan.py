"""Scans of Canal's configuration folder that meet errors."""

from __future__ import annotations

import asyncio
import random
import shutil
import threading
import time
from pathlib import Path
from typing import ClassVar

import pytest

from rowtide.canal import service
from rowtide.canal.configuration.model import InstanceSettings
from rowtide.canal.instance.instance import Instance
from rowtide.canal.instance.storage import META, FolderStorage, StoredClients
from rowtide.canal.service import CanalService


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "canal.properties").write_text("canal.port=0\n")
    add(tmp_path, "a")
    return tmp_path


def add(folder: Path, name: str) -> None:
    (folder / name).mkdir()
    (folder / name / "instance.properties").write_text(
        "canal.instance.master.address=127.0.0.1:1\ncanal.instance.dbUsername=canal\n"
    )


def scanned(found: CanalService) -> list[str]:
    """The destinations that run after a scan."""

    async def scan() -> list[str]:
        await found._scan()
        running = list(found.instances)
        for name in running:
            await found._end(name)
        return running

    return asyncio.run(scan())


def test_a_file_that_cannot_be_read_stops_no_other_destination(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = CanalService(folder)
    add(folder, "b")
    read = service.read_instance

    def fails(root: Path, name: str, *_more: object, kafka: bool) -> object:
        if name == "a":
            raise PermissionError("instance.properties")
        return read(root, name, kafka=kafka)

    with monkeypatch.context() as patched:
        patched.setattr(service, "read_instance", fails)
        assert scanned(found) == ["b"]
    assert scanned(found) == ["a", "b"]


def test_a_destination_starts_when_its_damaged_positions_are_gone(folder: Path) -> None:
    found = CanalService(folder)
    meta = folder / "a" / META
    meta.write_text("{")
    assert scanned(found) == []
    meta.unlink()
    assert scanned(found) == ["a"]


def test_damaged_positions_hold_up_no_other_destination_at_the_start(folder: Path) -> None:
    add(folder, "b")
    (folder / "a" / META).write_text("{")
    found = CanalService(folder)

    async def started() -> list[str]:
        stop = asyncio.Event()
        running: list[str] = []

        def listening(_address: object) -> None:
            running.extend(found.instances)
            stop.set()

        await found.run(stop, listening)
        return running

    assert asyncio.run(started()) == ["b"]


def test_a_destination_is_started_again_only_when_its_instance_has_ended(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = CanalService(folder)
    ends: list[bool] = [False, False, True]

    async def scans() -> list[list[str]]:
        await found._scan()
        stop = found.instances["a"].stop
        monkeypatch.setattr(found.instances["a"], "stop", lambda _limit: ends.pop(0) and stop())
        (folder / "a" / "instance.properties").write_text(
            "canal.instance.master.address=127.0.0.1:2\ncanal.instance.dbUsername=canal\n"
        )
        running = []
        for _ in range(2):
            await found._scan()
            running.append(list(found.instances))
        await found._end("a")
        return running

    assert asyncio.run(scans()) == [[], ["a"]]
    assert ends == []


def test_positions_that_are_read_slowly_hold_up_no_client(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = CanalService(folder)
    load, served = FolderStorage.load, threading.Event()

    def slow(storage: FolderStorage) -> StoredClients:
        assert served.wait(30)
        return load(storage)

    monkeypatch.setattr(FolderStorage, "load", slow)

    async def scan() -> list[str]:
        asyncio.get_running_loop().call_later(0.01, served.set)  # what serves a client
        await found._scan()
        running = list(found.instances)
        await found._end("a")
        return running

    assert asyncio.run(scan()) == ["a"]


def test_properties_that_need_a_restart_are_logged_once(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    found, server = CanalService(folder), folder / "canal.properties"

    async def scan() -> list[str]:
        caplog.clear()
        await found._scan()
        return [record.getMessage() for record in caplog.records if "restart" in record.getMessage()]

    async def scans() -> None:
        assert await scan() == []
        server.write_text("canal.port=1\ncanal.passwd=secret\ncanal.serverMode=kafka\ncanal.instance.gtidon=true\n")
        (said,) = await scan()
        assert "canal.port, canal.passwd, canal.serverMode changed" in said
        assert "secret" not in said
        assert isinstance(found.instances["a"], Instance), "the mode is that of the start"
        assert await scan() == []
        server.write_text("canal.port=0\n")
        assert await scan() == []
        server.write_text("canal.port=2\n")
        assert len(await scan()) == 1
        await found._end("a")

    asyncio.run(scans())


class Fake:
    """An instance that does nothing but run."""

    running: ClassVar[set[str]] = set()

    def __init__(self, settings: InstanceSettings) -> None:
        self.settings = settings
        assert settings.user == f"canal{settings.host}", "these settings were never written"

    def start(self) -> None:
        assert self.settings.destination not in self.running, "two instances would share their files"
        self.running.add(self.settings.destination)

    def stop(self, _limit: float) -> bool:
        self.running.discard(self.settings.destination)
        return True


def test_folders_that_appear_change_and_vanish_all_the_time(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """An instance has settings of one state of its file, and in the end those of the last one."""
    monkeypatch.setattr(service, "_instance", lambda settings, *_more: Fake(settings))
    chance, stopped = random.Random(7), threading.Event()
    shutil.rmtree(folder / "a")
    write(folder / "a", 0)
    found = CanalService(folder)

    def change() -> None:
        number = 0
        while not stopped.wait(chance.choice([0.001, 0.01, 0.1])):
            number += 1
            path = folder / chance.choice("abcdef")
            if path.exists() and chance.random() < 0.3:
                shutil.rmtree(path)
            else:
                write(path, number, pause_s=chance.choice([0.0, 0.0, 0.01]))

    async def scans() -> None:
        changing = threading.Thread(target=change)
        changing.start()
        try:
            for _ in range(12):
                await found._scan()
        finally:
            stopped.set()
            changing.join()
        await found._scan()
        assert set(found.instances) == Fake.running == {path.parent.name for path in folder.glob("*/*.properties")}
        for name, instance in found.instances.items():
            assert isinstance(instance, Fake)
            assert f"address={instance.settings.host}:1\n" in (folder / name / "instance.properties").read_text()

    asyncio.run(scans())
    assert not [record for record in caplog.records if record.exc_info]


def write(path: Path, number: int, pause_s: float = 0.0) -> None:
    """Write a configuration in two parts, of which the first can be taken for a whole one."""
    path.mkdir(exist_ok=True)
    with (path / "instance.properties").open("w") as file:
        file.write(f"canal.instance.master.address=h{number}:1\ncanal.instance.dbUsername=canal")
        file.flush()
        time.sleep(pause_s)
        file.write(f"h{number}\n")
