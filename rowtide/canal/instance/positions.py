"""Positions of clients in Canal's JSON: ``meta.dat``, and the nodes ``cursor`` and ``parse`` of ZooKeeper.

The form is fastjson's: keys in alphabetical order, no spaces. ``postion`` is Canal's spelling.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

CURSOR_TYPE = "com.alibaba.otter.canal.protocol.position.LogPosition"

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Master:
    """The server to which positions belong (``LogIdentity``).

    Attributes:
        host: its host.
        port: its port.
        slave_id: ``canal.instance.mysql.slaveId``; -1 if none is set.
    """

    host: str
    port: int
    slave_id: int = -1


@dataclass(frozen=True, slots=True)
class CanalPosition:
    """A position in the binlog (``EntryPosition``): that of an event that is done.

    Attributes:
        file: the binlog file, ``journalName``.
        pos: where the event begins.
        server_id: of the server that wrote the event.
        ts_ms: when, in milliseconds since the epoch.
        gtid: the executed GTID set; ``None`` or ``""`` if it is not known.
    """

    file: str
    pos: int
    server_id: int
    ts_ms: int
    gtid: str | None = None


@dataclass(frozen=True, slots=True)
class ClientPosition:
    """A client of a destination.

    Attributes:
        client_id: its number.
        filter: of its subscription.
        master: the server to which its position belongs; ``None`` if it has acknowledged nothing yet.
        position: the last position that it acknowledged.
    """

    client_id: int
    filter: str
    master: Master | None = None
    position: CanalPosition | None = None


class PositionsError(ValueError):
    """A text does not have Canal's format."""


def cursor_text(master: Master, position: CanalPosition, *, typed: bool) -> str:
    """Return a position as JSON.

    Args:
        master: the server.
        position: the position.
        typed: with ``@type``, as in the node ``cursor`` of a client; the node ``parse`` has none.
    """
    head = {"@type": CURSOR_TYPE} if typed else {}
    return _dump({**head, **_cursor(master, position)})


def read_cursor(text: str) -> tuple[Master, CanalPosition]:
    """Return the server and the position of a JSON text.

    Raises:
        PositionsError: it is not a position.
    """
    found = _cursor_of(_load(text))
    if found is None:
        raise PositionsError("the position has no journalName")
    return found


def meta_text(destination: str, clients: Iterable[ClientPosition]) -> str:
    """Return the content of ``meta.dat``."""
    data = [_client(destination, client) for client in clients]
    return _dump({"clientDatas": data, "destination": destination})


def read_meta(text: str) -> list[ClientPosition]:
    """Return the clients of a ``meta.dat``.

    Raises:
        PositionsError: the text is not such a file.
    """
    clients = []
    found_clients = _load(text).get("clientDatas") or []
    if not isinstance(found_clients, list):
        raise PositionsError("clientDatas is not a list")
    for data in found_clients:
        try:
            identity = data["clientIdentity"]
            number, filter_ = int(identity["clientId"]), str(identity.get("filter") or "")
        except (KeyError, TypeError, ValueError):
            raise PositionsError(f"a client has no clientIdentity with a clientId: {data!r}") from None
        cursor = data.get("cursor")
        found = None if cursor is None else _cursor_of(cursor)
        clients.append(ClientPosition(number, filter_, *(found or (None, None))))
    return clients


def _client(destination: str, client: ClientPosition) -> Json:
    identity = {"clientId": client.client_id, "destination": destination, "filter": client.filter}
    if client.master is None or client.position is None:
        return {"clientIdentity": identity}
    return {"clientIdentity": identity, "cursor": _cursor(client.master, client.position)}


def _cursor(master: Master, position: CanalPosition) -> Json:
    return {
        "identity": {"slaveId": master.slave_id, "sourceAddress": {"address": master.host, "port": master.port}},
        "postion": {
            **({} if position.gtid is None else {"gtid": position.gtid}),
            "included": False,
            "journalName": position.file,
            "position": position.pos,
            "serverId": position.server_id,
            "timestamp": position.ts_ms,
        },
    }


def _cursor_of(cursor: Mapping[str, Any]) -> tuple[Master, CanalPosition] | None:
    try:
        identity, position = cursor.get("identity") or {}, cursor.get("postion") or {}
        address = identity.get("sourceAddress") or {}
        if not position.get("journalName"):
            return None
        master = Master(
            str(address.get("address") or ""), int(address.get("port") or 0), int(identity.get("slaveId", -1))
        )
        return master, CanalPosition(
            str(position["journalName"]),
            int(position.get("position") or 0),
            int(position.get("serverId") or 0),
            int(position.get("timestamp") or 0),
            None if position.get("gtid") is None else str(position["gtid"]),
        )
    except (AttributeError, TypeError, ValueError, OverflowError) as error:
        raise PositionsError(f"a position is not in Canal's form: {error}") from None


def _load(text: str) -> Json:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise PositionsError(f"not JSON: {error}") from None
    if not isinstance(found, dict):
        raise PositionsError("not a JSON object")
    return found


def _dump(value: Json) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
