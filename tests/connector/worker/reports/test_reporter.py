"""The reporter, when the terminal that it draws on goes away."""

from __future__ import annotations

import asyncio
import io
import time

import pytest
from rich.console import Console

from rowtide.connector.worker.reports import reporter as reporting
from rowtide.connector.worker.reports.reporter import Reporter, StatusSource
from rowtide.connector.worker.status import Status
from tests.support.processes.made_statuses import status


class Window(io.StringIO):
    """A terminal, until its window is closed."""

    gone = False

    def write(self, text: str) -> int:
        if self.gone:
            raise OSError(5, "Input/output error")
        return super().write(text)


async def source() -> Status:
    return status(name="shop")


def test_a_terminal_that_was_closed_does_not_end_the_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reporting, "_TERMINAL_S", 0.01)
    window = Window()

    async def life() -> BaseException | None:
        reporter = Reporter(lambda: [source])
        reporter.console = Console(file=window, force_terminal=True)
        await reporter.start()
        while "shop" not in window.getvalue():
            await asyncio.sleep(0.01)
        window.gone = True
        while not reporter.crashed and not reporter.console.quiet:
            await asyncio.sleep(0.01)
        reporter.console.print("a line of the log")
        await reporter.stop()
        return reporter.crash_reason

    assert asyncio.run(life()) is None


def test_connectors_come_and_go(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(reporting, "_LOG_S", 0.01)
    caplog.set_level("INFO")
    names = ["one"]

    def at(name: str) -> StatusSource:
        async def found() -> Status:
            return status(name=name, now=time.monotonic())

        return found

    async def life() -> None:
        reporter = Reporter(lambda: [at(name) for name in names])
        reporter.interval = 0.01
        await reporter.start()
        for name in ("one", "two"):
            names[:] = [name]
            async with asyncio.timeout(30):
                while f"{name}: " not in caplog.text:
                    await asyncio.sleep(0.01)
        names.clear()
        caplog.clear()
        await asyncio.sleep(0.1)
        await reporter.stop()
        assert reporter.crash_reason is None
        assert "one: " not in caplog.text

    asyncio.run(life())
