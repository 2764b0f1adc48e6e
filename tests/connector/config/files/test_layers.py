"""Several configuration files: the last one counts, except for converters, which Kafka Connect chooses as a whole."""

from pathlib import Path

import pytest

from rowtide.connector.config import ConfigurationError, load
from rowtide.connector.config.files.layers import Layer, merged

JSON = "org.apache.kafka.connect.json.JsonConverter"
CONNECTOR = {"connector.class": "x", "topic.prefix": "shop"}


def merge(*files: dict[str, str]) -> Layer:
    return merged([Layer(file) for file in files])


def test_later_files_win_and_what_they_override_is_noted_without_values() -> None:
    layer = merge({"a": "1", "b": "secret-1"}, {"b": "secret-2", "c": "3"})
    assert layer.properties == {"a": "1", "b": "secret-2", "c": "3"}
    assert layer.notes == ("b: the value of the last configuration file counts",)
    assert merge({"a": "1"}, {"a": "1"}).notes == ()


def test_a_connector_with_its_own_converter_takes_no_settings_of_the_workers() -> None:
    worker = {"value.converter": "Avro", "value.converter.schemas.enable": "false", "key.converter": JSON}
    for files in ((CONNECTOR | {"value.converter": JSON}, worker), (worker, CONNECTOR | {"value.converter": JSON})):
        layer = merge(*files)
        assert layer.properties == CONNECTOR | {"value.converter": JSON, "key.converter": JSON}
        (note,) = layer.notes
        assert note.startswith("value.converter, value.converter.schemas.enable of the worker has no effect")


def test_without_a_converter_of_its_own_a_connector_takes_the_workers_with_all_settings() -> None:
    worker = {"value.converter": JSON, "value.converter.schemas.enable": "true"}
    layer = merge(CONNECTOR | {"value.converter.schemas.enable": "false"}, worker)
    assert layer.properties == CONNECTOR | worker
    assert layer.notes == (
        "value.converter.schemas.enable of the connector has no effect: the worker's file sets the converter",
    )


def test_files_of_the_same_kind_are_merged_property_by_property() -> None:
    layer = merge(CONNECTOR | {"value.converter": "Avro"}, CONNECTOR | {"value.converter": JSON})
    assert layer.properties["value.converter"] == JSON


def test_a_connectors_json_and_the_workers_properties_are_one_configuration(tmp_path: Path) -> None:
    connector, worker = tmp_path / "connector.json", tmp_path / "worker.properties"
    connector.write_text(
        '{"name": "shop", "config": {"connector.class": "io.debezium.connector.mysql.MySqlConnector",'
        ' "tasks.max": 1, "topic.prefix": "shop", "database.hostname": "db", "database.user": "u",'
        ' "database.password": "p", "database.server.id": "1", "schema.history.internal.kafka.topic": "h"}}'
    )
    worker.write_text(
        "bootstrap.servers=k:9092\ngroup.id=g\noffset.storage.topic=offsets\nvalue.converter=" + JSON + "\n"
        "value.converter.schemas.enable=false\nplugin.path=/plugins\nrest.port=8083\n"
    )
    config = load([connector, worker], {})
    assert (config.name, config.delivery.offset_topic, config.delivery.group_id) == ("shop", "offsets", "g")
    assert config.converters.value.schemas_enable is False
    assert config.converters.key.schemas_enable is True


def test_problems_of_all_files_are_reported_together(tmp_path: Path) -> None:
    files = [tmp_path / "a.json", tmp_path / "b.properties"]
    files[0].write_text("{")
    files[1].write_text("a=\\u1")
    with pytest.raises(ConfigurationError) as caught:
        load(files, {})
    assert [problem.property for problem in caught.value.problems] == [str(file) for file in files]
