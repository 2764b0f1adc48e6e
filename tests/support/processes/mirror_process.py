"""A process of ``rowtide mirror``."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.connector_properties import address

if TYPE_CHECKING:
    from rowtide_stack import SqlServer

__all__ = ["MirrorProcess", "mirroring"]


class MirrorProcess:
    """A process of ``rowtide mirror``.

    Args:
        server: the server.
        folder: the folder of the configuration and the mirror.
        options: further options.
    """

    def __init__(self, server: SqlServer, folder: Path, *options: str) -> None:
        self.mirror = folder / "mirror"
        config = folder / "mirror.properties"
        properties = {"database.flavor": server.name, "connect.timeout.ms": "5000", **address(server)}
        config.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
        self._log = folder / "mirror.log"
        command = [sys.executable, "-m", "rowtide", "mirror", str(config), "--to", str(self.mirror), *options]
        # Variables with this prefix are properties, except for the one that makes tests longer.
        environment = {name: text for name, text in os.environ.items() if name != "ROWTIDE_CAMPAIGN"}
        with self._log.open("ab") as log:
            self._begin = log.tell()
            self._process = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder, env=environment)

    @property
    def log(self) -> str:
        """What all processes with this folder wrote."""
        return self._log.read_text()

    @property
    def own_log(self) -> str:
        """What this process wrote."""
        return self._log.read_bytes()[self._begin :].decode()

    @property
    def ended(self) -> bool:
        """Whether it has ended."""
        return self._process.poll() is not None

    def wait(self) -> int:
        """Wait for the end; returns the exit code."""
        return self._process.wait(180)

    def stop(self) -> int:
        """Send SIGTERM and wait; returns the exit code."""
        self._process.terminate()
        return self.wait()

    def kill(self) -> None:
        """Kill it, as in a crash."""
        self._process.kill()
        self._process.wait()


@contextlib.contextmanager
def mirroring(server: SqlServer, folder: Path, *options: str) -> Iterator[MirrorProcess]:
    """Run a mirror, which is killed at the end if it still runs."""
    process = MirrorProcess(server, folder, *options)
    try:
        yield process
    finally:
        process.kill()
