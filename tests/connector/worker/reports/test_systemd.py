"""Messages to systemd, as its manager gets them."""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
from pathlib import Path

import pytest

from rowtide.connector.worker.reports.systemd import SystemdNotifier, described, interval
from rowtide.connector.worker.status import Status
from tests.support.processes.made_statuses import status


async def source() -> Status:
    return status(name="shop", state="RECONNECTING", error="away\nnow")


def received(address: str, bound: str | bytes) -> list[str]:
    """The messages of a worker that starts and stops."""

    async def life() -> None:
        service = SystemdNotifier(lambda: [source], {"NOTIFY_SOCKET": address})
        await service.start()
        await asyncio.sleep(0.05)
        await service.stop()

    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(bound)
        manager.setblocking(False)
        asyncio.run(life())
        found = []
        with contextlib.suppress(BlockingIOError):
            while True:
                found.append(manager.recv(4096).decode())
        return found


WANTED = ["READY=1", "WATCHDOG=1", "STATUS=shop: RECONNECTING, away now", "STOPPING=1"]


def test_the_messages_of_a_life(tmp_path: Path) -> None:
    path = str(tmp_path / "notify")
    assert received(path, path) == WANTED


def test_a_reload_begins_and_ends(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(path := str(tmp_path / "notify"))
        service = SystemdNotifier(list, {"NOTIFY_SOCKET": path})
        service.reloading()
        service.reloaded()
        first, second = (manager.recv(4096).decode() for _ in range(2))
    assert re.fullmatch(r"RELOADING=1\nMONOTONIC_USEC=[0-9]+", first), "see sd_notify(3)"
    assert second == "READY=1"


def test_an_abstract_socket() -> None:
    assert received("@rowtide-test-notify", b"\0rowtide-test-notify") == WANTED


def test_without_systemd_nothing_is_sent(caplog: pytest.LogCaptureFixture) -> None:
    async def life() -> None:
        service = SystemdNotifier(lambda: [source], {})
        await service.start()
        await service.stop()

    asyncio.run(life())
    assert caplog.records == []


def test_a_systemd_that_does_not_answer_does_not_stop_the_worker(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def life() -> None:
        service = SystemdNotifier(lambda: [source], {"NOTIFY_SOCKET": str(tmp_path / "none")})
        await service.start()
        await service.stop()

    asyncio.run(life())
    assert f"systemd cannot be reached at {tmp_path / 'none'}" in caplog.text


@pytest.mark.parametrize(
    ("environ", "seconds"),
    [
        ({}, 10.0),
        ({"WATCHDOG_USEC": "60000000"}, 10.0),
        ({"WATCHDOG_USEC": "6000000"}, 2.0),
        ({"WATCHDOG_USEC": "6000000", "WATCHDOG_PID": "7"}, 2.0),
        ({"WATCHDOG_USEC": "6000000", "WATCHDOG_PID": "8"}, 10.0),
        ({"WATCHDOG_USEC": "soon"}, 10.0),
    ],
)
def test_the_watchdogs_limit_is_kept(environ: dict[str, str], seconds: float) -> None:
    assert interval(environ, 7) == seconds


def test_a_status_is_one_line() -> None:
    assert described(status(name="shop")) == "shop: RUNNING"
