"""Whether a broker is there, before Spark is started."""

import socket

import pytest

from rowtide.spark_consumers.errors import KafkaUnreachableError
from rowtide.spark_consumers.kafka.addresses import require_listener


def test_one_listener_is_enough() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        require_listener(f"127.0.0.1:1, SASL_SSL://127.0.0.1:{port}")
    with pytest.raises(KafkaUnreachableError, match=rf"127\.0\.0\.1:{port}: .*refused.*Check --bootstrap-servers"):
        require_listener(f"127.0.0.1:{port}")


@pytest.mark.parametrize("servers", ["", "nowhere", "host:port", "127.0.0.1:99999", "nosuch.invalid:9092"])
def test_addresses_that_are_none(servers: str) -> None:
    with pytest.raises(KafkaUnreachableError, match=f"Kafka at {servers} did not answer"):
        require_listener(servers)
