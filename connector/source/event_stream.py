"""The interface of a stream of binlog events for its readers: from the server, from a mirror, or from both."""

from collections.abc import Callable, Generator
from typing import Protocol

from rowtide.connector.records.offset import SourceOffset


class EventStream(Protocol):
    """A stream of events, such as :class:`~rowtide.connector.source.binlog_stream.BinlogStream`."""

    def events(self) -> Generator[list[bytes], None, None]:
        """Yield lists of events. If it ends, another stream continues at the position after it."""
        ...

    def yield_often(self, *, often: bool) -> None:
        """Yield an empty list more often while there is nothing new."""

    def requested_acknowledgement(self) -> Callable[[], None] | None:
        """Return, once, the function that acknowledges the events so far, if the server waits for this."""
        ...

    def taken_bytes(self) -> int:
        """Return the bytes received since the last call."""
        ...


StreamFactory = Callable[[SourceOffset], EventStream]
"""Opens a stream at an offset."""
