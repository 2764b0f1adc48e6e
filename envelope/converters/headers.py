"""Converters of headers."""

from typing import Any, Protocol

from rowtide.envelope.json.headers import header_text
from rowtide.envelope.schema import Schema


class HeaderConverter(Protocol):
    """Turns headers into bytes."""

    def header(self, schema: Schema | None, value: Any) -> bytes | None:
        """Return the bytes of a header; ``None`` for a null header.

        Raises:
            ValueError: it cannot be written.
        """
        ...


class SimpleHeaderConverter:
    """``org.apache.kafka.connect.storage.SimpleHeaderConverter``: text that is similar to JSON."""

    def header(self, schema: Schema | None, value: Any) -> bytes | None:
        """Return the text in UTF-8."""
        text = None if schema is None else header_text(schema, value)
        return None if text is None else text.encode()
