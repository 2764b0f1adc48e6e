"""A Kafka broker with five listeners: plain text, TLS without and with certificates of clients, and SASL logins."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from rowtide_stack import Kafka
from rowtide_stack.ports import free_port
from rowtide_stack.servers.tls import TlsFiles

__all__ = ["MECHANISMS", "PASSWORD", "SESSION_MS", "USER", "Listeners", "certificate_settings", "listening", "token"]

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
USER, PASSWORD = "alice", "alice-secret"
SESSION_MS = 2000
"""The time after which a client must log in again. Kafka accepts no new login within a second after the last one."""

_PROTOCOLS = {"TLS": "SSL", "MUTUAL": "SSL", "LOGIN": "SASL_PLAINTEXT", "LOGINTLS": "SASL_SSL"}
_LOGIN = "org.apache.kafka.common.security"


@dataclass(frozen=True, slots=True)
class Listeners:
    """The addresses of a broker, and its certificates.

    Attributes:
        plain: plain text.
        tls: TLS.
        mutual: TLS; requires a certificate of the client.
        sasl: a login by each mechanism, in plain text.
        sasl_tls: the same with TLS.
        files: the certificates.
    """

    plain: str
    tls: str
    mutual: str
    sasl: str
    sasl_tls: str
    files: TlsFiles


@contextmanager
def listening(folder: Path) -> Iterator[Listeners]:
    """A running broker; certificates are written to the folder."""
    files = TlsFiles.make(folder)
    with _Kafka(files) as kafka:
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
        for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
            user = UserScramCredentialUpsertion(USER, ScramCredentialInfo(mechanism, 4096), PASSWORD.encode())
            for done in admin.alter_user_scram_credentials([user]).values():
                done.result()
        tls, mutual, sasl, sasl_tls = (f"{kafka.host}:{port}" for port in kafka.ports.values())
        yield Listeners(kafka.bootstrap, tls, mutual, sasl, sasl_tls, files)


def certificate_settings(files: TlsFiles) -> dict[str, str]:
    """The settings of a broker with the server's certificate, which also trusts the client's."""
    identity = files.folder / "broker.pem"
    identity.write_text((files.folder / "server.key").read_text() + (files.folder / "server.pem").read_text())
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(identity),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(files.ca),
    }


class _Kafka(Kafka):
    """A broker with four more listeners."""

    def __init__(self, files: TlsFiles) -> None:
        self.ports = {name: free_port() for name in _PROTOCOLS}
        protocols = ",".join(f"{name}:{protocol}" for name, protocol in _PROTOCOLS.items())
        super().__init__(
            {
                "listener.security.protocol.map": (
                    f"CLIENT:PLAINTEXT,INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT,{protocols}"
                ),
                **certificate_settings(files),
                "ssl.client.auth": "requested",
                "listener.name.mutual.ssl.client.auth": "required",
                **_login("login"),
                **_login("logintls"),
            }
        )

    def _properties(self, listen: str, port: int, log_dir: str) -> dict[str, str]:
        properties = super()._properties(listen, port, log_dir)
        more = "".join(f",{name}://{self.host}:{port}" for name, port in self.ports.items())
        for name in ("listeners", "advertised.listeners"):
            properties[name] += more
        return properties


def _login(listener: str) -> dict[str, str]:
    """The settings of a listener with a login by each mechanism."""
    modules = {
        "plain": f'{_LOGIN}.plain.PlainLoginModule required user_{USER}="{PASSWORD}";',
        "scram-sha-256": f"{_LOGIN}.scram.ScramLoginModule required;",
        "scram-sha-512": f"{_LOGIN}.scram.ScramLoginModule required;",
        "oauthbearer": f'{_LOGIN}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";',
    }
    return {
        f"listener.name.{listener}.sasl.enabled.mechanisms": ",".join(MECHANISMS),
        f"listener.name.{listener}.connections.max.reauth.ms": str(SESSION_MS),
        **{f"listener.name.{listener}.{name}.sasl.jaas.config": module for name, module in modules.items()},
    }


def token(expires: int = 4_102_444_800) -> str:
    """A token without a signature, which Kafka accepts unless another validator is set. The time is in seconds."""
    parts = ({"alg": "none"}, {"sub": USER, "iat": 1_700_000_000, "exp": expires})
    return ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts) + "."
