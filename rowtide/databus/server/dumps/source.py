"""What a dump is made of: rows events of one consistent snapshot, encoded as in the topic."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

from rowtide.databus.events import Position


class DumpPart(NamedTuple):
    """Some rows of one table.

    Attributes:
        event: an ``insert`` as JSON (:meth:`rowtide.databus.events.RowsEvent.encoded`), without a line end.
        rows: the number of rows in it.
    """

    event: bytes
    rows: int


class Dump(NamedTuple):
    """One consistent snapshot.

    Attributes:
        position: the rows are those at this position of the binlog.
        offset: the first event behind the position is at this offset of the topic, or behind it.
        parts: the rows, table by table. They raise ``ConnectorError`` if the rows cannot be read.
    """

    position: Position
    offset: int
    parts: Iterator[DumpPart]


class DumpSource(Protocol):
    """Makes dumps."""

    def dump(self) -> AbstractContextManager[Dump]:
        """Take a snapshot, which ends with the block.

        Raises:
            ConnectorError: the server cannot be read.
            DatabusError: the topic cannot be read.
        """
        ...
