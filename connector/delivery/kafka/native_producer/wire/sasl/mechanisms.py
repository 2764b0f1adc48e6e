"""Credentials, and the client's side of each SASL mechanism."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from rowtide.connector.delivery.kafka.native_producer.wire.errors import AuthenticationFailed
from rowtide.connector.delivery.kafka.native_producer.wire.sasl.scram import Scram

PLAIN = "PLAIN"
OAUTHBEARER = "OAUTHBEARER"
SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")
MECHANISMS = (PLAIN, *SCRAM, OAUTHBEARER)


class Mechanism(Protocol):
    """The client's side of one authentication."""

    def first(self) -> bytes:
        """The first message to the broker."""

    def next(self, challenge: bytes) -> bytes | None:
        """The message to the broker after one of it; ``None`` when the authentication is complete.

        Raises:
            AuthenticationFailed: the broker refused, or its message cannot be used.
        """


@dataclass(frozen=True, slots=True)
class Password:
    """A user's password, for PLAIN and SCRAM."""

    mechanism: str
    username: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Token:
    """A bearer token of OAuth 2, for OAUTHBEARER.

    Attributes:
        token: returns the current token; called for each authentication.
        extensions: texts that are sent with it (KIP-342).
    """

    token: Callable[[], str] = field(repr=False)
    extensions: Mapping[str, str] = field(default_factory=dict)

    @property
    def mechanism(self) -> str:
        """The name of the mechanism."""
        return OAUTHBEARER


Credentials = Password | Token


def start(credentials: Credentials, nonce: str) -> Mechanism:
    """Begin an authentication.

    Args:
        credentials: whose.
        nonce: a random text for SCRAM, see :class:`.scram.Scram`.
    """
    if isinstance(credentials, Token):
        return _Bearer(credentials.token(), credentials.extensions)
    if credentials.mechanism == PLAIN:
        return _Plain(credentials.username, credentials.password)
    return Scram(credentials.mechanism, credentials.username, credentials.password, nonce)


class _Plain:
    """PLAIN (RFC 4616): user and password in one message, which the broker answers with an empty one."""

    def __init__(self, username: str, password: str) -> None:
        self._message = f"\0{username}\0{password}".encode()

    def first(self) -> bytes:
        return self._message

    def next(self, challenge: bytes) -> bytes | None:
        return None


class _Bearer:
    """OAUTHBEARER (RFC 7628): the broker answers with nothing, or with an error as JSON that must be acknowledged."""

    def __init__(self, token: str, extensions: Mapping[str, str]) -> None:
        pairs = {"auth": f"Bearer {token}", **extensions}
        self._message = "n,,\1" + "".join(f"{name}={value}\1" for name, value in pairs.items()) + "\1"
        self._problem: str | None = None

    def first(self) -> bytes:
        return self._message.encode()

    def next(self, challenge: bytes) -> bytes | None:
        if self._problem is not None:
            raise AuthenticationFailed(f"OAUTHBEARER: the broker refused the token: {self._problem}")
        if challenge:
            self._problem = challenge.decode(errors="replace")
            return b"\1"
        return None
