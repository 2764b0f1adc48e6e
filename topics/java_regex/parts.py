r"""The parts of regular expressions: their text in Python's syntax, and bounds of the effort to match them.

:mod:`re` tries all ways in which the parts of an expression can share a text among them: 2ⁿ for ``(\w+)+!`` and n
letters, n³ for ``.*.*.*!``. Each part has an upper bound of its ways.
"""

import functools
import itertools
from collections.abc import Sequence

LENGTH = 256
"""The length of text that the bounds hold for. No name of a topic, database, table or column is longer."""
_MOST = 1 << 62


class Part:
    """A part of an expression.

    Attributes:
        text: in Python's syntax.
        ways: the maximum number of ways in which it can match.
        size: how many instructions its program for :mod:`rowtide.topics.java_regex.linear_matcher` has, at most.
        width: the number of characters that it matches, if it is always the same.
        literal: the only text that it matches; ``None`` if there are others.
        looks: whether it has parts that look ahead, look behind, or do not give back what they have matched.
        scans: whether they do so at many places of a text.
        refers: whether it refers to the text that a group matched.
    """

    __slots__ = ("literal", "looks", "refers", "scans", "size", "text", "ways", "width")

    def __init__(
        self,
        text: str,
        parts: "Sequence[Part]" = (),
        *,
        ways: int = 1,
        size: int = 1,
        width: int = 0,
        literal: str | None = None,
        looks: bool = False,
        scans: bool = False,
        refers: bool = False,
    ) -> None:
        self.text = text
        self.ways, self.size = min(ways, _MOST), min(size, _MOST)
        self.width = width
        self.literal = literal
        self.looks: bool = looks or any(part.looks for part in parts)
        self.scans: bool = scans or any(part.scans for part in parts)
        self.refers: bool = refers or any(part.refers for part in parts)


class Piece(Part):
    """A character or an assertion such as ``^``, which :mod:`re` matches in one way."""

    __slots__ = ()

    def __init__(self, text: str, width: int, literal: str | None = None) -> None:
        super().__init__(text, width=width, literal=literal)


class Reference(Part):
    r"""The text that a group matched, again: ``\1``."""

    __slots__ = ()

    def __init__(self, text: str) -> None:
        super().__init__(text, refers=True)


class Chain(Part):
    """Parts that follow one another."""

    __slots__ = ("parts",)

    def __init__(self, parts: Sequence[Part]) -> None:
        literals = [part.literal for part in parts if part.literal is not None]
        super().__init__(
            "".join(part.text for part in parts),
            parts,
            ways=functools.reduce(lambda ways, part: min(ways * part.ways, _MOST), parts, 1),
            size=sum(part.size for part in parts),
            width=sum(part.width for part in parts),
            literal="".join(literals) if len(literals) == len(parts) else None,
            scans=any(part.looks for part in itertools.dropwhile(_ends_at_one_place, parts)),
        )
        self.parts = parts


class Choice(Part):
    """Alternatives: ``a|b``."""

    __slots__ = ("parts",)

    def __init__(self, parts: Sequence[Part]) -> None:
        words = {part.literal.lower() for part in parts if part.literal is not None}
        # Different words of the same length exclude one another.
        lengths = len({len(word) for word in words}) if len(words) == len(parts) else None
        super().__init__(
            "|".join(part.text for part in parts),
            parts,
            ways=lengths or sum(part.ways for part in parts),
            size=sum(part.size + 2 for part in parts),
            width=parts[0].width,
        )
        self.parts = parts


class Group(Part):
    """A group in parentheses.

    Attributes:
        part: its content.
        number: counted from 1; ``None`` if it captures nothing.
    """

    __slots__ = ("number", "part")

    def __init__(self, part: Part, number: int | None, opening: str) -> None:
        super().__init__(
            f"{opening}{part.text})",
            [part],
            ways=part.ways,
            size=part.size + 2,
            width=part.width,
            literal=part.literal,
        )
        self.part = part
        self.number = number


class Repetition(Part):
    """A part with a quantifier.

    Attributes:
        part: the repeated part.
        low: the least number of repetitions.
        high: the greatest number of repetitions; ``None`` without a limit.
        lazy: whether it is repeated as seldom as possible, instead of as often as possible.
    """

    __slots__ = ("high", "lazy", "low", "part")

    def __init__(self, part: Part, low: int, high: int | None, quantifier: str) -> None:
        most = LENGTH if high is None else min(high, LENGTH)
        super().__init__(
            f"{part.text}{quantifier}",
            [part],
            ways=max(most - low, 0) + 1 if part.ways == 1 else part.ways ** (most + 1),
            size=(part.size + 1) * (low + 1 if high is None else max(low, high)) + 2,
            width=part.width * low,
            scans=part.looks,
        )
        self.part = part
        self.low, self.high, self.lazy = low, high, quantifier.endswith("?") and len(quantifier) > 1


class Look(Part):
    """A part that is matched independently, in one way: a look-around or an atomic group.

    Attributes:
        part: its content.
        behind: whether it ends where the rest begins, as a look-behind does.
        negated: whether it must not match.
        keeps: whether its text counts as matched, as that of an atomic group does.
    """

    __slots__ = ("behind", "keeps", "negated", "part")

    def __init__(
        self, part: Part, text: str, *, behind: bool = False, negated: bool = False, keeps: bool = False
    ) -> None:
        super().__init__(text, [part], ways=part.ways, size=part.size + 2, width=part.width if keeps else 0, looks=True)
        self.part = part
        self.behind, self.negated, self.keeps = behind, negated, keeps


def _ends_at_one_place(part: Part) -> bool:
    return part.ways == 1 or isinstance(part, Look)
