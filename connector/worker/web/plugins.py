"""Kafka Connect's resources for the worker and its plugins: versions, properties, and their validation.

Paths, status codes and bodies are those of Kafka Connect 4. Definitions are those of rowtide's properties.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from aiohttp import web

from rowtide._version import __version__, commit
from rowtide.connector.config.catalogue import PROPERTIES, SECTIONS, connect, entries
from rowtide.connector.config.catalogue.property import Property
from rowtide.connector.config.choices import ConverterClass
from rowtide.connector.config.errors import Problem
from rowtide.connector.config.secret import Sanitizer
from rowtide.connector.worker.web.access import Access, Role
from rowtide.connector.worker.web.connect_rest import BadRequest, error, guarded_by, object_of, properties_of
from rowtide.connector.worker.web.page.routes import entry
from rowtide.envelope.transforms.chain import PREDICATES, TRANSFORMS
from rowtide.topics.admin.topic_admin import TopicAdmin
from rowtide.topics.errors import TopicError

Result = TypeVar("Result")

Validate = Callable[[Mapping[str, str]], Iterable[Problem]]
"""Returns what is wrong with the configuration of a connector; it may connect to the database, and is slow."""

_CHECKS = ThreadPoolExecutor(4, thread_name_prefix="validation")
"""Threads for validations, which may wait half a minute for a server: connectors stop and start in the others."""

_CONNECTORS = ("io.debezium.connector.mariadb.MariaDbConnector", "io.debezium.connector.mysql.MySqlConnector")
_CLASS = "connector.class"
_TYPES = {"boolean": "BOOLEAN", "int": "INT", "long": "LONG", "password": "PASSWORD", "class": "CLASS"}
_CHOICES = "one of "
_ANSWER_S = 3.0
"""How long Kafka may take to return the id of its cluster."""
_AGAIN_S = 30.0
"""After this time, it is asked again, if it has not answered."""


def plugin_routes(access: Access, validate: Validate, kafka: Mapping[str, str] | None) -> list[web.RouteDef]:
    """Return the routes.

    Args:
        access: who may use them.
        validate: finds the problems of a configuration.
        kafka: librdkafka's settings of an admin client, to look up the cluster; ``None`` without Kafka.
    """
    read, edit = guarded_by(access, Role.READ), guarded_by(access, Role.EDIT)
    cluster = _Cluster(kafka)

    async def worker(_request: web.Request) -> web.Response:
        found = {"version": __version__, "commit": commit(), "kafka_cluster_id": await cluster.id()}
        return web.json_response(found)

    async def plugins(request: web.Request) -> web.Response:
        connectors_only = request.query.get("connectorsOnly", "true").lower() != "false"
        return web.json_response(plugin_list(connectors_only=connectors_only))

    async def properties(request: web.Request) -> web.Response:
        plugin = request.match_info["plugin"]
        if connector_class(plugin) is not None:
            return web.json_response(definitions())
        if any(one["class"] == plugin for one in plugin_list(connectors_only=False)):
            return web.json_response([])  # transforms and converters do not declare theirs
        return error(404, f"Unknown plugin {plugin}.")

    async def validated(request: web.Request) -> web.Response:
        plugin = request.match_info["plugin"]
        wanted = connector_class(plugin)
        if wanted is None:
            raise BadRequest(f"Failed to find any class that implements Connector and which name matches {plugin}")
        given = {name: text for name, text in properties_of(await object_of(request), "the body").items() if text}
        named = given.get(_CLASS)
        if named is None:
            raise BadRequest(f"Connector config {sorted(given)} contains no connector type")
        if connector_class(named) != wanted:
            raise BadRequest(f"Included connector type {named} does not match request type {wanted}")
        problems = await in_own_thread(validate, given)
        return web.json_response(validation(wanted, given, problems))

    return [
        web.get("/", entry(read(worker))),
        web.get("/connector-plugins", read(plugins)),
        web.get("/connector-plugins/{plugin}/config", read(properties)),
        # Validation connects to any server, with secrets of this machine.
        web.put("/connector-plugins/{plugin}/config/validate", edit(validated)),
    ]


async def in_own_thread(check: Callable[[Mapping[str, str]], Result], given: Mapping[str, str]) -> Result:
    """Return what a validation finds, which waits for a turn if several are running."""
    return await asyncio.get_running_loop().run_in_executor(_CHECKS, check, given)


class _Cluster:
    """The id of Kafka's cluster, which does not change."""

    def __init__(self, kafka: Mapping[str, str] | None) -> None:
        self._kafka = kafka
        self._id = ""
        self._ask_at = 0.0
        self._asking = asyncio.Lock()

    async def id(self) -> str:
        """Return the id; empty if Kafka does not answer, or has not answered shortly before."""
        async with self._asking:
            if self._kafka is not None and not self._id and time.monotonic() >= self._ask_at:
                self._id = await asyncio.to_thread(self._look_up, self._kafka)
                self._ask_at = time.monotonic() + _AGAIN_S
            return self._id

    @staticmethod
    def _look_up(kafka: Mapping[str, str]) -> str:
        try:
            return TopicAdmin(kafka, _ANSWER_S).cluster_id()
        except TopicError:
            return ""


