"""The state that all steps share: the screen, the folder, the started programs, and functions to wait for them."""

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from rowtide_demo.runtime.child_process import ChildProcess
from rowtide_demo.runtime.interruption import Interruption
from rowtide_demo.runtime.screen import Screen
from rowtide_demo.shop.schema import Sizes
from rowtide_demo.steps.results import Results

__all__ = ["Context"]

_STALLED = 90.0  # seconds without progress after which a step fails
_TICK = 0.1  # seconds between polls


@dataclass(frozen=True, slots=True)
class Context:
    """The state that the steps share.

    Attributes:
        screen: the output.
        interruption: the signal that interrupts the demo.
        stack: closes everything that was started.
        folder: the folder of the configuration, the logs and the tables.
        sizes: the initial number of rows.
        results: the measurements of the steps.
        rowtide: the path of the command ``rowtide``.
        web_port: the port of the worker's web server.
    """

    screen: Screen
    interruption: Interruption
    stack: ExitStack
    folder: Path
    sizes: Sizes
    results: Results
    rowtide: Path
    web_port: int

    @property
    def config(self) -> Path:
        """The configuration file of the connector."""
        return self.folder / "rowtide.properties"

    def log(self, name: str) -> Path:
        """Return the log file of a command."""
        return self.folder / f"{name}.log"

    def start(self, name: str, argv: Sequence[str | Path], environment: dict[str, str] | None = None) -> ChildProcess:
        """Start a command that is killed at the end of the demo. Its log is named after the last word of ``name``."""
        child = ChildProcess(name, argv, self.log(name.rsplit(maxsplit=1)[-1]), environment=environment)
        self.stack.callback(child.kill)
        return child

    def until(self, reached: Callable[[], bool], progress: Callable[[], object], child: ChildProcess) -> None:
        """Wait until ``reached`` returns true.

        Args:
            reached: the condition.
            progress: returns a value that changes as long as there is progress.
            child: the command that must keep running.

        Raises:
            DemoError: the command has ended, or there was no progress for a long time.
        """
        last, since = progress(), time.monotonic()
        while not reached():
            self.interruption.check()
            child.require_running()
            now = progress()
            if now != last:
                last, since = now, time.monotonic()
            elif time.monotonic() - since > _STALLED:
                raise child.failed(f"made no progress for {_STALLED:g} s")
            time.sleep(_TICK)

    def finish(self, child: ChildProcess, poll: Callable[[], None] = lambda: None) -> None:
        """Wait until a command ends, calling ``poll`` regularly.

        Raises:
            DemoError: its exit code is not 0.
        """
        while not child.wait(_TICK):
            self.interruption.check()
            poll()
