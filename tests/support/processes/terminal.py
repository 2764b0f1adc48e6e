"""Programs as a reader of the documentation runs them: in a terminal, until Ctrl-C."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

__all__ = ["finished", "terminal"]

_LATE_S = 300


@contextlib.contextmanager
def terminal(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], stop: signal.Signals = signal.SIGINT
) -> Iterator[subprocess.Popen[str]]:
    """Run a command in a session of its own; the end of ``with`` stops all that runs in it."""
    with subprocess.Popen(
        command, cwd=folder, env=environment, text=True, stdout=subprocess.PIPE, start_new_session=True
    ) as process:
        late = threading.Timer(_LATE_S, os.killpg, (process.pid, signal.SIGKILL))
        late.start()
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, stop)
            process.wait()
            late.cancel()
    assert process.returncode != -signal.SIGKILL or stop == signal.SIGKILL, f"it ran for longer than {_LATE_S} s"


def finished(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> str:
    """The output of a command that ends by itself."""
    with terminal(command, folder, environment) as process:
        assert process.stdout is not None
        output = process.stdout.read()
    assert process.returncode == 0, output
    return output
