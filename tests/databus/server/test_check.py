"""What ``rowtide check`` finds of a databus server, in addition to the database and Kafka."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import rowtide.cluster.session as session_module
from rowtide.connector.check import CheckedTable, Finding, Severity
from rowtide.connector.check.facts import TableFact
from rowtide.connector.check.table_rules import table_findings
from rowtide.connector.check.topic_checks import captured_tables
from rowtide.connector.config import Configuration, Problem
from rowtide.connector.engine.pipeline_settings import pipeline_settings
from rowtide.connector.records.topic_conflicts import TopicOwners
from rowtide.databus.server.check import server_findings
from rowtide.databus.server.settings import load_server
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.model import TableId
from rowtide.schema_history.server.query_event import Flavor, Server
from tests.support.configurations import PROPERTIES

NAMES = ["a b", "a$b", "transaction"]
"""In Debezium's form, the first two would have the same topic."""


@pytest.fixture
def listening() -> Iterator[int]:
    """A port that is in use."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def loaded(folder: Path, **more: str) -> tuple[Configuration, tuple[Problem, ...]]:
    """The configuration from a file, and its problems."""
    own = {f"databus.{name}": text for name, text in ({"topic": "shop"} | more).items()}
    properties = PROPERTIES | {"bootstrap.servers": "127.0.0.1:1"} | own
    file = folder / "databus.properties"
    file.write_text("".join(f"{name}={text}\n" for name, text in properties.items()))
    return load_server([str(file)], {})


def configured(folder: Path, **more: str) -> Configuration:
    config, problems = loaded(folder, **more)
    assert problems == ()
    return config


def found(config: Configuration, tables: tuple[CheckedTable, ...] = ()) -> dict[str, Finding]:
    return {finding.subject: finding for finding in server_findings(config, tables)}


def test_all_findings_are_reported_together(listening: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_module, "_REQUEST_S", 0.2)
    file = tmp_path / "file"
    file.touch()
    wrong = configured(
        tmp_path, zkpath="127.0.0.1:1", monitorip="127.0.0.1", monitorport=str(listening), data_dir=str(file / "dumps")
    )
    findings = found(wrong)
    assert {name: one.severity for name, one in findings.items()} == {
        "databus.zkpath": Severity.ERROR,
        "databus.monitorport": Severity.ERROR,
        "databus.monitorip": Severity.REMARK,
        "databus.data_dir": Severity.ERROR,
    }
    assert "no connection to ZooKeeper at 127.0.0.1:1" in findings["databus.zkpath"].message
    assert f"port {listening}: Address already in use" in findings["databus.monitorport"].message
    assert f"{file} is not a folder" in findings["databus.data_dir"].message


def test_the_port_of_the_server_that_runs_is_its_own(
    listening: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = configured(tmp_path, zkpath="zoo:1", monitorport=str(listening), data_dir=str(tmp_path / "a" / "dumps"))
    address = f"127.0.0.1:{listening}"
    monkeypatch.setattr("rowtide.databus.server.check._running", lambda _servers, _nodes: address)
    findings = found(config)
    assert {name: one.severity for name, one in findings.items()} == {
        "databus.zkpath": Severity.REMARK,
        "databus.monitorip": Severity.REMARK,
    }
    assert f"the server at {address} runs topic shop" in findings["databus.zkpath"].message
    assert not (tmp_path / "a").exists(), "nothing is created"


@pytest.mark.parametrize("host", ["a..b", "x" * 64])
def test_an_address_that_is_no_host_is_a_finding(host: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rowtide.databus.server.check._running", lambda _servers, _nodes: None)
    config = configured(tmp_path, zkpath="zoo:1", monitorip=host, monitorport="1234", data_dir=str(tmp_path))
    finding = found(config)["databus.monitorport"]
    assert finding.severity is Severity.ERROR
    assert finding.message.startswith(f"dumps cannot be served at {host}, port 1234: encod")


def test_the_topic_of_a_server_without_zookeeper(tmp_path: Path) -> None:
    table = CheckedTable("d", "t", None, None, "shop", 1)
    assert found(configured(tmp_path), (table,)) == {}
    wide = found(configured(tmp_path), (table, replace(table, name="u", partitions=3), replace(table, partitions=3)))
    assert "shop has 3 partitions: all messages go to partition 0" in wide["databus.topic"].message


@pytest.mark.parametrize("topic", ["databus", "shop", "shop.d.a_b"])
def test_tables_share_the_topic_whatever_their_names_are(topic: str, tmp_path: Path) -> None:
    config = configured(tmp_path, topic=topic)
    facts = tuple(TableFact("d", name) for name in NAMES)
    assert [table.topic for table in captured_tables(config, facts, {})] == [topic] * 3
    assert [*table_findings(config, facts)] == []
    guard = TopicOwners(pipeline_settings(config, "run"), Tables(Server(Flavor.MYSQL)))
    assert {guard.topic(TableId("d", name)) for name in NAMES} == {topic}


def test_the_topic_must_not_be_that_of_heartbeats(tmp_path: Path) -> None:
    _, problems = loaded(tmp_path, topic=f"__debezium-heartbeat.{PROPERTIES['topic.prefix']}")
    assert [problem.property for problem in problems] == ["databus.topic"]
