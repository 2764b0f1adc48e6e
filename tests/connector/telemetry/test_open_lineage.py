"""OpenLineage's events, as a receiver over HTTP gets them, in the form of Debezium's."""

from __future__ import annotations

import json
import logging
import socket
import sys
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rowtide_stack.ports import free_port

from rowtide._version import __version__
from rowtide.connector.config import Configuration, from_properties
from rowtide.connector.engine.pipeline_settings import pipeline_settings, run_id
from rowtide.connector.engine.reported_tables import ReportedTables
from rowtide.connector.telemetry import Lineage, TelemetryError, lineage, open_lineage
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.server.query_event import Flavor, QueryEvent, Server
from tests.support.configurations import PROPERTIES
from tests.support.network.http_receiver import Receiver, receiver
from tests.support.processes.worker_process import eventually

RUN = run_id()


@pytest.fixture
def marquez(tmp_path: Path) -> Iterator[Receiver]:
    with receiver() as server:
        transport = {"type": "http", "url": server.url, "retry": {"total": 0}}
        (tmp_path / "openlineage.yml").write_text(json.dumps({"transport": transport}))
        yield server


def config(folder: Path, **more: str) -> Configuration:
    given = {"enabled": "true", "config.file.path": str(folder / "openlineage.yml"), **more}
    other = ("table", "transforms", "include")
    named = {n if n.startswith(other) else f"openlineage.integration.{n}": text for n, text in given.items()}
    return from_properties({**PROPERTIES, **named})


def events(server: Receiver, count: int) -> list[dict[str, Any]]:
    eventually(lambda: len(server.requests) >= count, f"{count} events")
    assert {path for path, _ in server.requests} == {"/api/v1/lineage"}
    return [json.loads(body) for _, body in server.requests]


def made(given: Configuration) -> Lineage:
    found = lineage(given, RUN)
    assert found is not None
    return found


def without_urls(value: Any) -> Any:
    """A part of an event without the fields that each facet has."""
    if isinstance(value, dict):
        return {name: without_urls(one) for name, one in value.items() if name not in ("_producer", "_schemaURL")}
    return [without_urls(one) for one in value] if isinstance(value, list) else value


def test_the_life_of_a_connector(marquez: Receiver, tmp_path: Path) -> None:
    tags = {"job.namespace": "cdc", "job.description": "orders", "job.tags": "env=prod, team=x"}
    found = made(config(tmp_path, **tags, **{"job.owners": "Anna Lind=maintainer"}))
    found.started()
    found.running()
    found.failed(ValueError("the server is away"))
    found.running()
    found.completed()
    found.close()
    sent = events(marquez, 5)
    assert [one["eventType"] for one in sent] == ["START", "RUNNING", "FAIL", "RUNNING", "COMPLETE"]
    assert {one["run"]["runId"] for one in sent} == {str(uuid.UUID(RUN))}
    assert without_urls(sent[0]["job"]) == {
        "namespace": "cdc",
        "name": "shop.0",
        "facets": {
            "documentation": {"description": "orders"},
            "jobType": {"processingType": "STREAMING", "integration": "DEBEZIUM", "jobType": "TASK"},
            "ownership": {"owners": [{"name": "Anna Lind", "type": "maintainer"}]},
            "tags": {
                "tags": [
                    {"key": "env", "value": "prod", "source": "CONFIG"},
                    {"key": "team", "value": "x", "source": "CONFIG"},
                ]
            },
        },
    }
    facets = sent[2]["run"]["facets"]
    assert (facets["processing_engine"]["version"], facets["processing_engine"]["name"]) == (__version__, "rowtide")
    assert facets["errorMessage"]["message"] == "the server is away"
    assert "ValueError: the server is away" in facets["errorMessage"]["stackTrace"]
    assert "errorMessage" not in sent[3]["run"]["facets"]
    lines = facets["debezium_config"]["configs"]
    assert "topic.prefix=shop" in lines
    assert "database.password=********" in lines
    assert PROPERTIES["database.password"].encode() not in b"".join(body for _, body in marquez.requests)


def tables_with(*statements: str) -> Tables:
    tables = Tables(Server(Flavor.MYSQL))
    for text in ("CREATE DATABASE inventory", *statements):
        tables.apply(QueryEvent(text, "inventory"))
    return tables


