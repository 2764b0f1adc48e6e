"""The web server of a worker, for commands."""

import base64
import http
import http.client
import json
import os
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self, TextIO

import click

from rowtide.cli.connectors import token_of
from rowtide.connector.config import ConfigurationError
from rowtide.connector.worker.web.address import WebAddress
from rowtide.connector.worker.web.server import url

_TIMEOUT_S = 10.0
_FIND = "Give the URL by --web; a worker logs it at its start (the state of the connector is at URL/health)"


@dataclass(frozen=True, slots=True)
class WorkerClient:
    """The web server of the worker that runs a connector.

    Attributes:
        base: its URL.
        connector: the connector's name.
        token: the token, or the password of the user, if it needs one.
        user: the user who logs in with a password; ``None`` to log in with a token.
    """

    base: str
    connector: str
    token: str | None
    user: str | None = None

    @classmethod
    def of(cls, connector: str, base: str | None, token_file: TextIO | None) -> Self:
        """Return the worker at a URL, by default the one of ``rowtide run`` with the same environment.

        A user in the URL, as in ``https://anna@worker-1:6066``, logs in with the token as the password.

        Raises:
            click.ClickException: ``WEB_PORT`` of the environment is not a port, the URL has a password, or the file has
                no token.
        """
        token = os.environ.get("WEB_TOKEN") if token_file is None else token_of(token_file)
        if base is None:
            try:
                address = WebAddress.choose()
            except ConfigurationError as error:
                raise click.ClickException(str(error)) from None
            base = url(address.host, address.port)
        scheme, mark, rest = base.rpartition("://")
        user, at, place = rest.rpartition("@")
        if ":" in user:
            raise click.ClickException(
                "--web: other users of this machine see a password in the URL. Write it into "
                "the file of --web-token-file, or into WEB_TOKEN in the environment"
            )
        name = urllib.parse.unquote(user) if at else None
        return cls(f"{scheme}{mark}{place}".rstrip("/"), connector, token or None, name)

    def send(self, fields: Mapping[str, Any]) -> None:
        """Send a signal. Raises ``click.ClickException`` if the worker does not accept it."""
        self._request("signals", json.dumps(fields).encode())

    def require_connector(self) -> None:
        """Raise ``click.ClickException`` unless the worker answers and runs the connector."""
        self._request("snapshot", hint=". rowtide signal --no-wait needs it for the channel http only")

    def notifications(self, signal_id: str | None = None) -> list[dict[str, Any]]:
        """Return the last notifications. Raises ``click.ClickException`` if the worker does not answer."""
        query = "" if signal_id is None else f"?{urllib.parse.urlencode({'id': signal_id})}"
        found: list[dict[str, Any]] = self._request(f"notifications{query}")
        return found

    def snapshot(self) -> dict[str, Any]:
        """Return the state of the snapshot. Raises ``click.ClickException`` if the worker does not answer."""
        found: dict[str, Any] = self._request("snapshot")
        return found

    def properties(self) -> dict[str, str]:
        """Return the configuration of the running connector.

        Raises ``click.ClickException`` if the worker does not answer.
        """
        found: dict[str, str] = self._request("config")
        return found

    def _request(self, path: str, body: bytes | None = None, hint: str = "") -> Any:
        where = f"{self.base}/connectors/{urllib.parse.quote(self.connector, safe='')}/{path}"
        try:
            request = urllib.request.Request(where, body, self._headers())
            with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            text = error.read().decode(errors="replace")
            if error.code == http.HTTPStatus.NOT_FOUND and self.connector not in (running := self._connectors()):
                others = f", but {', '.join(running)}" if running else ""
                raise click.ClickException(
                    f"the worker at {self.base} does not run connector {self.connector}{others}. {_FIND}"
                ) from None
            raise click.ClickException(f"the worker at {self.base} answers {error.code}: {_message(text)}") from None
        except (OSError, ValueError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", error)  # of a URLError, whose own text has angle brackets
            raise click.ClickException(
                f"the web server of the worker cannot be reached at {self.base}: {reason}. {_FIND}{hint}"
            ) from None

    def _headers(self) -> dict[str, str]:
        if self.user is not None:
            given = base64.b64encode(f"{self.user}:{self.token or ''}".encode()).decode()
            return {"Authorization": f"Basic {given}"}
        return {} if self.token is None else {"Authorization": f"Bearer {self.token}"}

    def _connectors(self) -> list[str]:
        """Return the connectors that the worker runs; none if it does not answer."""
        try:
            request = urllib.request.Request(f"{self.base}/connectors", headers=self._headers())
            with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:
                return [str(name) for name in json.load(answer)]
        except (OSError, ValueError, TypeError, http.client.HTTPException):
            return []


def _message(text: str) -> str:
    try:
        return str(json.loads(text)["message"])
    except (ValueError, KeyError, TypeError):
        return text[:200]
