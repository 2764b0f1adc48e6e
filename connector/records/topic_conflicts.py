"""Keeps two tables out of one topic when the second one comes while the connector runs.

The topic belongs to the table that was there first; the connector stops before a row of the other one is written. What
is there at the start is looked at by the check.
"""

import logging

from rowtide.connector.errors import TopicClash
from rowtide.connector.records.settings import PipelineSettings
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.model import TableId
from rowtide.topics.naming import TopicNameClashError, TopicNames

log = logging.getLogger(__name__)


class TopicGuard:
    """Knows which table a topic belongs to.

    Args:
        settings: names of topics, and which tables are captured.
        tables: every table, in the order of their making; asked whether a topic's owner is still there.
    """

    def __init__(self, settings: PipelineSettings, tables: Tables) -> None:
        self._captures = settings.tables.captures
        self._tables = tables
        self._names = TopicNames(settings.naming)
        for table in tables.names():
            self.register(table)

    def register(self, table: TableId) -> None:
        """A table was made, or has a new name; its topic is its own, if no other table has it."""
        if self._captures(table.database, table.table):
            try:
                self.topic(table)
            except TopicClash as error:
                log.warning("%s. The connector stops at the first row of %s", error, table)

    def topic(self, table: TableId) -> str:
        """The topic of a captured table, for rows that are to be written.

        Raises:
            TopicClash: it belongs to another table, or to the connector itself.
        """
        while True:
            try:
                return self._names.data_change(table.database, table.table)
            except TopicNameClashError as error:
                if error.owner is None or self._tables.table(*error.owner) is not None:
                    raise TopicClash(str(error)) from error
                self._names.release(*error.owner)  # it was dropped or renamed
