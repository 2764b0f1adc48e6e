"""Configurations as other programs have them: Debezium Server, Strimzi, the variables of containers."""

from pathlib import Path

import pytest

from rowtide.connector.config import Configuration, ConfigurationError, load
from rowtide.connector.config.files.files import read_file

SERVER = """
debezium.sink.type=kafka
debezium.sink.kafka.producer.bootstrap.servers=k:9092
debezium.sink.kafka.producer.key.serializer=org.apache.kafka.common.serialization.StringSerializer
debezium.sink.kafka.producer.value.serializer=org.apache.kafka.common.serialization.StringSerializer
debezium.sink.kafka.producer.security.protocol=SSL
debezium.sink.kafka.producer.compression.type=lz4
debezium.sink.kafka.wait.message.delivery.timeout.ms=30000
debezium.source.connector.class=io.debezium.connector.mysql.MySqlConnector
debezium.source.name=not-used
debezium.source.offset.storage.file.filename=data/offsets.dat
debezium.source.offset.flush.interval.ms=0
debezium.source.database.hostname=localhost
debezium.source.database.port=3306
debezium.source.database.user=debezium
debezium.source.database.password=dbz
debezium.source.database.server.id=184054
debezium.source.topic.prefix=tutorial
debezium.source.database.include.list=inventory
debezium.source.schema.history.internal=io.debezium.storage.file.history.FileSchemaHistory
debezium.source.schema.history.internal.file.filename=data/history.dat
debezium.format.key=json
debezium.format.value=json
debezium.format.schemas.enable=false
debezium.format.key.schemas.enable=true
debezium.transforms=unwrap
debezium.transforms.unwrap.type=io.debezium.transforms.ExtractNewRecordState
quarkus.log.console.json=false
quarkus.http.port=8081
%dev.quarkus.log.level=DEBUG
"""
CONNECTOR = """
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaConnector
metadata:
  name: inventory
  labels: {strimzi.io/cluster: my-connect}
spec:
  class: io.debezium.connector.mysql.MySqlConnector
  tasksMax: 1
  state: running
  config:
    database.hostname: mysql
    database.user: u
    database.password: ${env:PASSWORD}
    database.server.id: 184054
    topic.prefix: shop
    schema.history.internal.kafka.topic: h
"""
WORKER = """
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaConnect
metadata: {name: my-connect}
spec:
  replicas: 1
  bootstrapServers: kafka:9092
  tls: {trustedCertificates: []}
  config: {config.storage.replication.factor: -1, group.id: g}
"""
VARIABLES = """
# for docker run --env-file
BOOTSTRAP_SERVERS=kafka:9092
GROUP_ID=1
CONFIG_STORAGE_TOPIC=my_connect_configs
OFFSET_STORAGE_TOPIC=my_connect_offsets
export STATUS_STORAGE_TOPIC=my_connect_statuses
CONNECT_VALUE_CONVERTER="org.apache.kafka.connect.json.JsonConverter"
CONNECT_VALUE_CONVERTER_SCHEMAS_ENABLE='false'
CONNECT_LOG4J_ROOT_LOGLEVEL=INFO
CONNECT_REST_ADVERTISED_HOST_NAME=connect
KAFKA_HEAP_OPTS=-Xmx1g
"""


def loaded(folder: Path, **files: str) -> Configuration:
    paths = []
    for name, text in files.items():
        path = folder / name.replace("_", ".")
        path.write_text(text)
        paths.append(path)
    return load(paths, {"PASSWORD": "p"})


def problems_of(folder: Path, **files: str) -> dict[str, str]:
    with pytest.raises(ConfigurationError) as caught:
        loaded(folder, **files)
    return {problem.property: problem.message for problem in caught.value.problems}


def test_debezium_server_is_translated(tmp_path: Path) -> None:
    config = loaded(tmp_path, application_properties=SERVER)
    assert (config.name, config.topics.prefix) == ("kafka", "tutorial"), "the name is part of the key of the offsets"
    assert config.delivery.offset_file == "data/offsets.dat"
    assert config.history.file == "data/history.dat"
    assert (config.converters.key.schemas_enable, config.converters.value.schemas_enable) == (True, False)
    assert config.kafka.producer["compression.type"] == "lz4"
    assert config.kafka.admin["security.protocol"].lower() == "ssl"
    assert [one.name for one in config.transforms] == ["unwrap"]
    note = config.warnings[0]
    assert "Debezium Server" in note
    assert "quarkus.http.port" in note
    assert "%dev.quarkus.log.level" in note


