"""Permissions over HTTP; pure.

Users log in with a password or a token. Without users and without a token, programs on the same machine may do
everything, if the web server listens on the loopback interface only.
"""

import base64
import binascii
import enum
import hmac
import ipaddress
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import SplitResult, urlsplit

_LOOPBACK_NAMES = frozenset({"localhost", "ip6-localhost"})
_SET = "set --web-users-file, --web-token-file or WEB_TOKEN"


class Role(enum.IntEnum):
    """The permissions of a user; each role includes those before it.

    READ shows states, configurations, positions and log levels. OPERATE pauses, resumes, stops and restarts, sends
    signals, and sets log levels. EDIT creates, changes, validates and deletes configurations, and changes positions,
    also by signals.
    """

    READ = 1
    OPERATE = 2
    EDIT = 3


@dataclass(frozen=True, slots=True)
class User:
    """A person or a program.

    Attributes:
        name: for the log and, with a password, for the log-in.
        role: its role.
        password: of the log-in by
            ``Authorization: Basic``; ``None`` if it has none.
        token: of the log-in by ``Authorization: Bearer``; ``None`` if it has none.
    """

    name: str
    role: Role
    password: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)


class Refused(Exception):
    """A request is refused.

    Attributes:
        status: of the answer.
        user: who has logged in; ``None`` if nobody has.
    """

    def __init__(self, status: int, message: str, user: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.user = user


class Access:
    """Decides on requests that read the configuration or change something.

    Args:
        token: a token with the role EDIT; ``None`` if there is none.
        bind: the address on which the web server listens.
        users: returns the users; ``None`` if there is no file of users.
    """

    def __init__(self, token: str | None, bind: str, users: Callable[[], Sequence[User]] | None = None) -> None:
        self._token = [] if token is None else [User("token", Role.EDIT, token=token)]
        self._users = users
        self._local = is_loopback(bind)

    @property
    def challenge(self) -> str:
        """The log-in method, for the header ``WWW-Authenticate``."""
        return 'Bearer realm="rowtide"' if self._users is None else 'Basic realm="rowtide", charset="UTF-8"'

    def admitted(self, host: str, headers: Mapping[str, str], needed: Role) -> User:
        """Return the user who sends a request.

        Args:
            host: the host that the request names, without the port.
            headers: its headers.
            needed: the required role.

        Raises:
            Refused: the user may not send it, or nobody may.
        """
        user = self._user(host, headers)
        if user.role < needed:
            has, need = user.role.name.lower(), needed.name.lower()
            raise Refused(403, f"{user.name} has the role {has}, but this needs {need}", user.name)
        return user

    def _user(self, host: str, headers: Mapping[str, str]) -> User:
        if self._users is not None or self._token:
            return self._logged_in(host, headers)
        if not self._local:
            raise Refused(403, f"the web server can be reached from other machines: {_SET}")
        # The latter is a page of another site, in a browser on this machine; also one at another port of it.
        if not is_loopback(host) or not _is_own_page(headers):
            raise Refused(403, f"only programs on this machine may do this. For other machines, {_SET}")
        return User("local", Role.EDIT)

    def _logged_in(self, host: str, headers: Mapping[str, str]) -> User:
        scheme, _, given = headers.get("Authorization", "").partition(" ")
        users = [*self._token, *(self._users() if self._users else ())]
        found = None
        if scheme.lower() == "bearer":
            found = _first(users, lambda user: _equal(given.strip(), user.token))
        elif scheme.lower() == "basic":
            name, password = _name_and_password(given.strip())
            found = _first(users, lambda user: user.name == name and _equal(password, user.password))
        if found is None:
            ways = "a token: Authorization: Bearer TOKEN" if self._users is None else "a user's password or token"
            raise Refused(401, f"log in with {ways}")
        # A browser that has logged in also sends the password with requests from pages of other sites.
        if "Origin" in headers and not _is_of(headers["Origin"], host, headers.get("Host", "")):
            raise Refused(403, "pages of other sites may not send this request", found.name)
        return found


def _is_own_page(headers: Mapping[str, str]) -> bool:
    """Return whether a page of this web server sends a request, or no page does."""
    return headers.get("Origin") in (None, f"http://{headers.get('Host')}", f"https://{headers.get('Host')}")


def _is_of(origin: str, host: str, place: str) -> bool:
    """Return whether an origin is the server to which a request goes.

    Args:
        origin: the scheme, the host, and the port unless it is that of the scheme.
        host: the host that the request names, without the port.
        place: the header ``Host``. A proxy may have removed the port, which is not compared then.
    """
    try:
        given, named = urlsplit(origin), urlsplit(f"{origin.partition(':')[0]}://{place}")
        same_port = named.port is None or _port(given) == _port(named)
    except ValueError:
        return False
    return given.hostname == host and same_port


def _port(url: SplitResult) -> int | None:
    return url.port or {"http": 80, "https": 443}.get(url.scheme)


def _first(users: Sequence[User], fits: Callable[[User], bool]) -> User | None:
    return next((user for user in users if fits(user)), None)


def _equal(given: str, secret: str | None) -> bool:
    return secret is not None and hmac.compare_digest(_bytes(given), _bytes(secret))


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogateescape")  # bytes of a header that are not text


def _name_and_password(given: str) -> tuple[str, str]:
    """Return the user and the password of ``Authorization: Basic`` (RFC 7617); empty if it has another form."""
    try:
        name, _, password = base64.b64decode(_bytes(given), validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return "", ""
    return name, password


def is_loopback(host: str) -> bool:
    """Return whether a name or an address is that of the loopback interface."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() in _LOOPBACK_NAMES
