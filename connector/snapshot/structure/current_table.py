"""The current structure of a table on the server of a session."""

from rowtide.connector.snapshot.structure import plan
from rowtide.connector.source import server_queries
from rowtide.connector.source.enum_labels import with_labels
from rowtide.connector.source.session import Session
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.model import Table, TableId
from rowtide.schema_history.server.query_event import QueryEvent


def current_table(session: Session, name: TableId) -> tuple[Table | None, str]:
    """Return the structure of a table, ``None`` if it cannot be parsed, and its SHOW CREATE TABLE.

    Raises:
        SnapshotError: it does not exist, or may not be read.
    """
    server = server_queries.server(session)
    text = server_queries.create_statement(session, name)
    created = with_labels(session, name, text, server)
    statements = plan.structure_statements(
        {name: created}, server_queries.databases(session), server_queries.server_charset(session)
    )
    tables = Tables(server)
    for statement in statements:
        tables.apply(QueryEvent(statement.ddl, statement.database, position="the snapshot"))
    return tables.table(name.database, name.table), text
