"""The page in a real browser: every action, every role, and texts that would be markup anywhere else."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from rowtide.connector.worker.web.access import Access, Role, User
from rowtide.connector.worker.web.page import routes
from tests.support.browser import Page, browser
from tests.support.processes.made_page import MARKUP, MadeWorker

pytestmark = pytest.mark.browser

VIEWS = [
    "",
    "connector/shop",
    "connector/shop/tables",
    "connector/shop/configuration",
    "connector/stopped/position",
    "connector/shop/signals",
    "connector/shop/structure",
    "fleet",
    "levels",
    "new",
]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Send news more often than to users."""
    monkeypatch.setattr(routes, "_EVERY_S", 0.3)


def in_browser(worker: MadeWorker, use: Callable[[Page, str], Awaitable[Any]]) -> None:
    """Open a tab at the page of a worker; nothing may go wrong in it."""

    async def work() -> None:
        async with worker.served() as url, browser() as opened, opened.page() as page:
            await page.look(width=1280)
            await use(page, url)
            assert page.problems == []
            assert "stolen" not in await page.run("document.title")
            assert await page.run("document.querySelectorAll('main img, dialog img, #messages img').length") == 0

    asyncio.run(work())


def test_every_action(tmp_path: Path) -> None:
    worker = MadeWorker(tmp_path)
    shop = worker.connectors["shop"]

    async def use(page: Page, url: str) -> None:
        await page.open(url)
        for text in (
            "idle",
            "reading",
            "blocked by Kafka",
            "Kafka has not answered for 12 s: broker 1: timed out",
            MARKUP,
        ):
            await page.shows(text)
        await page.shows("access denied for user 'cdc' (1045). Check database.user and database.password.")
        await page.shows("rowtide verify found differences in 1 table: shop.orders (3)")
        await page.shows(f"rowtide verify could not compare shop.{MARKUP}: {MARKUP}")
        await page.click("shop")
        await page.shows("Where the time goes")
        await page.until("document.querySelectorAll('figure svg path').length >= 7")
        await page.run("document.querySelector('.plot').dispatchEvent(new PointerEvent('pointermove', {clientX: 300}))")
        await page.until("document.querySelector('.plot .under').innerText.includes('records')")
        await page.click("Pause")
        await page.shows("paused")
        await page.click("Resume")
        await page.click("Restart")
        await page.until("document.body.innerText.includes('shop restarts.')")
        await tables(page)
        await position(page)
        await configuration(page)
        await structure(page)
        await levels_and_fleet(page)
        await a_new_connector(page)

    async def tables(page: Page) -> None:
        await page.click("Tables")
        await page.shows("420,000 of about 1M")
        await page.shows("shop.shop.orders")
        await page.click("Pause the incremental snapshot")
        await page.click("Signals")
        await page.shows("pause-snapshot")
        await page.fill("#signal-data-collections", "shop.orders, shop.customers")
        await page.click("Send")
        await page.shows("execute-snapshot")
        await page.fill("#signal-kind", "other")
        await page.fill("#signal-signal", "log")
        await page.fill("#signal-json", "{no json")
        await page.click("Send")
        await page.shows("The data is not JSON")
        await page.fill("#signal-json", json.dumps({"message": MARKUP}))
        await page.click("Send")
        await page.until("document.querySelectorAll('tbody tr').length === 3")

    async def position(page: Page) -> None:
        await page.click("Position")
        await page.until("document.querySelector('#offset')?.readOnly && document.querySelector('#offset').value")
        await page.click("Stop")
        await page.click("Cancel")
        assert shop.now.state == "RUNNING"
        await page.click("Stop")
        await page.press("Escape")
        assert shop.now.state == "RUNNING"
        await page.click("Stop")
        await page.click("Stop")
        await page.until(
            "document.querySelector('#offset')?.readOnly === false && document.querySelector('#offset').value"
        )
        await page.fill("#offset", '{"file": "binlog.000008", "pos": 4}')
        await page.click("Save")
        await page.click("Change")
        await page.shows("The position is changed.")
        await page.click("Delete the position")
        await page.click("Delete")
        await page.shows("The position is deleted.")

    async def configuration(page: Page) -> None:
        await page.click("Configuration")
        await page.shows(f"is wrong: {MARKUP}")
        await page.shows("The logical name of the server")
        await page.fill("#added", "max.queue.size")
        await page.shows("Queue, heartbeat, operation")
        field = (
            "[...document.querySelectorAll('label')].find((one) => one.innerText.startsWith('max.queue.size')).htmlFor"
        )
        await page.fill(f"#{await page.run(field)}", "20000")
        await page.click("Save")
        await page.shows("Changed: max.queue.size.")
        await page.click("Change")
        await page.shows("The configuration is stored.")

    async def structure(page: Page) -> None:
        await page.click("Structure")
        await page.shows("2 tables are known.")
        await page.fill("#table", "shop.orders")
        await page.click("Show")
        await page.shows("COMMENT")
        await page.click("Compare with the one before")
        await page.shows("+  `total` decimal(10,2)")
        await page.fill("#at", "nowhere")
        await page.run("document.querySelector('main form').requestSubmit()")
        await page.shows("invalid point in time 'nowhere'")
        page.problems.remove("Failed to load resource: the server responded with a status of 400 (Bad Request)")

    async def levels_and_fleet(page: Page) -> None:
        await page.click("Log levels")
        await page.fill("#logger", "rowtide.connector")
        await page.click("Set")
        await page.shows("rowtide.connector logs DEBUG now on all workers.")
        await page.click("Fleet")
        await page.shows("labels: ssd")

    async def a_new_connector(page: Page) -> None:
        await page.click("Connectors")
        await page.click("New connector")
        await page.fill("#connector-name", "second")
        await page.shows("is not a number")
        await page.fill("#first", "STOPPED")
        await page.click("Create")
        await page.until("location.hash === '#/connector/second'")
        await page.click("Delete")
        await page.click("Delete")
        await page.shows("There is no connector second.")

    in_browser(worker, use)
    assert shop.done == [
        "PAUSED",
        "resume",
        "restart",
        "signal pause-snapshot {'type': 'incremental'}",
        "signal execute-snapshot {'data-collections': ['shop.orders', 'shop.customers'], 'type': 'incremental'}",
        f"signal log {{'message': {MARKUP!r}}}",
        "STOPPED",
        "offsets [{'partition': {'server': 'shop'}, 'offset': {'file': 'binlog.000008', 'pos': 4}}]",
        "offsets None",
    ]
    assert worker.stored["shop"]["max.queue.size"] == "20000"
    assert worker.stored["shop"]["database.password"] == "********"
    assert worker.stored["level rowtide.connector"] == {"level": "DEBUG"}
    assert "second" in worker.stored


