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


def test_compiled_code_is_stale_if_a_source_is_newer(tmp_path: Path) -> None:
    compiled = file(tmp_path / "_native.so", 1000)
    assert not implementation.is_stale(compiled, tmp_path), "an installation has no sources"
    file(tmp_path / "columns.c", 1000)
    file(tmp_path / "native.h", 999)
    file(tmp_path / "columns.py", 2000)
    assert not implementation.is_stale(compiled, tmp_path)
    file(tmp_path / "native.h", 1001)
    assert implementation.is_stale(compiled, tmp_path)


@pytest.mark.skipif(implementation.native is None, reason="the compiled row path was not built: run docker/setup")
def test_stale_code_is_not_used(tmp_path: Path) -> None:
    copy = shutil.copy(str(implementation.__file__), tmp_path / "implementation.py")
    (tmp_path / "changed.c").write_text("")
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
