"""Who may control a connector over HTTP: holders of the token, or without one, programs on the same machine; pure."""

import hmac
import ipaddress
from collections.abc import Mapping

_LOOPBACK_NAMES = frozenset({"localhost", "ip6-localhost"})


class Access:
    """Decides about requests that read the configuration or change something.

    Args:
        token: the token that requests must have (``Authorization: Bearer TOKEN``); ``None`` if there is none.
        bind: the address on which the web server listens.
    """

    def __init__(self, token: str | None, bind: str) -> None:
        self._token = token
        self._local = is_loopback(bind)

    def refusal(self, host: str, headers: Mapping[str, str]) -> tuple[int, str] | None:
        """The status and the message with which to refuse a request; ``None`` to serve it.

        Args:
            host: the host that the request names, without the port.
            headers: its headers.
        """
        if self._token is not None:
            scheme, _, given = headers.get("Authorization", "").partition(" ")
            if scheme.lower() == "bearer" and hmac.compare_digest(_bytes(given.strip()), _bytes(self._token)):
                return None
            return 401, "send the token of --web-token-file or WEB_TOKEN: Authorization: Bearer TOKEN"
        if not self._local:
            return 403, "the web server can be reached from other machines: set --web-token-file or WEB_TOKEN"
        if "Origin" in headers or not is_loopback(host):  # a page of another site, in a browser on this machine
            return 403, "only programs on this machine may do this; for others set --web-token-file or WEB_TOKEN"
        return None


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogateescape")  # bytes of a header that are no text


def is_loopback(host: str) -> bool:
    """Whether a name or an address is that of the loopback interface."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() in _LOOPBACK_NAMES
