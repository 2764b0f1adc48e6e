"""Signals, notifications and the state of snapshots over HTTP, in place of Debezium's JMX beans."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from aiohttp import web
from aiohttp.typedefs import Handler

from rowtide.connector.errors import SignalError
from rowtide.connector.signals.signal import from_fields
from rowtide.connector.worker.status import Status, tables_of
from rowtide.connector.worker.web.access import Access, Role
from rowtide.connector.worker.web.connect_rest import error, guarded_by, host_of
from rowtide.connector.worker.web.page.neighbours import Neighbours

_IN_MEMORY = (
    "the signal is in memory: a crash of the process loses it until its effect and the position after it are stored, "
    "even after its notification COMPLETED. Send a signal that must not be lost by the channel source, kafka or file"
)

_EDITING = ("set-binlog-position", "rowtide-set-table-include-list")
"""Signals that do what otherwise needs the role EDIT: change a position or a configuration."""
_SQL = "additional-conditions"
"""The data of a signal that the server evaluates as SQL, with the privileges of the connector's account."""


class Signalled(Protocol):
    """A connector that accepts signals."""

    def signal(self, fields: Mapping[str, Any], channel: str = ...) -> str:
        """Send a signal, and return its id.

        Raises:
            SignalError: it is not a signal.
        """
        ...

    def notifications(self, signal_id: str | None = None) -> Sequence[Mapping[str, Any]]:
        """Return the last notifications, oldest first; those of one signal if its id is given."""
        ...

    async def status_at_once(self) -> Status:
        """Return its status."""
        ...


def signal_routes(
    connectors: Mapping[str, Signalled], access: Access, neighbours: Neighbours | None = None
) -> list[web.RouteDef]:
    """Return ``POST /connectors/NAME/signals``, ``GET /connectors/NAME/notifications`` and ``…/snapshot``.

    Args:
        connectors: the connectors of this worker.
        access: who may use them.
        neighbours: the workers that answer for the other connectors of a fleet.
    """
    neighbours = neighbours or Neighbours(None, tls=False)

    async def send(request: web.Request) -> web.Response:
        connector = connectors.get(request.match_info["name"])
        if connector is None:
            return _unknown(request)
        try:
            fields = json.loads(await request.text())
        except (ValueError, RecursionError) as problem:
            return error(400, f"the body is not JSON: {problem}")
        if not isinstance(fields, dict):
            return error(400, 'the body must be a JSON object: {"id": ..., "type": ..., "data": {...}}')
        if _needs_edit(fields):
            access.admitted(host_of(request), request.headers, Role.EDIT)
        try:
            body = {"id": connector.signal(fields, "http"), "stored": False, "message": _IN_MEMORY}
            return web.json_response(body, status=202)
        except SignalError as problem:
            return error(400, str(problem))

    async def notifications(request: web.Request) -> web.Response:
        connector = connectors.get(request.match_info["name"])
        if connector is None:
            return _unknown(request)
        return web.json_response(list(connector.notifications(request.query.get("id"))))

    async def snapshot(request: web.Request) -> web.Response:
        connector = connectors.get(request.match_info["name"])
        if connector is None:
            return _unknown(request)
        now = await connector.status_at_once()
        return web.json_response({"connector": now.name, "state": now.state, "tables": tables_of(now)})

    read, operate = guarded_by(access, Role.READ), guarded_by(access, Role.OPERATE)

    def forwarding(handler: Handler) -> Handler:
        return neighbours.forwarding(handler, connectors)

    return [
        web.post("/connectors/{name}/signals", operate(forwarding(send))),
        web.get("/connectors/{name}/notifications", read(forwarding(notifications))),
        web.get("/connectors/{name}/snapshot", read(forwarding(snapshot))),
    ]


def _needs_edit(fields: Mapping[str, Any]) -> bool:
    """Return whether a signal needs the role EDIT; one that is invalid is refused anyway."""
    try:
        signal = from_fields(fields, "http", str)
    except SignalError:
        return False
    return signal.type in _EDITING or bool(signal.data.get(_SQL))


def _unknown(request: web.Request) -> web.Response:
    return error(404, f"Connector {request.match_info['name']} not found")
