"""Topics of changes in a Faust app."""

from collections.abc import Iterable
from typing import Any

import faust
from faust.exceptions import ValueDecodeError
from faust.types import AppT, Message

from rowtide.decoder.decoder import Decoder
from rowtide.decoder.errors import DecodeError


class ChangeSchema(faust.Schema[Any, Any]):
    """Decodes the records of a topic into :class:`rowtide.Change`; a tombstone is ``None``.

    Args:
        decoder: decodes them.
    """

    def __init__(self, decoder: Decoder) -> None:
        super().__init__(key_type=bytes, value_type=bytes, key_serializer="raw", value_serializer="raw")
        self._decoder = decoder

    def loads_value(self, app: AppT, message: Message, **_options: Any) -> Any:
        """Decode a record. An error is handled as in Faust, by ``on_value_decode_error``."""
        try:
            return self._decoder.decode(message.topic, message.key, message.value, _headers(message.headers))
        except DecodeError as error:
            raise ValueDecodeError(str(error)) from error


def _headers(given: Any) -> list[tuple[str, bytes | None]]:
    return list(given.items() if isinstance(given, dict) else given or ())


def changes(app: AppT, *topics: str, decoder: Decoder | None = None, pattern: str | None = None, **more: Any) -> Any:
    """Return a topic whose agents receive :class:`rowtide.Change`.

        orders = rowtide.decoder.faust.changes(app, "shop.shop.orders")

        @app.agent(orders)
        async def agent(stream):
            async for change in stream:
                print(change.op, change.after)

    Args:
        app: the Faust app.
        topics: the names of the topics.
        decoder: decodes the records; by default without a schema registry.
        pattern: a regular expression of names, instead of names.
        more: further arguments of ``app.topic``.
    """
    given: Iterable[str] = topics
    return app.topic(*given, pattern=pattern, schema=ChangeSchema(decoder or Decoder()), **more)
