"""``rowtide canal`` for tests, within this process: its folder, and the server."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rowtide.canal.service import CanalService
from rowtide.tcp_server import Address

if TYPE_CHECKING:
    from rowtide_stack import Database

__all__ = ["configured", "running", "until"]

_PATIENCE_S = 180.0


def configured(folder: Path, database: Database, destination: str = "example", server: str = "", **more: str) -> Path:
    """A folder with one destination.

    Args:
        folder: where it is made.
        database: its only database.
        destination: the name.
        server: further lines of ``canal.properties``.
        more: further properties of the instance.
    """
    (folder / destination).mkdir(parents=True)
    (folder / "canal.properties").write_text(
        f"canal.port=0\ncanal.ip=127.0.0.1\ncanal.auto.scan.interval=1\n{server}\n"
    )
    properties = {
        "canal.instance.master.address": f"{database.server.host}:{database.server.port}",
        "canal.instance.dbUsername": database.server.user,
        "canal.instance.dbPassword": database.server.password,
        "canal.instance.filter.regex": rf"{database.name}\\..*",
        **more,
    }
    text = "".join(f"{name}={value}\n" for name, value in properties.items())
    (folder / destination / "instance.properties").write_text(text)
    return folder


@contextmanager
def running(folder: Path) -> Iterator[tuple[Address, CanalService]]:
    """A server, until the end of the block."""
    service = CanalService(folder)
    up = threading.Event()
    addresses: list[Address] = []
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()

    def listening(address: Address | None) -> None:
        assert address is not None
        addresses.append(address)
        up.set()

    thread = threading.Thread(target=lambda: loop.run_until_complete(service.run(stop, listening)))
    thread.start()
    try:
        assert up.wait(_PATIENCE_S)
        yield addresses[0], service
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(_PATIENCE_S)
        assert not thread.is_alive()
        loop.close()


def until(reached: Callable[[], bool]) -> None:
    """Wait for a state."""
    deadline = time.monotonic() + _PATIENCE_S
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.05)
