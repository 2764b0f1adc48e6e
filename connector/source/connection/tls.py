"""Edge: creates the TLS context for the database from ``database.ssl.*``: PEM files or PKCS#12 stores."""

import secrets
import ssl
import tempfile
from collections.abc import Callable
from pathlib import Path

from rowtide.connector.config.choices import SslMode
from rowtide.connector.config.model import Tls

_STORES = frozenset({".p12", ".pfx", ".pkcs12"})
_JAVA_MAGIC = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")


class TlsError(ValueError):
    """A file of certificates or keys cannot be used.

    Attributes:
        property: the property that names the file.
    """

    def __init__(self, property_name: str, message: str) -> None:
        super().__init__(message)
        self.property = property_name


def tls_context(tls: Tls) -> ssl.SSLContext | None:
    """The context for connections to the database, or ``None`` for plain text.

    As in MySQL's own clients, ``preferred`` and ``required`` do not verify the server's certificate; ``verify_ca``
    verifies its signature, ``verify_identity`` the host name as well.

    Raises:
        TlsError: a file cannot be read or used.
    """
    if tls.mode is SslMode.DISABLED:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = tls.mode is SslMode.VERIFY_IDENTITY
    verify = tls.mode in (SslMode.VERIFY_CA, SslMode.VERIFY_IDENTITY)
    context.verify_mode = ssl.CERT_REQUIRED if verify else ssl.CERT_NONE
    if verify:
        _trust(context, tls)
    if tls.keystore is not None:
        _identify(context, tls.keystore, tls.keystore_password.reveal() if tls.keystore_password else None)
    return context


def _trust(context: ssl.SSLContext, tls: Tls) -> None:
    name = "database.ssl.truststore"
    if tls.truststore is None:
        context.load_default_certs()
        return
    content = _read(name, tls.truststore)
    try:
        if Path(tls.truststore).suffix.lower() in _STORES:
            password = tls.truststore_password.reveal() if tls.truststore_password else None
            for certificate in _store_certificates(content, password):
                context.load_verify_locations(cadata=certificate)
        else:
            context.load_verify_locations(cadata=content.decode("ascii"))
    except (ValueError, ssl.SSLError) as error:
        raise TlsError(name, f"{tls.truststore} holds no usable certificates: {error}") from None


def _identify(context: ssl.SSLContext, path: str, password: str | None) -> None:
    name = "database.ssl.keystore"
    content = _read(name, path)
    try:
        if Path(path).suffix.lower() not in _STORES:
            context.load_cert_chain(path, password=_key_password(name, path, password))
            return
        # OpenSSL reads keys from files only. In this one the key is encrypted with a password that exists in memory
        # only; nobody else may read the file, and it is deleted at once.
        passphrase = secrets.token_hex(32).encode()
        with tempfile.NamedTemporaryFile(suffix=".pem") as file:
            file.write(_store_identity(content, password, passphrase))
            file.flush()
            context.load_cert_chain(file.name, password=passphrase)
    except TlsError:
        raise
    except (ValueError, ssl.SSLError) as error:
        raise TlsError(name, f"{path} holds no usable certificate with its key: {error}") from None


def _key_password(name: str, path: str, password: str | None) -> Callable[[], str]:
    """The callback that OpenSSL calls for an encrypted key; without a callback it would prompt on the terminal."""

    def called() -> str:
        if not password:
            raise TlsError(name, f"the key in {path} is encrypted: set {name}.password")
        return password

    return called


def _read(name: str, path: str) -> bytes:
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise TlsError(name, f"{path} cannot be read: {error.strerror or error}") from None
    if content.startswith(_JAVA_MAGIC):
        raise TlsError(
            name,
            f"{path} is a Java key store, which only Java reads; convert it: keytool -importkeystore -srckeystore "
            f"{path} -destkeystore store.p12 -deststoretype PKCS12",
        )
    return content


def _store_certificates(content: bytes, password: str | None) -> list[bytes]:
    from cryptography.hazmat.primitives.serialization import Encoding, pkcs12  # noqa: PLC0415 - slow to import

    store = pkcs12.load_pkcs12(content, password.encode() if password else None)
    found = [*([store.cert] if store.cert else []), *store.additional_certs]
    return [certificate.certificate.public_bytes(Encoding.DER) for certificate in found]


def _store_identity(content: bytes, password: str | None, passphrase: bytes) -> bytes:
    """The key, encrypted with the passphrase, and the certificates of a PKCS#12 store, as PEM."""
    from cryptography.hazmat.primitives.serialization import (  # noqa: PLC0415 - slow to import
        BestAvailableEncryption,
        Encoding,
        PrivateFormat,
        pkcs12,
    )

    store = pkcs12.load_pkcs12(content, password.encode() if password else None)
    if store.key is None or store.cert is None:
        raise ValueError("it contains no key")
    key = store.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(passphrase))
    chain = (store.cert, *store.additional_certs)
    return key + b"".join(certificate.certificate.public_bytes(Encoding.PEM) for certificate in chain)
