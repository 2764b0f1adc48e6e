"""The routes of the page. Its files are public and have no data; everything else needs a log-in."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from http import HTTPStatus
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any, Protocol

from aiohttp import web
from aiohttp.typedefs import Handler

from rowtide._version import __version__
from rowtide.connector.config import Configuration
from rowtide.connector.worker.status import Status
from rowtide.connector.worker.web.access import Access, Refused, Role
from rowtide.connector.worker.web.connect_rest import Controlled, error, guarded_by, host_of
from rowtide.connector.worker.web.page.activity import PERIOD_S, History, activity, point
from rowtide.connector.worker.web.page.cards import card, tables
from rowtide.connector.worker.web.page.neighbours import Neighbours
from rowtide.connector.worker.web.page.proofs import Proofs
from rowtide.connector.worker.web.page.structures import structure

_EVERY_S = 2.0
"""How often an open page gets updates."""
_SHARED_S = 0.5
"""All open pages get the same statuses for this time."""
_STREAM_S = 300.0
"""A page logs in again after this time, so a removed user loses access."""
_SENT_S = 30.0
"""The worker disconnects a browser that reads no events for this time."""
_MOST_STREAMS = 40
_KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_SAFE = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}
"""No script and style but those of the page, no other host, and no text that becomes markup."""


class Shown(Protocol):
    """A connector of this worker."""

    @property
    def config(self) -> Configuration:
        """Its configuration."""
        ...

    async def status(self) -> Status:
        """Return its status, with what the server is queried for."""
        ...

    async def status_at_once(self) -> Status:
        """Return its status without that."""
        ...


class Worker(Protocol):
    """What the page says of the worker itself."""

    def about(self) -> Mapping[str, Any]:
        """Return what the page shows of this worker: ``worker``, ``labels`` and whether there is a ``fleet``."""
        ...

    def about_connector(self, name: str) -> Mapping[str, Any]:
        """Return what a fleet knows of a connector: its label, load, and when it was moved."""
        ...


class Page:
    """The page of a worker.

    Args:
        services: the connectors of this worker, by name.
        controlled: all connectors that the worker knows.
        access: who may see them.
        worker: the worker.
        neighbours: the other workers of its fleet.
        editable: whether configurations can be changed by requests.
        proofs: what ``rowtide verify`` has found.
    """

    def __init__(
        self,
        services: Mapping[str, Shown],
        controlled: Mapping[str, Controlled],
        access: Access,
        worker: Worker,
        neighbours: Neighbours,
        *,
        editable: bool,
        proofs: Proofs | None = None,
    ) -> None:
        self._services, self._controlled = services, controlled
        self._access, self._worker, self._neighbours = access, worker, neighbours
        self._editable = editable
        self._proofs = proofs or Proofs(None)
        self._history = History()
        self._former: dict[str, Status] = {}
        self._cards: dict[str, Any] = {}
        self._made_at = -_SHARED_S
        self._making = asyncio.Lock()
        self._reading = asyncio.Lock()
        self._streams = 0
        self._closing = asyncio.Event()

    def routes(self) -> list[web.RouteDef]:
        """Return the routes."""
        read = guarded_by(self._access, Role.READ)

        def of_connector(handler: Handler) -> Handler:
            return read(self._neighbours.forwarding(handler, self._services))

        files = [web.get(f"/page/{name}", _served(kind, body)) for name, kind, body in _files()]
        return [
            *files,
            web.get("/page/events", read(self._events)),
            web.get("/page/worker", read(self._own)),
            web.get("/page/connectors/{name}/tables", of_connector(self._tables)),
            web.get("/page/connectors/{name}/history", of_connector(self._hour)),
            web.get("/page/connectors/{name}/structure", of_connector(self._structure)),
        ]

    async def running(self, _app: web.Application) -> AsyncIterator[None]:
        """Keep the history while the web server runs."""
        sampling = asyncio.create_task(self._sample())
        yield
        sampling.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await sampling

    async def close(self, _app: web.Application) -> None:
        """End the events of open pages."""
        self._closing.set()

    async def _sample(self) -> None:
        while True:
            self._history.add([await service.status_at_once() for service in list(self._services.values())])
            await asyncio.sleep(PERIOD_S)

    async def _own_cards(self) -> dict[str, Any]:
        """Return the connectors of this worker; all open pages share what was made in the last seconds."""
        async with self._making:
            now = asyncio.get_running_loop().time()
            if now - self._made_at >= _SHARED_S:
                found = {
                    one.name: one
                    for one in await asyncio.gather(*(service.status() for service in list(self._services.values())))
                }
                self._cards = {name: self._card(status) for name, status in found.items()}
                self._former, self._made_at = found, now
            return self._cards

    def _card(self, status: Status) -> dict[str, Any]:
        former = self._former.get(status.name)
        return card(status, activity(status, None if former is None else point(former, status)))

    async def _own(self, _request: web.Request) -> web.Response:
        return web.json_response(await self._own_view())

    async def _own_view(self) -> dict[str, Any]:
        proofs = await asyncio.to_thread(self._proofs.by_connector)
        return {
            "version": __version__, **self._worker.about(), "connectors": await self._own_cards(), "proofs": proofs,
        }  # fmt: skip

    async def _view(self, request: web.Request) -> dict[str, Any]:
        """Return what the page shows: the workers that answer, and all connectors."""
        workers = await asyncio.gather(
            self._own_view(), *(self._of_worker(request, worker) for worker in self._neighbours.workers)
        )
        cards = {name: {**one, "worker": of["worker"]} for of in workers for name, one in of["connectors"].items()}
        proofs = [of.get("proofs", {}) for of in workers]  # those of an older version have none
        connectors = {}
        for name, controlled in list(self._controlled.items()):
            now = await controlled.connect_state()
            known = cards.get(name)
            if known is None:  # no worker runs it, or the one that does cannot be reached
                known = {"state": now.state, "error": now.trace or None, "worker": now.worker_id}
            proof = max((of[name] for of in proofs if name in of), key=lambda one: one["begun"], default=None)
            connectors[name] = {**known, **self._worker.about_connector(name), "proof": proof}
        user = self._access.admitted(host_of(request), request.headers, Role.READ)
        return {
            "user": {"name": user.name, "role": user.role.name.lower()},
            "editable": self._editable,
            **self._worker.about(),
            "version": __version__,
            "workers": [{key: of.get(key) for key in ("worker", "version", "labels", "problem")} for of in workers],
            "connectors": connectors,
        }

    async def _of_worker(self, request: web.Request, worker: str) -> dict[str, Any]:
        status, body = await self._neighbours.get(request, worker, "/page/worker")
        try:
            found = json.loads(body)
            if status == HTTPStatus.OK:
                return {**found, "worker": worker}
            problem = found["message"]
        except (ValueError, TypeError, KeyError):
            problem = f"worker {worker} answers with status {status}, and no page: it may have an older version"
        return {"worker": worker, "problem": problem, "connectors": {}}

    async def _events(self, request: web.Request) -> web.StreamResponse:
        if self._streams >= _MOST_STREAMS:
            return error(HTTPStatus.SERVICE_UNAVAILABLE, f"{_MOST_STREAMS} pages are open: close one of them")
        self._streams += 1
        try:
            return await self._stream(request)
        finally:
            self._streams -= 1

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        """Send what has changed every few seconds, as server-sent events."""
        headers = {"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        response = web.StreamResponse(headers=headers)
        await response.prepare(request)
        loop = asyncio.get_running_loop()
        end, sent = loop.time() + _STREAM_S, ""
        while loop.time() < end and not self._closing.is_set():
            try:
                view = json.dumps(await self._view(request), separators=(",", ":"))
            except Refused:  # the user was removed; an answer that has begun cannot say so
                break
            text = ": nothing new\n\n" if view == sent else f"event: view\ndata: {view}\n\n"
            sent = view
            try:
                async with asyncio.timeout(_SENT_S):
                    await response.write(text.encode())
            except (TimeoutError, ConnectionError):
                break
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), _EVERY_S)
        return response

    async def _tables(self, request: web.Request) -> web.Response:
        return await self._answer(request, _tables_of)

    async def _hour(self, request: web.Request) -> web.Response:
        async def of(service: Shown) -> Any:
            return self._history.of((await service.status_at_once()).name)

        return await self._answer(request, of)

    async def _structure(self, request: web.Request) -> web.Response:
        asked = request.query

        async def of(service: Shown) -> Any:
            async with self._reading:  # a long history takes memory
                table, at, before = asked.get("table"), asked.get("at") or "end", asked.get("before")
                return await asyncio.to_thread(structure, service.config, table or None, at, before or None)

        return await self._answer(request, of)

    async def _answer(self, request: web.Request, body: Callable[[Shown], Any]) -> web.Response:
        name = request.match_info["name"]
        service = self._services.get(name)
        if service is None:
            where = "runs on no worker now: resume it first" if name in self._controlled else "does not exist"
            return error(HTTPStatus.NOT_FOUND, f"connector {name} {where}")
        return web.json_response(await body(service))


async def _tables_of(service: Shown) -> dict[str, Any]:
    return tables(await service.status_at_once())


def entry(worker: Handler) -> Handler:
    """Return the handler of ``/``: the page for browsers, and Kafka Connect's resource for others.

    Args:
        worker: serves the resource.
    """
    serve = _served("text/html", (_folder() / "index.html").read_bytes())

    async def root(request: web.Request) -> web.StreamResponse:
        wants_page = "text/html" in request.headers.get("Accept", "")
        response = await (serve if wants_page else worker)(request)
        response.headers["Vary"] = "Accept"
        return response

    return root


def _folder() -> Traversable:
    return resources.files(__package__) / "static"


def _files() -> Sequence[tuple[str, str, bytes]]:
    """Return the names, types and contents of the page's files."""
    folder = _folder()
    found = [(file.name, _KINDS.get(f".{file.name.rpartition('.')[2]}")) for file in folder.iterdir()]
    return [(name, kind, (folder / name).read_bytes()) for name, kind in sorted(found) if kind is not None]


def _served(kind: str, body: bytes) -> Handler:
    async def serve(_request: web.Request) -> web.Response:
        return web.Response(body=body, content_type=kind, charset="utf-8", headers=_SAFE)

    return serve
