"""Kafka's brokers, without one."""

from typing import Any

import pytest
from rowtide_stack.ports import free_port

from rowtide.connector.check import Finding, Severity, broker
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


def test_a_name_that_cannot_be_that_of_a_host_is_reported() -> None:
    name = "x" * 64
    config = from_properties(configurations.PROPERTIES | {"bootstrap.servers": f"{name}:9092"})
    (found,) = broker_findings(config, timeout=1)
    assert found.subject == "bootstrap.servers"
    assert name in found.message


def test_brokers_of_signals_that_do_not_answer_are_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    signals, reach = f"127.0.0.1:{free_port()}", broker._reach

    def only_signals(settings: Any, name: str, timeout: float) -> list[Finding]:
        return reach(settings, name, timeout) if settings["bootstrap.servers"] == signals else []

    monkeypatch.setattr(broker, "_reach", only_signals)
    channels = {"signal.enabled.channels": "kafka", "signal.kafka.bootstrap.servers": signals}
    found = broker_findings(from_properties(configurations.PROPERTIES | channels), timeout=600)
    assert [(one.severity, one.subject) for one in found if "no Kafka broker answers" in one.message] == [
        (Severity.WARNING, "signal.kafka.bootstrap.servers")
    ]
