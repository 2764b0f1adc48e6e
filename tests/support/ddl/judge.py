"""Compares rowtide's tables with those of a real server after statements that both execute."""

from __future__ import annotations

from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.errors import SchemaHistoryError
from rowtide.schema_history.model import Database
from rowtide.schema_history.queries.information_schema import table_json
from rowtide.schema_history.server.query_event import Server
from tests.support.ddl.corpus import comparable
from tests.support.ddl.recorder import DdlRecorder

__all__ = ["difference"]


def difference(recorder: DdlRecorder, server: Server, before: tuple[str, ...], statement: str) -> str | None:
    """Run a statement; what differs afterwards, or ``None``.

    Args:
        recorder: a session in an empty database.
        server: the server's properties.
        before: statements that create the tables which the statement refers to.
        statement: the statement, or several, separated by ``; ``. The server may reject them.
    """
    recorder.events()
    tables = Tables(server)
    for name, options in recorder.databases().items():
        tables.put_database(Database(name, options["charset"], options["collation"]))
    for each in (*before, *statement.split("; ")):
        recorder.run(each)
    try:
        for event in recorder.events():
            tables.apply(event)
    except SchemaHistoryError as error:
        return f"{statement}\n  {error}"
    kind = server.flavor
    ours = {str(table.id): comparable(table_json(table, kind), kind.value) for table in tables}
    theirs = {name: comparable(table, kind.value) for name, table in recorder.tables().items()}
    if ours != theirs:
        return f"{statement}\n  the server has {theirs}\n  rowtide has    {ours}"
    known = {database.name: database.collation for database in tables.databases()}
    shown = {name: options["collation"] for name, options in recorder.databases().items()}
    return None if known == shown else f"{statement}\n  the server's databases: {shown}\n  rowtide's: {known}"
