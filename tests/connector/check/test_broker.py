"""Kafka's brokers, without one."""

from rowtide_stack.ports import free_port

from rowtide.connector.check.broker import broker_findings
from rowtide.connector.config import from_properties
from tests.support import configurations


def test_a_refused_connection_is_reported_without_waiting() -> None:
    servers = f"127.0.0.1:{free_port()},localhost:{free_port()}"
    config = from_properties(configurations.PROPERTIES | {"bootstrap.servers": servers})
    (found,) = broker_findings(config, timeout=600)
    assert found.subject == "bootstrap.servers"
    assert found.message.startswith(f"no Kafka broker answers at {servers}: Connection refused. Check the addresses")
    assert found.retriable
