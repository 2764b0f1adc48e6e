"""The structures of a topic's table in a connector's schema history, with the identities of its columns."""

from collections.abc import Sequence

from rowtide.connector.config import ConfigurationError, load
from rowtide.connector.config.model import Configuration
from rowtide.connector.engine.pipeline_settings import record_rules
from rowtide.connector.records.codecs.builder import table_schema
from rowtide.errors import ConnectorError
from rowtide.schema_history.errors import SchemaHistoryError
from rowtide.schema_history.model import TableId
from rowtide.schema_history.queries.column_identities import Identities, column_identities
from rowtide.schema_history.recovery.table_history import merge_recorded
from rowtide.schema_history.server.query_event import Server
from rowtide.schema_history.store.history_record import HistoryRecord, parse_record
from rowtide.spark_consumers.errors import HistoryError, SettingsError


class HistoryStructures:
    """Reads the structures of a topic's table. Each call reads the history again, because it grows.

    Args:
        paths: the files of the connector's configuration.
    """

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = paths

    def __call__(self, topic: str) -> Sequence[Identities]:
        """Return the structures, oldest first: for each, the numbers of its columns by the names of their fields.

        Raises:
            SettingsError: the configuration has no schema history that can be read from here.
            HistoryError: the history does not answer, or is damaged.
        """
        try:
            config = load(self._paths, not_required={"database.password"})
            from rowtide.connector.engine.wiring import history_source  # noqa: PLC0415 - needs the extra

            source = history_source(config)
        except (ConfigurationError, SchemaHistoryError, ModuleNotFoundError) as error:
            raise SettingsError(str(error)) from error
        try:
            with source:
                records = list(source.store.replay(parse_record))
                return _structures(records, topic, config, source.server)
        except ConnectorError as error:
            raise HistoryError(
                f"topic {topic}: its columns changed, and whether some were renamed is in the connector's schema "
                f"history, which cannot be read: {error}. The table is as it was: run the command again when the "
                f"history can be read, or without --config to add columns instead of renaming them"
            ) from error


def _structures(
    records: Sequence[HistoryRecord], topic: str, config: Configuration, server: Server
) -> Sequence[Identities]:
    capture, naming = config.capture.tables, config.topics.naming
    tables: set[TableId] = {
        table.id
        for record in records
        for table in record.tables
        if capture.captures(table.id.database, table.id.table)
        and naming.data_change(table.id.database, table.id.table) == topic
    }
    if len(tables) != 1:  # records of several tables show no order of structures
        return ()
    [table] = tables
    found = []
    for recorded, numbers in column_identities(records, table, server):
        described = merge_recorded(None, recorded, all_applied=False)
        schema = table_schema(described, topic, record_rules(config), "stream", lambda _table, _column: None)
        found.append({one.field: numbers[one.column.name] for one in schema.columns if one.in_value})
    return found