def plugin_list(*, connectors_only: bool) -> list[dict[str, str]]:
    """Return the classes that configurations can name, by Kafka Connect's types."""
    found = [(name, "source") for name in _CONNECTORS]
    if not connectors_only:
        found += [(name, "transformation") for name in TRANSFORMS]
        found += [(name, "predicate") for name in PREDICATES]
        found += [(name.value, "converter") for name in ConverterClass]
    return [{"class": name, "type": kind, "version": __version__} for name, kind in sorted(found)]


def connector_class(plugin: str) -> str | None:
    """Return the class of a connector from its name, its simple name, or that without ``Connector``."""
    for name in _CONNECTORS:
        simple = name.rpartition(".")[2]
        if plugin in (name, simple, simple.removesuffix("Connector")):
            return name
    return None


def definitions() -> list[dict[str, Any]]:
    """Return the definitions of all properties of connectors, in the order of the reference."""
    return [
        _definition(entry, section.TITLE, order)
        for section in SECTIONS
        for order, entry in enumerate(entries(section), 1)
        if isinstance(entry, Property)
    ]


def _definition(entry: Property[Any], group: str, order: int) -> dict[str, Any]:
    default = entry.default_text if entry.default_text is not None else _text(entry.default)
    return {
        "name": entry.name,
        "type": "LIST" if entry.kind.join is not None else _TYPES.get(entry.kind.label, "STRING"),
        "required": entry.required,
        "default_value": None if entry.required else default,
        "importance": "HIGH" if entry.required else "MEDIUM",
        "documentation": entry.doc,
        "group": group,
        "order_in_group": order,
        "width": "MEDIUM",
        "display_name": entry.name,
        "dependents": [],
    }


def _text(default: Any) -> str | None:
    if default is None:
        return None
    return str(default).lower() if isinstance(default, bool) else str(default)


def validation(name: str, properties: Mapping[str, str], problems: Iterable[Problem]) -> dict[str, Any]:
    """Return the answer to a request for validation.

    Args:
        name: the class of the connector.
        properties: its configuration.
        problems: its problems. A problem without a property is attributed to the class.
    """
    wrong: dict[str, list[str]] = {}
    for problem in problems:
        wrong.setdefault(problem.property.partition(" ")[0], []).append(problem.message)
    sanitizer, found = Sanitizer(), []
    known = {one["name"]: one for one in definitions()}
    for subject in wrong.keys() - known.keys():  # transforms.<name>.type, or an unknown name
        known[subject] = _definition(Property(subject, connect.GROUP_ID.kind, "", ""), connect.TITLE, -1)
    for own, definition in known.items():
        given = properties.get(own, definition["default_value"])
        value = {
            "name": own,
            "value": None if sanitizer.is_secret(own) else given,
            "recommended_values": _choices(own),
            "errors": wrong.get(own, []),
            "visible": True,
        }
        found.append({"definition": definition, "value": value})
    groups = [section.TITLE for section in SECTIONS]
    return {"name": name, "error_count": sum(map(len, wrong.values())), "groups": groups, "configs": found}


def _choices(name: str) -> list[str]:
    found = PROPERTIES.get(name)
    label = "" if found is None else found.kind.label
    return label.removeprefix(_CHOICES).split(", ") if label.startswith(_CHOICES) else []