def test_tables_and_topics_and_their_changes(marquez: Receiver, tmp_path: Path) -> None:
    given = config(tmp_path, **{"table.include.list": "inventory.orders", "include.schema.comments": "true"})
    tables = tables_with(
        "CREATE TABLE orders (id INT PRIMARY KEY COMMENT 'number', price DECIMAL(8,2))", "CREATE TABLE other (id INT)"
    )
    found = made(given)
    work = ReportedTables(found, pipeline_settings(given, RUN), tables, list)
    assert work.due
    work.report()
    assert not work.due
    tables.apply(QueryEvent("ALTER TABLE other ADD x INT", "inventory"))
    assert work.due
    work.report()
    tables.apply(QueryEvent("ALTER TABLE orders ADD note TEXT", "inventory"))
    work.report()
    found.close()
    sent = [without_urls({"in": one["inputs"], "out": one["outputs"]}) for one in events(marquez, 4)]
    assert len(sent) == 4, "a table that is not captured is not reported"
    columns = [{"name": "id", "type": "INT", "description": "number"}, {"name": "price", "type": "DECIMAL"}]
    [first] = sent[0]["in"]
    assert (first["namespace"], first["name"]) == ("mysql://127.0.0.1:3306", "inventory.orders")
    assert first["facets"]["datasetType"] == {"datasetType": "TABLE", "subType": ""}
    described = first["facets"]["schema"]["fields"]
    assert [
        {name: one[name] for name in ("name", "type", "description") if name in one} for one in described
    ] == columns
    [topic] = sent[1]["out"]
    assert (topic["namespace"], topic["name"]) == ("kafka://127.0.0.1:9092", "shop.inventory.orders")
    assert topic["facets"]["datasetType"]["datasetType"] == "STREAM"
    fields = {one["name"]: one for one in topic["facets"]["schema"]["fields"]}
    assert list(fields) == ["before", "after", "source", "transaction", "op", "ts_ms", "ts_us", "ts_ns"]
    assert (fields["op"]["type"], fields["after"]["type"]) == ("STRING", "STRUCT")
    assert [one["name"] for one in fields["after"]["fields"]] == ["id", "price"]
    assert [one["name"] for one in sent[2]["in"][0]["facets"]["schema"]["fields"]] == ["id", "price", "note"]
    assert [one["name"] for one in sent[3]["out"]] == ["shop.inventory.orders"]


RECORDED: list[dict[str, Any]] = json.loads(Path(__file__).with_name("debezium_lineage.json").read_text())
"""What Debezium 3.6.1 sent for the case of the test, with debezium-openlineage-core built from its sources."""
OTHER = {"_producer", "_schemaURL", "producer", "schemaURL", "eventTime", "runId", "processing_engine", "configs"}


def compared(value: Any) -> Any:
    """A part of an event without what differs from program to program, and with tags in one order."""
    if isinstance(value, dict):
        return {name: compared(one) for name, one in value.items() if name not in OTHER | {"additionalProperties"}}
    if isinstance(value, list) and value and "key" in value[0]:
        return sorted(map(compared, value), key=lambda tag: tag["key"])
    return list(map(compared, value)) if isinstance(value, list) else value


def test_events_are_those_of_debezium(marquez: Receiver, tmp_path: Path) -> None:
    lines = dict(line.split("=", 1) for line in RECORDED[0]["run"]["facets"]["debezium_config"]["configs"])
    theirs = {name: text for name, text in lines.items() if not name.startswith(("transforms", "task.", "openlineage"))}
    job = {"description": "orders", "tags": "env=prod,team=x", "owners": "Anna Lind=maintainer"}
    given = from_properties(
        {
            **theirs,
            "bootstrap.servers": "127.0.0.1:9092",
            "database.password": "geheim",
            "openlineage.integration.enabled": "true",
            "openlineage.integration.config.file.path": str(tmp_path / "openlineage.yml"),
            **{f"openlineage.integration.job.{name}": text for name, text in job.items()},
        }
    )
    tables = tables_with(
        "CREATE TABLE orders (id INT PRIMARY KEY COMMENT 'number', price DECIMAL(8,2), kind ENUM('a','b') NOT NULL, "
        "at DATETIME(3), big BIGINT UNSIGNED, t TEXT)",
        "CREATE TABLE other (id INT PRIMARY KEY)",
    )
    found = made(given)
    work = ReportedTables(found, pipeline_settings(given, RUN), tables, list)
    found.started()
    found.running()
    work.report()
    for name in ("orders", "other"):
        tables.apply(QueryEvent(f"ALTER TABLE {name} ADD note VARCHAR(20)", "inventory"))
    work.report()
    found.completed()
    found.close()
    sent = events(marquez, 7)
    for event in sent:
        del event["run"]["facets"]["tags"]  # the version of the client in Python
    changed = sent.pop(5)  # Debezium 3.6.1 does not report that the fields of a topic have changed
    [after] = [one for one in changed["outputs"][0]["facets"]["schema"]["fields"] if one["name"] == "after"]
    assert after["fields"][-1]["name"] == "note"
    assert compared(sent) == compared(RECORDED)
    assert sent[0]["run"]["facets"].keys() == RECORDED[0]["run"]["facets"].keys()
    lines_sent = set(sent[0]["run"]["facets"]["debezium_config"]["configs"])
    assert {f"{name}={text}" for name, text in theirs.items()} <= lines_sent


