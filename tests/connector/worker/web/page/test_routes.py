"""What the page asks of a worker: its files, the events, and who may have them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from rowtide.connector.worker.web.access import Access, Role, User
from rowtide.connector.worker.web.page import routes
from tests.support.processes.made_page import MARKUP, MadeWorker

HTML = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
ANNA = User("anna", Role.READ, token="anna-token")
ALLOWED = {"Authorization": "Bearer anna-token"}


def served(worker: MadeWorker, use: Callable[[aiohttp.ClientSession], Awaitable[Any]]) -> Any:
    async def work() -> Any:
        async with worker.served() as url, aiohttp.ClientSession(url) as client:
            return await use(client)

    return asyncio.run(work())


def ask(worker: MadeWorker, path: str, headers: dict[str, str] | None = None) -> tuple[int, Any]:
    async def use(client: aiohttp.ClientSession) -> tuple[int, Any]:
        async with client.get(path, headers=headers) as answer:
            return answer.status, await answer.json()

    found: tuple[int, Any] = served(worker, use)
    return found


async def first_view(client: aiohttp.ClientSession, headers: dict[str, str] | None = None) -> Any:
    async with client.get("/page/events", headers=headers) as answer:
        assert (answer.status, answer.content_type) == (200, "text/event-stream")
        event, data = (await answer.content.readuntil(b"\n\n")).split(b"\n")[:2]
        assert event == b"event: view"
        return json.loads(data.removeprefix(b"data: "))


def test_browsers_get_the_page_and_programs_the_version(tmp_path: Path) -> None:
    async def use(client: aiohttp.ClientSession) -> None:
        for accept, kind in (
            (HTML, "text/html"),
            ({}, "application/json"),
            ({"Accept": "application/json"}, "application/json"),
        ):
            async with client.get("/", headers=accept) as answer:
                assert (answer.status, answer.content_type, answer.headers["Vary"]) == (200, kind, "Accept")

    served(MadeWorker(tmp_path), use)


def test_the_files_are_public_and_name_no_other_host(tmp_path: Path) -> None:
    async def use(client: aiohttp.ClientSession) -> None:
        for name, kind, _ in routes._files():
            async with client.get(f"/page/{name}") as answer:
                text = await answer.text()
                assert (answer.status, answer.content_type) == (200, kind)
                assert "trusted-types 'none'" in answer.headers["Content-Security-Policy"]
                assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")
                assert "https://" not in text
                assert "innerHTML" not in text
        async with client.get("/page/nothing.js") as answer:
            assert answer.status == 404

    served(MadeWorker(tmp_path, Access(None, "0.0.0.0", lambda: [ANNA])), use)


def test_the_view_has_all_connectors_and_what_the_user_may_do(tmp_path: Path) -> None:
    worker = MadeWorker(tmp_path, Access(None, "0.0.0.0", lambda: [ANNA]))
    view = served(worker, lambda client: first_view(client, ALLOWED))
    assert view["user"] == {"name": "anna", "role": "read"}
    assert (view["fleet"], view["editable"]) == ("shop-fleet", True)
    assert [one["worker"] for one in view["workers"]] == ["worker-1:6066"]
    activities = {name: one["activity"] for name, one in view["connectors"].items()}
    assert (activities["shop"], activities["idle"], activities["blocked"], activities["failed"]) == (
        "reading", "idle", "blocked", None,
    )  # fmt: skip
    assert view["connectors"]["blocked"]["waits"] == "Kafka has not answered for 12 s: broker 1: timed out"
    assert view["connectors"]["shop"]["binlog_runway"]["hours"] == 72.0


@pytest.mark.parametrize(
    "path", ["events", "worker", "connectors/shop/tables", "connectors/shop/history", "connectors/shop/structure"]
)
def test_everything_else_needs_a_log_in(tmp_path: Path, path: str) -> None:
    worker = MadeWorker(tmp_path, Access(None, "0.0.0.0", lambda: [ANNA]))
    assert ask(worker, f"/page/{path}")[0] == 401
    assert ask(MadeWorker(tmp_path), f"/page/{path}", {"Host": "rebound.example"})[0] == 403
    assert ask(MadeWorker(tmp_path), f"/page/{path}", {"Origin": "http://127.0.0.1:1"})[0] == 403


def test_the_tables_and_topics_of_a_connector(tmp_path: Path) -> None:
    code, body = ask(MadeWorker(tmp_path), "/page/connectors/shop/tables")
    assert (code, body["snapshots"]) == (200, {"incremental": "running"})
    assert body["tables"][f"shop.{MARKUP}"]["state"] == "READING"
    assert body["topics"]["shop.shop.orders"] == {"records": 100_000, "bytes": 90_000_000}
    assert ask(MadeWorker(tmp_path), "/page/connectors/nobody/tables") == (
        404, {"error_code": 404, "message": "connector nobody does not exist"},
    )  # fmt: skip


def test_the_structure_of_a_table_at_two_positions(tmp_path: Path) -> None:
    worker, path = MadeWorker(tmp_path), "/page/connectors/shop/structure"
    assert ask(worker, path)[1] == {"tables": ["shop.<i>odd</i>", "shop.orders"]}
    code, body = ask(worker, f"{path}?table=shop.orders&at=binlog.000001:2&before=binlog.000001:1")
    assert code == 200
    assert [one["name"] for one in body["columns"]["columns"]] == ["id", "note", "total"]
    assert [line for line in body["diff"][2:] if line[0] in "+-"] == [
        "+  `total` decimal(10,2) NOT NULL DEFAULT '0.00',"
    ]
    assert [change["position"] for change in body["changes"]] == ["binlog.000001:1", "binlog.000001:2"]
    code, body = ask(worker, f"{path}?table=shop.orders&at=nowhere")
    assert (code, body["message"][:32]) == (400, "invalid point in time 'nowhere':")
    assert ask(worker, f"{path}?table=shop.*")[1]["ddl"] is None


def test_a_page_that_is_closed_is_not_an_error(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routes, "_EVERY_S", 0.01)
    worker = MadeWorker(tmp_path)

    async def use(client: aiohttp.ClientSession) -> None:
        async with client.get("/page/events") as answer:
            await answer.content.readuntil(b"\n\n")
        while worker.pages[0]._streams:
            await asyncio.sleep(0.01)

    served(worker, use)
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []


def test_the_events_of_a_user_who_is_removed_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes, "_EVERY_S", 0.01)
    users = [ANNA]

    async def use(client: aiohttp.ClientSession) -> None:
        async with client.get("/page/events", headers=ALLOWED) as answer:
            await answer.content.readuntil(b"\n\n")
            users.clear()
            assert b"401" not in await answer.content.read()  # nothing but whole events
        async with client.get("/page/events", headers=ALLOWED) as answer:
            assert answer.status == 401

    served(MadeWorker(tmp_path, Access(None, "127.0.0.1", lambda: users)), use)


def test_only_so_many_pages_are_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes, "_MOST_STREAMS", 1)

    async def use(client: aiohttp.ClientSession) -> None:
        async with client.get("/page/events") as first:
            await first.content.readuntil(b"\n\n")
            async with client.get("/page/events") as second:
                assert second.status == 503

    served(MadeWorker(tmp_path), use)
