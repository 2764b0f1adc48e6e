"""Creates the TLS context for the database from ``database.ssl.*``: PEM files, PKCS#12 or Java stores."""

import ssl
from pathlib import Path

from rowtide.connector.config.choices import SslMode
from rowtide.connector.config.files.client_identity import client_context, key_password, load_key_store
from rowtide.connector.config.files.key_stores import kind_of, read_key_store
from rowtide.connector.config.model.database import Tls

_STORES = frozenset({"JKS", "JCEKS"})
_PKCS12 = frozenset({".p12", ".pfx", ".pkcs12", ".jks"})


class TlsError(ValueError):
    """A file of certificates or keys cannot be used.

    Attributes:
        property: the property that names the file.
    """

    def __init__(self, property_name: str, message: str) -> None:
        super().__init__(message)
        self.property = property_name


def tls_context(tls: Tls) -> ssl.SSLContext | None:
    """Return the context for connections to the database, or ``None`` for plain text.

    As in MySQL's own clients, ``preferred`` and ``required`` do not verify the server's certificate; ``verify_ca``
    verifies its signature, ``verify_identity`` the host name as well.

    Raises:
        TlsError: a file cannot be read or used.
    """
    if tls.mode is SslMode.DISABLED:
        return None
    verify = tls.mode in (SslMode.VERIFY_CA, SslMode.VERIFY_IDENTITY)
    context = client_context(verify=verify, host=tls.mode is SslMode.VERIFY_IDENTITY)
    if verify:
        _trust(context, tls)
    if tls.keystore is not None:
        _identify(context, tls.keystore, tls.keystore_password.reveal() if tls.keystore_password else None)
    return context


def pinned_key(path: str) -> bytes:
    """Read the server's RSA public key, with which the password is encrypted.

    Raises:
        TlsError: the file cannot be read, or has no such key.
    """
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey  # noqa: PLC0415 - takes memory
    from cryptography.hazmat.primitives.serialization import load_pem_public_key  # noqa: PLC0415

    name = "database.server.public.key.file"
    content = _read(name, path)
    try:
        key = load_pem_public_key(content)
    except ValueError as error:
        raise TlsError(name, f"{path} holds no public key in PEM format: {error}") from None
    if not isinstance(key, RSAPublicKey):
        raise TlsError(name, f"{path} holds a key that is not an RSA key")
    return content


def _trust(context: ssl.SSLContext, tls: Tls) -> None:
    name = "database.ssl.truststore"
    if tls.truststore is None:
        context.load_default_certs()
        return
    content = _read(name, tls.truststore)
    try:
        if _is_store(tls.truststore, content):
            password = tls.truststore_password.reveal() if tls.truststore_password else None
            for certificate in read_key_store(content, password).certificates:
                context.load_verify_locations(cadata=certificate)
        else:
            context.load_verify_locations(cadata=content.decode("ascii", "ignore"))  # comments may be in any language
    except (ValueError, ssl.SSLError) as error:
        raise TlsError(name, f"{tls.truststore} holds no usable certificates: {error}") from None


def _identify(context: ssl.SSLContext, path: str, password: str | None) -> None:
    name = "database.ssl.keystore"
    content = _read(name, path)
    try:
        if _is_store(path, content):
            load_key_store(context, content, password)
        else:
            encrypted = TlsError(name, f"the key in {path} is encrypted: set {name}.password")
            context.load_cert_chain(path, password=key_password(password, encrypted))
    except TlsError:
        raise
    except (ValueError, ssl.SSLError) as error:
        raise TlsError(name, f"{path} holds no usable certificate with its key: {error}") from None


def _read(name: str, path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise TlsError(name, f"{path} cannot be read: {error.strerror or error}") from None


def _is_store(path: str, content: bytes) -> bool:
    """Return whether a file is a Java or PKCS#12 key store; other files contain PEM certificates."""
    return kind_of(content) in _STORES or Path(path).suffix.lower() in _PKCS12
