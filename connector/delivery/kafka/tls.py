"""Creates the TLS context for brokers from ``ssl.*``: PEM files and texts, and PKCS#12."""

import ssl
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from rowtide.connector.config.files.client_identity import client_context, key_password, load_identity, load_key_store
from rowtide.connector.kafka_producer.connection.settings import TlsSettings

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes

_T = TypeVar("_T")

_ENCRYPTED = "the client's private key is encrypted: set ssl.key.password"
_SYSTEM = ("", "probe")
"""Values of ``ssl.ca.location`` that stand for the certificates that the system trusts."""


class TlsFileError(ValueError):
    """A certificate or key cannot be used; the message names the setting."""


def tls_context(tls: TlsSettings) -> ssl.SSLContext:
    """Return the context for connections to brokers.

    Raises:
        TlsFileError: a file cannot be read, or a certificate or key cannot be used.
    """
    context = client_context(verify=tls.verify, host=tls.verify_host)
    if tls.ciphers:
        _using("ssl.cipher.suites", lambda: context.set_ciphers(tls.ciphers))
    _trust(context, tls)
    _identify(context, tls)
    return context


def _trust(context: ssl.SSLContext, tls: TlsSettings) -> None:
    if tls.ca_pem:
        _using("ssl.ca.pem", lambda: context.load_verify_locations(cadata=tls.ca_pem))
    if tls.ca_location not in _SYSTEM:
        folder = Path(tls.ca_location).is_dir()
        place = {"capath" if folder else "cafile": tls.ca_location}
        _using("ssl.ca.location", lambda: context.load_verify_locations(**place))
    elif not tls.ca_pem:
        context.load_default_certs()
    if tls.crl_location:
        _using("ssl.crl.location", lambda: context.load_verify_locations(cafile=tls.crl_location))
        context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF


def _identify(context: ssl.SSLContext, tls: TlsSettings) -> None:
    """Set the client's certificate and its key, if there are any."""
    if tls.keystore_location:
        password = tls.keystore_password or None
        _using(
            "ssl.keystore.location",
            lambda: load_key_store(context, Path(tls.keystore_location).read_bytes(), password),
        )
    elif tls.certificate_pem or tls.key_pem:
        certificate = tls.certificate_pem or _text("ssl.certificate.location", tls.certificate_location)
        key = tls.key_pem or _text("ssl.key.location", tls.key_location)
        _using("ssl.key.pem", lambda: load_identity(context, _private_key(key, tls.key_password), certificate))
    elif tls.certificate_location:
        key_file = tls.key_location or tls.certificate_location
        password_of_key = key_password(tls.key_password, TlsFileError(_ENCRYPTED))
        _using(
            "ssl.certificate.location",
            lambda: context.load_cert_chain(tls.certificate_location, key_file, password=password_of_key),
        )


def _private_key(text: str, password: str) -> "PrivateKeyTypes":
    """Return a key in PEM, encrypted or not."""
    from cryptography.hazmat.primitives.serialization import load_pem_private_key  # noqa: PLC0415 - slow to import

    try:
        return load_pem_private_key(text.encode(), None)
    except TypeError:  # it is encrypted
        if not password:
            raise TlsFileError(_ENCRYPTED) from None
        return load_pem_private_key(text.encode(), password.encode())


def _text(setting: str, path: str) -> str:
    return _using(setting, Path(path).read_text)


def _using(setting: str, act: Callable[[], _T]) -> _T:
    """Use a setting in the block; every failure names it."""
    try:
        return act()
    except TlsFileError:
        raise
    except (OSError, ValueError) as error:  # errors of OpenSSL are among the first
        raise TlsFileError(f"{setting} cannot be used: {error}") from None
