"""Runs a target on many made inputs, and finds those that break its rules.

A target declares the errors that may leave it. Everything else is a failure: another error, an input that takes too
much processor time, or one that takes too much memory. An input depends on the seed and its number only, so every
failure can be repeated.
"""

from __future__ import annotations

import resource
import signal
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from types import FrameType
from typing import Protocol

ROOT = Path(__file__).parents[2]
SECONDS = 5.0
"""Processor time of one input. The slowest valid ones take some milliseconds."""
MEMORY = 256 << 20
"""Bytes by which one input may raise the process's highest memory use."""
_MINIMISE_STEPS = 3000


class Target(Protocol):
    """Code that reads input from outside.

    Attributes:
        declared: the errors that may leave it.
    """

    declared: tuple[type[Exception], ...]

    def make(self, random: Random) -> bytes:
        """An input: recorded or generated, then damaged."""
        ...

    def run(self, data: bytes) -> None:
        """Process an input. Raises one of ``declared``, or ``AssertionError`` if a rule does not hold."""
        ...


class TooSlow(BaseException):
    """An input took more than its processor time; no handler of `Exception` may catch this."""


@dataclass(frozen=True, slots=True)
class Failure:
    """An input that breaks a rule.

    Attributes:
        target: name of the target.
        seed: of the campaign.
        number: of the input.
        kind: the class of the error and the line that raised it; failures of one kind have one cause.
        detail: the error as text.
        data: the input.
    """

    target: str
    seed: int
    number: int
    kind: str
    detail: str
    data: bytes

    def __str__(self) -> str:
        return (
            f"{self.target}: {self.kind}\n  seed {self.seed}, input {self.number}, {len(self.data)} bytes\n"
            f"  {self.detail}\n  {self.data[:2000]!r}"
        )


def problem(target: Target, data: bytes) -> tuple[str, str] | None:
    """Run one input; the kind and the text of its problem, ``None`` if it breaks no rule."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        target.run(data)
    except target.declared as error:
        if not str(error):
            return "an error without a message", repr(error)
    except (Exception, TooSlow) as error:  # noqa: BLE001 - these are what is looked for
        return f"{type(error).__name__} in {_line(error)}", str(error)[:300]
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak) << 10
    return ("too much memory", f"{grown >> 20} MiB") if grown > MEMORY else None


def search(name: str, target: Target, seed: int, numbers: range) -> Iterator[Failure | None]:
    """Run the inputs with these numbers; yields a failure or ``None`` for each."""
    signal.signal(signal.SIGVTALRM, _stop)
    for number in numbers:
        data = target.make(Random(f"{name} {seed} {number}"))
        found = problem(target, data)
        yield None if found is None else Failure(name, seed, number, *found, data)


def minimised(target: Target, failure: Failure) -> Failure:
    """The failure with a shorter input that has a problem of the same kind: parts are removed, smaller and smaller."""
    data, detail = failure.data, failure.detail
    if failure.kind.startswith(("TooSlow", "too much memory")):
        return failure  # every step would be slow, or not grow the peak again
    size, steps = max(1, len(data) // 2), 0
    while size and steps < _MINIMISE_STEPS:
        at = 0
        while at < len(data) and steps < _MINIMISE_STEPS:
            shorter = data[:at] + data[at + size :]
            found, steps = problem(target, shorter), steps + 1
            if found is not None and found[0] == failure.kind:
                data, detail = shorter, found[1]
            else:
                at += size
        size //= 2
    return Failure(failure.target, failure.seed, failure.number, failure.kind, detail, data)


def _stop(_signal: int, _frame: FrameType | None) -> None:
    raise TooSlow(f"more than {SECONDS:.0f} s of processor time")


def _line(error: BaseException) -> str:
    """The innermost line of rowtide's code; without line number in generated code and in recursions."""
    if isinstance(error, RecursionError):
        names = [frame.name for frame in traceback.extract_tb(error.__traceback__)[-20:]]
        return " ".join(sorted(set(names[:5])))
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if "/tests/fuzz/campaign" not in frame.filename
    ]
    ours = [frame for frame in frames if frame.filename.startswith(str(ROOT)) and "/.venv/" not in frame.filename]
    if isinstance(error, TooSlow):  # it can be interrupted anywhere
        return next((frame.name for frame in ours if "/tests/" not in frame.filename), "the target")
    frame = (ours or frames)[-1]
    return f"{frame.filename.removeprefix(f'{ROOT}/')}:{frame.lineno} {frame.name}"
