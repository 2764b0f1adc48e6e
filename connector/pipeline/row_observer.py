"""Shows what the pipeline emits to an observer: to an incremental snapshot, which compares rows with row events."""

from typing import Protocol

from rowtide.connector.protocol.events.classes import Rows
from rowtide.connector.protocol.events.table_structure import TableStructure
from rowtide.schema_history.model import Table, TableId


class RowObserver(Protocol):
    """Is shown the row events of one table, and what changes tables."""

    @property
    def watched(self) -> TableId | None:
        """The table whose row events it is shown."""
        ...

    def observe(self, event: Rows, structure: TableStructure, table: Table) -> None:
        """The records of a row event of the watched table were made, outside of XA transactions."""
        ...

    def emitted(self, topic: str) -> None:
        """Records of an XA transaction were emitted to a topic."""
        ...

    def changed(self, table: TableId) -> None:
        """A statement has created, changed, renamed, dropped or truncated a table."""
        ...
