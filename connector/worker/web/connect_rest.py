"""Kafka Connect's REST interface for the connectors of one worker: their state, pause, resume, restart, log levels.

Paths, status codes and bodies are those of Kafka Connect 4. Connectors are not created, changed or deleted here: the
configuration file does that. A connector has one task, 0.
"""

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from aiohttp import web
from aiohttp.typedefs import Handler

from rowtide._version import __version__
from rowtide.connector.worker.status import Status
from rowtide.connector.worker.web import log_levels
from rowtide.connector.worker.web.access import Access

_STATES = {"PAUSED": "PAUSED", "STOPPED": "STOPPED", "FAILED": "FAILED", "RESTARTING": "RESTARTING"}
"""Kafka Connect's names of states; all others are RUNNING."""


class StillStopping(Exception):
    """The connector has not stopped yet, because a server does not answer."""


class Controlled(Protocol):
    """A connector that can be controlled."""

    def properties(self) -> Mapping[str, str]:
        """Its configuration, with secrets masked."""
        ...

    async def status(self) -> Status:
        """Its status."""
        ...

    async def hold(self, state: str) -> None:
        """Stop it in a state, ``PAUSED`` or ``STOPPED``, until it is resumed."""
        ...

    async def resume(self) -> None:
        """Start it again at the stored position, if it is held.

        Raises:
            StillStopping: it has not stopped yet.
        """
        ...

    async def rerun(self) -> None:
        """Stop it and start it again at the stored position, unless it is held.

        Raises:
            StillStopping: it does not stop.
        """
        ...


def routes(connectors: Mapping[str, Controlled], access: Access) -> list[web.RouteDef]:
    """The routes of the interface."""
    rest = _Rest(connectors)
    guarded = guarded_by(access)
    connector, task = "/connectors/{name}", "/connectors/{name}/tasks/{task}"
    held = {"pause": rest.pause, "resume": rest.resume, "stop": rest.stop}
    found = [
        web.get("/connectors", guarded(rest.names)),
        web.get(connector, guarded(rest.info)),
        web.get(f"{connector}/config", guarded(rest.config)),
        web.get(f"{connector}/status", guarded(rest.state)),
        web.get(f"{connector}/tasks", guarded(rest.tasks)),
        web.get(f"{task}/status", guarded(rest.task_state)),
        web.post(f"{connector}/restart", guarded(rest.restart)),
        web.post(f"{task}/restart", guarded(rest.restart_task)),
        web.get("/admin/loggers", guarded(rest.loggers)),
        web.get("/admin/loggers/{logger}", guarded(rest.level)),
        web.put("/admin/loggers/{logger}", guarded(rest.set_level)),
    ]
    for word, handler in held.items():
        found += [web.put(f"{connector}/{word}", guarded(handler)), web.post(f"{connector}/{word}", guarded(handler))]
    return found


def guarded_by(access: Access) -> Callable[[Handler], Handler]:
    """Lets only requests that may control a connector through to a handler."""

    def guarded(handler: Handler) -> Handler:
        async def serve(request: web.Request) -> web.StreamResponse:
            refusal = access.refusal(_host(request), request.headers)
            if refusal is not None:
                return error(*refusal)
            try:
                return await handler(request)
            except StillStopping as problem:
                return error(409, str(problem))

        return serve

    return guarded


def error(status: int, message: str) -> web.Response:
    """An error in Kafka Connect's form."""
    return web.json_response({"error_code": status, "message": message}, status=status)


def _host(request: web.Request) -> str:
    """The host that a request names, without the port; empty if it is no name."""
    try:
        return request.url.host or ""
    except ValueError:
        return ""