def test_with_transforms_topics_are_those_that_records_were_sent_to(marquez: Receiver, tmp_path: Path) -> None:
    given = config(
        tmp_path,
        **{"table.include.list": "inventory.orders", "transforms": "route"},
        **{"transforms.route.type": "org.apache.kafka.connect.transforms.RegexRouter"},
        **{"transforms.route.regex": "shop.(.*)", "transforms.route.replacement": "$1"},
        **{"dataset.kafka.bootstrap.servers": "kafka:9092,other:9092"},
    )
    now, topics = [0.0], ["inventory.orders"]
    found = made(given)
    tables = tables_with("CREATE TABLE orders (id INT PRIMARY KEY)")
    work = ReportedTables(found, pipeline_settings(given, RUN), tables, lambda: topics, lambda: now[0])
    work.report()
    assert not work.due
    topics.append("inventory.new")
    now[0] = 10.0
    assert work.due
    work.report()
    found.close()
    outputs = [without_urls(dataset) for one in events(marquez, 3) for dataset in one["outputs"]]
    facets = {"datasetType": {"datasetType": "STREAM", "subType": ""}}
    assert outputs == [
        {"namespace": "kafka://kafka:9092", "name": name, "facets": facets}
        for name in ("inventory.orders", "inventory.new")
    ]


def test_a_receiver_that_is_away_costs_a_line_in_the_log(
    marquez: Receiver, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    transport = {"type": "http", "url": f"http://127.0.0.1:{free_port()}", "retry": {"total": 0}}
    (tmp_path / "openlineage.yml").write_text(json.dumps({"transport": transport}))
    caplog.set_level(logging.WARNING, "rowtide")
    found = made(config(tmp_path))
    for _ in range(3):
        found.running()
    found.close()
    lines = [record.getMessage() for record in caplog.records if record.name.startswith("rowtide")]
    assert len(lines) == 1
    assert lines[0].startswith("OpenLineage's events cannot be sent to their receiver (1 failures so far)")
    assert marquez.requests == []


def test_a_receiver_that_hangs_keeps_no_thread_and_no_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_lineage, "_MOST_WAITING", 3)
    monkeypatch.setattr(open_lineage, "_CLOSE_S", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        transport = {"type": "http", "url": url, "timeout": 0.2, "retry": {"total": 0}}
        (tmp_path / "openlineage.yml").write_text(json.dumps({"transport": transport}))
        found = open_lineage.OpenLineage(config(tmp_path), RUN)
        for _ in range(10):
            found.running()
        found.close()
        found._thread.join(30)  # within one event, not all of them
        assert not found._thread.is_alive()
        assert found._client.transport._session is None  # type: ignore[attr-defined]
        assert found._waiting.qsize() > 0


def test_each_of_many_tables_is_reported_to_a_slow_receiver(
    marquez: Receiver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_lineage, "_MOST_WAITING", 3)
    found = open_lineage.OpenLineage(config(tmp_path), RUN)
    emit, proceed = found._client.emit, threading.Event()

    def wait(event: Any) -> None:
        proceed.wait()
        emit(event)

    monkeypatch.setattr(found._client, "emit", wait)
    tables = tables_with(*(f"CREATE TABLE t{number} (id INT PRIMARY KEY)" for number in range(20)))
    ReportedTables(found, pipeline_settings(config(tmp_path), RUN), tables, list).report()
    proceed.set()
    found.close()
    datasets = [one for event in events(marquez, 40) for one in (*event["inputs"], *event["outputs"])]
    assert {one["name"] for one in datasets} == {
        f"{prefix}inventory.t{number}" for prefix in ("", "shop.") for number in range(20)
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "openlineage.yml cannot be read: No such file or directory"),
        ("transport: {", "is not a configuration of OpenLineage's client"),
        ("transport: {type: http}", "is not a configuration of OpenLineage's client"),
        ("transport: {type: pigeon}", "is not a configuration of OpenLineage's client"),
        ("- a", "has no transport, such as"),
    ],
)
def test_a_file_that_cannot_be_used(text: str | None, message: str, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / "openlineage.yml").write_text(text)
    with pytest.raises(TelemetryError, match=message):
        lineage(config(tmp_path), RUN)


def test_a_missing_package_is_an_error_that_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "rowtide.connector.telemetry.open_lineage", raising=False)
    monkeypatch.setitem(sys.modules, "openlineage.client", None)
    with pytest.raises(TelemetryError, match=r"pip install 'rowtide\[openlineage\]'"):
        lineage(config(tmp_path), RUN)


def test_without_the_property_there_is_none() -> None:
    assert lineage(from_properties(PROPERTIES), RUN) is None
