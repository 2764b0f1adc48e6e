"""The decision whether rows are decoded by compiled code."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

import pytest

from rowtide.connector.rows.native import implementation


@pytest.mark.skipif(implementation.native is None, reason="the compiled row path was not built: run docker/setup")
def test_stale_code_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    folder = tmp_path / "connector/rows/native"
    folder.mkdir(parents=True)
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
