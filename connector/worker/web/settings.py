"""The address, the permissions and the certificate of the web server."""

import os
import ssl
from dataclasses import dataclass
from pathlib import Path

from rowtide.connector.config.errors import ConfigurationError
from rowtide.connector.worker.web.access import Access
from rowtide.connector.worker.web.address import WebAddress
from rowtide.connector.worker.web.changing_files import ChangingFiles
from rowtide.connector.worker.web.users import UsersFile


@dataclass(frozen=True, slots=True)
class WebSettings:
    """The settings of a web server.

    Attributes:
        address: the address of the server.
        token: a token that permits all requests; ``None`` if there is none.
        users: the file of its users; ``None`` if there is none.
        tls: the certificate for HTTPS; ``None`` for HTTP.
        proofs: the directory of the proofs of ``rowtide verify`` that the page shows; ``None`` for none.
    """

    address: WebAddress
    token: str | None = None
    users: UsersFile | None = None
    tls: ssl.SSLContext | None = None
    proofs: Path | None = None

    @classmethod
    def choose(
        cls,
        bind: str | None = None,
        port: int | None = None,
        *,
        token: str | None = None,
        users: str | None = None,
        certificate: str | None = None,
        key: str | None = None,
        proofs: str | None = None,
    ) -> "WebSettings":
        """Return the settings from the options, or otherwise from the environment.

        Args:
            bind: an address; by default ``WEB_BIND`` of the environment, or the loopback address.
            port: by default ``WEB_PORT`` of the environment, or 6066, or a free one if 6066 is in use.
            token: by default ``WEB_TOKEN`` of the environment.
            users: the path of the file of users.
            certificate: the path of a PEM file with a certificate and those of its issuers.
            key: the path of a PEM file with its key, which may be the same file.
            proofs: the path of a directory with proofs of ``rowtide verify``.

        Raises:
            ConfigurationError: ``WEB_PORT`` is not a port, or a file cannot be used.
        """
        if key and not certificate:
            raise ConfigurationError([("--web-tls-key", "needs --web-tls-certificate")])
        if proofs is not None and not os.path.isdir(proofs):  # noqa: PTH112 - Path.is_dir raises for some paths
            raise ConfigurationError(
                [("--web-proofs", f"{proofs} is not a directory: create it for rowtide verify first")]
            )
        return cls(
            WebAddress.choose(bind, port),
            token or os.environ.get("WEB_TOKEN") or None,
            None if users is None else UsersFile(users),
            None if certificate is None else server_context(certificate, key or certificate),
            None if proofs is None else Path(proofs),
        )

    def access(self) -> Access:
        """Return the permissions."""
        return Access(self.token, self.address.host, self.users)


def server_context(certificate: str, key: str) -> ssl.SSLContext:
    """Return the TLS context of a server. Changed files are used from the next connection.

    Args:
        certificate: the path of a PEM file.
        key: the path of a PEM file.

    Raises:
        ConfigurationError: a file cannot be used.
    """
    current = ChangingFiles([certificate, key], lambda: _loaded(certificate, key), "the former one remains")

    def use_current(connection: ssl.SSLObject, *_: object) -> None:
        connection.context = current()

    context = _loaded(certificate, key)
    context.sni_callback = use_current  # Python calls it for each connection
    return context


def _loaded(certificate: str, key: str) -> ssl.SSLContext:
    for option, path in (("--web-tls-certificate", certificate), ("--web-tls-key", key)):
        try:
            Path(path).read_bytes()
        except OSError as error:
            raise ConfigurationError([(option, f"{path} cannot be read: {error.strerror}")]) from None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(certificate, key, password="")
    except ssl.SSLError as error:
        reason = error.reason or str(error)
        message = f"{certificate} and {key} are not a PEM certificate and its key without a password ({reason})"
        raise ConfigurationError([("--web-tls-certificate", message)]) from None
    return context
