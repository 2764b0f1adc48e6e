"""A worker's web server with connectors that do not run, for tests of the page."""

from __future__ import annotations

import contextlib
import json
import math
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from aiohttp import web

from rowtide.connector.config import Configuration, Problem, load
from rowtide.connector.delivery.counters import DeliveryCounters
from rowtide.connector.delivery.event_store import StoreUse
from rowtide.connector.engine.stream_attempts import ReaderStatus
from rowtide.connector.signals.signalling import Signalling
from rowtide.connector.snapshot.incremental.state import IncrementalTable, SnapshotState
from rowtide.connector.snapshot.status import TableProgress
from rowtide.connector.source.binlog_runway import Runway
from rowtide.connector.worker.status import Status
from rowtide.connector.worker.web.access import Access
from rowtide.connector.worker.web.connect_rest import ConnectorState, Controlled, connect_state, routes
from rowtide.connector.worker.web.page.neighbours import Neighbours
from rowtide.connector.worker.web.page.proofs import Proofs
from rowtide.connector.worker.web.page.routes import Page
from rowtide.connector.worker.web.pages import pages
from rowtide.connector.worker.web.plugins import plugin_routes
from rowtide.connector.worker.web.server import json_errors, limited
from rowtide.connector.worker.web.signals import signal_routes
from rowtide.schema_history.model import TableId
from tests.support.connector_history import connector_with_history
from tests.support.processes.made_statuses import OFFSET, status

__all__ = ["MARKUP", "MadeConnector", "MadeWorker"]

MARKUP = "<img src=x onerror=\"document.title='stolen'\">"
"""What must be shown as it is, wherever it comes from."""
PROOFS = {
    "connector": "shop",
    "version": 1,
    "begun": 1_795_000_000.5,
    "ended": None,
    "error": None,
    "tables": {
        "shop.customers": {"topic": {"outcome": "equal", "reason": None, "differences": 0, "proved": 1_795_000_000.5}},
        "shop.orders": {
            "topic": {"outcome": "equal", "reason": None, "differences": 0, "proved": 1_795_000_000.5},
            "table": {"outcome": "different", "reason": None, "differences": 3, "proved": None},
        },
        f"shop.{MARKUP}": {"topic": {"outcome": "undecided", "reason": MARKUP, "differences": 0, "proved": None}},
    },
}
"""A file of ``rowtide verify --every --proofs``."""
MYSQL = "io.debezium.connector.mysql.MySqlConnector"


class MadeConnector:
    """A connector that says what it was told, and does nothing.

    Attributes:
        now: its status.
        done: what was asked of it.
    """

    def __init__(self, now: Status, config: Configuration, properties: Mapping[str, str] | None = None) -> None:
        self.now, self.config = now, config
        self.done: list[str] = []
        self.signalling = Signalling()
        self._properties = properties or {"connector.class": MYSQL, "database.password": "********"}

    async def status(self) -> Status:
        return replace(self.now, now=time.time())

    status_at_once = status

    def properties(self) -> Mapping[str, str]:
        return {"name": self.now.name, **self._properties}

    async def connect_state(self) -> ConnectorState:
        return ConnectorState(connect_state(self.now.state), trace=self.now.error or "")

    async def offsets(self) -> list[dict[str, Any]]:
        return [{"partition": {"server": "shop"}, "offset": {"file": "binlog.000007", "pos": 1234}}]

    async def alter_offsets(self, changes: list[Any] | None) -> None:
        self.done.append(f"offsets {changes}")

    async def topics(self) -> list[str]:
        return []

    async def reset_topics(self) -> None:
        raise NotImplementedError

    async def hold(self, state: str) -> None:
        self.done.append(state)
        self.now = replace(self.now, state=state)

    async def resume(self) -> None:
        self.done.append("resume")
        self.now = replace(self.now, state="RUNNING")

    async def rerun(self) -> None:
        self.done.append("restart")

    def signal(self, fields: Mapping[str, Any], channel: str = "in-process") -> str:
        self.done.append(f"signal {fields['type']} {fields['data']}")
        sent = self.signalling.send(fields, channel)
        data = {"signal_type": fields["type"], "message": MARKUP}
        self.signalling.notifications.add(
            {"id": sent, "type": "COMPLETED", "aggregate_type": "Signal", "additional_data": data}
        )
        return sent

    def notifications(self, signal_id: str | None = None) -> Sequence[Mapping[str, Any]]:
        return self.signalling.notifications.all(signal_id)


