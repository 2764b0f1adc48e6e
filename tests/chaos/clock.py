"""The clock of the worker, which can be stepped. Started as a script, it runs ``rowtide`` with that clock.

    python clock.py FILE run CONFIG...      # FILE holds the seconds to add

Only the time of day of the Python code steps, and monotonic clocks go on. libfaketime would step librdkafka's clock
too, but `time.sleep` fails under it: it makes ``clock_nanosleep`` with an absolute time return EINVAL. The clocks of
the servers stay; the writers step the times in the binlog with ``SET timestamp``.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

__all__ = ["Clock"]


class Clock:
    """A clock that can be stepped.

    Args:
        folder: the folder of the file that holds the step.
    """

    def __init__(self, folder: Path) -> None:
        self._file = folder / "clock"
        self.step(0)

    def step(self, seconds: int) -> None:
        """Set the clock to the real time plus these seconds."""
        new = self._file.with_suffix(".new")
        new.write_text(str(seconds))
        new.replace(self._file)

    def command(self, *arguments: str) -> list[str]:
        """The command that runs ``rowtide`` with this clock."""
        return [sys.executable, "-P", __file__, str(self._file), *arguments]


def main(file: Path, arguments: list[str]) -> None:
    """Run ``rowtide`` with the clock of a file."""
    real_s, real_ns = time.time, time.time_ns
    time.time = lambda: real_s() + int(file.read_text())
    time.time_ns = lambda: real_ns() + int(file.read_text()) * 1_000_000_000
    from rowtide.cli import main as rowtide

    rowtide(arguments)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
