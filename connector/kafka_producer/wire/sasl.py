"""The client's side of the SASL mechanisms PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512. Pure: messages in, answers out."""

import base64
import binascii
import hashlib
import hmac
import re
from dataclasses import dataclass, field
from typing import Protocol

from rowtide.connector.kafka_producer.wire.errors import AuthenticationFailed

_HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
_NO_CHANNEL_BINDING = "n,,"
_FEWEST_ITERATIONS = 4096
_MOST_ITERATIONS = 1_000_000
"""A second or so of computation; Kafka's own limit is 16 384."""
_ITERATIONS = re.compile(r"[1-9][0-9]{0,6}", re.ASCII)


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
        nonce: a random text for SCRAM, see :class:`Scram`.
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


class Scram:
    """SCRAM (RFC 5802, RFC 7677), as Kafka has it: no channel binding, no SASLprep.

    Args:
        mechanism: ``SCRAM-SHA-256`` or ``SCRAM-SHA-512``.
        nonce: a random text, a new one for each authentication, of printable ASCII characters without commas.
    """

    def __init__(self, mechanism: str, username: str, password: str, nonce: str) -> None:
        self._mechanism = mechanism
        self._hash = _HASHES[mechanism]
        self._password = password.encode()
        self._nonce = nonce
        name = username.replace("=", "=3D").replace(",", "=2C")
        self._first_bare = f"n={name},r={nonce}"
        self._signature: bytes | None = None

    def first(self) -> bytes:
        """Return the first message to the broker."""
        return (_NO_CHANNEL_BINDING + self._first_bare).encode()

    def next(self, challenge: bytes) -> bytes | None:
        """Return the answer to a message of the broker; ``None`` when the authentication is complete.

        Raises:
            AuthenticationFailed: the broker refused, sent something else, or has not proved that it has the password.
        """
        attributes = self._attributes(challenge)
        if "e" in attributes:
            raise AuthenticationFailed(f"{self._mechanism}: the broker refused the login: {attributes['e']}")
        if self._signature is None:
            return self._proof(attributes, challenge.decode())
        if not hmac.compare_digest(self._base64(attributes, "v"), self._signature):
            raise AuthenticationFailed(f"{self._mechanism}: the broker did not prove that it has the user's password")
        return None

    def _proof(self, attributes: dict[str, str], server_first: str) -> bytes:
        nonce, salt = attributes.get("r", ""), self._base64(attributes, "s")
        if not nonce.startswith(self._nonce) or len(nonce) == len(self._nonce):
            raise self._unexpected("its nonce does not extend the client's")
        count = attributes.get("i", "")
        if not (_ITERATIONS.fullmatch(count) and _FEWEST_ITERATIONS <= int(count) <= _MOST_ITERATIONS):
            raise self._unexpected(f"{count[:20]!r} iterations are not {_FEWEST_ITERATIONS} to {_MOST_ITERATIONS}")
        channel = base64.b64encode(_NO_CHANNEL_BINDING.encode()).decode()
        final = f"c={channel},r={nonce}"
        signed = f"{self._first_bare},{server_first},{final}".encode()
        salted = hashlib.pbkdf2_hmac(self._hash, self._password, salt, int(count))
        client_key = self._hmac(salted, b"Client Key")
        proof = bytes(
            a ^ b
            for a, b in zip(client_key, self._hmac(hashlib.new(self._hash, client_key).digest(), signed), strict=True)
        )
        self._signature = self._hmac(self._hmac(salted, b"Server Key"), signed)
        return f"{final},p={base64.b64encode(proof).decode()}".encode()

    def _hmac(self, key: bytes, message: bytes) -> bytes:
        return hmac.digest(key, message, self._hash)

    def _attributes(self, challenge: bytes) -> dict[str, str]:
        try:
            pairs = [part.partition("=") for part in challenge.decode().split(",")]
        except UnicodeDecodeError:
            raise self._unexpected("its message is not UTF-8") from None
        return {name: value for name, _, value in pairs}

    def _base64(self, attributes: dict[str, str], name: str) -> bytes:
        try:
            value = base64.b64decode(attributes.get(name, ""), validate=True)
        except binascii.Error:
            value = b""
        if not value:
            raise self._unexpected(f"its attribute {name} is missing or not Base64")
        return value

    def _unexpected(self, what: str) -> AuthenticationFailed:
        return AuthenticationFailed(f"{self._mechanism}: the broker's message cannot be used: {what}")
