"""The settings of a fleet's worker, and the configurations of its connectors."""

from __future__ import annotations

from pathlib import Path

import pytest

from rowtide.connector.config import Configuration, ConfigurationError
from rowtide.connector.fleet.settings import (
    PROPERTIES,
    FleetSettings,
    connector_configuration,
    fleet_settings,
    label_of,
    own_changes,
)
from rowtide.connector.worker.validation import problems_of
from rowtide.topics.settings import TopicSettings
from tests.support.source_tree import ROOT

WORKER = {
    "bootstrap.servers": "k1:9092,k2:9092",
    "group.id": "crew",
    "config.storage.topic": "crew-config",
    "status.storage.topic": "crew-status",
    "offset.storage.topic": "crew-offsets",
}
CONNECTOR = {
    "connector.class": "io.debezium.connector.mysql.MySqlConnector",
    "topic.prefix": "shop",
    "database.hostname": "db",
    "database.user": "u",
    "database.password": "p",
    "database.server.id": "5",
    "schema.history.internal.kafka.topic": "shop-history",
}


def settings(folder: Path, **more: str) -> FleetSettings:
    file = folder / "fleet.properties"
    given = {**WORKER, **{name.replace("_", "."): value for name, value in more.items()}}
    file.write_text("".join(f"{name}={value}\n" for name, value in given.items() if value))
    return fleet_settings(file, {})


def problems(folder: Path, **more: str) -> list[str]:
    with pytest.raises(ConfigurationError) as error:
        settings(folder, **more)
    return [problem.property for problem in error.value.problems]


def test_the_settings_of_a_worker_of_kafka_connect(tmp_path: Path) -> None:
    found = settings(tmp_path, config_storage_replication_factor="3", rest_advertised_port="8083")
    assert (found.group, found.fleet_topic, found.session_s, found.heartbeat_s) == ("crew", "crew-fleet", 6.0, 1.5)
    assert found.topics["crew-config"] == TopicSettings(1, 3, {"cleanup.policy": "compact"})
    assert found.topics["crew-status"].partitions == 5
    assert found.topics["crew-fleet"].partitions == 32
    assert [str(broker) for broker in found.connection.bootstrap] == ["k1:9092", "k2:9092"]


def test_all_problems_are_reported_at_once(tmp_path: Path) -> None:
    found = problems(
        tmp_path,
        bootstrap_servers="",
        group_id="",
        config_storage_topic="",
        status_storage_topic="a b",
        session_timeout_ms="1000",
        rowtide_fleet_partitions="many",
        offset_flush_interval_ms="soon",
    )
    assert sorted(found) == sorted(
        [
            "bootstrap.servers",
            "group.id",
            "config.storage.topic",
            "status.storage.topic",
            "session.timeout.ms",
            "rowtide.fleet.partitions",
            "offset.flush.interval.ms",
        ]
    )


def test_an_interval_of_the_balance_that_is_meant_in_seconds(tmp_path: Path) -> None:
    assert problems(tmp_path, rowtide_fleet_balance_interval_ms="300") == ["rowtide.fleet.balance.interval.ms"]
    assert settings(tmp_path, rowtide_fleet_balance_interval_ms="1000").balance_s == 1
    assert settings(tmp_path, rowtide_fleet_balance_interval_ms="0").balance_s == 0


def test_labels_have_topics_of_their_own(tmp_path: Path) -> None:
    found = settings(tmp_path, rowtide_worker_labels="ssd, zone-eu", rowtide_fleet_partitions="8")
    assert found.labels == ("ssd", "zone-eu")
    assert found.shared_topics == ["crew-fleet", "crew-fleet.ssd", "crew-fleet.zone-eu"]
    assert {found.topics[topic].partitions for topic in found.shared_topics} == {8}
    assert settings(tmp_path).shared_topics == ["crew-fleet"]


def test_labels_that_cannot_be_part_of_a_topics_name(tmp_path: Path) -> None:
    assert problems(tmp_path, rowtide_worker_labels="ssd,a.b") == ["rowtide.worker.labels"]


def test_the_label_of_a_connector_is_not_one_of_a_worker(tmp_path: Path) -> None:
    assert problems(tmp_path, rowtide_runs_on="ssd") == ["rowtide.runs.on"]


def test_a_connector_names_its_label_as_it_is(tmp_path: Path) -> None:
    worker = settings(tmp_path, rowtide_worker_labels="ssd")
    given = CONNECTOR | {"rowtide.runs.on": "ssd"}
    assert label_of(given) == "ssd"
    assert label_of(CONNECTOR) is None
    assert not [note for note in connector_configuration(worker, "shop", given, {}).warnings if "rowtide" in note]
    for wrong in ("a.b", "${env:LABEL}"):
        with pytest.raises(ConfigurationError, match=r"rowtide\.runs\.on"):
            connector_configuration(worker, "shop", given | {"rowtide.runs.on": wrong}, {"LABEL": "ssd"})


