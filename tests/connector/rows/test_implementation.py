"""The decision whether rows are decoded by compiled code."""

from __future__ import annotations

import importlib.util
import os
import shutil
from pathlib import Path

import pytest

from rowtide.connector.rows.native import implementation


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
    assert not implementation.is_stale(compiled, folder)
    file(folder / "columns.c", 1000)
    file(folder / "native.h", 999)
    file(folder / "columns.py", 2000)
    assert not implementation.is_stale(compiled, folder)
    file(folder / "native.h", 1001)
    assert implementation.is_stale(compiled, folder)


def test_a_deeper_folder_belongs_to_the_same_checkout(folder: Path) -> None:
    deeper = folder.parents[1] / "delivery/kafka/native"
    deeper.mkdir(parents=True)
    compiled = file(deeper / "_native.so", 1000)
    assert not implementation.is_stale(compiled, deeper)
    file(deeper / "records.c", 1001)
    assert implementation.is_stale(compiled, deeper)


def test_an_installation_is_never_stale(folder: Path) -> None:
    """Its files have the times at which pip has written them, in any order."""
    (folder.parents[2] / "pyproject.toml").unlink()
    compiled = file(folder / "_native.so", 1000)
    file(folder / "columns.c", 1001)
    assert not implementation.is_stale(compiled, folder)


@pytest.mark.skipif(implementation.native is None, reason="the compiled row path was not built: run docker/setup")
def test_stale_code_is_not_used(folder: Path) -> None:
    copy = shutil.copy(str(implementation.__file__), folder / "implementation.py")
    (folder / "changed.c").write_text("")
    spec = importlib.util.spec_from_file_location("copied_implementation", copy)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.native is None
    assert (
        module.NAME
        == "Python (the compiled code is older than its source: run pip install again, as at the installation)"
    )
