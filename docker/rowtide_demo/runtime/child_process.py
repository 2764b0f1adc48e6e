"""A command that runs beside the demo, and ends with it."""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from rowtide_demo.errors import DemoError

__all__ = ["Child"]

_PR_SET_PDEATHSIG = 1


class Child:
    """A running command with its output in a log file.

    It has a session of its own, so that the Ctrl-C of a terminal reaches the demo alone, which then ends it in order.
    Should the demo be killed, Linux kills the command too.
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
        """Whether it has not ended."""
        return self._process.poll() is None

    def require_running(self) -> None:
        """Check that it has not ended.

        Raises:
            DemoError: it has; the message has the end of its log.
        """
        if not self.running:
            raise self.failed(f"ended with {self._process.returncode} while it was needed")

    def wait(self, seconds: float) -> bool:
        """Wait for its end; returns whether it has come.

        Raises:
            DemoError: it ended with an error.
        """
        try:
            code = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        if code:
            raise self.failed(f"ended with {code}")
        return True

    def stop(self, patience: float = 30) -> None:
        """Let it end by itself (SIGTERM); after ``patience`` seconds kill it and all that it has started.

        Raises:
            DemoError: it ended with an error, or had to be killed.
        """
        if self.running:
            self._process.send_signal(signal.SIGTERM)
        if not self.wait(patience):
            self.kill()
            raise self.failed(f"did not end within {patience:g} s of being told to")

    def kill(self) -> None:
        """End it and all that it has started."""
        if self.running:
            os.killpg(self._process.pid, signal.SIGTERM)
            deadline = time.monotonic() + 5
            while self.running and time.monotonic() < deadline:
                time.sleep(0.05)
        if self.running:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def failed(self, what: str) -> DemoError:
        """An error about it, with the end of its log."""
        lines = self.log.read_text(errors="replace").splitlines()[-12:]
        return DemoError(f"{self.name} {what}. The end of {self.log}:\n" + "\n".join(f"  {line}" for line in lines))


def _die_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
