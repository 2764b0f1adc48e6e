"""The return of free memory."""

from __future__ import annotations

import asyncio
import ctypes
import errno
import itertools
import threading
from types import SimpleNamespace

import pytest

from rowtide.connector.worker import memory_release as memory

_MB = 1 << 20


def released(monkeypatch: pytest.MonkeyPatch, *sizes: int) -> list[int]:
    """Run the service while the process has these sizes, and return those at which it released memory."""
    found: list[int] = []
    left = list(sizes)

    def resident() -> int:
        if len(left) > 1:
            return left.pop(0)
        stopped.set()
        return left[0]

    async def run() -> None:
        service = memory.MemoryRelease(interval=0.001)
        async with service:
            await asyncio.wait_for(stopped.wait(), 20)

    stopped = asyncio.Event()
    monkeypatch.setattr(memory, "resident", resident)
    monkeypatch.setattr(memory, "release", lambda: found.append(left[0]))
    asyncio.run(run())
    return found


def test_memory_is_released_while_there_is_much_more_than_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    assert released(monkeypatch, 80 * _MB, 112 * _MB, 80 * _MB) == []
    # Each release is followed by the size that is logged.
    assert released(monkeypatch, 80 * _MB, 113 * _MB, 90 * _MB, 200 * _MB, 180 * _MB, 80 * _MB) == [90 * _MB, 180 * _MB]


def test_the_event_loop_continues_while_memory_is_released(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        loop, served = asyncio.get_running_loop(), threading.Event()
        results: asyncio.Queue[bool] = asyncio.Queue()

        def release() -> None:
            loop.call_soon_threadsafe(served.set)
            loop.call_soon_threadsafe(results.put_nowait, served.wait(20))

        monkeypatch.setattr(memory, "release", release)
        async with memory.MemoryRelease(interval=0.001):
            assert await asyncio.wait_for(results.get(), 60)

    sizes = itertools.chain([80 * _MB, 200 * _MB], itertools.repeat(80 * _MB))
    monkeypatch.setattr(memory, "resident", lambda: next(sizes))
    asyncio.run(run())


def test_nothing_is_done_without_proc(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    monkeypatch.setattr(memory, "_STATM", tmp_path / "statm")
    assert memory.resident() == 0
    assert released(monkeypatch, 0) == []


def test_too_many_open_files_are_no_reason_to_end(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_path: object) -> str:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(type(memory._STATM), "read_text", fail)
    assert memory.resident() == 0
    monkeypatch.undo()
    assert released(monkeypatch, 80 * _MB, 0, 80 * _MB) == [], "0 is no size"


def test_free_memory_is_returned() -> None:
    blocks = [bytes(60_000) for _ in range(2000)]  # not large enough for mappings of their own
    kept = blocks[::100]  # so that the end of the heap stays in use
    del blocks
    before = memory.resident()
    memory.release()
    assert memory.resident() <= before - 50 * _MB
    assert len(kept) == 20


def test_another_c_library_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda _name: SimpleNamespace())
    memory.release()
