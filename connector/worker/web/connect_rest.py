"""Kafka Connect's REST interface: the connectors of a worker or a fleet, their states, and log levels.

Paths, status codes and bodies are those of Kafka Connect 4. A fleet's connectors are created, changed and deleted here;
those of a standalone worker are changed in its configuration files. A connector has one task, 0.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any, Protocol
from urllib.parse import quote

from aiohttp import web
from aiohttp.typedefs import Handler

from rowtide._version import __version__
from rowtide.connector.config.errors import ConfigurationError
from rowtide.connector.worker.web import log_levels
from rowtide.connector.worker.web.access import Access, Refused, Role
from rowtide.connector.worker.web.log_levels import audit

_OWN_STATES = frozenset({"PAUSED", "STOPPED", "FAILED", "RESTARTING"})
_OFFSETS = (
    "The Connect framework-managed offsets for this connector have been {0} successfully. However, if this connector "
    "manages offsets externally, they will need to be manually {0} in the system that the connector uses."
)
_CLASS = "connector.class"
_JSON = "application/json"
_IN_PATHS = "!$&'()*+,;=:@"
"""Characters of a segment of a path that need no percent-encoding (RFC 3986)."""
_INITIAL_STATES = ("RUNNING", "PAUSED", "STOPPED")


def connect_state(state: str) -> str:
    """Return Kafka Connect's name of a connector's state, which has fewer states."""
    if state == "STANDBY":
        return "UNASSIGNED"
    return state if state in _OWN_STATES else "RUNNING"


@dataclass(frozen=True, slots=True)
class ConnectorState:
    """The state of a connector and its task.

    Attributes:
        state: one of Kafka Connect's states.
        worker_id: the worker that runs it; ``None`` for the worker that answers.
        trace: the reason why it has failed,
            or is not assigned to a worker.
    """

    state: str
    worker_id: str | None = None
    trace: str = ""


class StillStopping(Exception):
    """The connector has not stopped yet, because a server does not answer."""


class StandsBy(Exception):
    """The connector stands by, because another process runs it."""


class BadRequest(Exception):
    """A request cannot be carried out as it is; the message says why."""


class StoreUnavailable(Exception):
    """Configurations cannot be written, because a server does not answer."""


class Controlled(Protocol):
    """A connector that can be controlled."""

    def properties(self) -> Mapping[str, str]:
        """Return its configuration, with secrets masked."""
        ...

    async def connect_state(self) -> ConnectorState:
        """Return its state."""
        ...

    async def offsets(self) -> list[dict[str, Any]]:
        """Return its stored position, as ``{"partition": {"server": ...}, "offset": {...}}``; nothing if there is none.

        Raises:
            StoreUnavailable: it cannot be read.
        """
        ...

    async def alter_offsets(self, changes: list[Any] | None) -> None:
        """Store another position while it is stopped; ``None`` deletes it.

        Raises:
            BadRequest: it is not a position of this connector.
            StoreUnavailable: it cannot be written.
        """
        ...

    async def topics(self) -> list[str]:
        """Return the topics to which it has sent records since the last reset."""
        ...

    async def reset_topics(self) -> None:
        """Forget them."""
        ...

    async def hold(self, state: str) -> None:
        """Stop it in a state, ``PAUSED`` or ``STOPPED``, until it is resumed.

        Raises:
            StandsBy: another process runs it.
        """
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
            BadRequest: its configuration has changed, and is wrong.
            StillStopping: it does not stop.
        """
        ...


