"""The decision whether compiled code is used."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rowtide.connector.protocol.native.compiled import is_stale


def file(path: Path, seconds: int) -> Path:
    path.write_text("")
    os.utime(path, (seconds, seconds))
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of the sources in a checkout."""
    (tmp_path / "pyproject.toml").write_text("")
    found = tmp_path / "connector/rows/native"
    found.mkdir(parents=True)
    return found


def test_compiled_code_is_stale_if_a_source_is_newer(folder: Path) -> None:
    compiled = file(folder / "_native.so", 1000)
    assert not is_stale(compiled, folder)
    file(folder / "columns.c", 1000)
    file(folder / "native.h", 999)
    file(folder / "columns.py", 2000)
    assert not is_stale(compiled, folder)
    file(folder / "native.h", 1001)
    assert is_stale(compiled, folder)


def test_a_deeper_folder_belongs_to_the_same_checkout(folder: Path) -> None:
    deeper = folder.parents[1] / "delivery/kafka/native"
    deeper.mkdir(parents=True)
    compiled = file(deeper / "_native.so", 1000)
    assert not is_stale(compiled, deeper)
    file(deeper / "records.c", 1001)
    assert is_stale(compiled, deeper)


def test_a_checkout_imports_its_folders_through_links(folder: Path) -> None:
    package = folder.parents[2] / "rowtide"
    package.mkdir()
    (package / "connector").symlink_to("../connector")
    compiled = file(folder / "_native.so", 1000)
    file(folder / "columns.c", 1001)
    assert is_stale(compiled, package / "connector/rows/native")


def test_an_installation_is_never_stale(folder: Path) -> None:
    """Its files have the times at which pip has written them, in any order."""
    (folder.parents[2] / "pyproject.toml").unlink()
    compiled = file(folder / "_native.so", 1000)
    file(folder / "columns.c", 1001)
    assert not is_stale(compiled, folder)
