"""A program in a process of its own, whose output is kept in a file."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

__all__ = ["ChildProcess"]

_PATIENCE_S = 60.0


class ChildProcess:
    """A program that is run and stopped any number of times."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._log: Path | None = None

    @property
    def pid(self) -> int:
        """The process."""
        assert self._process is not None, "not started"
        return self._process.pid

    def alive(self) -> bool:
        """Whether the process runs."""
        return self._process is not None and self._process.poll() is None

    def ended(self) -> bool:
        """Whether it has ended by itself."""
        return self._process is not None and self._process.poll() is not None

    def output(self) -> str:
        """What it has written, in all its runs."""
        return "" if self._log is None else self._log.read_text(errors="replace")

    def _run(self, command: Sequence[str], log: Path) -> None:
        """Run a program; its output goes to the end of a file."""
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as file:
            self._process = subprocess.Popen(command, stdout=file, stderr=file, stdin=subprocess.DEVNULL)
        self._log = log

    def stop(self) -> None:
        """End it in order, or after a minute anyhow, and wait for the end."""
        process, self._process = self._process, None
        if process is not None and process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(_PATIENCE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
