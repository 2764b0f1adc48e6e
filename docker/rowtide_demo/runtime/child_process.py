"""A command that runs in the background and ends with the demo."""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from rowtide_demo.errors import DemoError

__all__ = ["ChildProcess"]

_PR_SET_PDEATHSIG = 1


class ChildProcess:
    """A running command that writes its output to a log file.

    The command has its own session: Ctrl-C on the terminal signals only the demo, which then stops the command cleanly.
    If the demo is killed, Linux kills the command as well.
    """

    def __init__(
        self, name: str, argv: Sequence[str | Path], log: Path, *, environment: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self.log = log
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [str(part) for part in argv],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=log.parent,
                env={**os.environ, **(environment or {})},
                start_new_session=True,
                preexec_fn=_die_with_parent,  # noqa: PLW1509 - only calls the kernel
            )

    @property
    def running(self) -> bool:
        """Whether the command has not ended."""
        return self._process.poll() is None

    def require_running(self) -> None:
        """Check that the command has not ended.

        Raises:
            DemoError: it has ended. The message contains the end of its log.
        """
        if not self.running:
            raise self.failed(f"exited with code {self._process.returncode} although it was still needed")

    def wait(self, seconds: float) -> bool:
        """Wait at most ``seconds`` for the command to end; returns whether it has ended.

        Raises:
            DemoError: its exit code is not 0.
        """
        try:
            code = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        if code:
            raise self.failed(f"exited with code {code}")
        return True

    def stop(self, patience: float = 30) -> None:
        """Send SIGTERM, and kill the command and its children if it has not ended after ``patience`` seconds.

        Raises:
            DemoError: its exit code is not 0, or it had to be killed.
        """
        if self.running:
            self._process.send_signal(signal.SIGTERM)
        if not self.wait(patience):
            self.kill()
            raise self.failed(f"did not end within {patience:g} s after SIGTERM")

    def kill(self) -> None:
        """Kill the command and its children."""
        if self.running:
            os.killpg(self._process.pid, signal.SIGTERM)
            deadline = time.monotonic() + 5
            while self.running and time.monotonic() < deadline:
                time.sleep(0.05)
        if self.running:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def failed(self, what: str) -> DemoError:
        """Return an error about the command, with the end of its log."""
        lines = self.log.read_text(errors="replace").splitlines()[-12:]
        return DemoError(f"{self.name} {what}. The end of {self.log}:\n" + "\n".join(f"  {line}" for line in lines))


def _die_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
