"""Scans of Canal's configuration folder that meet errors."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from rowtide.canal import service
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

    def fails(root: Path, name: str, *more: object) -> object:
        if name == "a":
            raise PermissionError("instance.properties")
        return read(root, name)

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
