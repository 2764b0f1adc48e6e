"""Debezium's own REST resources: the answers that Debezium's own tests of them expect."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from rowtide._version import __version__
from rowtide.connector.config import Configuration, Problem, from_properties
from rowtide.connector.delivery.counters import DeliveryCounters
from rowtide.connector.engine.stream_attempts import ReaderStatus
from rowtide.connector.worker.status import Status
from rowtide.connector.worker.validation import problems_of
from rowtide.connector.worker.web.access import Access
from rowtide.connector.worker.web.debezium_rest import debezium_routes
from rowtide.connector.worker.web.page.neighbours import Neighbours
from rowtide.connector.worker.web.server import json_errors
from tests.support.processes.made_statuses import status

MYSQL = "io.debezium.connector.mysql.MySqlConnector"
SHOWN = status(
    name="shop",
    reader=ReaderStatus(connected=True, event_ts_ms=1_050_000),
    delivery=DeliveryCounters(10),
)


async def shown() -> Status:
    return SHOWN


def problems(properties: Mapping[str, str]) -> list[Problem]:
    def build(given: Mapping[str, str], not_required: Any) -> Configuration:
        return from_properties({"bootstrap.servers": "127.0.0.1:1", **given}, None, not_required)

    return problems_of(properties, build)


def matching(_properties: Mapping[str, str]) -> list[tuple[str, str]]:
    return [("shop", "orders")]


def ask(method: str, path: str, body: Any = None) -> tuple[int, Any]:
    services: Any = {"shop": SimpleNamespace(status_at_once=shown)}
    connectors: Any = {**services, "stopped": SimpleNamespace()}

    async def work() -> tuple[int, Any]:
        app = web.Application(middlewares=[json_errors])
        app.add_routes(
            debezium_routes(
                Access(None, "127.0.0.1"), services, connectors, problems, matching, Neighbours(None, tls=False)
            )
        )
        async with TestClient(TestServer(app)) as client, client.request(method, path, json=body) as answer:
            text = await answer.text()
            return answer.status, text if path.endswith("version") else await answer.json()

    return asyncio.run(work())


def results(answer: Mapping[str, Any]) -> set[str]:
    return {one["property"] for one in answer["validationResults"]}


@pytest.mark.parametrize("path", ["connection", "filters"])
def test_what_is_required(path: str) -> None:
    code, body = ask("PUT", f"/debezium/mysql/validate/{path}", {"connector.class": MYSQL})
    assert (code, body["status"]) == (200, "INVALID")
    required = {"database.user", "topic.prefix", "database.server.id", "database.hostname"}
    assert results(body) == required
    assert body.get("matchingCollections", []) == []


def test_a_server_that_does_not_answer() -> None:
    given = {"database.hostname": "127.0.0.1", "database.port": "1", "database.user": "u", "topic.prefix": "p"}
    code, body = ask("PUT", "/debezium/mariadb/validate/connection", {**given, "database.server.id": "5"})
    assert (code, body["status"], results(body)) == (200, "INVALID", {"database.hostname"})
    assert body["validationResults"][0]["message"].startswith("Unable to connect: ")


def test_a_pattern_that_is_none() -> None:
    given = {"database.hostname": "h", "database.user": "u", "topic.prefix": "p", "database.server.id": "5"}
    code, body = ask("PUT", "/debezium/mysql/validate/filters", {**given, "database.include.list": "+"})
    assert (code, body["status"], results(body)) == (200, "INVALID", {"database.include.list"})
    assert body["matchingCollections"] == []


def test_captured_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "problems", lambda _properties: [])
    code, body = ask("PUT", "/debezium/mysql/validate/filters", {"database.port": 3306})
    assert (code, body["status"], body["validationResults"]) == (200, "VALID", [])
    assert body["matchingCollections"] == [{"identifier": "shop.orders", "namespace": "shop", "name": "orders"}]


def test_the_class_of_another_connector() -> None:
    code, body = ask("PUT", "/debezium/mariadb/validate/connection", {"connector.class": MYSQL})
    assert (code, body["error_code"]) == (400, 400)
    assert ask("PUT", "/debezium/oracle/validate/connection", {})[0] == 404


def test_metrics() -> None:
    assert ask("GET", "/debezium/mysql/connectors/shop/metrics") == (
        200,
        {
            "name": "shop",
            "tasks.max": "1",
            "connector": {"metrics": {"Connected": "true"}},
            "tasks": [
                {
                    "id": 0,
                    "namespaces": [
                        {"metrics": {"MilliSecondsSinceLastEvent": "10500", "TotalNumberOfEventsSeen": "10"}}
                    ],
                }
            ],
        },
    )


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("mysql/connectors/unknown", "Connector unknown not found"),
        ("mariadb/connectors/shop", "Connector shop not found"),
        ("mysql/connectors/stopped", "Connector stopped runs on no worker: resume it first"),
    ],
)
def test_metrics_of_connectors_that_do_not_run_here(path: str, message: str) -> None:
    code, body = ask("GET", f"/debezium/{path}/metrics")
    assert (code, body) == (404, {"error_code": 404, "message": message})


def test_the_schema_of_the_configuration() -> None:
    code, body = ask("GET", "/debezium/mysql/schema")
    [(name, schema)] = body["components"]["schemas"].items()
    assert (code, name, schema["x-className"]) == (200, f"debezium-mysql-{__version__}", MYSQL)
    assert {"topic.prefix", "database.hostname"} <= set(schema["required"])
    found = schema["properties"]
    assert found["database.password"] | {"description": ""} == {
        "title": "database.password",
        "description": "",
        "type": "string",
        "x-name": "database.password",
        "x-category": found["database.user"]["x-category"],
        "format": "password",
    }
    assert (found["max.queue.size"]["type"], found["max.queue.size"]["default"]) == ("integer", 8192)
    assert found["tombstones.on.delete"]["default"] is True


def test_the_version() -> None:
    assert ask("GET", "/debezium/mysql/version") == (200, __version__)
