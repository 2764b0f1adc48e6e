"""JSON texts of stored values that come again: prices, dates and states of many rows are few different ones.

Working out the text of a DECIMAL, a date or a DOUBLE costs several times as much as finding its bytes in a dictionary.
Where values do not repeat, the search costs a tenth of the work.
"""

from collections.abc import Callable, Sequence

from rowtide.envelope.column_type import Bind

LARGEST = 8192
"""Values kept for a column; when there are more, all are forgotten, so that new days take the place of old ones."""


class RememberedTexts(dict[bytes | str, str]):
    """The text of each value by its bytes, or by the server's own text of it.

    Args:
        text: works out a text that it does not know.
    """

    __slots__ = ("_text",)

    def __init__(self, text: Callable[[bytes | str], str]) -> None:
        super().__init__()
        self._text = text

    def __missing__(self, stored: bytes | str) -> str:
        text = self._text(stored)
        if len(self) >= LARGEST:
            self.clear()
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
