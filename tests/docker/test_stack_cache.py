"""The cache of programs: its entries are complete and built once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from rowtide_stack.programs.cache import cache_root, cached

BUILD_SLOWLY = """
import sys, time
from rowtide_stack.programs.cache import cached

def build(folder):
    print("building", flush=True)
    time.sleep(1)
    (folder / "program").write_text("x")

print((cached("slow-1", build) / "program").read_text(), flush=True)
"""


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "cache"
    monkeypatch.setenv("ROWTIDE_CACHE", str(root))
    return root


def fill(folder: Path) -> None:
    (folder / "program").write_text("x")


def refuse(folder: Path) -> None:
    raise AssertionError("built again")


def test_an_entry_is_built_once(own_cache: Path) -> None:
    entry = cached("program-1.0", fill)
    assert entry == own_cache / "program-1.0"
    assert (entry / "program").read_text() == "x"
    assert cached("program-1.0", refuse) == entry
    assert entry.stat().st_mode & 0o777 == 0o755


def test_a_build_that_fails_leaves_nothing_and_can_be_repeated(own_cache: Path) -> None:
    def half(folder: Path) -> None:
        fill(folder)
        raise OSError("the network is down")

    with pytest.raises(OSError, match="network is down"):
        cached("program-1.0", half)
    assert [path.name for path in own_cache.iterdir()] == ["program-1.0.lock"]
    assert (cached("program-1.0", fill) / "program").exists()


def test_the_partial_entry_of_a_killed_run_is_removed(own_cache: Path) -> None:
    left_over = own_cache / ".program-1.0.abc.part"
    left_over.mkdir(parents=True)
    (left_over / "half").touch()
    cached("program-1.0", fill)
    assert not left_over.exists()


def test_concurrent_runs_build_an_entry_once() -> None:
    runs = [subprocess.Popen([sys.executable, "-c", BUILD_SLOWLY], stdout=subprocess.PIPE, text=True) for _ in range(3)]
    outputs = [run.communicate()[0].split() for run in runs]
    assert sorted(outputs) == [["building", "x"], ["x"], ["x"]]


def test_the_lock_of_a_killed_run_is_released() -> None:
    with subprocess.Popen([sys.executable, "-c", BUILD_SLOWLY], stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout
        assert run.stdout.readline() == "building\n"
        run.kill()
    assert (cached("slow-1", fill) / "program").exists()


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".hidden", "A b"])
def test_a_name_that_cannot_be_a_folder_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="cache entry"):
        cached(name, fill)


@pytest.mark.parametrize(
    ("own", "xdg", "expected"),
    [
        ("/own/place", "/xdg", "/own/place"),
        ("", "/xdg", "/xdg/rowtide"),
        ("", "relative", "~/.cache/rowtide"),
        ("", "", "~/.cache/rowtide"),
    ],
)
def test_the_folder_of_the_cache(monkeypatch: pytest.MonkeyPatch, own: str, xdg: str, expected: str) -> None:
    monkeypatch.setenv("ROWTIDE_CACHE", own)
    monkeypatch.setenv("XDG_CACHE_HOME", xdg)
    assert cache_root() == Path(expected).expanduser()
