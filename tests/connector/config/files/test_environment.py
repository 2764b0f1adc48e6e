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
            "ROWTIDE_PURE_PYTHON": "1",
            "ROWTIDE_SPARK_JARS": "/opt/rowtide/jars/*.jar",
            "ROWTIDE_STACK": "docker",
            "ROWTIDE_CACHE": "/tmp",
            "HOME": "/root",
            "ROWTIDE_NAME": "x",
        },
        [],
    )
    assert found == {"name": ("ROWTIDE_NAME", "x")}


def test_variables_of_a_kubernetes_service_are_not_properties() -> None:
    # https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables, for two services:
    # "rowtide" and "rowtide-database"
    injected = {
        "ROWTIDE_SERVICE_HOST": "10.0.0.11",
        "ROWTIDE_SERVICE_PORT": "6066",
        "ROWTIDE_SERVICE_PORT_HTTP_WEB": "6066",
        "ROWTIDE_PORT": "tcp://10.0.0.11:6066",
        "ROWTIDE_PORT_6066_TCP": "tcp://10.0.0.11:6066",
        "ROWTIDE_PORT_6066_TCP_PROTO": "tcp",
        "ROWTIDE_PORT_6066_TCP_PORT": "6066",
        "ROWTIDE_PORT_6066_TCP_ADDR": "10.0.0.11",
        "ROWTIDE_DATABASE_SERVICE_HOST": "10.0.0.12",
        "ROWTIDE_DATABASE_PORT": "tcp://10.0.0.12:3306",
        "ROWTIDE_DATABASE_PORT_3306_UDP_ADDR": "10.0.0.12",
    }
    assert overrides(injected, ["database.port"]) == {}


def test_a_port_that_is_set_by_hand_is_a_property() -> None:
    found = overrides({"ROWTIDE_DATABASE_PORT": "3306", "ROWTIDE_PORT": "6066"}, ["database.port"])
    assert found == {"database.port": ("ROWTIDE_DATABASE_PORT", "3306"), "port": ("ROWTIDE_PORT", "6066")}