class ConnectorStore(Protocol):
    """The store of configurations."""

    async def put(self, name: str, properties: Mapping[str, str], initial_state: str | None = None) -> None:
        """Create or change a connector. It returns when the answering worker has the connector.

        Args:
            name: of the connector.
            properties: its configuration. Asterisks stand for secrets that do not change.
            initial_state: ``RUNNING``, ``PAUSED`` or ``STOPPED``; by default its current state, or ``RUNNING``.

        Raises:
            ConfigurationError: the configuration is wrong.
            StoreUnavailable: it cannot be written.
        """
        ...

    async def delete(self, name: str) -> None:
        """Delete a connector.

        Raises:
            StoreUnavailable: that cannot be written.
        """
        ...

    async def set_level(self, logger: str, level: str) -> None:
        """Set the level of a logger on all workers.

        Raises:
            StoreUnavailable: that cannot be written.
        """
        ...


def routes(
    connectors: Mapping[str, Controlled], access: Access, store: ConnectorStore | None = None
) -> list[web.RouteDef]:
    """Return the routes of the interface.

    Args:
        connectors: the connectors by name, which may come and go.
        access: who may control them.
        store: creates, changes and deletes connectors, if this worker can do so.
    """
    rest = _Rest(connectors, store)
    read, operate, edit = (guarded_by(access, role) for role in (Role.READ, Role.OPERATE, Role.EDIT))
    connector, task = "/connectors/{name}", "/connectors/{name}/tasks/{task}"
    held = {"pause": rest.pause, "resume": rest.resume, "stop": rest.stop}
    found = [
        web.get("/connectors", read(rest.names)),
        web.get(connector, read(rest.info)),
        web.get(f"{connector}/config", read(rest.config)),
        web.get(f"{connector}/status", read(rest.state)),
        web.get(f"{connector}/tasks", read(rest.tasks)),
        web.get(f"{task}/status", read(rest.task_state)),
        web.post(f"{connector}/restart", operate(rest.restart)),
        web.put(f"{connector}/fence", operate(_internal)),
        web.post(f"{connector}/tasks", operate(_internal)),
        web.post(f"{task}/restart", operate(rest.restart_task)),
        web.get(f"{connector}/topics", read(rest.topics)),
        web.put(f"{connector}/topics/reset", operate(rest.reset_topics)),
        web.get(f"{connector}/offsets", read(rest.offsets)),
        web.patch(f"{connector}/offsets", edit(rest.alter_offsets)),
        web.delete(f"{connector}/offsets", edit(rest.reset_offsets)),
        web.get("/admin/loggers", read(rest.loggers)),
        web.get("/admin/loggers/{logger}", read(rest.level)),
        web.put("/admin/loggers/{logger}", operate(rest.set_level)),
    ]
    if store is not None:
        editor = _Editor(connectors, store)
        found += [
            web.post("/connectors", edit(editor.create)),
            web.put(f"{connector}/config", edit(editor.put)),
            web.patch(f"{connector}/config", edit(editor.patch)),
            web.delete(connector, edit(editor.delete)),
        ]
    for word, handler in held.items():
        found.append(web.put(f"{connector}/{word}", operate(handler)))
    return found


def with_slashes(given: Iterable[web.RouteDef]) -> list[web.RouteDef]:
    """Return routes whose paths may end with a slash, as those of Kafka Connect may: kcctl and Strimzi send some."""
    found = list(given)
    return found + [
        web.RouteDef(one.method, f"{one.path}/", one.handler, one.kwargs) for one in found if not one.path.endswith("/")
    ]


