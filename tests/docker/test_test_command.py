"""The command ``docker/test``, in a copy of the checkout whose programs only say how they are called."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.source_tree import ROOT

FAST = "not servers and not spark and not browser and not nightly"
SAYS = '#!/bin/sh\necho "$(basename "$0")" "$ROWTIDE_CAMPAIGN" "$@"\n'


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder with the command, and stand-ins for the programs that it calls."""
    for name in ("docker/setup", "docker/stack", ".venv/bin/python", "bin/docker"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(SAYS.replace("echo", "false #") if name == "bin/docker" else SAYS)
        path.chmod(0o755)
    shutil.copy(ROOT / "docker/test", tmp_path / "docker/test")
    return tmp_path


def called(checkout: Path, *arguments: str) -> list[str]:
    """Run the command; returns what the programs say that print to its standard output."""
    environment = {**os.environ, "PATH": f"{checkout / 'bin'}:{os.environ['PATH']}", "ROWTIDE_CAMPAIGN": ""}
    done = subprocess.run(
        [checkout / "docker/test", *arguments], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


def test_it_sets_up_and_runs_all_tests(checkout: Path) -> None:
    assert called(checkout, "tests/envelope", "-x") == ["setup ", "python  -m pytest -n 3 tests/envelope -x"]


def test_fast_runs_those_without_servers(checkout: Path) -> None:
    assert called(checkout, "--fast", "-q") == ["setup ", f"python  -m pytest -n 2 -m {FAST} -q"]


def test_nightly_runs_all_with_campaigns(checkout: Path) -> None:
    assert called(checkout, "--nightly") == ["setup 30", "python 30 -m pytest -n 2 -m  -o timeout=7200"]


def test_install_runs_none(checkout: Path) -> None:
    assert called(checkout, "--install") == ["setup "]


def test_help_explains_it(checkout: Path) -> None:
    (first, *_rest, last) = called(checkout, "--help")
    assert first.startswith("Sets up this checkout")
    assert "docker/test --help" in last
