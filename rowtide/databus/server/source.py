"""What a dump is made of: rows events of one consistent snapshot, encoded as in the topic."""

from collections.abc import AsyncGenerator, Collection
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


class Dump(Protocol):
    """One consistent snapshot.

    Attributes:
        position: the rows are those at this position of the binlog.
        offset: the first event behind the position is at this offset of the topic, or behind it.
    """

    position: Position
    offset: int

    def parts(self) -> AsyncGenerator[DumpPart]:
        """Yield the rows, table by table.

        Raises:
            ConnectorError: the rows cannot be read; the dump is not complete then.
        """
        ...


class DumpSource(Protocol):
    """Makes dumps."""

    async def dump(self, tables: Collection[str] | None = None) -> Dump:
        """Take a snapshot.

        Args:
            tables: ``database.table`` of the tables; by default all captured ones.

        Raises:
            ConnectorError: the server or the topic cannot be read.
        """
        ...