def guarded_by(access: Access, needed: Role) -> Callable[[Handler], Handler]:
    """Let only requests of users with a role pass to a handler, and log those that change something.

    The log ``rowtide.audit`` contains the user and the address of each request, and the status of the answer.
    """

    def guarded(handler: Handler) -> Handler:
        async def serve(request: web.Request) -> web.StreamResponse:
            user, status = "unknown", int(HTTPStatus.INTERNAL_SERVER_ERROR)
            try:
                user = access.admitted(host_of(request), request.headers, needed).name
                answer = await answered(request)
                status = answer.status
            except Refused as refused:
                user, status = refused.user or user, refused.status
                answer = error(status, str(refused))
                if status == HTTPStatus.UNAUTHORIZED:
                    answer.headers["WWW-Authenticate"] = access.challenge
            except web.HTTPException as problem:
                status = problem.status
                raise
            finally:
                if needed > Role.READ:
                    path = request.rel_url.raw_path  # without line breaks
                    audit.info("%s at %s: %s %s: %d", user, request.remote, request.method, path, status)
            return answer

        async def answered(request: web.Request) -> web.StreamResponse:
            if "/" in request.match_info.get("name", ""):
                return error(400, "the name of a connector has no slash")
            accepted = request.headers.get("Accept", "*/*")
            if not any(kind in accepted for kind in (_JSON, "application/*", "*/*")):
                raise web.HTTPNotAcceptable
            try:
                return await handler(request)
            except BadRequest as problem:
                return error(400, str(problem))
            except (StillStopping, StandsBy) as problem:
                return error(409, str(problem))
            except StoreUnavailable as problem:
                return error(503, str(problem))

        return serve

    return guarded


def error(status: int, message: str) -> web.Response:
    """Return an error in Kafka Connect's form."""
    return web.json_response({"error_code": status, "message": message}, status=status)


def host_of(request: web.Request) -> str:
    """Return the host that a request names, without the port; empty if it is not a name."""
    try:
        return request.url.host or ""
    except ValueError:
        return ""


