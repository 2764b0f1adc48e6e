"""A Kafka broker with one more listener, for TLS."""

from __future__ import annotations

from rowtide_stack import Kafka
from rowtide_stack.ports import free_port
from rowtide_stack.servers.tls import TlsFiles

from tests.support.kafka.listeners import certificate_settings

__all__ = ["EncryptedKafka"]


class EncryptedKafka(Kafka):
    """A broker whose clients use TLS; `bootstrap` stays in plain text.

    Args:
        files: the certificates.

    Attributes:
        tls_port: the port of TLS. `advertise` changes the port that clients are told for it.
    """

    def __init__(self, files: TlsFiles) -> None:
        self.tls_port = self._advertised_tls_port = free_port()
        protocols = "CLIENT:PLAINTEXT,TLS:SSL,INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT"
        super().__init__({"listener.security.protocol.map": protocols, **certificate_settings(files)})

    def advertise(self, port: int) -> None:
        self._advertised_tls_port = port

    def _properties(self, listen: str, port: int, log_dir: str) -> dict[str, str]:
        properties = super()._properties(listen, port, log_dir)
        properties["listeners"] += f",TLS://{listen}:{self.tls_port}"
        properties["advertised.listeners"] += f",TLS://{self.host}:{self._advertised_tls_port}"
        return properties