class _Rest:
    """The handlers."""

    def __init__(self, connectors: Mapping[str, Controlled]) -> None:
        self._connectors = connectors

    async def names(self, request: web.Request) -> web.Response:
        expand = request.query.getall("expand", [])
        if not expand:
            return web.json_response(list(self._connectors))
        found: dict[str, dict[str, Any]] = {name: {} for name in self._connectors}
        for name, connector in self._connectors.items():
            if "status" in expand:
                found[name]["status"] = _state(await connector.status(), request)
            if "info" in expand:
                found[name]["info"] = _info(name, connector)
        return web.json_response(found)

    async def info(self, request: web.Request) -> web.Response:
        return await self._answer(request, lambda name, connector: _ready(_info(name, connector)))

    async def config(self, request: web.Request) -> web.Response:
        return await self._answer(request, lambda _name, connector: _ready(dict(connector.properties())))

    async def state(self, request: web.Request) -> web.Response:
        async def body(_name: str, connector: Controlled) -> Any:
            return _state(await connector.status(), request)

        return await self._answer(request, body)

    async def tasks(self, request: web.Request) -> web.Response:
        async def body(name: str, connector: Controlled) -> Any:
            task = {"id": {"connector": name, "task": 0}, "config": dict(connector.properties())}
            return [task] if _state(await connector.status(), request)["tasks"] else []

        return await self._answer(request, body)

    async def task_state(self, request: web.Request) -> web.Response:
        name, task = request.match_info["name"], request.match_info["task"]
        connector = self._connectors.get(name)
        tasks = [] if connector is None else _state(await connector.status(), request)["tasks"]
        if not tasks or task != "0":
            return error(404, f"No status found for task {name}-{task}")
        return web.json_response(tasks[0])

    async def pause(self, request: web.Request) -> web.Response:
        return await self._do(request, lambda connector: connector.hold("PAUSED"), 202)

    async def stop(self, request: web.Request) -> web.Response:
        return await self._do(request, lambda connector: connector.hold("STOPPED"), 204)

    async def resume(self, request: web.Request) -> web.Response:
        return await self._do(request, lambda connector: connector.resume(), 202)

    async def restart(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        connector = self._connectors.get(name)
        if connector is None:
            return error(404, f"Unknown connector: {name}")
        tasks, only_failed = (request.query.get(word, "").lower() == "true" for word in ("includeTasks", "onlyFailed"))
        if not only_failed or (await connector.status()).state == "FAILED":
            await connector.rerun()
        if not (tasks or only_failed):
            return web.Response(status=204)
        return web.json_response(_state(await connector.status(), request), status=202)

    async def restart_task(self, request: web.Request) -> web.Response:
        name, task = request.match_info["name"], request.match_info["task"]
        connector = self._connectors.get(name)
        if connector is None:
            return error(404, f"Unknown connector: {name}")
        if task != "0":
            return error(404, f"Unknown task: {name}-{task}")
        await connector.rerun()
        return web.Response(status=204)

    async def loggers(self, _request: web.Request) -> web.Response:
        return web.json_response({name: _level(level) for name, level in log_levels.loggers().items()})

    async def level(self, request: web.Request) -> web.Response:
        name = request.match_info["logger"]
        level = log_levels.level_of(name)
        return error(404, f"Logger {name} not found.") if level is None else web.json_response(_level(level))

    async def set_level(self, request: web.Request) -> web.Response:
        try:
            body = json.loads(await request.text())
        except (ValueError, LookupError, RecursionError):  # also an unknown character set
            return error(400, "the body is not JSON")
        level = body.get("level") if isinstance(body, dict) else None
        if not isinstance(level, str):
            return error(400, "Desired 'level' parameter was not specified in request.")
        name = request.match_info["logger"]
        if not log_levels.set_level(name, level):
            return error(404, f"invalid log level '{level}'.")
        return web.json_response([name])

    async def _answer(self, request: web.Request, body: Callable[[str, Controlled], Awaitable[Any]]) -> web.Response:
        name = request.match_info["name"]
        connector = self._connectors.get(name)
        if connector is None:
            return error(404, f"Connector {name} not found")
        return web.json_response(await body(name, connector))

    async def _do(
        self, request: web.Request, action: Callable[[Controlled], Awaitable[None]], status: int
    ) -> web.Response:
        name = request.match_info["name"]
        connector = self._connectors.get(name)
        if connector is None:
            return error(404, f"Unknown connector {name}")
        await action(connector)
        return web.Response(status=status)


async def _ready(body: Any) -> Any:
    return body


def _info(name: str, connector: Controlled) -> dict[str, Any]:
    tasks = [{"connector": name, "task": 0}]
    return {"name": name, "config": dict(connector.properties()), "tasks": tasks, "type": "source"}


def _state(status: Status, request: web.Request) -> dict[str, Any]:
    found = {"state": _STATES.get(status.state, "RUNNING"), "worker_id": request.host, "version": __version__}
    if found["state"] == "FAILED":
        found["trace"] = status.problem or ""
    tasks = [] if status.state == "STOPPED" else [{"id": 0, **found}]
    return {"name": status.name, "connector": found, "tasks": tasks, "type": "source"}


def _level(level: str) -> dict[str, Any]:
    return {"level": level, "last_modified": None}