class _Rest:
    """The handlers."""

    def __init__(self, connectors: Mapping[str, Controlled], store: ConnectorStore | None) -> None:
        self._connectors = connectors
        self._store = store

    async def _set_level_everywhere(self, name: str, level: str) -> None:
        if self._store is None:  # there is one worker
            log_levels.set_level(name, level)
        else:
            await self._store.set_level(name, level)

    async def names(self, request: web.Request) -> web.Response:
        expand = request.query.getall("expand", [])
        if not expand:
            return web.json_response(list(self._connectors))
        found: dict[str, dict[str, Any]] = {name: {} for name in self._connectors}
        for name, connector in self._connectors.items():
            if "status" in expand:
                found[name]["status"] = _state(name, await connector.connect_state(), request)
            if "info" in expand:
                found[name]["info"] = await _info(name, connector)
        return web.json_response(found)

    async def info(self, request: web.Request) -> web.Response:
        return await self._answer(request, _info)

    async def config(self, request: web.Request) -> web.Response:
        return await self._answer(request, lambda _name, connector: _ready(dict(connector.properties())))

    async def state(self, request: web.Request) -> web.Response:
        async def body(name: str, connector: Controlled) -> Any:
            return _state(name, await connector.connect_state(), request)

        return await self._answer(request, body)

    async def tasks(self, request: web.Request) -> web.Response:
        async def body(name: str, connector: Controlled) -> Any:
            config = dict(connector.properties())
            if _CLASS in config:
                config["task.class"] = f"{config[_CLASS]}Task"
            task = {"id": {"connector": name, "task": 0}, "config": config}
            return [task] if _state(name, await connector.connect_state(), request)["tasks"] else []

        return await self._answer(request, body)

    async def task_state(self, request: web.Request) -> web.Response:
        name, task = request.match_info["name"], request.match_info["task"]
        connector = self._connectors.get(name)
        tasks = [] if connector is None else _state(name, await connector.connect_state(), request)["tasks"]
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
        now = await connector.connect_state()
        if not only_failed or now.state == "FAILED":
            await connector.rerun()
            now = now if now.state == "STOPPED" else replace(now, state="RESTARTING", trace="")
        if not (tasks or only_failed):
            return web.Response(status=204)
        return web.json_response(_state(name, now, request), status=202)

    async def restart_task(self, request: web.Request) -> web.Response:
        name, task = request.match_info["name"], request.match_info["task"]
        connector = self._connectors.get(name)
        if connector is None:
            return error(404, f"Unknown connector: {name}")
        if task != "0":
            return error(404, f"Unknown task: {name}-{task}")
        await connector.rerun()
        return web.Response(status=204)

    async def topics(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        connector = self._connectors.get(name)
        return web.json_response({name: {"topics": [] if connector is None else await connector.topics()}})

    async def reset_topics(self, request: web.Request) -> web.Response:
        connector = self._connectors.get(request.match_info["name"])
        if connector is not None:
            await connector.reset_topics()
        return web.Response(status=202)

    async def offsets(self, request: web.Request) -> web.Response:
        async def body(_name: str, connector: Controlled) -> Any:
            return {"offsets": await connector.offsets()}

        return await self._answer(request, body)

    async def alter_offsets(self, request: web.Request) -> web.Response:
        async def body(name: str, connector: Controlled) -> Any:
            changes = (await object_of(request)).get("offsets")
            if not isinstance(changes, list) or not changes:
                raise BadRequest("Partitions / offsets need to be provided for an alter offsets request")
            await _require_stopped(name, connector)
            await connector.alter_offsets(changes)
            return {"message": _OFFSETS.format("altered")}

        return await self._answer(request, body)

    async def reset_offsets(self, request: web.Request) -> web.Response:
        async def body(name: str, connector: Controlled) -> Any:
            await _require_stopped(name, connector)
            await connector.alter_offsets(None)
            return {"message": _OFFSETS.format("reset")}

        return await self._answer(request, body)

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
        if not log_levels.is_level(level):
            return error(404, f"invalid log level '{level}'.")
        if name == audit.name:
            return error(403, f"the level of {name}, the log of changes, is not set over HTTP")
        if request.query.get("scope", "worker").lower() == "cluster":
            await self._set_level_everywhere(name, level)
            return web.Response(status=204)
        log_levels.set_level(name, level)
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


class _Editor:
    """The handlers that create, change and delete connectors.

    Kafka Connect answers 500 to bodies that are not JSON or have another form; 400 is correct.
    """

    def __init__(self, connectors: Mapping[str, Controlled], store: ConnectorStore) -> None:
        self._connectors = connectors
        self._store = store
        self._turn = asyncio.Lock()  # a request must not overwrite the result of another

    async def create(self, request: web.Request) -> web.Response:
        name, properties, state = _creation(await object_of(request))
        async with self._turn:
            if name in self._connectors:
                return error(409, f"Connector {name} already exists")
            return await self._put(request, name, properties, state)

    async def put(self, request: web.Request) -> web.Response:
        properties = properties_of(await object_of(request), "the body")
        async with self._turn:
            return await self._put(request, request.match_info["name"], properties)

    async def patch(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        changes = properties_of(await object_of(request), "the body", nulls=True)
        async with self._turn:
            connector = self._connectors.get(name)
            if connector is None:
                return error(404, f"Connector {name} not found")
            return await self._put(request, name, {**connector.properties(), **changes})

    async def delete(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        async with self._turn:
            if name not in self._connectors:
                return error(404, f"Connector {name} not found")
            await self._store.delete(name)
        return web.Response(status=204)

    async def _put(
        self,
        request: web.Request,
        name: str,
        properties: Mapping[str, str | None],
        initial_state: str | None = None,
    ) -> web.Response:
        own = properties.get("name", name)
        if own != name:
            raise BadRequest(f"Connector name configuration ({own}) doesn't match connector name in the URL ({name})")
        created = name not in self._connectors
        given = {key: text for key, text in properties.items() if text is not None}
        if not given.get(_CLASS):
            raise BadRequest(f"Connector config of {name} contains no connector type: set {_CLASS}")
        try:
            await self._store.put(name, {"name": name, **given}, initial_state)
        except ConfigurationError as problem:
            listed = "\n".join(f"{one.property}: {one.message}" for one in problem.problems)
            raise BadRequest(
                f"Connector configuration is invalid and contains the following {len(problem.problems)} error(s):\n"
                f"{listed}"
            ) from None
        place = request.url.with_path(f"/connectors/{quote(name, safe=_IN_PATHS)}", encoded=True)
        headers = {"Location": str(place)} if created else {}
        info = await _info(name, self._connectors[name])
        if created:
            info["tasks"] = []
        return web.json_response(info, status=201 if created else 200, headers=headers)


def _creation(body: Mapping[str, Any]) -> tuple[str, dict[str, Any], str | None]:
    """Return the name, the configuration and the initial state in the body of a request that creates a connector."""
    unknown = sorted(body.keys() - {"name", "config", "initial_state"})
    if unknown:
        raise BadRequest(f"unknown field {unknown[0]!r}: the fields are name, config and initial_state")
    properties = properties_of(body.get("config"), 'the field "config"')
    name, state = body.get("name") or properties.get("name"), body.get("initial_state")
    if not isinstance(name, str) or not name.strip() or "/" in name:
        raise BadRequest("a connector needs a name, without a slash")
    if state is None:
        return name, properties, None
    if not isinstance(state, str) or state.upper() not in _INITIAL_STATES:
        raise BadRequest(f"initial_state must be one of {', '.join(_INITIAL_STATES)}, not {state!r}")
    return name, properties, state.upper()


async def object_of(request: web.Request) -> dict[str, Any]:
    """Return the JSON object in a body.

    Raises:
        BadRequest: the body is something else.
    """
    if request.content_type != _JSON:
        raise web.HTTPUnsupportedMediaType
    try:
        body = json.loads(await request.text())
        json.dumps(body, ensure_ascii=False).encode()  # a half of a surrogate pair cannot be stored
    except (ValueError, LookupError, RecursionError):  # also an unknown character set
        raise BadRequest("the body is not JSON") from None
    if not isinstance(body, dict):
        raise BadRequest("the body is not a JSON object")
    return body


def properties_of(given: Any, what: str, *, nulls: bool = False) -> dict[str, Any]:
    """Return the properties in a body as texts; numbers and booleans are converted.

    Args:
        given: the part of the body.
        what: its name, for error messages.
        nulls: whether a property may be ``None``.

    Raises:
        BadRequest: it is not a JSON object of properties.
    """
    if not isinstance(given, dict):
        raise BadRequest(f"{what} must be a JSON object of properties")
    for name, value in given.items():
        if isinstance(value, dict | list) or (value is None and not nulls):
            raise BadRequest(f"{what}: {name} must be a string")
    return {
        name: value if value is None or isinstance(value, str) else json.dumps(value) for name, value in given.items()
    }


async def _internal(_request: web.Request) -> web.Response:
    """Refuse the internal requests between workers of Kafka Connect."""
    return error(400, "Internal request missing required signature")


async def _require_stopped(name: str, connector: Controlled) -> None:
    if (await connector.connect_state()).state != "STOPPED":
        raise BadRequest(
            "Connectors must be in the STOPPED state before their offsets can be modified. This can be done for the "
            f"specified connector by issuing a 'PUT' request to the '/connectors/{name}/stop' endpoint"
        )


async def _ready(body: Any) -> Any:
    return body


async def _info(name: str, connector: Controlled) -> dict[str, Any]:
    has_task = (await connector.connect_state()).state not in ("STOPPED", "UNASSIGNED")
    tasks = [{"connector": name, "task": 0}] if has_task else []
    return {"name": name, "config": dict(connector.properties()), "tasks": tasks, "type": "source"}


def _state(name: str, now: ConnectorState, request: web.Request) -> dict[str, Any]:
    found = {"state": now.state, "worker_id": now.worker_id or request.host, "version": __version__}
    if now.state == "FAILED" or (now.state == "UNASSIGNED" and now.trace):
        found["trace"] = now.trace
    tasks = [] if now.state == "STOPPED" else [{"id": 0, **found}]
    return {"name": name, "connector": found, "tasks": tasks, "type": "source"}


def _level(level: str) -> dict[str, Any]:
    return {"level": level, "last_modified": None}