class MadeWorker:
    """A worker of a fleet of one, with connectors in several states.

    Args:
        folder: for the files of a schema history.
        access: who may do what; by default everybody on this machine.

    Attributes:
        connectors: by name.
        stored: the configurations that were given to it.
        pages: those that it has served.
        proofs: a directory with proofs of one of them.
    """

    def __init__(self, folder: Path, access: Access | None = None) -> None:
        self.access = access or Access(None, "127.0.0.1")
        self.stored: dict[str, Mapping[str, str]] = {}
        self.pages: list[Page] = []
        self.proofs = folder / "proofs"
        self.proofs.mkdir(exist_ok=True)
        (self.proofs / "shop.json").write_text(json.dumps(PROOFS))
        history = connector_with_history(
            folder,
            f"CREATE TABLE orders (id INT PRIMARY KEY, note VARCHAR(80) COMMENT {MARKUP!r})".replace("\\'", "''"),
            "ALTER TABLE orders ADD total DECIMAL(10,2) NOT NULL DEFAULT 0",
            "CREATE TABLE `<i>odd</i>` (id INT)",
        )
        self._config = load([history])
        self.connectors = {one.now.name: one for one in map(self._made, _statuses())}
        self.connectors["shop"]._properties = {
            "connector.class": MYSQL,
            "topic.prefix": "shop",
            "database.hostname": "mysql.example",
            "database.user": "rowtide",
            "database.password": "********",
            "database.server.id": "5401",
            "table.include.list": MARKUP,
            "snapshot.mode": "initial",
        }

    def _made(self, now: Status) -> MadeConnector:
        return MadeConnector(now, self._config)

    members = None

    def about(self) -> Mapping[str, Any]:
        return {"worker": "worker-1:6066", "labels": ["ssd"], "fleet": "shop-fleet"}

    def about_connector(self, name: str) -> Mapping[str, Any]:
        moved = {"moved_ms": 1_790_000_000_000} if name == "shop" else {}
        return {"label": "ssd" if name == "shop" else None, "load": 12_345, **moved}

    async def put(self, name: str, properties: Mapping[str, str], initial_state: str | None = None) -> None:
        self.stored[name] = properties
        if name not in self.connectors:
            self.connectors[name] = self._made(status(name=name, state=initial_state or "RUNNING"))
        self.connectors[name]._properties = dict(properties)

    async def delete(self, name: str) -> None:
        del self.connectors[name]

    async def set_level(self, logger: str, level: str) -> None:
        self.stored[f"level {logger}"] = {"level": level}

    def validate(self, properties: Mapping[str, str]) -> list[Problem]:
        found = [Problem("table.include.list", f"is wrong: {MARKUP}")] if "table.include.list" in properties else []
        return found + [Problem("database.server.id", "is not a number")] * (not properties.get("database.server.id"))

    def page(self) -> Page:
        """The page, with an hour of history."""
        controlled: dict[str, Controlled] = self.connectors  # type: ignore[assignment]
        neighbours, proofs = Neighbours(None, tls=False), Proofs(self.proofs)
        made = Page(self.connectors, controlled, self.access, self, neighbours, editable=True, proofs=proofs)
        for number in range(241):
            made._history.add([_earlier(one.now, number) for one in self.connectors.values()])
        self.pages.append(made)
        return made

    @contextlib.asynccontextmanager
    async def served(self) -> AsyncIterator[str]:
        """Serve the page, and return its address."""
        page = self.page()
        app = web.Application(middlewares=[json_errors, limited])
        app.cleanup_ctx.append(page.running)
        app.on_shutdown.append(page.close)
        app.add_routes(
            [
                *pages(self.connectors.values(), several=False),
                *routes(self.connectors, self.access, self),
                *plugin_routes(self.access, self.validate, None),
                *signal_routes(self.connectors, self.access),
                *page.routes(),
            ]
        )
        runner = web.AppRunner(app, shutdown_timeout=1.0)  # aiohttp's TestServer cancels the answers to clients that go
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        try:
            yield f"http://127.0.0.1:{runner.addresses[0][1]}/"
        finally:
            await runner.cleanup()


