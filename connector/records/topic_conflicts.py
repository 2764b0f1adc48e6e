"""Prevents two tables from sharing a topic when the second one is created while the connector runs.

The topic belongs to the first table; the connector stops before it writes a row of the second one. The check at the
start covers the tables that exist then.
"""

import logging

from rowtide.connector.errors import TopicClash
from rowtide.connector.records.settings import PipelineSettings
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.model import TableId
from rowtide.topics.filters import CapturedNames
from rowtide.topics.naming import TopicNameClashError, TopicNames

log = logging.getLogger(__name__)


class TopicOwners:
    """Maps each topic to the table that owns it.

    Args:
        settings: topic naming, and which tables are captured.
        tables: all tables, in the order in which they were created; an owner that no longer exists loses its topic.
    """

    def __init__(self, settings: PipelineSettings, tables: Tables) -> None:
        self._captures = CapturedNames(settings.tables, tables.exists).captures
        self._tables, self._naming = tables, settings.naming
        self._names = TopicNames(settings.naming)
        for table in tables.names():
            self.register(table)

    def register(self, table: TableId) -> None:
        """Register a new or renamed table as the owner of its topic, unless the topic has an owner; then warn."""
        if self._captures(table.database, table.table):
            try:
                self.topic(table)
            except TopicClash as error:
                log.warning("%s. The connector stops at the first row of %s", error, table)

    def release(self, table: TableId) -> None:
        """Release the topic of a table that was dropped or renamed."""
        self._names.release(table.database, table.table)

    def topics(self) -> set[str]:
        """Return the topics of all captured tables, before transforms."""
        names, data_change = self._tables.names(), self._naming.data_change
        return {data_change(one.database, one.table) for one in names if self._captures(one.database, one.table)}

    def topic(self, table: TableId) -> str:
        """Return the topic for the rows of a captured table.

        Raises:
            TopicClash: the topic belongs to another table, or to the connector itself.
        """
        while True:
            try:
                return self._names.data_change(table.database, table.table)
            except TopicNameClashError as error:
                if error.owner is None or self._tables.table(*error.owner) is not None:
                    raise TopicClash(str(error)) from error
                self._names.release(
                    *error.owner
                )  # it was dropped with its database, or its name is written differently
