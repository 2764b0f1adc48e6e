"""Scans of Canal's configuration folder that meet errors."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from rowtide.canal import service
from rowtide.canal.instance.client_positions import META
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
