"""The connector properties for real servers, which Debezium and rowtide share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rowtide_stack import SqlServer

__all__ = ["CONNECTORS", "JSON_CONVERTER", "address", "connector_properties", "history_topic"]

CONNECTORS = {
    "mysql": "io.debezium.connector.mysql.MySqlConnector",
    "mariadb": "io.debezium.connector.mariadb.MariaDbConnector",
}
"""Debezium's connector classes, by kind of server."""
JSON_CONVERTER = "org.apache.kafka.connect.json.JsonConverter"


def address(server: SqlServer) -> dict[str, str]:
    """The properties of a database connection as root."""
    found = {"hostname": server.host, "port": str(server.port), "user": server.user, "password": server.password}
    return {f"database.{name}": text for name, text in found.items()}


def history_topic(bootstrap: str, topic: str) -> dict[str, str]:
    """The properties of a schema history that is kept in a topic."""
    place = "schema.history.internal.kafka"
    return {f"{place}.bootstrap.servers": bootstrap, f"{place}.topic": topic}


def connector_properties(name: str, server: SqlServer, database: str, history: Mapping[str, str]) -> dict[str, str]:
    """The configuration of a connector that captures one database.

    Args:
        name: the topic prefix.
        server: the server.
        database: the captured database.
        history: the properties of its schema history.
    """
    return {
        "connector.class": CONNECTORS[server.name],
        "tasks.max": "1",
        **address(server),
        "database.server.id": str(184000 + sum(name.encode())),
        "database.include.list": database,
        "driver.allowPublicKeyRetrieval": "true",
        "topic.prefix": name,
        "topic.creation.default.replication.factor": "1",
        "topic.creation.default.partitions": "1",
        **history,
    }