def _statuses() -> list[Status]:
    started = time.time() - 5000
    runway = Runway("binlog.000007", 86_400.0 * 3, 86_400.0 * 7, "binlog_expire_logs_seconds=604800")
    tables = {
        "shop.customers": TableProgress(1200, 1180, finished=True),
        f"shop.{MARKUP}": TableProgress(420_000, 1_000_000, rate=8123.4),
        "shop.orders": TableProgress(),
    }
    sent = DeliveryCounters(
        messages=4_000_000,
        bytes=98_765_432,
        topics={"shop.shop.orders": (100_000, 90_000_000), f"shop.{MARKUP}": (23_456, 8_765_432)},
        messages_per_second=812.4,
        bytes_per_second=640_000.0,
    )
    reads = ReaderStatus(connected=True, file="binlog.000007", pos=40_000, event_ts_ms=round(time.time() * 1000))
    queue = StoreUse(10, 8192, 20, 1000, 1 << 26, 1, 0, 0.0, 0.0)
    common: dict[str, Any] = {
        "started_at": started,
        "now": started,
        "stored": OFFSET,
        "runway": runway,
        "prefix": "shop",
        "lag_bytes": 81_234,
    }
    idle = replace(reads, idle=True)
    left = SnapshotState((IncrementalTable("shop.orders", TableId("shop", "orders"), "s-1"),))
    reading = replace(OFFSET, carried=left.carried(None))
    return [
        status(name="shop", reader=reads, delivery=sent, queue=queue, snapshot=tables, **{**common, "stored": reading}),
        status(name="idle", reader=idle, delivery=DeliveryCounters(), queue=replace(queue, held_events=0), **common),
        status(
            name="blocked",
            reader=reads,
            delivery=replace(sent, stuck_s=12.0, problem="broker 1: timed out"),
            queue=replace(queue, oldest_ts_ms=round(time.time() * 1000) - 42_000),
            **common,
        ),
        status(name="snapshot", state="SNAPSHOT", snapshot=tables, **common),
        status(name="paused", state="PAUSED", **common),
        status(name="stopped", state="STOPPED", **common),
        status(
            name="failed",
            state="FAILED",
            error="cannot connect to mysql.example:3306: access denied for user 'cdc' (1045). Check database.user and "
            f"database.password. {MARKUP}",
            **common,
        ),
        status(
            name=MARKUP.replace("/", ""),
            flavor="mariadb",
            state="RECONNECTING",
            error="the connection was lost",
            **common,
        ),
    ]


def _earlier(now: Status, number: int) -> Status:
    """A status of the last hour, the last of which is now: each is 15 seconds after the one before."""
    at = time.time() - (240 - number) * 15
    delivery, reader, queue = now.delivery, now.reader, now.queue
    if delivery is not None and delivery.messages:
        sent = delivery.messages - round((240 - number) * 12_000 - 90_000 * math.sin((240 - number) / 20))
        delivery = replace(delivery, messages=sent, bytes=800 * sent)
    if reader is not None:
        changed = round(1000 * (at - 2 - 2 * math.cos(number / 9)))
        reader = replace(reader, waited_s=number * 15 * 0.4, event_ts_ms=changed)
    if queue is not None:
        queue = replace(queue, put_blocked_s=max(0, number - 150) * 15 * 0.3)
    return replace(now, now=at, delivery=delivery, reader=reader, queue=queue)
