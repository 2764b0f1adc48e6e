"""A child process whose output is written to a file."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

__all__ = ["ChildProcess"]

_PATIENCE_S = 120.0


class ChildProcess:
    """A program that can be started and stopped any number of times."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._log: Path | None = None

    @property
    def pid(self) -> int:
        """The process id."""
        assert self._process is not None, "not started"
        return self._process.pid

    def alive(self) -> bool:
        """Whether the process runs."""
        return self._process is not None and self._process.poll() is None

    def ended(self) -> bool:
        """Whether the process has ended without `stop`."""
        return self._process is not None and self._process.poll() is not None

    def output(self) -> str:
        """The output of all runs."""
        return "" if self._log is None else self._log.read_text(errors="replace")

    def _run(self, command: Sequence[str], log: Path) -> None:
        """Start a program that appends its output to a file."""
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as file:
            self._process = subprocess.Popen(command, stdout=file, stderr=file, stdin=subprocess.DEVNULL)
        self._log = log

    def stop(self) -> None:
        """Send SIGTERM, and SIGKILL after two minutes; waits for the end."""
        process, self._process = self._process, None
        if process is not None and process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(_PATIENCE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
