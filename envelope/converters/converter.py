"""What a converter is."""

from typing import Protocol

from rowtide.envelope.transforms.record import ConnectRecord, Side

Added = list[tuple[str, bytes | None]]
"""Headers that converters add to a record."""


class Converter(Protocol):
    """Turns the keys or the values of records into bytes."""

    @property
    def replaces_null(self) -> bool:
        """Whether null becomes the default of its schema, if there is one."""
        ...

    @property
    def tells_null(self) -> bool:
        """Whether null can be told from zero and an empty text."""
        ...

    def data(self, record: ConnectRecord, side: Side, added: Added) -> bytes | None:
        """Return the bytes of the key or the value; ``None`` for none.

        Args:
            record: the record.
            side: which of the two.
            added: headers of the record to be sent, for a converter that needs some.

        Raises:
            ValueError: it cannot be written. The message names the field, and the way out if there is one.
            RegistryError: the schema registry cannot be reached, or refuses the schema.
        """
        ...
