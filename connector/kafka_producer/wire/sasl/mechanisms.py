"""Credentials, and the client's side of each SASL mechanism."""

from dataclasses import dataclass, field
from typing import Protocol

from rowtide.connector.kafka_producer.wire.sasl.scram import Scram


class Mechanism(Protocol):
    """The client's side of one authentication."""

    def first(self) -> bytes:
        """Return the first message to the broker."""

    def next(self, challenge: bytes) -> bytes | None:
        """Return the answer to a message of the broker; ``None`` when the authentication is complete.

        Raises:
            AuthenticationFailed: the broker refused, or its message cannot be used.
        """


@dataclass(frozen=True, slots=True)
class Password:
    """A user's password."""

    mechanism: str
    username: str
    password: str = field(repr=False)


def start(credentials: Password, nonce: str) -> Mechanism:
    """Begin an authentication.

    Args:
        credentials: whose.
        nonce: a random text for SCRAM, see :class:`.scram.Scram`.
    """
    if credentials.mechanism == "PLAIN":
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
