from collections.abc import Sequence
from typing import Any, Self

class Transcoder:
    def __new__(cls, program: tuple[Any, ...]) -> Self: ...

def transcoded(
    messages: Sequence[tuple[bytes | None, bytes | None, Any]],
    keys: tuple[Transcoder | None, bytes, bytes] | None,
    values: tuple[Transcoder | None, bytes, bytes] | None,
) -> tuple[list[tuple[bytes | None, bytes | None, Any]], int, bool] | None: ...