@pytest.mark.parametrize(
    ("line", "name", "message"),
    [
        ("debezium.format.value=avro", "debezium.format.value", "avro is not supported; only json is"),
        ("debezium.format.header=connect", "debezium.format.header", "only json is"),
        ("debezium.sink.type=kinesis", "debezium.sink.type", "kinesis is not supported; only kafka is"),
        ("debezium.sink.pulsar.x=1", "debezium.sink.pulsar.x", "is not translated"),
        ("debezium.surce.x=1", "debezium.surce.x", "is not known"),
        ("debezium.source.tabel.include.list=a", "tabel.include.list", "did you mean table.include.list"),
    ],
)
def test_what_debezium_server_has_and_rowtide_has_not_is_an_error(
    line: str, name: str, message: str, tmp_path: Path
) -> None:
    assert message in problems_of(tmp_path, application_properties=SERVER + line)[name]


def test_debezium_server_in_yaml_and_in_variables(tmp_path: Path) -> None:
    nested = tmp_path / "application.yaml"
    nested.write_text("debezium: {source: {database: {hostname: db}}, sink: {type: kafka}, format: {value: json}}")
    variables = tmp_path / "server.env"
    variables.write_text("DEBEZIUM_SOURCE_DATABASE_HOSTNAME=db\nDEBEZIUM_SINK_TYPE=kafka\nQUARKUS_LOG_LEVEL=INFO\n")
    for path in (nested, variables):
        properties = read_file(path).properties
        assert properties["database.hostname"] == "db"
        assert properties["name"] == "kafka"
        assert "quarkus.log.level" not in properties


def test_resources_of_strimzi_are_translated_from_two_files_or_one(tmp_path: Path) -> None:
    secret = "---\napiVersion: v1\nkind: Secret\nmetadata: {name: s}\n"
    for files in (
        {"connector_yaml": CONNECTOR, "worker_yaml": WORKER},
        {"both_yaml": f"{CONNECTOR}---{WORKER}{secret}"},
    ):
        config = loaded(tmp_path, **files)
        assert config.name == "inventory"
        assert config.database.password.reveal() == "p"
        assert config.kafka.bootstrap_servers == "kafka:9092"
        assert (config.delivery.group_id, config.delivery.offset_topic) == ("g", "connect-cluster-offsets")
        notes = "\n".join(config.warnings)
        assert "spec.tls of the KafkaConnect is not translated" in notes
        assert "spec.state of the KafkaConnector is not translated" in notes
        assert ("the Secret" in notes) == (len(files) == 1)


def test_a_resource_whose_config_is_not_a_map_is_an_error(tmp_path: Path) -> None:
    wrong = "apiVersion: a\nkind: KafkaConnector\nspec: {config: [a]}\n"
    (message,) = problems_of(tmp_path, c_yaml=wrong).values()
    assert "spec.config must be a map" in message


def test_variables_of_kafka_connects_images_are_translated(tmp_path: Path) -> None:
    config = loaded(tmp_path, connector_yaml=CONNECTOR, connect_env=VARIABLES)
    assert config.kafka.bootstrap_servers == "kafka:9092"
    assert (config.delivery.group_id, config.delivery.offset_topic) == ("1", "my_connect_offsets")
    assert config.converters.value.schemas_enable is False
    assert any("CONNECT_LOG4J_ROOT_LOGLEVEL, KAFKA_HEAP_OPTS" in note for note in config.warnings)


def test_the_upper_case_letters_of_a_property_are_restored(tmp_path: Path) -> None:
    path = tmp_path / ".env"
    path.write_text("CONNECT_GROUP_ID=g\nCONNECT_DATABASE_CONNECTIONTIMEZONE=UTC\n")
    assert read_file(path, ["database.connectionTimeZone"]).properties["database.connectionTimeZone"] == "UTC"


def test_a_line_of_variables_without_a_value_is_an_error(tmp_path: Path) -> None:
    (message,) = problems_of(tmp_path, connect_env="GROUP_ID=1\nNONSENSE\n").values()
    assert "line 2: it must have the form NAME=value" in message


def test_answers_of_kafka_connects_rest_interface_are_accepted(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_text('{"name": "a", "config": {"tasks.max": "1"}, "tasks": [{"connector": "a"}], "type": "source"}')
    assert read_file(path).properties == {"name": "a", "tasks.max": "1"}