def test_changes_that_a_worker_reads_at_its_start(tmp_path: Path) -> None:
    before = settings(tmp_path)
    assert own_changes(before, settings(tmp_path, poll_interval_ms="7")) == []
    more = {"session_timeout_ms": "9000", "rowtide_worker_labels": "ssd", "poll_interval_ms": "7"}
    assert own_changes(before, settings(tmp_path, **more)) == ["rowtide.worker.labels", "session.timeout.ms"]
    assert own_changes(before, settings(tmp_path, bootstrap_servers="other:9092")) == ["bootstrap.servers"]


def test_a_heartbeat_comes_three_times_in_a_session(tmp_path: Path) -> None:
    assert problems(tmp_path, heartbeat_interval_ms="2001") == ["heartbeat.interval.ms"]


def test_a_login_that_faust_lacks_is_refused(tmp_path: Path) -> None:
    assert problems(tmp_path, security_protocol="SASL_PLAINTEXT", sasl_mechanism="GSSAPI") == ["sasl.mechanism"]


def test_a_connector_has_the_properties_of_the_worker_and_its_own(tmp_path: Path) -> None:
    worker = settings(tmp_path, offset_flush_interval_ms="5000", max_batch_size="100")
    config = connector_configuration(worker, "shop", {**CONNECTOR, "max.batch.size": "200"}, {})
    assert config.name == "shop"
    assert config.delivery.offset_topic == "crew-offsets"
    assert config.delivery.offset_flush_interval_ms == 5000
    assert config.streaming.max_batch_size == 200
    assert not [note for note in config.warnings if "storage" in note or "fleet" in note]


def test_every_connector_is_fenced(tmp_path: Path) -> None:
    more = {"exactly.once.source.support": "disabled", "name": "other", "group.id": "other"}
    config = connector_configuration(settings(tmp_path), "shop", {**CONNECTOR, **more}, {})
    assert config.delivery.exactly_once
    assert (config.name, config.delivery.group_id) == ("shop", "crew")


def test_other_sinks_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="Kafka fences"):
        connector_configuration(settings(tmp_path), "shop", {**CONNECTOR, "rowtide.sink": "stdout"}, {})


def test_the_page_has_every_property() -> None:
    page = (ROOT / "docs" / "fleet.md").read_text()
    for one in PROPERTIES:
        default = "required" if one.required else f"`{one.default_text or one.default}`"
        assert f"| `{one.name}` | {default} |" in page


@pytest.mark.parametrize("name", ["topic.prefix", "snapshot.mode", "poll.interval.ms"])
def test_a_problem_shows_a_reference_instead_of_a_secret(tmp_path: Path, name: str) -> None:
    given = CONNECTOR | {name: "${env:SECRET}"}
    with pytest.raises(ConfigurationError) as error:
        connector_configuration(settings(tmp_path), "shop", given, {"SECRET": "it's\ttop/secret"})
    (problem,) = error.value.problems
    assert problem.property == name
    assert problem.message.endswith("${env:SECRET}'") or problem.message.endswith('${env:SECRET}"')


def test_only_the_file_of_a_worker_names_what_yields_passwords(tmp_path: Path) -> None:
    """Whoever may configure connectors by requests could run any program otherwise."""
    source = "rowtide.database.password.source"
    worker = settings(tmp_path, **{source: "command:token {user}"})
    own = {name: text for name, text in CONNECTOR.items() if name != "database.password"}
    renewal = connector_configuration(worker, "shop", own, {}).database.renewal
    assert renewal is not None
    assert renewal.source is not None
    assert renewal.source.command == ("token", "{user}")
    config = connector_configuration(worker, "shop", CONNECTOR, {})
    assert (config.database.password.reveal(), config.database.renewal) == ("p", None)
    with pytest.raises(ConfigurationError, match="of the worker's file only"):
        connector_configuration(worker, "shop", own | {source: "command:rm -rf"}, {})


def test_a_validation_runs_no_command_of_a_request() -> None:
    def build(*_given: object) -> Configuration:
        raise AssertionError("the request is used")

    given = {"rowtide.database.password.source": "command:true"}
    (problem,) = problems_of(CONNECTOR | given, build)
    assert problem.property == "rowtide.database.password.source"


def test_references_in_the_file_of_a_worker_are_resolved_at_the_start_of_a_connector(tmp_path: Path) -> None:
    secrets = tmp_path / "secrets.properties"
    secrets.write_text("password=one\nschemas=false\n")
    references = {
        "database.password": f"${{file:{secrets}:password}}",
        "value.converter.schemas.enable": f"${{file:{secrets}:schemas}}",
    }
    worker = settings(tmp_path, **references)
    own = {name: text for name, text in CONNECTOR.items() if name != "database.password"}
    secrets.write_text("password=two\nschemas=true\n")
    config = connector_configuration(worker, "shop", own, {})
    assert config.database.password.reveal() == "two"
    assert config.database.renewal is not None
    assert config.properties["database.password"] == references["database.password"]
