"""Checks that brokers listen at the addresses of Kafka, before Spark is started."""

import socket

from rowtide.spark_consumers.errors import KafkaUnreachableError

_TIMEOUT_S = 5.0


def require_listener(servers: str) -> None:
    """Connect to one of the brokers.

    Args:
        servers: ``bootstrap.servers``.

    Raises:
        KafkaUnreachableError: no broker listens at any of the addresses.
    """
    failures = []
    for server in filter(None, (part.strip() for part in servers.split(","))):
        host, _, port = server.rpartition("://")[2].rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), _TIMEOUT_S).close()
        except (OSError, ValueError, OverflowError) as error:
            failures.append(f"{server}: {error}")
        else:
            return
    raise KafkaUnreachableError(f"Kafka at {servers} did not answer: {'; '.join(failures)}. Check --bootstrap-servers")
