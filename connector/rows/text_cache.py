"""Caches the JSON text of column values that repeat, such as prices, dates and states.

Converting a DECIMAL, a date or a DOUBLE to text costs several times as much as finding its bytes in a dictionary. Where
values do not repeat, the lookup adds a tenth to the cost.
"""

from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakValueDictionary

from rowtide.connector.rows.compiled_source import define
from rowtide.envelope.types.column_type import Bind

MAX_ENTRIES = 8192
"""Entries per column. A full cache is emptied, so recent values replace old ones."""


class CacheBudget:
    """Bounds the number of cached texts over all columns of all tables.

    Args:
        size: the maximum number of texts; when it is reached, all caches are emptied.
    """

    def __init__(self, size: int) -> None:
        self._size = self._left = size
        self._texts: WeakValueDictionary[int, TextCache] = WeakValueDictionary()

    def share(self, texts: "TextCache") -> None:
        """Make a cache use this budget as long as it exists."""
        self._texts[id(texts)] = texts

    def added(self) -> None:
        """Count one more text; empty all caches if the budget is used up."""
        self._left -= 1
        if self._left <= 0:
            self._left = self._size
            for reference in self._texts.valuerefs():  # a list: other threads may add caches
                if (texts := reference()) is not None:
                    texts.clear()


SHARED_BUDGET = CacheBudget(200_000)
"""The budget of the process: about 30 MB, regardless of the number of tables."""


class TextCache(dict[bytes | str, Any]):
    """The JSON text of each value, or its Python value, by its bytes in the binlog or its text in a result set.

    Args:
        text: converts a value that is not in the cache.
        budget: bounds this cache together with others.
    """

    __slots__ = ("__weakref__", "_budget", "_text")

    def __init__(self, text: Callable[[bytes | str], Any], budget: CacheBudget = SHARED_BUDGET) -> None:
        super().__init__()
        self._text = text
        self._budget = budget
        budget.share(self)

    def __missing__(self, stored: bytes | str) -> Any:
        text = self._text(stored)
        if len(self) >= MAX_ENTRIES:
            self.clear()
        self._budget.added()
        self[stored] = text
        return text


def compile_text_cache(lines: Callable[[Bind], Sequence[str]]) -> TextCache:
    """Return a cache whose texts are made by the function that :func:`compile_text_function` returns."""
    return TextCache(compile_text_function(lines))


def compile_text_function(lines: Callable[[Bind], Sequence[str]]) -> Callable[[Any], Any]:
    """Return the function of generated code.

    Args:
        lines: returns source lines that convert the stored value in the variable ``v`` to its text.
    """
    names: dict[str, object] = {}

    def bind(value: object) -> str:
        name = f"c{len(names)}"
        names[name] = value
        return name

    body = "".join(f"    {line}\n" for line in lines(bind))
    define(f"def text(v):\n{body}    return v\n", "<value decoder>", names)
    return names["text"]  # type: ignore[return-value]
