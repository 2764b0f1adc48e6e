"""Tables as a snapshot would find them.

Debezium describes a table by the text that it has read: the statements of the stream, or SHOW CREATE TABLE in a
snapshot, where synonyms and abbreviations are gone (``BOOL`` is ``tinyint(1)``). A stream that begins at an offset
begins behind a snapshot, so the forms of its tables must be those of that text.
"""

from dataclasses import replace

from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.errors import SchemaHistoryError
from rowtide.schema_history.model import Table
from rowtide.schema_history.server.query_event import QueryEvent, Server
from rowtide.schema_history.structure.show_create import show_create


def as_snapshot(table: Table, server: Server) -> Table:
    """The same table with the forms that its SHOW CREATE TABLE has.

    Args:
        table: the table as statements have made it.
        server: the server, for the spelling of the text.
    """
    tables = Tables(server)
    # In its own words, whatever the session's settings were: NO_AUTO_VALUE_ON_ZERO and the like play no part here.
    event = QueryEvent(show_create(table, server), database=table.id.database, sql_mode=0, position="")
    try:
        tables.apply(event)
    except SchemaHistoryError:
        return table
    found = tables.table(table.id.database, table.id.table)
    if found is None or len(found.columns) != len(table.columns):
        return table
    columns = tuple(
        replace(column, form=printed.form) for column, printed in zip(table.columns, found.columns, strict=True)
    )
    return replace(table, columns=columns, form=found.form)
