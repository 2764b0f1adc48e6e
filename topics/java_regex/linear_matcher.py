"""Matches a regular expression in a time that grows with its size times the length of the text.

The expression becomes a graph of steps, each of which determines the next step. A step is tried at a place of the text
only once: a step that failed there would fail again (RE2 calls this bit state). The match is the one that Java and
:mod:`re` find first.
"""

import re
from typing import TypeAlias

from rowtide.topics.java_regex.parts import Chain, Choice, Group, Look, Part, Piece, Repetition

Bounds: TypeAlias = "tuple[int, int, Bounds] | None"
"""The newest bound of a group: 2 * its number, + 1 at its end; its place; and the bounds before it."""


class _Step:
    __slots__ = ("next",)

    def __init__(self, next_: "_Step | None" = None) -> None:
        self.next = next_


class _Match(_Step):
    """A piece."""

    __slots__ = ("match",)

    def __init__(self, pattern: re.Pattern[str], next_: _Step) -> None:
        super().__init__(next_)
        self.match = pattern.match


class _Fork(_Step):
    """Try ``next``, and then ``second``."""

    __slots__ = ("second",)

    def __init__(self, next_: _Step, second: _Step) -> None:
        super().__init__(next_)
        self.second = second


class _Again(_Step):
    """Repeat, or continue with ``after`` if the last repetition matched nothing."""

    __slots__ = ("after",)

    def __init__(self, after: _Step) -> None:
        super().__init__()
        self.after = after


class _Bound(_Step):
    """The beginning or the end of a group."""

    __slots__ = ("number",)

    def __init__(self, number: int, next_: _Step) -> None:
        super().__init__(next_)
        self.number = number


class _Look(_Step):
    """A look-around or an atomic group."""

    __slots__ = ("look", "start")

    def __init__(self, look: Look, start: _Step, next_: _Step) -> None:
        super().__init__(next_)
        self.look = look
        self.start = start


class LinearMatcher:
    """An expression without references to groups.

    Args:
        part: the expression.
        flags: the flags with which its pieces are compiled.
    """

    def __init__(self, part: Part, flags: re.RegexFlag) -> None:
        self._flags = flags
        self._compiled: dict[str, re.Pattern[str]] = {}
        self._start = self._step(part, _Step())

    def _step(self, part: Part, after: _Step) -> _Step:
        """Return the first step of a part, whose last one is followed by ``after``."""
        match part:
            case Chain():
                for one in reversed(part.parts):
                    after = self._step(one, after)
            case Choice():
                steps = [self._step(one, after) for one in part.parts]
                after = steps[-1]
                for step in reversed(steps[:-1]):
                    after = _Fork(step, after)
            case Group(number=None):
                after = self._step(part.part, after)
            case Group(number=int(number)):
                after = _Bound(2 * number, self._step(part.part, _Bound(2 * number + 1, after)))
            case Repetition():
                after = self._repetition(part, after)
            case Look():
                after = _Look(part, self._step(part.part, _Step()), after)
            case Piece():
                if part.text not in self._compiled:
                    self._compiled[part.text] = re.compile(part.text, self._flags)
                after = _Match(self._compiled[part.text], after)
        return after

    def _repetition(self, part: Repetition, after: _Step) -> _Step:
        if part.high is None:
            again = _Again(after)
            more = self._step(part.part, again)
            after = again.next = _Fork(after, more) if part.lazy else _Fork(more, after)
        else:
            end = after
            for _ in range(part.high - part.low):
                more = self._step(part.part, after)
                after = _Fork(end, more) if part.lazy else _Fork(more, end)
        for _ in range(part.low):
            after = self._step(part.part, after)
        return after

    def fullmatch(self, text: str) -> tuple[int, Bounds] | None:
        """Match the whole text.

        Returns:
            Its end, and the bounds of the groups; ``None`` without a match.
        """
        return _run(self._start, text, 0, None, set(), whole=True)

    def search(self, text: str, at: int) -> tuple[int, int, Bounds] | None:
        """Find the first match at or after a place.

        Returns:
            Its start, its end, and the bounds of the groups; ``None`` without a match.
        """
        tried: set[tuple[_Step, int]] = set()
        for start in range(at, len(text) + 1):
            found = _run(self._start, text, start, None, tried)
            if found is not None:
                return start, *found
        return None


def _run(
    start: _Step, text: str, begin: int, bounds: Bounds, tried: set[tuple[_Step, int]], *, whole: bool = False
) -> tuple[int, Bounds] | None:
    left = [(start, begin, bounds)]
    while left:
        step, at, bounds = left.pop()
        while (step, at) not in tried:
            if isinstance(step, _Again):
                step = step.after if (step.next, at) in tried or step.next is None else step.next
                continue
            tried.add((step, at))
            following = step.next
            if isinstance(step, _Match):
                found = step.match(text, at)
                if found is None:
                    break
                at = found.end()
            elif isinstance(step, _Fork):
                left.append((step.second, at, bounds))
            elif isinstance(step, _Bound):
                bounds = (step.number, at, bounds)
            elif isinstance(step, _Look):
                look = step.look
                place = at - look.part.width if look.behind else at
                inner = _run(step.start, text, place, bounds, set()) if place >= 0 else None
                if (inner is None) != look.negated:
                    break
                if inner is not None:
                    at, bounds = (inner[0] if look.keeps else at), inner[1]
            elif not whole or at == len(text):
                return at, bounds
            if following is None:
                break
            step = following
    return None
