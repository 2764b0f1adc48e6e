"""The contents of a dump: rows events of one consistent snapshot, encoded as in the topic."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

from rowtide.connector.records.offset import SourceOffset
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
        offset: the first event after the position is at this offset of the topic, or after it.
        parts: the rows, table by table. They raise ``ConnectorError`` if the rows cannot be read.
        taken: ``position`` with the GTIDs, and with the ``server_id`` as its server.
        end: reads the offset after the last message of the topic. It raises ``TopicError``.
    """

    position: Position
    offset: int
    parts: Iterator[DumpPart]
    taken: SourceOffset
    end: Callable[[], int]


class DumpSource(Protocol):
    """Makes dumps.

    Attributes:
        connector: ``mysql`` or ``mariadb``.
    """

    connector: str

    def dump(self) -> AbstractContextManager[Dump]:
        """Take a snapshot, which ends with the block.

        Raises:
            ConnectorError: the server cannot be read.
            DatabusError: the topic cannot be read.
        """
        ...
