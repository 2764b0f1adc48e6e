"""Debezium's own REST resources, as its extension of Kafka Connect had them under ``/debezium/mysql``.

Paths and bodies are those of ``io.debezium.rest`` in Debezium 3.6, for tools that ask for them.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from http import HTTPStatus
from typing import Any

from aiohttp import web

from rowtide._version import __version__
from rowtide.connector.config import Flavor
from rowtide.connector.config.errors import Problem
from rowtide.connector.worker.status import Status
from rowtide.connector.worker.web.access import Access, Role
from rowtide.connector.worker.web.connect_rest import (
    BadRequest,
    Controlled,
    error,
    guarded_by,
    object_of,
    properties_of,
)
from rowtide.connector.worker.web.page.neighbours import Neighbours
from rowtide.connector.worker.web.pages import Source
from rowtide.connector.worker.web.plugins import Validate, connector_class, definitions, in_own_thread

Matching = Callable[[Mapping[str, str]], Collection[tuple[str, str]]]
"""Returns the tables, with their databases, that a configuration without problems captures; connects to the server."""

_CLASS = "connector.class"
_JSON_TYPES = {"BOOLEAN": "boolean", "INT": "integer", "LONG": "integer"}
_PLUGINS = {"mysql": "MySql", "mariadb": "MariaDb"}


def debezium_routes(
    access: Access,
    services: Mapping[str, Source],
    connectors: Mapping[str, Controlled],
    validate: Validate,
    matching: Matching,
    neighbours: Neighbours,
) -> list[web.RouteDef]:
    """Return the routes.

    Args:
        access: who may use them.
        services: the connectors that run on this worker, by name.
        connectors: all connectors.
        validate: finds what is wrong with a configuration.
        matching: finds the tables that a configuration captures.
        neighbours: the workers that answer for the other connectors of a fleet.
    """
    read, edit = guarded_by(access, Role.READ), guarded_by(access, Role.EDIT)

    async def version(_request: web.Request) -> web.Response:
        return web.Response(text=__version__, content_type="application/json")

    async def schema(request: web.Request) -> web.Response:
        return web.json_response(_schema(request.match_info["flavor"]))

    async def connection(request: web.Request) -> web.Response:
        return web.json_response(_results(await in_own_thread(validate, await _given(request))))

    async def filters(request: web.Request) -> web.Response:
        given = await _given(request)
        problems = list(await in_own_thread(validate, given))
        found = [] if problems else await in_own_thread(matching, given)
        tables = [
            {"identifier": f"{database}.{table}", "namespace": database, "name": table} for database, table in found
        ]
        return web.json_response({**_results(problems), "matchingCollections": tables})

    async def metrics(request: web.Request) -> web.Response:
        name = request.match_info["name"]
        service = services.get(name)
        if service is not None:
            status = await service.status_at_once()
            if status.flavor == request.match_info["flavor"]:
                return web.json_response(_metrics(status))
        elif name in connectors:
            return error(HTTPStatus.NOT_FOUND, f"Connector {name} runs on no worker: resume it first")
        return error(HTTPStatus.NOT_FOUND, f"Connector {name} not found")

    base = f"/debezium/{{flavor:{'|'.join(_PLUGINS)}}}"
    return [
        web.get(f"{base}/version", read(version)),
        web.get(f"{base}/schema", read(schema)),
        # They connect to any server, with secrets of this machine.
        web.put(f"{base}/validate/connection", edit(connection)),
        web.put(f"{base}/validate/filters", edit(filters)),
        web.get(f"{base}/connectors/{{name}}/metrics", read(neighbours.forwarding(metrics, services))),
    ]


async def _given(request: web.Request) -> dict[str, str]:
    """Return the configuration in a body, with the class of the connector that the path names."""
    wanted = connector_class(_PLUGINS[request.match_info["flavor"]]) or ""
    given = {name: text for name, text in properties_of(await object_of(request), "the body").items() if text}
    named = given.setdefault(_CLASS, wanted)
    if connector_class(named) != wanted:
        raise BadRequest(f"{_CLASS} is {named}, but this path is for {wanted}")
    return given


def _results(problems: Iterable[Problem]) -> dict[str, Any]:
    """Return what is wrong, as Debezium's ``ValidationResults``: the first message of each property."""
    first: dict[str, str] = {}
    for problem in problems:
        first.setdefault(problem.property.partition(" ")[0], problem.message)
    found = [{"property": name, "message": message} for name, message in first.items()]
    return {"status": "INVALID" if found else "VALID", "validationResults": found}


def _metrics(status: Status) -> dict[str, Any]:
    """Return Debezium's ``MetricsDescriptor``, whose values are texts."""
    reader = status.reader
    connected = reader is not None and reader.connected
    since = -1 if reader is None or not reader.event_ts_ms else max(0, round(status.now * 1000) - reader.event_ts_ms)
    seen = 0 if status.delivery is None else status.delivery.messages
    numbers = {"MilliSecondsSinceLastEvent": str(since), "TotalNumberOfEventsSeen": str(seen)}
    return {
        "name": status.name,
        "tasks.max": "1",
        "connector": {"metrics": {"Connected": str(connected).lower()}},
        "tasks": [{"id": 0, "namespaces": [{"metrics": numbers}]}],
    }


def _schema(flavor: str) -> dict[str, Any]:
    """Return the properties as the OpenAPI schema that Debezium's schema generator makes."""
    found = [one for one in definitions() if one["name"]]
    properties = {
        one["name"]: {
            "title": one["display_name"],
            "description": one["documentation"],
            "type": _JSON_TYPES.get(one["type"], "string"),
            "x-name": one["name"],
            "x-category": one["group"],
            **({"format": "password"} if one["type"] == "PASSWORD" else {}),
            **({} if one["default_value"] is None else {"default": _typed(one["type"], one["default_value"])}),
        }
        for one in found
    }
    described = {
        "title": f"Connector for {Flavor(flavor).name}",
        "required": [one["name"] for one in found if one["required"]],
        "type": "object",
        "properties": properties,
        "x-connector-id": flavor,
        "x-className": connector_class(_PLUGINS[flavor]),
        "x-version": __version__,
    }
    info = {"title": "Configuration of a connector", "version": __version__}
    return {
        "openapi": "3.0.3",
        "info": info,
        "components": {"schemas": {f"debezium-{flavor}-{__version__}": described}},
    }


def _typed(kind: str, default: str) -> Any:
    """Return a default as its JSON type; as a text if it names another property."""
    if kind == "BOOLEAN" and default in ("true", "false"):
        return default == "true"
    return int(default) if kind in ("INT", "LONG") and default.lstrip("-").isdecimal() else default
