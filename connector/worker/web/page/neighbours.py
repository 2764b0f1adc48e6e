"""The other workers of a fleet: asks them for what only they know, in the name of the user who asks this one."""

from collections.abc import Collection, Mapping
from http import HTTPStatus
from typing import Any, Protocol

import aiohttp
import yarl
from aiohttp import web
from aiohttp.typedefs import Handler

from rowtide.connector.worker.web.connect_rest import error

_ANSWER_S = 120.0
"""How long a worker may take for a request that is forwarded to it, such as to read a long schema history."""
_SHOWN_S = 2.0
"""How long it may take to report what it runs: a machine that hangs must not delay the page for long."""
_FORWARDED = "X-Rowtide-Forwarded"
_KEPT = ("Authorization", "Content-Type", "Accept")


class Members(Protocol):
    """Which workers there are, and what they run."""

    def workers(self) -> Collection[str]:
        """Return the other workers, as host and port of their web servers."""
        ...

    def worker_of(self, name: str) -> str | None:
        """Return the other worker that runs a connector; ``None`` if there is none."""
        ...


class Neighbours:
    """Sends requests to the other workers of a fleet.

    Args:
        members: the fleet; ``None`` for a worker without a fleet.
        tls: whether the workers serve HTTPS.
    """

    def __init__(self, members: Members | None, *, tls: bool) -> None:
        self._members = members
        self._scheme = "https" if tls else "http"

    @property
    def workers(self) -> Collection[str]:
        """The other workers."""
        return () if self._members is None else self._members.workers()

    def forwarding(self, handler: Handler, own: Collection[str]) -> Handler:
        """Return a handler that sends requests for a connector of another worker to that worker.

        Args:
            handler: serves the requests for connectors of this worker, and for those that nobody runs.
            own: the connectors of this worker.
        """

        async def serve(request: web.Request) -> web.StreamResponse:
            name = request.match_info["name"]
            worker = None if name in own or self._members is None else self._members.worker_of(name)
            if worker is None or _FORWARDED in request.headers:  # two workers could each believe it of the other
                return await handler(request)
            status, body, kind = await self._ask(
                request, worker, request.rel_url.raw_path_qs, request.method, _ANSWER_S
            )
            return web.Response(body=body, status=status, content_type=kind)

        return serve

    async def get(self, request: web.Request, worker: str, path: str) -> tuple[int, bytes]:
        """Ask a worker what it shows, for the user who has sent a request; returns the status and the body."""
        status, body, _ = await self._ask(request, worker, path, "GET", _SHOWN_S)
        return status, body

    async def _ask(
        self, request: web.Request, worker: str, path: str, method: str, seconds: float
    ) -> tuple[int, bytes, str]:
        body = await request.read() if method != "GET" else None
        try:
            async with (
                aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(seconds)) as client,
                client.request(
                    method,
                    yarl.URL(f"{self._scheme}://{worker}{path}", encoded=True),
                    headers={**_kept(request.headers), _FORWARDED: "1"},
                    data=body,
                    allow_redirects=False,
                ) as answer,
            ):
                return answer.status, await answer.read(), answer.content_type
        except (TimeoutError, aiohttp.ClientError, ValueError) as failure:
            reason = self._reason(failure)
            refused = error(HTTPStatus.BAD_GATEWAY, f"worker {worker} cannot be reached from this one: {reason}")
            return refused.status, bytes(refused.body or b""), refused.content_type  # type: ignore[arg-type]

    def _reason(self, failure: Exception) -> str:
        if isinstance(failure, aiohttp.ClientConnectorCertificateError):
            return (
                f"{failure.certificate_error}. It needs a certificate for {failure.host} from an authority that this "
                "worker trusts: SSL_CERT_FILE in the environment names others than the system's"
            )
        if isinstance(failure, aiohttp.ClientConnectorSSLError) or (
            isinstance(failure, aiohttp.ServerDisconnectedError) and self._scheme == "http"
        ):
            return f"{failure}. All workers of a fleet need HTTPS (--web-tls-certificate), or none"
        return str(failure) or "it does not answer"


def _kept(headers: Mapping[str, str]) -> dict[str, Any]:
    return {name: headers[name] for name in _KEPT if name in headers}
