"""A connector whose schema history is a file of statements."""

from pathlib import Path

from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.server.query_event import Flavor, QueryEvent, Server
from rowtide.schema_history.store.file import FileSchemaHistory
from rowtide.schema_history.store.history_record import history_record


def connector_with_history(folder: Path, *statements: str, **properties: str) -> str:
    """Write a history and a configuration, and return the path of the configuration.

    Args:
        folder: of both files.
        statements: in the database ``shop``, which is created.
        properties: further properties, with ``_`` for each dot.
    """
    tables, store = Tables(Server(Flavor.MYSQL)), FileSchemaHistory(folder / "history.jsonl")
    for number, statement in enumerate(("CREATE DATABASE shop", *statements)):
        for change in tables.apply(QueryEvent(statement, "shop")).changes:
            store.append(history_record(change, "p", {"file": "binlog.000001", "pos": number}, 5))
    store.close()
    config = {
        "name": "p",
        "connector.class": "io.debezium.connector.mysql.MySqlConnector",
        "topic.prefix": "p",
        "database.hostname": "nowhere.invalid",
        "database.user": "u",
        "database.server.id": "4711",
        "bootstrap.servers": "nowhere.invalid:9092",
        "schema.history.internal": "io.debezium.storage.file.history.FileSchemaHistory",
        "schema.history.internal.file.filename": str(folder / "history.jsonl"),
        **{name.replace("_", "."): value for name, value in properties.items()},
    }
    file = folder / "p.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in config.items()))
    return str(file)
