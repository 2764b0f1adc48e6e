"""A broker that accepts connections and never answers, such as one that is suspended."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from rowtide.connector.check import CheckedTable
from rowtide.connector.check.kafka_access import access_findings
from rowtide.connector.config import from_properties
from rowtide.topics.admin.topic_admin import TopicAdmin
from rowtide.topics.errors import KafkaUnreachable
from rowtide.topics.settings import TopicSettings
from tests.support.configurations import PROPERTIES

TIMEOUT = 0.3


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of the broker; connections wait in the backlog."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


def test_a_topic_that_cannot_be_created_because_no_broker_answers(silent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Delivery retries this error, and no other."""
    admin = TopicAdmin({"bootstrap.servers": silent}, TIMEOUT)
    monkeypatch.setattr(admin, "identify", lambda _topics: {})  # the broker has answered until now
    with pytest.raises(KafkaUnreachable, match="cannot create topic 't'"):
        admin.ensure("t", TopicSettings(1, 1))


def test_checks_of_a_broker_that_stops_answering_in_their_midst(silent: str) -> None:
    assert TopicAdmin({"bootstrap.servers": silent}, TIMEOUT).rejection("t", TopicSettings()) is None
    config = from_properties({**PROPERTIES, "bootstrap.servers": silent})
    tables = [CheckedTable("d", name, None, None, f"shop.d.{name}") for name in ("there", "new")]
    assert list(access_findings(config, tables, {"shop.d.there": 1}, timeout=TIMEOUT)) == []
