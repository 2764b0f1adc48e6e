"""The page of a real worker: a snapshot, rows that stream, Kafka that is away, and another position."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from tests.support.browser import Page, browser
from tests.support.processes.worker_process import Worker, WorkerConfig

if TYPE_CHECKING:
    from rowtide_stack import Database, Kafka

pytestmark = [pytest.mark.servers, pytest.mark.browser, pytest.mark.nightly]


def test_a_connector_from_its_first_row_to_another_position(
    own_kafka: Kafka, mysql_db: Database, configured: Callable[..., WorkerConfig]
) -> None:
    mysql_db.execute("CREATE TABLE orders (id INT PRIMARY KEY, note VARCHAR(40) COMMENT '<b>bold</b>')")
    mysql_db.execute("INSERT INTO orders VALUES (1, 'a'), (2, 'b')")
    config = configured(bootstrap_servers=own_kafka.bootstrap)
    table = f"{mysql_db.name}.orders"

    async def use(page: Page, worker: Worker) -> None:
        await page.look(width=1280)
        await page.open(f"http://127.0.0.1:{worker.port}/")
        await page.shows("idle")
        await page.click(config.name)
        await page.click("Tables")
        await page.shows(table)
        await page.shows("finished")
        await page.click("Structure")
        await page.fill("#table", table)
        await page.click("Show")
        await page.shows("<b>bold</b>")
        mysql_db.execute("ALTER TABLE orders ADD total INT")
        mysql_db.execute("INSERT INTO orders VALUES (3, 'c', 5)")
        await page.click("Tables")
        await page.until("[...document.querySelectorAll('td')].filter((one) => one.innerText === '3').length === 1")
        await page.click("Structure")
        await page.fill("#table", table)
        await page.click("Show")
        await page.shows("ALTER TABLE orders ADD total INT")
        await page.click("Compare with the one before")
        await page.shows("+  `total` int")
        own_kafka.pause()
        mysql_db.execute("INSERT INTO orders VALUES (4, 'd', 5)")
        await page.shows("blocked by Kafka")
        await page.shows("Kafka has not answered for")
        own_kafka.resume()
        await page.until("!document.body.innerText.includes('blocked by Kafka')")
        await page.click("Overview")
        await page.shows("Where the time goes")
        await page.click("Position")
        await page.click("Stop")
        await page.click("Stop")
        await page.until(
            "document.querySelector('#offset')?.readOnly === false && document.querySelector('#offset').value"
        )
        await page.click("Delete the position")
        await page.click("Delete")
        await page.shows("The position is deleted.")
        await page.click("Configuration")
        await page.shows("The configuration is in a file of the worker.")
        await page.click("Resume")
        await page.shows("idle")
        assert page.problems == []

    async def work(worker: Worker) -> None:
        async with browser() as opened, opened.page() as page:
            await use(page, worker)

    with Worker(config) as worker:
        worker.streaming()
        asyncio.run(work(worker))
        assert worker.log.count("the position of the snapshot is") == 2
        worker.stop()
