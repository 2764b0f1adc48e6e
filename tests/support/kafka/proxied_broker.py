"""A Kafka broker with a second address, behind a proxy: a Kafka of its own, as far as clients can tell."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from rowtide_stack import Kafka
from rowtide_stack.ports import free_port

from tests.support.network.tcp_proxy import TcpProxy

__all__ = ["ProxiedKafka", "proxied_kafka"]


class ProxiedKafka(NamedTuple):
    """A broker, and the proxy in front of its second address."""

    kafka: Kafka
    proxy: TcpProxy

    @property
    def bootstrap(self) -> str:
        """The second address."""
        return f"{self.kafka.host}:{self.proxy.port}"


@contextmanager
def proxied_kafka() -> Iterator[ProxiedKafka]:
    """A running broker and its proxy."""
    kafka = _Kafka()
    with TcpProxy(kafka.host, kafka.second_port) as proxy:
        kafka.advertised_port = proxy.port
        with kafka:
            yield ProxiedKafka(kafka, proxy)


class _Kafka(Kafka):
    """A broker that tells the clients of its second listener another port."""

    def __init__(self) -> None:
        self.second_port = self.advertised_port = free_port()
        protocols = "CLIENT:PLAINTEXT,SECOND:PLAINTEXT,INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT"
        super().__init__({"listener.security.protocol.map": protocols})

    def _properties(self, listen: str, port: int, log_dir: str) -> dict[str, str]:
        properties = super()._properties(listen, port, log_dir)
        properties["listeners"] += f",SECOND://{listen}:{self.second_port}"
        properties["advertised.listeners"] += f",SECOND://{self.host}:{self.advertised_port}"
        return properties
