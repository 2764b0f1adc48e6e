"""Authentication as in Canal, which uses the scheme of ``mysql_native_password``.

The server stores ``SHA1(SHA1(password))`` (``canal.passwd``, in hexadecimal digits) and sends a seed. The client sends
``SHA1(seed + SHA1(SHA1(password))) XOR SHA1(password)``.
"""

import hashlib
import hmac

from rowtide.canal.server.packets import Authentication

_DIGEST_BYTES = 20


class Credentials:
    """The user and the password of a server.

    Args:
        user: ``canal.user``; empty for any user.
        password: ``canal.passwd``: the hash of the password, or the password itself; empty to admit everybody.
    """

    def __init__(self, user: str = "", password: str = "") -> None:
        self._user = user
        self._stored = _stored(password) if password else b""

    @property
    def required(self) -> bool:
        """Whether clients need a password."""
        return bool(self._stored)

    def admit(self, request: Authentication, seed: bytes) -> bool:
        """Return whether the client may use the server.

        Args:
            request: of the client.
            seed: of the handshake.
        """
        if not self._stored:
            return True
        if self._user and request.user != self._user:
            return False
        try:
            token = bytes.fromhex(request.password.decode("ascii"))
        except ValueError:
            return False
        if len(token) != _DIGEST_BYTES:
            return False
        mask = hashlib.sha1(seed + self._stored).digest()
        password = bytes(a ^ b for a, b in zip(token, mask, strict=True))
        return hmac.compare_digest(hashlib.sha1(password).digest(), self._stored)


def _stored(password: str) -> bytes:
    try:
        digest = bytes.fromhex(password)
    except ValueError:
        digest = b""
    if len(digest) == _DIGEST_BYTES:
        return digest
    return hashlib.sha1(hashlib.sha1(password.encode()).digest()).digest()
