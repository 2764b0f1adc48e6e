"""Kafka Connect's REST interface: the answers that a recorded Kafka Connect 4.3.1 gives, and who may send requests."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from rowtide import __version__
from rowtide.connector.config.errors import ConfigurationError, Problem
from rowtide.connector.worker.web.access import Access, Refused, Role, User
from rowtide.connector.worker.web.connect_rest import (
    ConnectorState,
    StillStopping,
    StoreUnavailable,
    connect_state,
    routes,
    with_slashes,
)
from rowtide.connector.worker.web.server import json_errors

Client = TestClient[web.Request, web.Application]


class Fake:
    """A connector that writes down what is done to it."""

    def __init__(self, state: str = "RUNNING", error: str | None = None) -> None:
        self.state, self.error = state, error
        self.done: list[str] = []
        self.hangs = False

    def properties(self) -> Mapping[str, str]:
        return {"name": "shop", "database.password": "********"}

    async def connect_state(self) -> ConnectorState:
        return ConnectorState(connect_state(self.state), trace=self.error or "")

    async def offsets(self) -> list[dict[str, Any]]:
        return [{"partition": {"server": "shop"}, "offset": {"file": "b.000001", "pos": 4}}]

    async def alter_offsets(self, changes: list[Any] | None) -> None:
        self.done.append(json.dumps(changes))

    async def topics(self) -> list[str]:
        return ["shop.shop.orders"]

    async def reset_topics(self) -> None:
        self.done.append("reset")

    async def hold(self, state: str) -> None:
        self.done.append(state)
        self.state = state

    async def resume(self) -> None:
        if self.hangs:
            raise StillStopping("connector shop has not stopped yet")
        self.done.append("resume")

    async def rerun(self) -> None:
        self.done.append("rerun")


def with_client(connector: Fake, access: Access, use: Callable[[Client], Awaitable[Any]]) -> Any:
    async def work() -> Any:
        app = web.Application(middlewares=[json_errors])
        app.add_routes(with_slashes(routes({"shop": connector}, access)))
        async with TestClient(TestServer(app)) as client:
            return await use(client)

    return asyncio.run(work())


def ask(connector: Fake, method: str, path: str, access: Access | None = None, **more: Any) -> tuple[int, Any]:
    async def use(client: Client) -> tuple[int, Any]:
        async with client.request(method, path, **more) as answer:
            text = await answer.text()
            return answer.status, await answer.json() if text else None

    found: tuple[int, Any] = with_client(connector, access or Access(None, "127.0.0.1"), use)
    return found


@pytest.mark.parametrize("path", ["/connectors/", "/connectors/shop/status/", "/admin/loggers/"])
def test_paths_may_end_with_a_slash(path: str) -> None:
    assert ask(Fake(), "GET", path)[0] == ask(Fake(), "GET", path.rstrip("/"))[0] == 200


def test_connectors() -> None:
    fake = Fake()
    config = {"name": "shop", "database.password": "********"}
    info = {"name": "shop", "config": config, "tasks": [{"connector": "shop", "task": 0}], "type": "source"}
    assert ask(fake, "GET", "/connectors") == (200, ["shop"])
    assert ask(fake, "GET", "/connectors/shop") == (200, info)
    assert ask(fake, "GET", "/connectors/shop/config") == (200, config)
    assert ask(fake, "GET", "/connectors/shop/tasks") == (
        200,
        [{"id": {"connector": "shop", "task": 0}, "config": config}],
    )
    code, body = ask(fake, "GET", "/connectors?expand=info&expand=status")
    assert (code, body["shop"]["info"], body["shop"]["status"]["name"]) == (200, info, "shop")


@pytest.mark.parametrize(
    ("state", "shown", "tasks"),
    [
        ("STARTING", "RUNNING", 1),
        ("SNAPSHOT", "RUNNING", 1),
        ("RECONNECTING", "RUNNING", 1),
        ("RESTARTING", "RESTARTING", 1),
        ("PAUSED", "PAUSED", 1),
        ("STOPPED", "STOPPED", 0),
        ("FAILED", "FAILED", 1),
    ],
)
def test_states(state: str, shown: str, tasks: int) -> None:
    code, body = ask(Fake(state, "the server is away"), "GET", "/connectors/shop/status")
    worker = body["connector"].pop("worker_id")
    assert worker.startswith("127.0.0.1:")
    wanted = {"state": shown, "version": __version__}
    wanted |= {"trace": "the server is away"} if state == "FAILED" else {}
    assert code == 200
    assert body["connector"] == wanted
    assert body["tasks"] == [{"id": 0, "worker_id": worker, **wanted}] * tasks
    assert (body["name"], body["type"]) == ("shop", "source")
    code, body = ask(Fake(state), "GET", "/connectors/shop/tasks/0/status")
    assert code == (200 if tasks else 404)
    assert len(ask(Fake(state), "GET", "/connectors/shop/tasks")[1]) == tasks


@pytest.mark.parametrize(
    ("method", "path", "code", "done"),
    [
        ("PUT", "pause", 202, ["PAUSED"]),
        ("PUT", "stop", 204, ["STOPPED"]),
        ("PUT", "resume", 202, ["resume"]),
        ("POST", "restart", 204, ["rerun"]),
        ("POST", "restart?includeTasks=maybe", 204, ["rerun"]),
        ("POST", "restart?includeTasks=TRUE&onlyFailed=False", 202, ["rerun"]),
        ("POST", "restart?onlyFailed=true", 202, []),
        ("POST", "tasks/0/restart", 204, ["rerun"]),
    ],
)
def test_what_is_done(method: str, path: str, code: int, done: list[str]) -> None:
    fake = Fake()
    found, body = ask(fake, method, f"/connectors/shop/{path}")
    assert (found, fake.done) == (code, done)
    assert (body is None) == ("restart?" not in path or code == 204)


def test_a_failed_connector_is_restarted_if_only_those_are_meant() -> None:
    fake = Fake("FAILED")
    assert ask(fake, "POST", "/connectors/shop/restart?onlyFailed=true")[0] == 202
    assert fake.done == ["rerun"]


@pytest.mark.parametrize(
    ("method", "path", "code", "message"),
    [
        ("GET", "/connectors/none", 404, "Connector none not found"),
        ("GET", "/connectors/none/tasks/0/status", 404, "No status found for task none-0"),
        ("GET", "/connectors/shop/tasks/9/status", 404, "No status found for task shop-9"),
        ("PUT", "/connectors/none/pause", 404, "Unknown connector none"),
        ("POST", "/connectors/none/restart", 404, "Unknown connector: none"),
        ("POST", "/connectors/none/tasks/0/restart", 404, "Unknown connector: none"),
        ("POST", "/connectors/shop/tasks/9/restart", 404, "Unknown task: shop-9"),
        ("GET", "/connectors/shop/tasks-config", 404, "HTTP 404 Not Found"),
        ("POST", "/connectors", 405, "HTTP 405 Method Not Allowed"),
        ("DELETE", "/connectors/shop", 405, "HTTP 405 Method Not Allowed"),
    ],
)
def test_errors(method: str, path: str, code: int, message: str) -> None:
    assert ask(Fake(), method, path) == (code, {"error_code": code, "message": message})


def test_a_connector_that_does_not_stop() -> None:
    fake = Fake()
    fake.hangs = True
    wanted = {"error_code": 409, "message": "connector shop has not stopped yet"}
    assert ask(fake, "PUT", "/connectors/shop/resume") == (409, wanted)


@pytest.fixture
def logger() -> Iterator[logging.Logger]:
    """A logger whose level is reset."""
    made = logging.getLogger("rowtide.test.levels")
    yield made
    made.setLevel(logging.NOTSET)


def test_log_levels(logger: logging.Logger) -> None:
    path = f"/admin/loggers/{logger.name}"
    assert ask(Fake(), "PUT", path, json={"level": "debug"}) == (200, [logger.name])
    assert logger.isEnabledFor(logging.DEBUG)
    assert ask(Fake(), "GET", path) == (200, {"level": "DEBUG", "last_modified": None})
    assert ask(Fake(), "GET", "/admin/loggers")[1][logger.name]["level"] == "DEBUG"
    assert ask(Fake(), "PUT", path, json={"level": "WARN"})[0] == 200
    assert logger.level == logging.WARNING
    assert ask(Fake(), "PUT", path, json={"level": "LOUD"})[0] == 404
    assert ask(Fake(), "PUT", path, json={})[0] == 400
    assert ask(Fake(), "PUT", path, data="{not json")[0] == 400
    assert ask(Fake(), "PUT", path, data="[" * 100_000)[0] == 400
    assert ask(Fake(), "PUT", path, data="{}", headers={"Content-Type": "text/plain; charset=nope"})[0] == 400
    assert logger.level == logging.WARNING
    assert ask(Fake(), "GET", "/admin/loggers/no.such.logger")[0] == 404
    assert ask(Fake(), "GET", "/admin/loggers/root")[0] == 200


def test_no_request_silences_the_log_of_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    root, rowtide, audit = (logging.getLogger(name) for name in ("", "rowtide", "rowtide.audit"))
    for logger, level in (root, logging.INFO), (rowtide, logging.NOTSET), (audit, logging.NOTSET):
        monkeypatch.setattr(logger, "level", level)
    for name, code in ("rowtide.audit", 403), ("rowtide", 200), ("root", 200):
        logging.Logger.manager._clear_cache()  # type: ignore[attr-defined]
        assert ask(Fake(), "PUT", f"/admin/loggers/{name}", json={"level": "ERROR"})[0] == code
        assert audit.isEnabledFor(logging.INFO)
    assert not rowtide.isEnabledFor(logging.INFO)


@pytest.mark.parametrize(
    ("token", "bind", "host", "headers", "code"),
    [
        (None, "127.0.0.1", "127.0.0.1", {}, None),
        (None, "127.0.0.1", "localhost", {}, None),
        (None, "::1", "::1", {}, None),
        (None, "127.0.0.1", "127.0.0.1", {"Origin": "https://elsewhere.example"}, 403),
        (None, "127.0.0.1", "127.0.0.1", {"Origin": "http://127.0.0.1:6066", "Host": "127.0.0.1:6066"}, None),
        (None, "127.0.0.1", "127.0.0.1", {"Origin": "http://127.0.0.1:8080", "Host": "127.0.0.1:6066"}, 403),
        (None, "127.0.0.1", "127.0.0.1", {"Origin": "null", "Host": "127.0.0.1:6066"}, 403),
        (None, "127.0.0.1", "rebound.example", {"Origin": "http://rebound.example", "Host": "rebound.example"}, 403),
        (None, "127.0.0.1", "rebound.example", {}, 403),
        (None, "0.0.0.0", "127.0.0.1", {}, 403),
        (None, "10.0.0.7", "10.0.0.7", {}, 403),
        (None, "db.example", "localhost", {}, 403),
        ("geheim", "0.0.0.0", "db.example", {}, 401),
        ("geheim", "127.0.0.1", "127.0.0.1", {}, 401),
        ("geheim", "0.0.0.0", "db.example", {"Authorization": "Bearer falsch"}, 401),
        ("geheim", "0.0.0.0", "db.example", {"Authorization": "Basic geheim"}, 401),
        ("geheim", "0.0.0.0", "db.example", {"Authorization": "Bearer "}, 401),
        ("geheim", "0.0.0.0", "db.example", {"Authorization": "Bearer ungültig"}, 401),
        ("geheim", "0.0.0.0", "db.example", {"Authorization": b"Bearer \xff".decode(errors="surrogateescape")}, 401),
        ("geheim", "0.0.0.0", "db.example", {"Authorization": "Bearer geheim"}, None),
        ("geheim", "0.0.0.0", "db.example", {"Authorization": "bearer geheim"}, None),
    ],
)
def test_access(token: str | None, bind: str, host: str, headers: dict[str, str], code: int | None) -> None:
    assert refusal(Access(token, bind), host, headers) == code


def refusal(access: Access, host: str, headers: dict[str, str], needed: Role = Role.EDIT) -> int | None:
    try:
        access.admitted(host, headers, needed)
    except Refused as refused:
        return refused.status
    return None


USERS = [
    User("anna", Role.EDIT, password="päss:wort"),
    User("ben", Role.READ, password="b", token="ben-token"),
    User("ci", Role.OPERATE, token="ci-token"),
]


def basic(name: str, password: str) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()}


@pytest.mark.parametrize(
    ("headers", "codes"),
    [
        (basic("anna", "päss:wort"), [None, None, None]),
        (basic("ben", "b"), [None, 403, 403]),
        ({"Authorization": "Bearer ben-token"}, [None, 403, 403]),
        ({"Authorization": "Bearer ci-token"}, [None, None, 403]),
        ({"Authorization": "Bearer geheim"}, [None, None, None]),
        (basic("anna", "b"), [401, 401, 401]),
        (basic("ci", ""), [401, 401, 401]),
        (basic("ci", "ci-token"), [401, 401, 401]),
        (basic("nobody", ""), [401, 401, 401]),
        (basic("token", "geheim"), [401, 401, 401]),
        ({"Authorization": "Basic ?"}, [401, 401, 401]),
        ({"Authorization": "Basic " + base64.b64encode(b"\xff:b").decode()}, [401, 401, 401]),
        ({}, [401, 401, 401]),
        ({**basic("anna", "päss:wort"), "Origin": "https://elsewhere.example"}, [403, 403, 403]),
        ({**basic("anna", "päss:wort"), "Origin": "null"}, [403, 403, 403]),
        ({**basic("anna", "päss:wort"), "Origin": "http://["}, [403, 403, 403]),
        ({**basic("anna", "päss:wort"), "Origin": "https://worker.example:6066"}, [None, None, None]),
    ],
)
def test_users_have_roles(headers: dict[str, str], codes: list[int | None]) -> None:
    access = Access("geheim", "127.0.0.1", lambda: USERS)
    assert [refusal(access, "worker.example", headers, role) for role in Role] == codes


@pytest.mark.parametrize(
    ("method", "path", "least"),
    [
        ("GET", "/connectors/shop/config", Role.READ),
        ("GET", "/connectors/shop/offsets", Role.READ),
        ("PUT", "/connectors/shop/pause", Role.OPERATE),
        ("POST", "/connectors/shop/restart", Role.OPERATE),
        ("PUT", "/connectors/shop/topics/reset", Role.OPERATE),
        ("PUT", "/admin/loggers/root", Role.OPERATE),
        ("PATCH", "/connectors/shop/offsets", Role.EDIT),
        ("DELETE", "/connectors/shop/offsets", Role.EDIT),
    ],
)
def test_each_request_needs_its_role(method: str, path: str, least: Role) -> None:
    for user in USERS:
        code, _body = ask(Fake(), method, path, Access(None, "0.0.0.0", lambda user=user: [user]), headers=of(user))
        assert (code == 403) == (user.role < least)


def of(user: User) -> dict[str, str]:
    return {"Authorization": f"Bearer {user.token}"} if user.token else basic(user.name, user.password or "")


def test_a_browser_asks_for_the_password() -> None:
    async def challenge(client: Client) -> str:
        async with client.get("/connectors") as answer:
            return answer.headers["WWW-Authenticate"]

    users = Access(None, "0.0.0.0", lambda: USERS)
    assert with_client(Fake(), users, challenge) == 'Basic realm="rowtide", charset="UTF-8"'
    assert with_client(Fake(), Access("geheim", "0.0.0.0"), challenge) == 'Bearer realm="rowtide"'


def test_who_changed_what_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="rowtide.audit")
    access = Access(None, "0.0.0.0", lambda: USERS)
    for path, headers in (
        ("/connectors/shop/pause", basic("anna", "päss:wort")),
        ("/connectors/shop/pause", basic("ben", "b")),
        ("/connectors/shop/pause", {}),
        ("/connectors/a%0Ab/pause", basic("anna", "päss:wort")),
    ):
        ask(Fake(), "PUT", path, access, headers=headers)
    ask(Fake(), "GET", "/connectors", access, headers=basic("ben", "b"))
    assert [record.message for record in caplog.records if record.name == "rowtide.audit"] == [
        "anna at 127.0.0.1: PUT /connectors/shop/pause: 202",
        "ben at 127.0.0.1: PUT /connectors/shop/pause: 403",
        "unknown at 127.0.0.1: PUT /connectors/shop/pause: 401",
        "anna at 127.0.0.1: PUT /connectors/a%0Ab/pause: 404",
    ]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PUT", "/connectors/shop/pause"),
        ("PUT", "/connectors/shop/stop"),
        ("POST", "/connectors/shop/restart"),
        ("POST", "/connectors/shop/tasks/0/restart"),
        ("GET", "/connectors/shop/config"),
        ("PUT", "/admin/loggers/root"),
    ],
)
def test_every_route_is_guarded(method: str, path: str) -> None:
    fake = Fake()
    access = Access("geheim", "0.0.0.0")
    assert ask(fake, method, path, access)[0] == 401
    assert fake.done == []
    assert ask(fake, method, path, access, headers={"Authorization": "Bearer geheim"})[0] < 401


@pytest.mark.parametrize("host", ["localhost:x", "a:b:c"])
def test_a_host_that_is_not_a_name_is_refused(host: str) -> None:
    assert ask(Fake(), "GET", "/connectors", headers={"Host": host})[0] in {400, 403}


class FakeStore:
    """Keeps configurations; ``broken`` is what it raises."""

    def __init__(self) -> None:
        self.connectors: dict[str, Fake] = {"shop": Fake()}
        self.put_: list[tuple[str, Mapping[str, str], str | None]] = []
        self.broken: Exception | None = None

    async def put(self, name: str, properties: Mapping[str, str], initial_state: str | None = None) -> None:
        if self.broken is not None:
            raise self.broken
        await asyncio.sleep(0.05)  # as long as Kafka takes
        self.put_.append((name, properties, initial_state))
        self.connectors.setdefault(name, Fake())

    async def delete(self, name: str) -> None:
        del self.connectors[name]

    async def set_level(self, logger: str, level: str) -> None:
        self.put_.append((logger, {}, level))


def edit(store: FakeStore, method: str, path: str, body: Any = None, text: str | None = None) -> tuple[int, Any, str]:
    async def work() -> tuple[int, Any, str]:
        app = web.Application(middlewares=[json_errors])
        app.add_routes(routes(store.connectors, Access(None, "127.0.0.1"), store))
        given: dict[str, Any] = {"data": json.dumps(body) if text is None else text}
        given["headers"] = {"Content-Type": "application/json"}
        async with TestClient(TestServer(app)) as client, client.request(method, path, **given) as answer:
            content = await answer.text()
            return answer.status, await answer.json() if content else None, answer.headers.get("Location", "")

    return asyncio.run(work())


def test_a_connector_is_created() -> None:
    store = FakeStore()
    code, body, location = edit(
        store,
        "POST",
        "/connectors",
        {"name": "crm \u00e4", "config": {"connector.class": "C", "tasks.max": 1, "a": True}},
    )
    assert (code, body["name"]) == (201, "crm \u00e4")
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/connectors/crm%20%C3%A4", location)
    assert store.put_ == [
        ("crm \u00e4", {"name": "crm \u00e4", "connector.class": "C", "tasks.max": "1", "a": "true"}, None)
    ]
    paused = {"config": {"name": "crm2", "connector.class": "C"}, "initial_state": "paused"}
    assert edit(store, "POST", "/connectors", paused)[0] == 201
    assert store.put_[-1] == ("crm2", {"name": "crm2", "connector.class": "C"}, "PAUSED")
    assert edit(store, "POST", "/connectors", {"name": "shop", "config": {}})[:2] == (
        409,
        {"error_code": 409, "message": "Connector shop already exists"},
    )


def test_a_configuration_is_changed() -> None:
    store, given = FakeStore(), {"connector.class": "C", "x": "1"}
    assert edit(store, "PUT", "/connectors/shop/config", given)[0] == 200
    code, _, location = edit(store, "PUT", "/connectors/crm/config", given)
    assert (code, location.rpartition(":")[2].partition("/")[2]) == (201, "connectors/crm")
    changes = {"database.password": None, "x": "2", "connector.class": "D"}
    assert edit(store, "PATCH", "/connectors/shop/config", changes)[0] == 200
    assert [properties for _, properties, _ in store.put_] == [
        {"name": "shop", **given},
        {"name": "crm", **given},
        {"name": "shop", "x": "2", "connector.class": "D"},
    ]
    assert edit(store, "PATCH", "/connectors/none/config", {})[0] == 404
    assert edit(store, "PUT", "/connectors/shop/config", {"x": "1"})[0] == 400


def test_a_connector_is_deleted() -> None:
    store = FakeStore()
    assert edit(store, "DELETE", "/connectors/shop")[:2] == (204, None)
    assert edit(store, "DELETE", "/connectors/shop")[:2] == (
        404,
        {"error_code": 404, "message": "Connector shop not found"},
    )


@pytest.mark.parametrize(
    "body",
    [
        "",
        "{not json",
        "[]",
        "{}",
        '{"name": "a"}',
        '{"name": "a", "config": null}',
        '{"name": "a", "config": {"x": null}}',
        '{"name": "a", "config": {"x": [1]}}',
        '{"config": {}}',
        '{"name": "a/b", "config": {}}',
        '{"name": "a", "config": {"name": "b"}}',
        '{"name": "a", "config": {"connector.class": "C", "x": "\\ud800"}}',
        '{"name": "\\ud800", "config": {"connector.class": "C"}}',
        '{"name": "a", "config": {}, "unknown": 1}',
        '{"name": "a", "config": {}, "initial_state": "ASLEEP"}',
    ],
)
def test_a_bad_body_is_refused(body: str) -> None:
    store = FakeStore()
    code, answer, _ = edit(store, "POST", "/connectors", text=body)
    assert (code, answer["error_code"], store.put_) == (400, 400, [])


def test_requests_do_not_overwrite_the_results_of_each_other() -> None:
    store = FakeStore()
    body = {"name": "crm", "config": {"connector.class": "C"}}

    async def work() -> list[int]:
        app = web.Application(middlewares=[json_errors])
        app.add_routes(routes(store.connectors, Access(None, "127.0.0.1"), store))
        async with TestClient(TestServer(app)) as client:
            answers = await asyncio.gather(*(client.post("/connectors", json=body) for _ in range(2)))
        return sorted(answer.status for answer in answers)

    assert asyncio.run(work()) == [201, 409]
    assert len(store.put_) == 1


def test_all_problems_of_a_configuration_are_in_the_answer() -> None:
    store = FakeStore()
    store.broken = ConfigurationError([Problem("topic.prefix", "is required"), Problem("snapshot.mode", "is wrong")])
    code, answer, _ = edit(store, "PUT", "/connectors/shop/config", {"connector.class": "C"})
    assert code == 400
    assert answer["message"] == (
        "Connector configuration is invalid and contains the following 2 error(s):\n"
        "topic.prefix: is required\nsnapshot.mode: is wrong"
    )


def test_a_store_that_is_away_is_unavailable() -> None:
    store = FakeStore()
    store.broken = StoreUnavailable("Kafka does not answer")
    assert edit(store, "PUT", "/connectors/shop/config", {"connector.class": "C"})[0] == 503


def test_connectors_of_files_are_not_changed() -> None:
    assert ask(Fake(), "POST", "/connectors", json={"name": "a", "config": {}})[0] == 405
    assert ask(Fake(), "DELETE", "/connectors/shop")[0] == 405


def test_a_body_of_another_type_is_refused() -> None:
    assert ask(Fake("STOPPED"), "PATCH", "/connectors/shop/offsets", data="{}")[0] == 415
    assert ask(Fake(), "GET", "/connectors", headers={"Accept": "text/plain"})[0] == 406
    assert ask(Fake(), "GET", "/connectors", headers={"Accept": "text/html, */*;q=0.1"})[0] == 200


def test_offsets_are_shown_and_changed_while_the_connector_is_stopped() -> None:
    offsets = [{"partition": {"server": "shop"}, "offset": {"file": "b.000001", "pos": 4}}]
    assert ask(Fake(), "GET", "/connectors/shop/offsets") == (200, {"offsets": offsets})
    running, stopped = Fake(), Fake("STOPPED")
    for method, more in (("PATCH", {"json": {"offsets": offsets}}), ("DELETE", {})):
        code, body = ask(running, method, "/connectors/shop/offsets", **more)
        assert (code, "must be in the STOPPED state" in body["message"]) == (400, True)
        assert ask(stopped, method, "/connectors/shop/offsets", **more)[0] == 200
        assert ask(stopped, method, "/connectors/none/offsets", **more)[0] == 404
    assert (running.done, stopped.done) == ([], [json.dumps(offsets), "null"])
    for wrong in ({}, {"offsets": []}, {"offsets": {}}):
        assert ask(stopped, "PATCH", "/connectors/shop/offsets", json=wrong)[0] == 400


def test_topics_are_shown_and_forgotten() -> None:
    fake = Fake()
    assert ask(fake, "GET", "/connectors/shop/topics") == (200, {"shop": {"topics": ["shop.shop.orders"]}})
    assert ask(fake, "GET", "/connectors/none/topics") == (200, {"none": {"topics": []}})
    assert ask(fake, "PUT", "/connectors/shop/topics/reset") == (202, None)
    assert ask(fake, "PUT", "/connectors/none/topics/reset") == (202, None)
    assert fake.done == ["reset"]


def test_a_level_for_all_workers() -> None:
    store = FakeStore()
    assert edit(store, "PUT", "/admin/loggers/x.y?scope=cluster", {"level": "WARN"})[:2] == (204, None)
    assert store.put_ == [("x.y", {}, "WARN")]
    assert edit(store, "PUT", "/admin/loggers/x.y?scope=cluster", {"level": "LOUD"})[0] == 404


@pytest.mark.parametrize(
    ("origin", "host", "code"),
    [
        ("http://worker.example:6066", "worker.example:6066", None),
        ("http://worker.example:8080", "worker.example:6066", 403),
        ("http://worker.example", "worker.example:6066", 403),
        ("https://worker.example", "worker.example:443", None),
        ("https://worker.example:8443", "worker.example", None),  # behind a proxy that does not pass the port on
        ("http://worker.example:6066", "worker.example:x", 403),
    ],
)
def test_a_page_at_another_port_may_not_use_a_log_in(origin: str, host: str, code: int | None) -> None:
    headers = {**basic("anna", "päss:wort"), "Origin": origin, "Host": host}
    assert refusal(Access(None, "0.0.0.0", lambda: USERS), "worker.example", headers) == code
