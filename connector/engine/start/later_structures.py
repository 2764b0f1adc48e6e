"""The structures of tables that the schema history lacks, each with a position at which it is certain.

With ``schema.history.internal.store.only.captured.tables.ddl`` the history has no statement about a table before it is
captured. The structure at the stored position is not known then, but that at the end of the binlog is: the server shows
it, and the binlog shows that no statement has changed it since. The table is captured from that position.
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass

from rowtide.connector.config import Configuration
from rowtide.connector.errors import StructureUncertain
from rowtide.connector.records.change import SourcePosition
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.source.current_structure import CurrentStructure
from rowtide.connector.source.server_queries import end_of_binlog, now_micros
from rowtide.connector.source.session import Session
from rowtide.schema_history.model import TableId

log = logging.getLogger(__name__)

_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class LaterStructure:
    """A structure, and the position from which the table has it.

    Attributes:
        table: the table.
        statement: the text of SHOW CREATE TABLE.
        position: the position; its ``server`` is the ``server_id``.
    """

    table: TableId
    statement: str
    position: SourceOffset


def later_structures(config: Configuration, tables: Iterable[TableId]) -> list[LaterStructure]:
    """Return the structures of tables, in the order of their positions, without tables that keep changing.

    Args:
        config: the configuration.
        tables: the tables.

    Raises:
        SnapshotError, DatabaseUnreachableError, StreamBroken: the end of the binlog cannot be read.
    """
    current = CurrentStructure(config.database, mariadb=config.mariadb)
    found: list[LaterStructure] = []
    reasons = dict.fromkeys(tables, "")
    for _ in range(_ATTEMPTS):
        if not reasons:
            return found
        with Session(config.database, mariadb=config.mariadb) as session:
            position = end_of_binlog(session)
            since = SourcePosition(position.file, position.pos, ts_us=now_micros(session))
        for table in tuple(reasons):
            try:
                found.append(LaterStructure(table, current.statement(table, since), position))
            except StructureUncertain as error:
                reasons[table] = str(error)
            else:
                del reasons[table]
    for table, reason in reasons.items():
        log.warning(
            "the structure of the new table %s cannot be looked up: %s. The table is not captured until the next "
            "start, which tries again", table, reason,
        )  # fmt: skip
    return found
