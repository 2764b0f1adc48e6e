"""The address of the web server, and the check whether it is free."""

import errno
import http.client
import json
import os
import re
import socket
import urllib.error
import urllib.request
from dataclasses import dataclass

from rowtide.connector.check import Finding, Severity
from rowtide.connector.config import ConfigurationError

_BIND = "127.0.0.1"
_PORT = 6066
_LAST_PORT = 65535
_SERVICE = re.compile(r"(tcp|udp|sctp)://")
"""Kubernetes sets WEB_PORT to such a URL in every container of a namespace that has a service named ``web``."""
_TIMEOUT_S = 2.0
_MOST_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class WebAddress:
    """The address of the web server.

    Attributes:
        host: the address of an interface.
        port: the port.
        any_port: whether another port may be used if this one is in use, because none was requested.
    """

    host: str
    port: int
    any_port: bool

    @classmethod
    def choose(cls, bind: str | None = None, port: int | None = None) -> "WebAddress":
        """Return the address from the options.

        Without options, ``WEB_BIND`` and ``WEB_PORT`` in the environment apply, and then the default.

        Raises:
            ConfigurationError: ``WEB_PORT`` is not a port.
        """
        asked = port or _port(os.environ.get("WEB_PORT", ""))
        return cls(bind or os.environ.get("WEB_BIND", _BIND), _PORT if asked is None else asked, asked is None)


def require_address(host: str, port: int, *, any_port: bool) -> None:
    """Check that the web server can listen.

    Args:
        host: the address of an interface, or a name of it.
        port: the port.
        any_port: whether another port may be used if this one is in use.

    Raises:
        ConfigurationError: it is not an address of this machine, or the port is in use or not allowed.
    """
    error = bind_error(host, 0 if any_port else port)
    if error is None:
        return
    if error.errno in (errno.EADDRINUSE, errno.EACCES):
        message = f"port {port} of {host} cannot be used: {_reason(error)}. Choose another one"
        raise ConfigurationError([("--web-port", message)])
    raise ConfigurationError([("--web-bind", _foreign(host, error))])


def bind_error(host: str, port: int) -> OSError | None:
    """Return the reason why it is impossible to listen at an address; ``None`` if it is possible."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        host.encode("idna")  # create_server would leave a socket open
        socket.create_server((host, port), family=family).close()
    except UnicodeError as error:
        return OSError(errno.EADDRNOTAVAIL, str(error))
    except OSError as error:
        return error
    return None


def _reason(error: OSError) -> str:
    return str(error.strerror).partition(" (while attempting")[0]


def _foreign(host: str, error: OSError) -> str:
    return (
        f"{host} is not an address of this machine ({_reason(error)}): use 127.0.0.1, 0.0.0.0 for all interfaces, or "
        "the address of one of them"
    )


def _port(text: str) -> int | None:
    if not text or _SERVICE.match(text):
        return None
    if not (text.isdecimal() and int(text) <= _LAST_PORT):
        raise ConfigurationError([("WEB_PORT", f"must be a port from 0 to {_LAST_PORT}")])
    return int(text)


def port_findings(address: WebAddress, connector: str) -> list[Finding]:
    """Return the finding that the port of the web server is in use, with the program that uses it.

    Args:
        address: where the web server will listen.
        connector: the connector's name.
    """
    host, port = address.host, address.port
    refusal = bind_error(host, port)
    if refusal is None:
        return []
    if refusal.errno not in (errno.EADDRINUSE, errno.EACCES):
        return [Finding(Severity.ERROR, "--web-bind", _foreign(host, refusal))]
    reason = _reason(refusal)
    others = _connectors_at(host, port)
    by = f", by rowtide with connector {', '.join(others)}" if others else ""
    if connector in others:
        message = f"{host} port {port} is in use{by}. If it is this one, stop it before you start it again"
        return [Finding(Severity.REMARK, "--web-port", message)]
    if not address.any_port:
        message = f"the web server cannot listen on {host} port {port}{by}: {reason}. Choose another port, or --no-web"
        return [Finding(Severity.ERROR, "--web-port", message)]
    message = f"{host} port {port} is in use{by}; the web server will take a free port. Name one with --web-port"
    return [Finding(Severity.REMARK, "--web-port", message)]


def _connectors_at(host: str, port: int) -> list[str]:
    """Return the connectors of the rowtide worker that listens there; none for another program."""
    place = f"[{host}]" if ":" in host else host
    try:
        with urllib.request.urlopen(f"http://{place}:{port}/health", timeout=_TIMEOUT_S) as answer:
            text = answer.read(_MOST_BYTES)
    except urllib.error.HTTPError as error:  # 503: a connector does not work
        with error:
            text = error.read(_MOST_BYTES)
    except (OSError, ValueError, http.client.HTTPException):
        return []
    try:
        body = json.loads(text)
        return [str(name) for name in body.get("connectors") or [body["connector"]]]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return []
