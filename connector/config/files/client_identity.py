"""TLS contexts of clients, with a certificate and its private key, which OpenSSL reads from files only."""

import secrets
import ssl
import tempfile
from collections.abc import Callable
from typing import TYPE_CHECKING

from rowtide.connector.config.files.key_stores import pem, read_key_store

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes


def client_context(*, verify: bool, host: bool) -> ssl.SSLContext:
    """Return a context without certificates.

    Args:
        verify: whether the signature of the server's certificate is verified.
        host: whether its host name is verified as well.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = verify and host
    context.verify_mode = ssl.CERT_REQUIRED if verify else ssl.CERT_NONE
    return context


def key_password(password: str | None, missing: Exception) -> Callable[[], str]:
    """Return the callback that OpenSSL calls for an encrypted key. Without one it would prompt on the terminal.

    Args:
        password: of the key.
        missing: raised if the key is encrypted, and there is no password.
    """

    def called() -> str:
        if not password:
            raise missing
        return password

    return called


def load_identity(context: ssl.SSLContext, key: "PrivateKeyTypes", certificates: str) -> None:
    """Set a key and its certificates.

    In the file for OpenSSL the key is encrypted with a password that exists in memory only; no other user may read the
    file, and it is deleted immediately.

    Args:
        context: the context.
        key: the private key.
        certificates: the certificate of the key, and its chain, as PEM.

    Raises:
        ssl.SSLError: they do not belong together.
    """
    from cryptography.hazmat.primitives.serialization import (  # noqa: PLC0415 - slow to import
        BestAvailableEncryption,
        Encoding,
        PrivateFormat,
    )

    passphrase = secrets.token_hex(32).encode()
    encrypted = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(passphrase))
    with tempfile.NamedTemporaryFile(suffix=".pem") as file:
        file.write(encrypted + certificates.encode())
        file.flush()
        context.load_cert_chain(file.name, password=passphrase)


def load_key_store(context: ssl.SSLContext, content: bytes, password: str | None) -> None:
    """Set the key and the certificates of a store of Java or in PKCS#12.

    Args:
        context: the context.
        content: the file.
        password: the store's password.

    Raises:
        ValueError: the store cannot be read, or contains no key.
        ssl.SSLError: OpenSSL does not accept the content.
    """
    from cryptography.hazmat.primitives.serialization import load_der_private_key  # noqa: PLC0415 - slow to import

    store = read_key_store(content, password)
    if store.key is None:
        raise ValueError("it contains no key")
    key = load_der_private_key(store.key, None)
    load_identity(context, key, "".join(pem("CERTIFICATE", one) for one in store.chain))
