"""JSON texts of stored values that come again: prices, dates and states of many rows are few different ones.

Working out the text of a DECIMAL, a date or a DOUBLE costs several times as much as finding its bytes in a dictionary.
Where values do not repeat, the search costs a tenth of the work.
"""

from collections.abc import Callable, Sequence
from weakref import WeakValueDictionary

from rowtide.envelope.types.column_type import Bind

LARGEST = 8192
"""Values kept for a column; when there are more, all are forgotten, so that new days take the place of old ones."""


class Memory:
    """How much all columns of all tables together remember.

    Args:
        size: texts that may be added before all are forgotten, so there are never more.
    """

    def __init__(self, size: int) -> None:
        self._size = self._left = size
        self._texts: WeakValueDictionary[int, RememberedTexts] = WeakValueDictionary()

    def share(self, texts: "RememberedTexts") -> None:
        """Count these texts among all, as long as they are used."""
        self._texts[id(texts)] = texts

    def added(self) -> None:
        """A text was added."""
        self._left -= 1
        if self._left <= 0:
            self._left = self._size
            for texts in list(self._texts.values()):
                texts.clear()


SHARED = Memory(200_000)
"""About 30 MB, however many tables there are."""


class RememberedTexts(dict[bytes | str, str]):
    """The text of each value by its bytes, or by the server's own text of it.

    Args:
        text: works out a text that it does not know.
        memory: how much is remembered in all.
    """

    __slots__ = ("__weakref__", "_memory", "_text")

    def __init__(self, text: Callable[[bytes | str], str], memory: Memory = SHARED) -> None:
        super().__init__()
        self._text = text
        self._memory = memory
        memory.share(self)

    def __missing__(self, stored: bytes | str) -> str:
        text = self._text(stored)
        if len(self) >= LARGEST:
            self.clear()
        self._memory.added()
        self[stored] = text
        return text


def remembered(lines: Callable[[Bind], Sequence[str]]) -> RememberedTexts:
    """The texts that source lines work out, which turn the variable ``v`` from a stored value into its text."""
    names: dict[str, object] = {}

    def bind(value: object) -> str:
        name = f"c{len(names)}"
        names[name] = value
        return name

    body = "".join(f"    {line}\n" for line in lines(bind))
    exec(compile(f"def text(v):\n{body}    return v\n", "<value decoder>", "exec"), names)
    return RememberedTexts(names["text"])  # type: ignore[arg-type]
