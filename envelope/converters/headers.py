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
    """``org.apache.kafka.connect.storage.SimpleHeaderConverter``: text that is similar to JSON.

    Args:
        replace_null_with_default: write a null in a struct as the default of its field, if there is one, as in Connect.
    """

    def __init__(self, *, replace_null_with_default: bool = True) -> None:
        self._replaces = replace_null_with_default

    def header(self, schema: Schema | None, value: Any) -> bytes | None:
        """Return the text in UTF-8."""
        if schema is None:
            return None
        text = header_text(schema, value, replace_null_with_default=self._replaces)
        return None if text is None else text.encode()
