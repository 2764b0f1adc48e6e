"""Signals and notifications over HTTP."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from rowtide.connector.signals.signalling import Signalling
from rowtide.connector.snapshot.status import TableProgress
from rowtide.connector.worker.web.access import Access, Role, User
from rowtide.connector.worker.web.server import json_errors
from rowtide.connector.worker.web.signals import signal_routes
from tests.support.processes.made_statuses import status

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rowtide.connector.worker.status import Status


class Connector:
    """The signals of a connector that does not run."""

    def __init__(self) -> None:
        self.signalling = Signalling()

    def signal(self, fields: Mapping[str, Any], channel: str = "in-process") -> str:
        return self.signalling.send(fields, channel)

    async def status_at_once(self) -> Status:
        return status(name="shop", snapshot={"shop.a": TableProgress(5, 9), "shop.b": TableProgress()})

    def notifications(self, signal_id: str | None = None) -> Sequence[Mapping[str, Any]]:
        return self.signalling.notifications.all(signal_id)


def ask(connector: Connector, method: str, path: str, token: str | None = None, **more: Any) -> tuple[int, Any]:
    return ask_with(Access(token, "127.0.0.1"), connector, method, path, **more)


def ask_with(access: Access, connector: Connector, method: str, path: str, **more: Any) -> tuple[int, Any]:
    async def work() -> tuple[int, Any]:
        app = web.Application(middlewares=[json_errors])
        app.add_routes(signal_routes({"shop": connector}, access))
        async with TestClient(TestServer(app)) as client, client.request(method, path, **more) as answer:
            return answer.status, await answer.json()

    return asyncio.run(work())


def test_a_signal_is_taken() -> None:
    connector = Connector()
    body = {"id": "a", "type": "log", "data": {"message": "x"}}
    status, answer = ask(connector, "POST", "/connectors/shop/signals", json=body)
    assert (status, answer["id"], answer["stored"]) == (202, "a", False)
    assert "a crash of the process loses it" in answer["message"]
    assert connector.signalling.inbox.due


def test_a_wrong_signal_is_answered() -> None:
    connector = Connector()
    for body, message in (
        ("no json", "the body is not JSON: Expecting value: line 1 column 1 (char 0)"),
        ("5", 'the body must be a JSON object: {"id": ..., "type": ..., "data": {...}}'),
        ('{"id":"a"}', "the type of signal 'a' is missing"),
    ):
        answer = {"error_code": 400, "message": message}
        assert ask(connector, "POST", "/connectors/shop/signals", data=body) == (400, answer)
    assert not connector.signalling.inbox.due


def test_the_last_notifications() -> None:
    connector = Connector()
    for name in ("a", "b"):
        connector.signalling.notifications.add({"id": name, "type": "STARTED"})
    assert ask(connector, "GET", "/connectors/shop/notifications")[1] == connector.signalling.notifications.all()
    found = [{"id": "b", "type": "STARTED"}]
    assert ask(connector, "GET", "/connectors/shop/notifications?id=b") == (200, found)


def test_the_state_of_every_table_of_a_snapshot() -> None:
    unknown = {"rows_per_second": 0.0, "problem": None}
    assert ask(Connector(), "GET", "/connectors/shop/snapshot") == (
        200,
        {
            "connector": "shop",
            "state": "RUNNING",
            "tables": {
                "shop.a": {"state": "READING", "rows": 5, "estimated_rows": 9, **unknown},
                "shop.b": {"state": "WAITING", "rows": 0, "estimated_rows": None, **unknown},
            },
        },
    )


def test_only_those_who_may_control_the_connector_send_signals() -> None:
    connector = Connector()
    assert ask(connector, "POST", "/connectors/shop/signals", "secret", json={"type": "log"})[0] == 401
    assert ask(connector, "GET", "/connectors/shop/notifications", headers={"Origin": "http://evil.example"})[0] == 403
    headers = {"Authorization": "Bearer secret"}
    assert ask(connector, "POST", "/connectors/shop/signals", "secret", json={"type": "log"}, headers=headers)[0] == 202


CONDITIONS = {"additional-conditions": [{"data-collection": "shop.orders", "filter": "sleep(9)"}]}


@pytest.mark.parametrize(
    "signal",
    [
        {"type": "set-binlog-position"},
        {"type": "rowtide-set-table-include-list"},
        {"type": "execute-snapshot", "data": CONDITIONS},
        {"type": "execute-snapshot", "data": json.dumps(CONDITIONS)},
    ],
)
def test_signals_that_change_positions_and_configurations_or_run_sql_need_the_role_for_it(
    signal: dict[str, Any],
) -> None:
    users = [User(role.name, role, token=role.name) for role in Role]
    access = Access(None, "127.0.0.1", lambda: users)

    def sent(user: Role, fields: Any) -> int:
        headers = {"Authorization": f"Bearer {user.name}"}
        return ask_with(access, Connector(), "POST", "/connectors/shop/signals", json=fields, headers=headers)[0]

    assert [sent(role, signal) for role in Role] == [403, 403, 202]
    assert [sent(role, {"type": "execute-snapshot"}) for role in Role] == [403, 202, 202]
    assert sent(Role.OPERATE, {"type": [signal["type"]]}) == 400


def test_an_unknown_connector() -> None:
    for method, path in (("POST", "signals"), ("GET", "notifications"), ("GET", "snapshot")):
        assert ask(Connector(), method, f"/connectors/other/{path}", json={"type": "log"})[0] == 404
