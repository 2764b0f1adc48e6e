"""What an engine answers without a server."""

import pytest

import rowtide
from rowtide.schema_history.errors import SchemaHistoryError


def test_a_file_name_for_properties_names_the_way_out() -> None:
    with pytest.raises(TypeError, match=r"properties is a str.*Engine\.from_config reads a file"):
        rowtide.Engine("shop.properties")  # type: ignore[arg-type]


def test_a_history_in_memory_has_no_structures_to_look_up() -> None:
    engine = rowtide.Engine(
        {
            "name": "shop",
            "connector.class": "io.debezium.connector.mysql.MySqlConnector",
            "topic.prefix": "shop",
            "database.hostname": "localhost",
            "database.user": "rowtide",
            "database.password": "secret",
            "database.server.id": "5401",
            "offset.storage.file.filename": "offsets.dat",
            "schema.history.internal": "io.debezium.relational.history.MemorySchemaHistory",
        }
    )
    with pytest.raises(SchemaHistoryError, match="connector shop keeps its schema history in memory only"):
        engine.table_at("shop.customers")
