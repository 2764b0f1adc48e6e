"""Fixtures of the tests of the local stack."""

from __future__ import annotations

from pathlib import Path

import pytest
import rowtide_stack


@pytest.fixture(autouse=True)
def stack_for_child_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let Python processes that a test starts import the stack, which is not installed as a package."""
    monkeypatch.setenv("PYTHONPATH", str(Path(rowtide_stack.__file__).parents[1]))
