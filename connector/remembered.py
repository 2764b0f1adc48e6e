"""JSON texts of stored values that come again: prices, dates and states of many rows are few different ones.

Working out the text of a DECIMAL, a date or a DOUBLE costs several times as much as finding its bytes in a dictionary.
Where values do not repeat, the search costs a tenth of the work.
"""

from collections.abc import Callable

LARGEST = 8192
"""Values kept for a column; when there are more, all are forgotten, so that new days take the place of old ones."""


class RememberedTexts(dict[bytes, str]):
    """The text of each value by its bytes.

    Args:
        text: works out a text that it does not know.
    """

    __slots__ = ("_text",)

    def __init__(self, text: Callable[[bytes], str]) -> None:
        super().__init__()
        self._text = text

    def __missing__(self, stored: bytes) -> str:
        text = self._text(stored)
        if len(self) >= LARGEST:
            self.clear()
        self[stored] = text
        return text
