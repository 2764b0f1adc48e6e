"""The structures of all tables at the position of a stream, and the decoding of rows with them."""

import logging
import time

from rowtide.connector.errors import ColumnCountMismatch, SchemaError
from rowtide.connector.pipeline.captured_tables import MAX_COLUMNS
from rowtide.connector.pipeline.structures.lookup import CurrentStructures, Structures
from rowtide.connector.protocol import events
from rowtide.connector.protocol.events.table_structure import TableStructure
from rowtide.connector.protocol.statements import query_event
from rowtide.connector.records.change import SourcePosition
from rowtide.connector.records.codecs.recently_used import RecentlyUsed
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.records.settings import PipelineSettings
from rowtide.mysql_replication.rows import EventRows
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.errors import SchemaHistoryError
from rowtide.schema_history.model import Table
from rowtide.schema_history.queries.table_changes import may_change, may_change_any

log = logging.getLogger(__name__)

_WAY_OUT = (
    "Give BinLogStreamReader the schema_history of a connector, begin at a later position, or set "
    "binlog_row_metadata=FULL on the server, so that rows from then on bring their structure"
)


class TableStructures:
    """Finds the structure of each table whose rows are in the stream.

    It is taken from the schema history if there is one, from the statements of the stream, from the rows' TABLE_MAP,
    or from the server's SHOW CREATE TABLE if no statement since the rows has changed the table.

    Args:
        settings: of a pipeline.
        tables: every table's structure at the start, as far as it is known.
        current: looks up structures on the server.
    """

    def __init__(self, settings: PipelineSettings, tables: Tables, current: CurrentStructures) -> None:
        self._tables = tables
        self._structures = Structures(settings, tables, time.time_ns, current, _WAY_OUT, looks_up=True)
        self._rows: RecentlyUsed[TableStructure, tuple[Table, EventRows]] = RecentlyUsed(MAX_COLUMNS)

    def apply(self, event: events.Query, place: str) -> None:
        """Apply a statement. If that fails, the structures that it may have changed are unknown from then on."""
        statement = query_event(event, place)
        try:
            self._tables.apply(statement)
        except SchemaHistoryError as error:
            known, server = self._tables.names(), self._tables.server
            if may_change_any(statement, known, server):
                log.warning("the structures that a statement changed are looked up again: %s", error)
                for table in known:
                    if may_change(statement, table, server):
                        self._tables.remove(table)

    def rows(self, structure: TableStructure, position: SourcePosition) -> tuple[Table, EventRows]:
        """Return a table's structure, and the decoder of its rows.

        Args:
            structure: the TABLE_MAP.
            position: the position of the rows.

        Raises:
            SchemaError: the structure is not known.
            StreamBroken: the connection to the server was lost during a lookup.
        """
        found = self._rows.get(structure)
        if found is not None and found[0] is self._tables.table(structure.database, structure.table):
            return found
        try:
            table, _ = self._structures.checked(structure, position, lambda: SourceOffset(position.file, position.pos))
            if len(table.row_columns) != len(structure.columns):
                raise ColumnCountMismatch(
                    f"table {table.id}: the row events have {len(structure.columns)} columns, its structure has "
                    f"{len(table.row_columns)}. {_WAY_OUT}"
                )
            found = table, EventRows(structure, table)
        except SchemaError as error:
            raise type(error)(f"{error} (at {position.file}:{position.pos})") from error
        self._rows.put(structure, found, len(structure.columns))
        return found
