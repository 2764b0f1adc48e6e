"""Tables that result from statements, without a server."""

from typing import Any

from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.model import Database
from rowtide.schema_history.queries.information_schema import table_json
from rowtide.schema_history.server.query_event import Flavor, QueryEvent, Server

NOT_STRICT = 0


def made(flavor: Flavor, *statements: str | QueryEvent) -> dict[str, Any]:
    """The table ``d.t`` after the statements, as in information_schema."""
    tables = Tables(Server(flavor))
    tables.put_database(Database("d", "utf8mb4", "utf8mb4_general_ci"))
    tables.put_database(Database("k", "koi8r", "koi8r_bin"))
    for statement in statements:
        event = statement if isinstance(statement, QueryEvent) else QueryEvent(statement, "d", sql_mode=NOT_STRICT)
        tables.apply(event)
    table = tables.table("d", "t")
    assert table is not None
    return table_json(table, flavor)


def column(flavor: Flavor, *statements: str | QueryEvent) -> dict[str, Any]:
    """The last column."""
    found: dict[str, Any] = made(flavor, *statements)["columns"][-1]
    return found
