"""``rowtide tables`` before Spark starts: its help, and mistakes in its options."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from rowtide.spark_consumers.cli import tables
from rowtide.spark_consumers.errors import SettingsError
from rowtide.spark_consumers.properties import client_properties, read_properties


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(tables, arguments)
    return result.exit_code, " ".join(result.output.split())


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["--topic-prefix", "p"], "where is Kafka? Give --bootstrap-servers, or --config"),
        (["--bootstrap-servers", "h:1"], "which topics? Give --topic-prefix or --topics"),
        (["--topic-prefix", "p", "--bootstrap-servers", "h:1", "--kafka-property", "x"], "x: expected NAME=VALUE"),
        (["--topic-prefix", "p", "--bootstrap-servers", "h:1", "--spark-conf", "x"], "x: expected NAME=VALUE"),
    ],
)
def test_a_missing_or_wrong_option_is_told_before_spark_starts(arguments: list[str], what: str) -> None:
    status, text = run("--output", "/nowhere", *arguments)
    assert status == 1
    assert what in text


def test_given_schemas_must_be_json(tmp_path: Path) -> None:
    for text, what in [("{", "is not JSON"), ("[]", "no JSON object")]:
        file = tmp_path / "schemas.json"
        file.write_text(text)
        status, output = run(
            "--output", "/nowhere", "--topic-prefix", "p", "--bootstrap-servers", "h:1", "--schemas", str(file)
        )
        assert status == 1
        assert what in output


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("c.properties", "# c\n! d\ntopic.prefix = p\nbootstrap.servers: a:1,\\\n    b:2\ndatabase.password=x\n"),
        ("c.json", '{"name": "n", "config": {"topic.prefix": "p", "bootstrap.servers": "a:1,b:2"}}'),
        ("c.yaml", "topic.prefix: p\nbootstrap.servers: a:1,b:2\n"),
    ],
)
def test_a_connectors_configuration_tells_where_kafka_is(tmp_path: Path, name: str, text: str) -> None:
    file = tmp_path / name
    file.write_text(text)
    found = read_properties(file)
    assert found["topic.prefix"] == "p"
    assert client_properties(found) == {"bootstrap.servers": "a:1,b:2"}


@pytest.mark.parametrize(("name", "text"), [("c.json", "{"), ("c.json", "[]"), ("c.yaml", "{"), ("c.yaml", "- a")])
def test_a_broken_configuration_is_an_error_with_its_name(tmp_path: Path, name: str, text: str) -> None:
    file = tmp_path / name
    file.write_text(text)
    with pytest.raises(SettingsError, match=name):
        read_properties(file)


def test_a_configuration_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot read"):
        read_properties(tmp_path / "none.properties")


def test_a_reference_in_the_configuration_is_an_error_with_the_way_out() -> None:
    with pytest.raises(SettingsError, match=r"sasl\.jaas\.config is a reference; .*--kafka-property"):
        client_properties({"sasl.jaas.config": "${env:JAAS}"})
