"""Properties from the environment."""

import pytest

from rowtide.connector.config.files.environment import overrides, property_name


@pytest.mark.parametrize(
    ("variable", "name"),
    [
        ("ROWTIDE_DATABASE_PASSWORD", "database.password"),
        ("ROWTIDE_TABLE_INCLUDE_LIST", "table.include.list"),
        ("ROWTIDE_SIGNAL_KAFKA_GROUPID", "signal.kafka.groupId"),
        ("ROWTIDE_SNAPSHOT_SELECT_STATEMENT_OVERRIDES_MY__DB_T___1", "snapshot.select.statement.overrides.my_db.t-1"),
    ],
)
def test_underscores_stand_for_dots(variable: str, name: str) -> None:
    assert property_name(variable, ["signal.kafka.groupId", "database.password"]) == name


def test_variables_of_other_purposes_are_not_properties() -> None:
    found = overrides(
        {
            "ROWTIDE_CONFIG": "/etc/rowtide.properties",
            "ROWTIDE_STACK": "docker",
            "ROWTIDE_CACHE": "/tmp",
            "HOME": "/root",
            "ROWTIDE_NAME": "x",
        },
        [],
    )
    assert found == {"name": ("ROWTIDE_NAME", "x")}