@pytest.mark.nightly
def test_roles_hide_what_is_not_allowed(tmp_path: Path) -> None:
    users = [User(role.name.lower(), role, password=f"{role.name}:ä") for role in Role]
    worker = MadeWorker(tmp_path, Access("a-token", "0.0.0.0", lambda: users))
    seen: dict[str, set[str]] = {}

    async def use(page: Page, url: str) -> None:
        for name, secret in [(user.name, user.password) for user in users] + [("", "a-token")]:
            await page.open(url)
            await page.shows("Leave it empty to log in with a token.")
            await page.fill("#user", name)
            await page.fill("#secret", "wrong")
            await page.run("document.querySelector('form').requestSubmit()")
            await page.shows("user's password or token")
            await page.fill("#secret", secret or "")
            await page.run("document.querySelector('form').requestSubmit()")
            await page.shows("8 in all")
            seen[name] = set()
            for view in VIEWS:
                await page.run(f"location.hash = {json.dumps('#/' + view)}")
                await page.until("document.querySelector('main h1') && !document.body.innerText.includes('Loading')")
                found = "[...document.querySelectorAll('main button, main a.button')].map((one) => one.innerText)"
                seen[name] |= set(await page.run(found))
            await page.click("Log out")
        page.problems[:] = [one for one in page.problems if "401" not in one]  # the browser reports each of them

    in_browser(worker, use)
    operate = {"Pause", "Restart", "Stop", "Resume", "Pause the incremental snapshot", "Send", "Set"}
    edit = {"New connector", "Delete", "Save", "Create"}
    assert not seen["read"] & (operate | edit)
    assert seen["operate"] >= operate
    assert not seen["operate"] & edit
    assert seen["edit"] >= operate | edit
    assert seen[""] >= operate | edit


@pytest.mark.nightly
def test_everybody_can_use_it(tmp_path: Path) -> None:
    """No view has a violation of axe-core's rules or is wider than the window, in light and dark and on a phone."""
    from rowtide_stack.programs.catalogue import axe

    script = axe().read_text(encoding="utf-8")

    async def use(page: Page, url: str) -> None:
        for width, dark in ((1280, False), (1280, True), (390, False), (320, True)):
            await page.look(width=width, dark=dark)
            for view in VIEWS:
                await page.open("about:blank")
                await page.open(f"{url}#/{view}")
                await page.until("document.querySelector('main h1')")
                await page.until("!document.body.innerText.includes('Loading')")
                if view.endswith("structure"):
                    await page.fill("#table", "shop.orders")
                    await page.fill("#before", "binlog.000001:1")
                    await page.run("document.querySelector('main form').requestSubmit()")
                    await page.shows("Differences")
                await page.run(script + "; 0")
                found = await page.run("axe.run()")
                assert len(found["passes"]) > 10, view
                wrong = [(one["id"], [node["html"] for node in one["nodes"]]) for one in found["violations"]]
                assert wrong == [], (view, width, dark)
                assert await page.run("document.documentElement.scrollWidth") <= width, (view, width)

    in_browser(MadeWorker(tmp_path), use)


@pytest.mark.nightly
def test_it_works_with_the_keyboard(tmp_path: Path) -> None:
    worker = MadeWorker(tmp_path)

    async def focused(page: Page, text: str) -> None:
        for _ in range(60):
            await page.press("Tab")
            if await page.run("document.activeElement.innerText.trim()") == text:
                return
        pytest.fail(f"{text} cannot be reached with the tab key")

    async def use(page: Page, url: str) -> None:
        await page.open(url)
        await page.shows("8 in all")
        await focused(page, "shop")
        await page.press("Enter")
        await page.shows("Where the time goes")
        await focused(page, "Stop")
        await asyncio.sleep(2.5)  # news must not take the focus away
        assert await page.run("document.activeElement.innerText") == "Stop"
        await page.press("Enter")
        await focused(page, "Stop")
        await page.press("Enter")
        await page.shows("shop is stopped.")

    in_browser(worker, use)
    assert worker.connectors["shop"].done == ["STOPPED"]
