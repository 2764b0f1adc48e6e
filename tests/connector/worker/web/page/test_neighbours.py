"""Requests that one worker of a fleet sends to another one, for a user."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer, make_mocked_request

from rowtide.connector.worker.web.page import neighbours
from rowtide.connector.worker.web.page.neighbours import Neighbours


class Members:
    """A fleet in which another worker runs all connectors."""

    def __init__(self, worker: str) -> None:
        self._worker = worker

    def workers(self) -> Collection[str]:
        return [self._worker]

    def worker_of(self, name: str) -> str | None:
        return None if name == "nobodys" else self._worker


async def said(request: web.Request) -> web.Response:
    """Say what was asked."""
    found = {
        "path": request.rel_url.raw_path_qs,
        "user": request.headers.get("Authorization"),
        "cookie": request.cookies.get("a"),
    }
    return web.json_response({**found, "body": await request.text()}, status=202)


async def here(_request: web.Request) -> web.Response:
    return web.json_response("here")


async def asked(path: str, method: str = "GET", *, worker: str | None = None, **more: Any) -> tuple[int, Any]:
    other = web.Application()
    other.router.add_route("*", "/{tail:.*}", said)
    async with TestServer(other) as running:
        others = Neighbours(Members(worker or f"127.0.0.1:{running.port}"), tls=False)
        app = web.Application()
        app.router.add_route("*", "/connectors/{name}/signals", others.forwarding(here, ["own"]))
        async with TestClient(TestServer(app)) as client, client.request(method, path, **more) as answer:
            return answer.status, await answer.json()


def test_a_request_for_a_connector_goes_to_its_worker_with_the_log_in() -> None:
    path = "/connectors/a%2Fb%20c/signals?x=%26"
    headers = {"Authorization": "Bearer a", "Cookie": "a=b"}
    code, body = asyncio.run(asked(path, "POST", data='{"type": "log"}', headers=headers))
    assert (code, body) == (202, {"path": path, "user": "Bearer a", "cookie": None, "body": '{"type": "log"}'})


def test_what_this_worker_runs_or_was_sent_to_it_is_answered_here() -> None:
    assert asyncio.run(asked("/connectors/own/signals")) == (200, "here")
    assert asyncio.run(asked("/connectors/nobodys/signals")) == (200, "here")
    assert asyncio.run(asked("/connectors/x/signals", headers={"X-Rowtide-Forwarded": "1"})) == (200, "here")


def test_a_worker_that_hangs_does_not_delay_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbours, "_SHOWN_S", 0.05)

    async def never(_request: web.Request) -> web.Response:
        await asyncio.sleep(3600)
        raise AssertionError

    async def work() -> tuple[int, bytes]:
        other = web.Application()
        other.router.add_get("/page/worker", never)
        async with TestServer(other) as running:
            found = Neighbours(None, tls=False)
            return await found.get(make_mocked_request("GET", "/"), f"127.0.0.1:{running.port}", "/page/worker")

    code, body = asyncio.run(work())
    assert code == 502
    assert b"it does not answer" in body


def test_a_worker_that_does_not_answer_is_named() -> None:
    for worker in "127.0.0.1:1", "not a host:1":
        code, body = asyncio.run(asked("/connectors/x/signals", worker=worker))
        assert (code, body["error_code"]) == (502, 502)
        assert body["message"].startswith(f"worker {worker} cannot be reached from this one: ")
