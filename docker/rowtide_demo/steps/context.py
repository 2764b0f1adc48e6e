"""What all steps share, and how they wait."""

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from rowtide_demo.runtime.child_process import Child
from rowtide_demo.runtime.interruption import Interruption
from rowtide_demo.runtime.screen import Screen
from rowtide_demo.shop.schema import Sizes
from rowtide_demo.steps.results import Facts

__all__ = ["Stage"]

_SILENCE = 90.0  # seconds without progress after which a step has failed
_TICK = 0.1


@dataclass(frozen=True, slots=True)
class Stage:
    """The demo's surroundings.

    Attributes:
        screen: where it is shown.
        interruption: what may end it.
        stack: ends what was started.
        folder: for configuration, logs and tables.
        sizes: of the shop.
        facts: numbers that the steps find.
        rowtide: the command.
        web_port: of the worker's web server.
    """

    screen: Screen
    interruption: Interruption
    stack: ExitStack
    folder: Path
    sizes: Sizes
    facts: Facts
    rowtide: Path
    web_port: int

    @property
    def config(self) -> Path:
        """The connector's configuration file."""
        return self.folder / "rowtide.properties"

    def log(self, name: str) -> Path:
        """The log file of a command."""
        return self.folder / f"{name}.log"

    def start(self, name: str, argv: Sequence[str | Path], environment: dict[str, str] | None = None) -> Child:
        """Start a command, whose log is named after its last word; it ends with the demo at the latest."""
        child = Child(name, argv, self.log(name.rsplit(maxsplit=1)[-1]), environment=environment)
        self.stack.callback(child.kill)
        return child

    def until(self, reached: Callable[[], bool], progress: Callable[[], object], child: Child) -> None:
        """Wait until something is reached, as long as there is progress and the command runs.

        Raises:
            DemoError: the command has ended, or nothing has moved for long.
        """
        last, since = progress(), time.monotonic()
        while not reached():
            self.interruption.check()
            child.require_running()
            now = progress()
            if now != last:
                last, since = now, time.monotonic()
            elif time.monotonic() - since > _SILENCE:
                raise child.failed(f"made no progress for {_SILENCE:g} s")
            time.sleep(_TICK)

    def finish(self, child: Child, told: Callable[[], None] = lambda: None) -> None:
        """Wait for the end of a command; ``told`` is called all the while.

        Raises:
            DemoError: it ended with an error.
        """
        while not child.wait(_TICK):
            self.interruption.check()
            told()
