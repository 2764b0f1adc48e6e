"""Connectors that cannot run in one process, and the command that finds them at the start."""

from pathlib import Path

from click.testing import CliRunner

from rowtide.cli import main
from rowtide.connector.config import from_properties
from rowtide.connector.config.conflicts import conflicts
from tests.support.configurations import PROPERTIES

ONE = PROPERTIES | {"name": "one", "topic.prefix": "one", "database.hostname": "db", "database.server.id": "1"}
OTHER = ONE | {"name": "other", "topic.prefix": "other", "database.server.id": "2"}


def found(**other: str) -> list[tuple[str, str]]:
    properties = OTHER | {name.replace("_", "."): text for name, text in other.items()}
    return [tuple(one) for one in conflicts({"a.json": from_properties(ONE), "b.json": from_properties(properties)})]


def test_different_connectors_have_no_conflict() -> None:
    assert found() == []
    assert found(database_server_id="1", database_hostname="db2") == []
    assert found(database_server_id="1", database_port="3307") == []


def test_names_prefixes_and_server_ids_must_differ() -> None:
    assert found(name="one") == [
        ("name", "a.json and b.json have the same: the position of one would replace that of the other")
    ]
    assert found(topic_prefix="one")[0][0] == "topic.prefix"
    assert found(database_server_id="1", database_hostname="DB")[0][0] == "database.server.id"


def test_transactional_ids_must_differ() -> None:
    own = {"exactly.once.source.support": "enabled", "producer.override.transactional.id": "shop"}
    configs = {"a.json": from_properties(ONE | own), "b.json": from_properties(OTHER | own)}
    ((name, message),) = conflicts(configs)
    assert name == "producer.override.transactional.id"
    assert message.startswith("a.json and b.json have the same: Kafka lets only one producer")
    # Other brokers have other producers, and the default id has the connector's name.
    assert conflicts(configs | {"b.json": from_properties(OTHER | own | {"bootstrap.servers": "k2:9092"})}) == []
    assert conflicts(configs | {"b.json": from_properties(OTHER | {"exactly.once.source.support": "enabled"})}) == []


def written(folder: Path, name: str, properties: dict[str, str]) -> str:
    path = folder / name
    path.write_text("".join(f"{key}={text}\n" for key, text in properties.items()))
    return str(path)


def test_the_problems_of_all_connectors_are_reported_together(tmp_path: Path) -> None:
    common = written(tmp_path, "common.properties", {name: ONE[name] for name in ONE if name != "name"})
    first = written(tmp_path, "first.properties", {"name": "a"})
    second = written(tmp_path, "second.properties", {"name": "a", "database.port": "x"})
    third = written(tmp_path, "third.properties", {"name": "a"})
    options = [word for file in (first, second, third, first) for word in ("--connector", file)]
    result = CliRunner().invoke(main, ["run", common, *options])
    assert result.exit_code == 1
    assert f"{second}: the configuration has a problem" in result.output
    assert "database.port: must be a whole number" in result.output
    assert f"name: {first} and {third} have the same" in result.output
    assert "--connector: the same file is given twice" in result.output


def test_a_configuration_is_needed() -> None:
    result = CliRunner().invoke(main, ["run"])
    assert result.exit_code == 2
    assert "CONFIG... or --connector FILE" in result.output
