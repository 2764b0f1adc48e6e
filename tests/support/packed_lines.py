"""The text of packed lines."""

from __future__ import annotations

import tempfile
from collections.abc import Callable

from rowtide.connector.engine.decoding.lines import write_lines

__all__ = ["text_of"]


def text_of(packed: memoryview, writer: Callable[[int, memoryview], None] = write_lines) -> bytes:
    """What a writer of packed lines writes to a file."""
    with tempfile.TemporaryFile() as file:
        writer(file.fileno(), packed)
        file.seek(0)
        return file.read()
