"""A Kafka broker with three listeners: plain text, TLS, and a login by each SASL mechanism."""

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

__all__ = ["MECHANISMS", "PASSWORD", "SESSION_MS", "USER", "Listeners", "listening", "token"]

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
USER, PASSWORD = "alice", "alice-secret"
SESSION_MS = 2000
"""The time after which a client must log in again. Kafka accepts no new login within a second after the last one."""

_LOGIN = "org.apache.kafka.common.security"


@dataclass(frozen=True, slots=True)
class Listeners:
    """The addresses of a broker, and its certificates."""

    plain: str
    tls: str
    sasl: str
    files: TlsFiles


@contextmanager
def listening(folder: Path) -> Iterator[Listeners]:
    """A running broker; certificates are written to the folder."""
    files = TlsFiles.make(folder)
    identity = files.folder / "broker.pem"
    identity.write_text((files.folder / "server.key").read_text() + (files.folder / "server.pem").read_text())
    with _Kafka(identity, files.ca) as kafka:
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
        for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
            user = UserScramCredentialUpsertion(USER, ScramCredentialInfo(mechanism, 4096), PASSWORD.encode())
            for done in admin.alter_user_scram_credentials([user]).values():
                done.result()
        host = kafka.host
        yield Listeners(kafka.bootstrap, f"{host}:{kafka.tls_port}", f"{host}:{kafka.sasl_port}", files)


class _Kafka(Kafka):
    """A broker with two more listeners."""

    def __init__(self, identity: Path, ca: Path) -> None:
        self.tls_port, self.sasl_port = free_port(), free_port()
        super().__init__(
            {
                "listener.security.protocol.map": (
                    "CLIENT:PLAINTEXT,INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT,TLS:SSL,LOGIN:SASL_PLAINTEXT"
                ),
                "listener.name.tls.ssl.keystore.type": "PEM",
                "listener.name.tls.ssl.keystore.location": str(identity),
                "listener.name.tls.ssl.truststore.type": "PEM",
                "listener.name.tls.ssl.truststore.location": str(ca),
                "listener.name.tls.ssl.client.auth": "requested",
                "listener.name.login.sasl.enabled.mechanisms": ",".join(MECHANISMS),
                "listener.name.login.plain.sasl.jaas.config": (
                    f'{_LOGIN}.plain.PlainLoginModule required user_{USER}="{PASSWORD}";'
                ),
                "listener.name.login.scram-sha-256.sasl.jaas.config": f"{_LOGIN}.scram.ScramLoginModule required;",
                "listener.name.login.scram-sha-512.sasl.jaas.config": f"{_LOGIN}.scram.ScramLoginModule required;",
                "listener.name.login.oauthbearer.sasl.jaas.config": (
                    f'{_LOGIN}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";'
                ),
                "listener.name.login.connections.max.reauth.ms": str(SESSION_MS),
            }
        )

    def _properties(self, listen: str, port: int, log_dir: str) -> dict[str, str]:
        properties = super()._properties(listen, port, log_dir)
        more = f",TLS://{self.host}:{self.tls_port},LOGIN://{self.host}:{self.sasl_port}"
        for name in ("listeners", "advertised.listeners"):
            properties[name] += more
        return properties


def token(expires: int = 4_102_444_800) -> str:
    """A token without a signature, which Kafka accepts unless another validator is set. The time is in seconds."""
    parts = ({"alg": "none"}, {"sub": USER, "iat": 1_700_000_000, "exp": expires})
    return ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts) + "."
