"""Kafka Connect's resources for plugins."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from rowtide.connector.config import Problem
from rowtide.connector.worker.web import plugins
from rowtide.connector.worker.web.access import Access
from rowtide.connector.worker.web.plugins import in_own_thread, plugin_routes
from rowtide.connector.worker.web.server import json_errors

MYSQL = "io.debezium.connector.mysql.MySqlConnector"


def wrong(properties: Mapping[str, str]) -> Iterable[Problem]:
    return [Problem(name, "is wrong") for name, text in properties.items() if text == "wrong"]


def ask(method: str, path: str, body: Any = None) -> tuple[int, Any]:
    async def work() -> tuple[int, Any]:
        app = web.Application(middlewares=[json_errors])
        app.add_routes(plugin_routes(Access(None, "127.0.0.1"), wrong, None))
        async with TestClient(TestServer(app)) as client, client.request(method, path, json=body) as answer:
            return answer.status, await answer.json()

    return asyncio.run(work())


def test_the_worker() -> None:
    code, body = ask("GET", "/")
    assert (code, body.keys(), body["kafka_cluster_id"]) == (200, {"version", "commit", "kafka_cluster_id"}, "")


@pytest.mark.parametrize(("answers", "asked"), [(["", "x"], 1), (["x"], 1)])
def test_kafka_is_asked_for_the_id_of_its_cluster_once(
    answers: list[str], asked: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does not change, and threads that wait for Kafka while it is away delay connectors."""
    given = iter(answers)
    monkeypatch.setattr(plugins._Cluster, "_look_up", lambda *_: next(given))

    async def work() -> list[str]:
        cluster = plugins._Cluster({})
        return [await cluster.id() for _ in range(3)]

    assert asyncio.run(work()) == [answers[0]] * 3
    assert len(list(given)) == len(answers) - asked


def test_the_plugins() -> None:
    code, body = ask("GET", "/connector-plugins")
    assert code == 200
    assert [one["class"] for one in body] == ["io.debezium.connector.mariadb.MariaDbConnector", MYSQL]
    kinds = {one["class"]: one["type"] for one in ask("GET", "/connector-plugins?connectorsOnly=false")[1]}
    assert kinds["io.debezium.transforms.ExtractNewRecordState"] == "transformation"
    assert kinds["org.apache.kafka.connect.json.JsonConverter"] == "converter"
    assert kinds["org.apache.kafka.connect.transforms.predicates.HasHeaderKey"] == "predicate"


@pytest.mark.parametrize("plugin", [MYSQL, "MySqlConnector", "MySql"])
def test_the_properties_of_a_connector(plugin: str) -> None:
    code, body = ask("GET", f"/connector-plugins/{plugin}/config")
    by_name = {one["name"]: one for one in body}
    assert code == 200
    assert by_name["topic.prefix"]["required"]
    mode = by_name["snapshot.mode"]
    assert (mode["type"], mode["default_value"], mode["group"]) == ("STRING", "initial", "Snapshots")
    assert by_name["database.password"]["type"] == "PASSWORD"


def test_unknown_plugins() -> None:
    assert ask("GET", "/connector-plugins/no.such.Plugin/config")[0] == 404
    assert ask("PUT", "/connector-plugins/no.such.Plugin/config/validate", {"connector.class": MYSQL})[0] == 400
    other = {"connector.class": "io.debezium.connector.mariadb.MariaDbConnector"}
    assert ask("PUT", f"/connector-plugins/{MYSQL}/config/validate", other)[0] == 400
    assert ask("PUT", f"/connector-plugins/{MYSQL}/config/validate", {"name": "a"})[0] == 400


def test_a_configuration_is_validated() -> None:
    given = {
        "connector.class": MYSQL,
        "snapshot.mode": "wrong",
        "database.password": "secret",
        "transforms.t.type": "wrong",
    }
    code, body = ask("PUT", "/connector-plugins/MySql/config/validate", given)
    values = {one["value"]["name"]: one["value"] for one in body["configs"]}
    assert (code, body["name"], body["error_count"]) == (200, MYSQL, 2)
    assert {name for name, value in values.items() if value["errors"]} == {"snapshot.mode", "transforms.t.type"}
    assert values["snapshot.mode"]["value"] == "wrong"
    assert "when_needed" in values["snapshot.mode"]["recommended_values"]
    assert values["database.password"]["value"] is None
    assert values["max.batch.size"]["value"] == "2048"


def test_validations_that_wait_for_a_server_leave_threads_for_connectors() -> None:
    answers = threading.Event()

    def waits(_given: Mapping[str, str]) -> bool:
        return answers.wait(60)

    async def run() -> None:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(2))
        checks = [asyncio.create_task(in_own_thread(waits, {})) for _ in range(6)]
        await asyncio.sleep(0)
        await asyncio.wait_for(asyncio.to_thread(answers.set), 30)
        assert await asyncio.gather(*checks) == [True] * 6

    asyncio.run(run())
