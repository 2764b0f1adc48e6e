"""Reads certificates and keys of Java's stores (JKS) and of PKCS#12; pure.

JKS is a list of entries with a checksum after it. A private key in it is encrypted by Sun's own method: XOR with a
chain of SHA-1 digests of the password (``sun.security.provider.JavaKeyStore`` and ``KeyProtector``).
"""

import hashlib
import hmac
import struct
from base64 import encodebytes
from typing import NamedTuple

_JKS = b"\xfe\xed\xfe\xed"
_JCEKS = b"\xce\xce\xce\xce"
_PEM = b"-----BEGIN "
_DIGEST = 20
_KEY, _CERTIFICATE = 1, 2
_SEQUENCE, _OCTETS = 0x30, 0x04


class KeyStore(NamedTuple):
    """The content of a store.

    Attributes:
        trusted: certificates, in DER.
        key: the first private key, as PKCS#8 in DER without encryption; ``None`` if there is none.
        chain: the certificates of that key, its own first.
    """

    trusted: tuple[bytes, ...] = ()
    key: bytes | None = None
    chain: tuple[bytes, ...] = ()

    @property
    def certificates(self) -> tuple[bytes, ...]:
        """All certificates, for use as a trust store."""
        return (*self.trusted, *self.chain)


def kind_of(content: bytes) -> str:
    """Return ``JKS``, ``JCEKS``, ``PEM``, or otherwise ``PKCS12``, by the content.

    The names of files are often misleading.
    """
    if content.startswith(_JKS):
        return "JKS"
    if content.startswith(_JCEKS):
        return "JCEKS"
    return "PEM" if _PEM in content else "PKCS12"


def read_key_store(content: bytes, password: str | None, key_password: str | None = None) -> KeyStore:
    """Read a store of Java or in PKCS#12.

    Args:
        content: the file.
        password: the store's password; without it, the checksum of a JKS is not verified.
        key_password: the password of the key, if it differs from that of the store.

    Raises:
        ValueError: a password is wrong, or the store is damaged or of an unsupported kind.
    """
    kind = kind_of(content)
    if kind == "JKS":
        return _java_store(content, password, key_password or password)
    if kind == "PKCS12":
        return _pkcs12_store(content, password)
    raise ValueError(f"its type is {kind}. Convert it: keytool -importkeystore -deststoretype PKCS12 …")


def pem(label: str, der: bytes) -> str:
    """Return a certificate (``CERTIFICATE``) or key (``PRIVATE KEY``) as PEM."""
    return f"-----BEGIN {label}-----\n{encodebytes(der).decode()}-----END {label}-----\n"


def _java_store(content: bytes, password: str | None, key_password: str | None) -> KeyStore:
    body, checksum = content[:-_DIGEST], content[-_DIGEST:]
    if password is not None:
        wanted = hashlib.sha1(_utf16(password) + b"Mighty Aphrodite" + body).digest()
        if not hmac.compare_digest(wanted, checksum):
            raise ValueError("its password is not correct, or the file is damaged")
    try:
        return _entries(_Reader(body), key_password)
    except (struct.error, UnicodeDecodeError):
        raise ValueError("it is damaged") from None


def _entries(reader: "_Reader", key_password: str | None) -> KeyStore:
    _, version, count = reader.numbers(">III")
    store = KeyStore()
    for _ in range(count):
        (kind,) = reader.numbers(">I")
        reader.text()  # the alias
        reader.numbers(">Q")  # when it was made
        if kind == _CERTIFICATE:
            store = store._replace(trusted=(*store.trusted, reader.certificate(version)))
        elif kind == _KEY:
            protected = reader.block()
            (length,) = reader.numbers(">I")
            chain = tuple(reader.certificate(version) for _ in range(length))
            if store.key is None and key_password is not None:
                store = store._replace(key=_unprotected(protected, key_password), chain=chain)
        else:
            raise ValueError("it has an entry of an unknown kind")
    return store


class _Reader:
    """Reads Java's ``DataOutput`` format."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 0

    def numbers(self, layout: str) -> tuple[int, ...]:
        found = struct.unpack_from(layout, self._content, self._at)
        self._at += struct.calcsize(layout)
        return found

    def take(self, length: int) -> bytes:
        if self._at + length > len(self._content):
            raise ValueError("it is damaged")
        self._at += length
        return self._content[self._at - length : self._at]

    def text(self) -> str:
        return self.take(self.numbers(">H")[0]).decode("utf-8")

    def block(self) -> bytes:
        return self.take(self.numbers(">I")[0])

    def certificate(self, version: int) -> bytes:
        if version >= 2 and self.text() != "X.509":
            raise ValueError("it has a certificate that is not X.509")
        return self.block()


def _unprotected(protected: bytes, password: str) -> bytes:
    """Return the private key in an ``EncryptedPrivateKeyInfo`` of Sun's method."""
    content, _ = _der(protected, _SEQUENCE)
    _, rest = _der(content, _SEQUENCE)
    data, _ = _der(rest, _OCTETS)
    salt, encrypted, check = data[:_DIGEST], data[_DIGEST:-_DIGEST], data[-_DIGEST:]
    secret, digest, stream = _utf16(password), salt, b""
    while len(stream) < len(encrypted):
        digest = hashlib.sha1(secret + digest).digest()
        stream += digest
    key = bytes(one ^ other for one, other in zip(encrypted, stream, strict=False))
    if not hmac.compare_digest(hashlib.sha1(secret + key).digest(), check):
        raise ValueError("its key has a different password")
    return key


def _der(data: bytes, tag: int) -> tuple[bytes, bytes]:
    """Return the content of a DER element, and the bytes after it."""
    if len(data) < 2 or data[0] != tag:
        raise ValueError("it is damaged")
    length, start = data[1], 2
    if length & 0x80:
        start += length & 0x7F
        length = int.from_bytes(data[2:start], "big")
    return data[start : start + length], data[start + length :]


def _utf16(password: str) -> bytes:
    return password.encode("utf-16-be")


def _pkcs12_store(content: bytes, password: str | None) -> KeyStore:
    from cryptography.hazmat.primitives.serialization import (  # noqa: PLC0415 - slow to import
        Encoding,
        NoEncryption,
        PrivateFormat,
        pkcs12,
    )

    store = pkcs12.load_pkcs12(content, password.encode() if password else None)
    others = tuple(one.certificate.public_bytes(Encoding.DER) for one in store.additional_certs)
    if store.key is None or store.cert is None:
        own = (store.cert.certificate.public_bytes(Encoding.DER),) if store.cert else ()
        return KeyStore((*own, *others))
    key = store.key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
    return KeyStore((), key, (store.cert.certificate.public_bytes(Encoding.DER), *others))
