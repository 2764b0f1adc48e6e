"""The interfaces of converters of keys and values, and of headers."""

from typing import Any, NamedTuple, Protocol

from rowtide.envelope.schema import Schema
from rowtide.envelope.transforms.record import ConnectRecord, Side

Added = list[tuple[str, bytes | None]]
"""Headers that converters add to a record."""


class Transcoding(NamedTuple):
    """Instructions for compiled code that makes the bytes of a key or value directly from its JSON text.

    Attributes:
        opening: the bytes before the text.
        program: the conversion of the text; ``None`` if it stays unchanged.
        closing: the bytes after the text.
    """

    opening: bytes
    program: tuple[Any, ...] | None = None
    closing: bytes = b""


class Converter(Protocol):
    """Turns the keys or the values of records into bytes."""

    @property
    def replaces_null(self) -> bool:
        """Whether null becomes the default of its schema, if there is one."""
        ...

    @property
    def tells_null(self) -> bool:
        """Whether null can be distinguished from zero and an empty text."""
        ...

    def data(self, record: ConnectRecord, side: Side, added: Added) -> bytes | None:
        """Return the bytes of the key or the value; ``None`` for none.

        Args:
            record: the record.
            side: which of the two.
            added: headers of the record to be sent, for a converter that needs some.

        Raises:
            ValueError: it cannot be written. The message names the field, and what to do, if possible.
            RegistryError: the schema registry cannot be reached, or refuses the schema.
        """
        ...

    def transcoding(self, topic: str, side: Side, schema: Schema) -> Transcoding | None:
        """Return the instructions for compiled code, for JSON with nulls and decimals in Base64.

        ``None`` if compiled code cannot convert it.

        Raises:
            ValueError: as for :meth:`data`.
            RegistryError: as for :meth:`data`.
        """
        ...


class HeaderConverter(Protocol):
    """Turns headers into bytes."""

    def header(self, schema: Schema | None, value: Any) -> bytes | None:
        """Return the bytes of a header; ``None`` for a null header.

        Raises:
            ValueError: it cannot be written.
        """
        ...
