# The compiled row path, written in C; see native/native.h.

from collections.abc import Sequence
from typing import Any, Literal, Self

class RowDecoder:
    # columns: the fields of description.Description; held: for each image one byte for each column, whether it is in
    # the image, none for packets; key: the bytes before a field, and the index of its column, -1 for none
    def __new__(
        cls,
        columns: tuple[tuple[Any, ...], ...],
        held: tuple[bytes, ...],
        key: tuple[tuple[bytes, int], ...],
        mode: Literal["texts", "key values", "values"],
    ) -> Self: ...
    # None: the event, or the packets, have to be decoded in Python
    def images(self, event: bytes, start: int, end: int) -> list[Any] | None: ...
    def packets(self, buffer: bytes) -> tuple[list[Any], int] | None: ...

def message_parts(opening: bytes, rows: Sequence[tuple[str, str]], place: int, closing: bytes) -> list[bytes]: ...
def message_values(
    opening: bytes,
    before: Sequence[tuple[str, str]] | None,
    between: str,
    after: Sequence[tuple[str, str]] | None,
    middle: str,
    first: int,
    tail: str,
) -> list[bytes]: ...

# None: Python has to convert the document; a plain one has no values of types that JSON lacks
def json_text(stored: bytes, server: bool, plain: bool = False, /) -> str | None: ...
