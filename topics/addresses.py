"""Checks of addresses: of Kafka's brokers, ZooKeeper, schema registries and HTTP sinks."""

import re
from collections.abc import Iterator

_HOST = r"(?:\[[0-9a-fA-F:%.]+\]|[a-zA-Z0-9_.\-]+)"
_SERVER = re.compile(rf"(?:[A-Z_]+://)?{_HOST}:([0-9]{{1,5}})")
_URL = re.compile(rf"https?://(?:[^/\s]*@)?{_HOST}(?::([0-9]{{1,5}}))?(?:[/?#]\S*)?")


def server_problems(servers: str, kind: str = "broker") -> Iterator[str]:
    """Yield the problems of a list such as ``host:port,host:port``.

    Args:
        servers: the list.
        kind: the kind of servers.
    """
    found = [server.strip() for server in servers.split(",") if server.strip()]
    if not found:
        yield f"names no {kind}: give host:port,…"
    for server in found:
        match = _SERVER.fullmatch(server)
        if match is None or not 0 < int(match[1]) <= 0xFFFF:
            yield f"{server!r} is not of the form host:port"


def url_problem(url: str) -> str | None:
    """Return the problem of an HTTP URL, without its user and password; ``None`` if there is none."""
    shown = re.sub("//[^/]*@", "//", url)
    match = _URL.fullmatch(url)
    if match is None:
        return f"{shown!r} is not of the form http://host:port or https://host:port"
    return None if 0 < int(match[1] or 80) <= 0xFFFF else f"{shown!r}: the port is not between 1 and 65535"
